// Every template, executed by its dependencies alone, gives the collective's result.
#include "plan/template.h"

#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <optional>
#include <random>
#include <tuple>

namespace hemiola::plan {
namespace {

/// Executes a plan on numbers: in each step a random stream whose next transfer has all it waits
/// for does it. Reading what nobody wrote is an error, so a missing dependency shows in some order.
class Execution {
 public:
  Execution(const Plan& plan, std::uint32_t seed) : plan_(plan), random_(seed) {
    memory_.resize(static_cast<std::size_t>(plan.ranks));
    for (int rank = 0; rank < plan.ranks; ++rank) {
      for (const Tensor& tensor : plan.tensors) {
        auto& chunks = memory_[static_cast<std::size_t>(rank)].emplace_back(tensor.elements());
        if (tensor.role != Role::input) continue;
        for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk)
          chunks[chunk] = input(rank, static_cast<std::int64_t>(chunk));
      }
      const auto& streams = plan.code(rank).streams;
      for (std::size_t i = 0; i < streams.size(); ++i) {
        State state{rank, {}, 0};
        for_each_transfer(streams[i], rank, [&](const Transfer& transfer, const Indices& at) {
          state.todo.emplace_back(transfer, at);
        });
        index_[{rank, static_cast<std::int32_t>(i)}] = states_.size();
        states_.push_back(std::move(state));
      }
    }
  }

  /// False when transfers remain that wait for ever.
  bool run() {
    while (true) {
      std::vector<State*> ready;
      bool done = true;
      for (State& state : states_) {
        if (state.next == state.todo.size()) continue;
        done = false;
        if (may_start(state)) ready.push_back(&state);
      }
      if (done) return true;
      if (ready.empty()) return false;
      State& state = *ready[random_() % ready.size()];
      execute(state.rank, state.todo[state.next].first, state.todo[state.next].second);
      ++state.next;
    }
  }

  static std::uint64_t input(std::int64_t rank, std::int64_t chunk) {
    std::mt19937_64 mixed(static_cast<std::uint64_t>(rank * 1'000'003 + chunk + 1));
    return mixed();
  }

  std::optional<std::uint64_t> value(int rank, std::int32_t tensor, std::int64_t chunk) const {
    return memory_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(tensor)]
                  [static_cast<std::size_t>(chunk)];
  }

 private:
  struct State {
    int rank;
    std::vector<std::pair<Transfer, Indices>> todo;
    std::size_t next;
  };

  bool may_start(const State& state) const {
    const auto& [transfer, at] = state.todo[state.next];
    for (const Dependency& dependency : transfer.after) {
      const State& other =
          states_[index_.at({static_cast<int>(dependency.rank(at)), dependency.stream})];
      if (static_cast<std::int64_t>(other.next) <= dependency.transfer(at)) return false;
    }
    return true;
  }

  void execute(int rank, const Transfer& transfer, const Indices& at) {
    const int peer = static_cast<int>(transfer.peer(at));
    const int reader = transfer.kind == TransferKind::pull ? peer : rank;
    const int writer = transfer.kind == TransferKind::push ? peer : rank;
    const auto read = [&](int owner, const Region& region) {
      const auto found = value(owner, region.tensor, region.first()(at));
      EXPECT_TRUE(found.has_value()) << "rank " << owner << " has no "
                                     << plan_.tensors[static_cast<std::size_t>(region.tensor)].name;
      return found.value_or(0);
    };
    std::uint64_t result = read(reader, transfer.source);
    if (transfer.reduce != ReduceOp::none) result += read(writer, transfer.operand);
    memory_[static_cast<std::size_t>(writer)][static_cast<std::size_t>(transfer.destination.tensor)]
           [static_cast<std::size_t>(transfer.destination.first()(at))] = result;
  }

  const Plan& plan_;
  std::mt19937 random_;
  std::vector<std::vector<std::vector<std::optional<std::uint64_t>>>>
      memory_;  // rank, tensor, chunk
  std::vector<State> states_;
  std::map<std::pair<int, std::int32_t>, std::size_t> index_;
};

std::uint64_t sum_of_inputs(int ranks, std::int64_t chunk) {
  std::uint64_t sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += Execution::input(rank, chunk);
  return sum;
}

std::uint64_t expected(const Plan& plan, int rank, std::int64_t chunk) {
  switch (plan.collective) {
    case Collective::all_reduce:
      return sum_of_inputs(plan.ranks, chunk);
    case Collective::reduce_scatter:
      return sum_of_inputs(plan.ranks, rank);
    case Collective::all_gather:
      return Execution::input(chunk, 0);
    case Collective::all_to_all:
      return Execution::input(chunk, rank);
    case Collective::broadcast:
      return Execution::input(plan.root, chunk);
    default:
      ADD_FAILURE() << "no rule for this collective";
      return 0;
  }
}

void expect_right(const Plan& plan, std::uint32_t seed) {
  Execution execution(plan, seed);
  ASSERT_TRUE(execution.run()) << plan.name << " over " << plan.ranks << " ranks waits for ever";
  for (std::size_t tensor = 0; tensor < plan.tensors.size(); ++tensor) {
    if (plan.tensors[tensor].role != Role::output) continue;
    for (int rank = 0; rank < plan.ranks; ++rank) {
      for (std::int64_t chunk = 0; chunk < plan.tensors[tensor].elements(); ++chunk) {
        ASSERT_EQ(execution.value(rank, static_cast<std::int32_t>(tensor), chunk),
                  expected(plan, rank, chunk))
            << plan.name << " over " << plan.ranks << " ranks: rank " << rank << ", chunk "
            << chunk;
      }
    }
  }
}

/// All combinations of the parameters that are words.
std::vector<Parameters> variants_of(const TemplateInfo& info) {
  std::vector<Parameters> variants{{}};
  for (const ParameterInfo& parameter : info.parameters) {
    std::vector<Parameters> longer;
    for (const Parameters& variant : variants) {
      for (const std::string& choice : parameter.choices) {
        longer.push_back(variant);
        longer.back().emplace_back(parameter.name, choice);
      }
    }
    if (!longer.empty()) variants = std::move(longer);
  }
  return variants;
}

std::size_t items_of(const Plan& plan) {
  std::size_t items = 0;
  for (const Code& code : plan.codes) {
    for (const Stream& stream : code.streams) items += stream.items.size();
  }
  return items;
}

TEST(Templates, all_are_valid_and_right_for_many_numbers_of_ranks) {
  for (const TemplateInfo& info : templates()) {
    for (const Parameters& variant : variants_of(info)) {
      for (const int ranks : {2, 3, 4, 5, 8, 16}) {
        const Plan plan = make(info.name, ranks, variant);
        ASSERT_NO_THROW(validate(plan)) << info.name;
        for (std::uint32_t seed = 0; seed < 4; ++seed) expect_right(plan, seed);
      }
    }
  }
}

TEST(Templates, broadcast_works_from_every_root) {
  for (int root = 0; root < 5; ++root) {
    const Plan plan = make("broadcast/ring", 5, {{"root", std::to_string(root)}});
    EXPECT_EQ(plan.root, root);
    validate(plan);
    expect_right(plan, 1);
  }
}

TEST(Templates, have_as_many_items_for_1024_ranks_as_for_8) {
  for (const TemplateInfo& info : templates()) {
    EXPECT_EQ(items_of(make(info.name, 1024)), items_of(make(info.name, 8))) << info.name;
    EXPECT_LE(items_of(make(info.name, 1024)), 12u) << info.name;
  }
}

TEST(Templates, a_ring_all_reduce_sends_every_chunk_over_every_link_less_two) {
  const Plan plan = make("all-reduce/ring", 8);
  EXPECT_EQ(count_transfers(plan.stream(0, 0)), 2 * (8 - 1));
  std::map<std::int64_t, int> times;
  for_each_transfer(plan.stream(3, 0), 3, [&](const Transfer& transfer, const Indices& at) {
    EXPECT_EQ(transfer.peer(at), 4);
    ++times[transfer.source.first()(at)];
  });
  EXPECT_EQ(times.size(), 8u);
  for (const auto& [chunk, count] : times) EXPECT_LE(count, 2) << chunk;
}

TEST(Templates, a_direct_exchange_gives_all_ranks_different_partners_in_each_step) {
  for (const char* name : {"all-gather/direct", "all-to-all/direct"}) {
    const Plan plan = make(name, 6);
    for (std::size_t step = 0; step < 5; ++step) {
      std::map<std::int64_t, int> chosen;
      for (int rank = 0; rank < 6; ++rank) {
        std::size_t number = 0;
        for_each_transfer(plan.stream(rank, 0), rank,
                          [&](const Transfer& transfer, const Indices& at) {
                            if (number++ == step) ++chosen[transfer.peer(at)];
                          });
      }
      EXPECT_EQ(chosen.size(), 6u) << name << " step " << step;
    }
  }
}

TEST(Templates, dropping_any_dependency_breaks_a_ring) {
  Plan plan = make("all-reduce/ring", 4);
  for (Item& item : plan.codes[0].streams[0].items) {
    Transfer& transfer = std::holds_alternative<Loop>(item)
                             ? std::get<Transfer>(std::get<Loop>(item).items[0])
                             : std::get<Transfer>(item);
    if (transfer.after.empty()) continue;
    const auto kept = transfer.after;
    transfer.after.clear();
    bool wrong = false;
    for (std::uint32_t seed = 0; seed < 50 && !wrong; ++seed) {
      ::testing::TestPartResultArray failures;  // reading what is not there is the expected finding
      ::testing::ScopedFakeTestPartResultReporter quiet(
          ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
      expect_right(plan, seed);
      wrong = failures.size() > 0;
    }
    EXPECT_TRUE(wrong);
    transfer.after = kept;
  }
}

RC_GTEST_PROP(Templates, any_number_of_ranks_is_right, ()) {
  const auto& info = templates()[*rc::gen::inRange<std::size_t>(0, templates().size())];
  const auto variants = variants_of(info);
  const auto& variant = variants[*rc::gen::inRange<std::size_t>(0, variants.size())];
  const Plan plan = make(info.name, *rc::gen::inRange(2, 24), variant);
  validate(plan);
  expect_right(plan, *rc::gen::arbitrary<std::uint32_t>());
}

std::string failure_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "no failure";
}

TEST(Templates, an_unknown_name_is_suggested_against) {
  EXPECT_THAT(failure_of([] { make("all-reduce/rin", 4); }),
              ::testing::HasSubstr("all-reduce/ring"));
  EXPECT_THAT(failure_of([] { make("", 4); }),
              ::testing::HasSubstr("there is no plan template ''"));
}

TEST(Templates, parameters_are_checked) {
  using ::testing::HasSubstr;
  EXPECT_THAT(failure_of([] {
                make("all-gather/direct", 4, {{"transfre", "pull"}});
              }),
              HasSubstr("did you mean 'transfer'?"));
  EXPECT_THAT(failure_of([] {
                make("all-gather/direct", 4, {{"transfer", "shove"}});
              }),
              HasSubstr("cannot be 'shove'"));
  EXPECT_THAT(failure_of([] {
                make("all-gather/ring", 4, {{"transfer", "pull"}});
              }),
              HasSubstr("it has no parameters"));
  EXPECT_THAT(failure_of([] {
                make("broadcast/ring", 4, {{"root", "4"}});
              }),
              HasSubstr("root 4 is not one of 4 ranks"));
  EXPECT_THAT(failure_of([] {
                make("broadcast/ring", 4, {{"root", "-1"}});
              }),
              HasSubstr("is not a count"));
  EXPECT_THAT(failure_of([] {
                make("broadcast/ring", 4, {{"root", "99999999999"}});
              }),
              HasSubstr("root 99999999999 is not"));
  EXPECT_THAT(failure_of([] { make("all-reduce/ring", 1); }),
              HasSubstr("needs at least 2 ranks, not 1"));
  EXPECT_THAT(failure_of([] { make("all-reduce/ring", -3); }),
              HasSubstr("needs at least 2 ranks, not -3"));
}

}  // namespace
}  // namespace hemiola::plan
