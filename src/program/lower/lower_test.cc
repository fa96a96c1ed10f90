// Lowered programs, executed on real numbers in many orders, give the collective's result.
#include "program/lower/lower.h"
#include "program/bind/bound.h"

#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <random>
#include <stdexcept>

#include "plan/template.h"
#include "program/built_in.h"
#include "program/testing/programs.h"
#include "program/walk/cursor.h"

namespace hemiola::program {
namespace {

using test::built_in;

std::uint32_t input_value(int repetition, int rank, std::int64_t element) {
  std::uint64_t mixed = static_cast<std::uint64_t>(element + 1) * 0x9E3779B97F4A7C15ULL +
                        static_cast<std::uint64_t>(rank + 1) * 0xBF58476D1CE4E5B9ULL +
                        static_cast<std::uint64_t>(repetition + 1) * 0x94D049BB133111EBULL;
  mixed = (mixed ^ (mixed >> 29)) * 0xBF58476D1CE4E5B9ULL;
  return static_cast<std::uint32_t>(mixed >> 32);
}

/// Executes a program of 4-byte integers. Each primitive of a workgroup is atomic, and the
/// workgroup that goes next is chosen at random. Bytes of packets are full or empty: writing a full
/// one or reading an empty one is refused. Ranks repeat the program as launches in a stream do: one
/// rank may be ahead of another, and brings new input and spoils its old output at each launch.
class Machine {
 public:
  Machine(const Bound& program, std::uint32_t seed, int repetitions)
      : program_(program), random_(seed), repetitions_(repetitions) {
    memory_.resize(static_cast<std::size_t>(program.ranks()));
    for (int rank = 0; rank < program.ranks(); ++rank) {
      for (std::size_t buffer = 0; buffer < program.buffers().size(); ++buffer) {
        const auto bytes =
            static_cast<std::size_t>(program.memory_bytes(static_cast<std::int32_t>(buffer), rank));
        memory_[static_cast<std::size_t>(rank)].emplace_back(bytes);
      }
      Rank state;
      const RankCode& code =
          program
              .codes()[static_cast<std::size_t>(program.code_of()[static_cast<std::size_t>(rank)])];
      for (const std::int32_t body :
           program.kernels()[static_cast<std::size_t>(code.streams[0][0].index)].bodies)
        state.workgroups.push_back({Cursor(program, rank, body), {}, false, false});
      ranks_.push_back(std::move(state));
      launch(rank);
    }
  }

  void run() {
    while (!::testing::Test::HasFatalFailure()) {
      std::vector<std::pair<int, std::size_t>> alive;
      for (int rank = 0; rank < program_.ranks(); ++rank) {
        const Rank& state = ranks_[static_cast<std::size_t>(rank)];
        for (std::size_t i = 0; i < state.workgroups.size(); ++i)
          if (!state.workgroups[i].done) alive.emplace_back(rank, i);
      }
      if (alive.empty()) return;
      std::shuffle(alive.begin(), alive.end(), random_);
      bool progress = false;
      for (const auto& [rank, workgroup] : alive) {
        // A few primitives at a time, so that some workgroups run far ahead of others.
        for (std::uint64_t burst = 0, most = 1 + random_() % 6; burst < most; ++burst) {
          if (!advance(rank, workgroup)) break;
          progress = true;
        }
      }
      ASSERT_TRUE(progress) << program_.name() << " over " << program_.ranks()
                            << " ranks waits for ever";
    }
  }

 private:
  struct Free {
    void operator()(std::uint8_t* bytes) const { std::free(bytes); }
  };
  /// Zeroed by the system when first touched: most of a FIFO never is.
  struct Memory {
    explicit Memory(std::size_t bytes)
        : size(bytes), data(allocate(bytes)), full(allocate(bytes)) {}
    static std::uint8_t* allocate(std::size_t bytes) {
      auto* memory = static_cast<std::uint8_t*>(std::calloc(bytes + 1, 1));
      if (memory == nullptr) throw std::bad_alloc();
      return memory;
    }
    std::size_t size;
    std::unique_ptr<std::uint8_t, Free> data;
    std::unique_ptr<std::uint8_t, Free> full;  // packets only
  };
  struct Workgroup {
    Cursor cursor;
    Primitive primitive;
    bool pending = false;
    bool done = false;
  };
  struct Rank {
    std::vector<Workgroup> workgroups;
    int repetition = 0;
  };

  std::uint8_t* data(int rank, BufferKind kind, std::int64_t& bytes) {
    for (std::size_t i = 0; i < program_.buffers().size(); ++i) {
      if (program_.buffers()[i].kind != kind) continue;
      const auto buffer = static_cast<std::int32_t>(i);
      const auto place = program_.resolve(buffer, 0, rank);
      bytes = program_.chunks_of(buffer, rank) * program_.chunk_bytes();
      return &memory_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(place.buffer)]
                  .data.get()[place.offset];
    }
    bytes = 0;
    return nullptr;
  }

  void launch(int rank) {
    std::int64_t bytes = 0;
    std::uint8_t* output = data(rank, BufferKind::output, bytes);
    std::memset(output, 0xEE, static_cast<std::size_t>(bytes));
    std::uint8_t* input = data(rank, BufferKind::input, bytes);
    for (std::int64_t i = 0; i < bytes / 4; ++i) {
      const std::uint32_t value =
          input_value(ranks_[static_cast<std::size_t>(rank)].repetition, rank, i);
      std::memcpy(input + i * 4, &value, 4);
    }
  }

  std::uint32_t expected(int repetition, int rank, std::int64_t element,
                         std::int64_t elements) const {
    const int ranks = program_.ranks();
    const auto sum = [&](std::int64_t at) {
      std::uint32_t total = 0;
      for (int other = 0; other < ranks; ++other) total += input_value(repetition, other, at);
      return total;
    };
    const std::int64_t part = elements / ranks;
    switch (program_.collective()) {
      case Collective::all_reduce:
        return sum(element);
      case Collective::reduce_scatter:
        return sum(rank * elements + element);
      case Collective::all_gather:
        return input_value(repetition, static_cast<int>(element / part), element % part);
      case Collective::all_to_all:
        return input_value(repetition, static_cast<int>(element / part),
                           rank * part + element % part);
      case Collective::broadcast:
        return input_value(repetition, static_cast<int>(program_.program().root), element);
      default:
        ADD_FAILURE() << "no rule for this collective";
        return 0;
    }
  }

  void verify(int rank) {
    const int repetition = ranks_[static_cast<std::size_t>(rank)].repetition;
    std::int64_t bytes = 0;
    const std::uint8_t* output = data(rank, BufferKind::output, bytes);
    for (std::int64_t i = 0; i < bytes / 4; ++i) {
      std::uint32_t found = 0;
      std::memcpy(&found, output + i * 4, 4);
      ASSERT_EQ(found, expected(repetition, rank, i, bytes / 4))
          << program_.name() << " over " << program_.ranks() << " ranks, " << program_.size().count
          << " B, " << name_of(program_.program().protocol) << ": rank " << rank << ", element "
          << i << " of launch " << repetition;
    }
  }

  bool advance(int rank, std::size_t index) {
    Rank& state = ranks_[static_cast<std::size_t>(rank)];
    Workgroup& workgroup = state.workgroups[index];
    if (workgroup.done) return false;
    if (!workgroup.pending && !workgroup.cursor.next(workgroup.primitive)) {
      workgroup.done = true;
      end_of_workgroup(rank);
      return true;
    }
    workgroup.pending = !execute(workgroup.primitive);
    return !workgroup.pending;
  }

  void end_of_workgroup(int rank) {
    Rank& state = ranks_[static_cast<std::size_t>(rank)];
    for (const Workgroup& workgroup : state.workgroups)
      if (!workgroup.done) return;
    verify(rank);
    if (++state.repetition == repetitions_) return;
    launch(rank);
    for (Workgroup& workgroup : state.workgroups) {
      workgroup.done = false;
      workgroup.cursor.repeat();
    }
  }

  /// False when it has to wait.
  bool execute(const Primitive& primitive) {
    switch (primitive.kind) {
      case PrimitiveKind::sync:
      case PrimitiveKind::fence:
        return true;
      case PrimitiveKind::signal:
        for (std::size_t i = 0; i < primitive.semaphores.size(); ++i)
          semaphores_[primitive.semaphores[i]] += primitive.values[i];
        return true;
      case PrimitiveKind::wait:
        for (std::size_t i = 0; i < primitive.semaphores.size(); ++i)
          if (semaphores_[primitive.semaphores[i]] < primitive.values[i]) return false;
        return true;
      case PrimitiveKind::move:
        return move(primitive);
      default:
        ADD_FAILURE() << "unexpected primitive " << name_of(primitive.kind);
        return true;
    }
  }

  Memory& memory(const Span& span) {
    return memory_[static_cast<std::size_t>(span.rank)][static_cast<std::size_t>(span.buffer)];
  }

  /// Where data byte `byte` of a span is.
  std::size_t address(const Span& span, std::int64_t byte) {
    const auto at = static_cast<std::size_t>(span.offset + memory_offset(byte, span.access));
    if (at >= memory(span).size)
      throw std::out_of_range(program_.name() + " touches memory beyond its buffer");
    return at;
  }

  bool move(const Primitive& primitive) {
    for (const Span& source : primitive.src) {
      for (std::int64_t byte = 0; source.access != Access::plain && byte < primitive.bytes; ++byte)
        if (memory(source).full.get()[address(source, byte)] == 0) return false;
    }
    for (std::int64_t element = 0; element < primitive.bytes / 4; ++element) {
      std::uint32_t sum = 0;
      for (const Span& source : primitive.src) sum += load(source, element * 4);
      for (const Span& target : primitive.dst) store(target, element * 4, sum);
    }
    return true;
  }

  std::uint32_t load(const Span& span, std::int64_t offset) {
    std::uint32_t value = 0;
    for (int i = 0; i < 4; ++i) {
      const std::size_t at = address(span, offset + i);
      if (span.access != Access::plain) memory(span).full.get()[at] = 0;
      value |= static_cast<std::uint32_t>(memory(span).data.get()[at]) << (8 * i);
    }
    return value;
  }

  void store(const Span& span, std::int64_t offset, std::uint32_t value) {
    for (int i = 0; i < 4; ++i) {
      const std::size_t at = address(span, offset + i);
      if (span.access != Access::plain) {
        EXPECT_EQ(memory(span).full.get()[at], 0)
            << program_.name() << ": a packet was overwritten before it was read";
        memory(span).full.get()[at] = 1;
      }
      memory(span).data.get()[at] = static_cast<std::uint8_t>(value >> (8 * i));
    }
  }

  const Bound& program_;
  std::mt19937 random_;
  int repetitions_;
  std::vector<std::vector<Memory>> memory_;  // rank, buffer
  std::map<SemaphoreId, std::int64_t> semaphores_;
  std::vector<Rank> ranks_;
};

using Parameters = plan::Parameters;

/// A chunk of `units` times 16 B, three launches in a row.
void expect_right(const Program& program, std::int64_t units, std::uint32_t seed) {
  const Bytes size{program.chunks_per_size * 16 * units};
  const Bound bound = bind(program, nullptr, {.size = size, .type = DataType::int32});
  Machine(bound, seed, 3).run();
}

struct Case {
  std::string name;
  Parameters parameters;
};

std::vector<Case> ring_cases() {
  std::vector<Case> cases;
  for (const char* name :
       {"all-reduce/ring", "all-gather/ring", "reduce-scatter/ring", "broadcast/ring"}) {
    for (const char* protocol : {"simple", "ll", "ll128"}) {
      for (const char* in_place : {"0", "1"}) {
        cases.push_back({name,
                         {{"protocol", protocol},
                          {"in_place", in_place},
                          {"channels", "2"},
                          {"piece", "48B"}}});
      }
    }
  }
  return cases;
}

std::vector<Case> exchange_cases() {
  std::vector<Case> cases;
  for (const char* name :
       {"all-gather/direct", "reduce-scatter/direct", "all-to-all/direct", "all-reduce/one-shot"}) {
    for (const char* transfer : {"push", "pull"}) cases.push_back({name, {{"transfer", transfer}}});
    cases.push_back({name, {{"protocol", "ll"}}});
    cases.push_back({name, {{"protocol", "ll"}, {"barrier", "1"}}});
  }
  for (const char* name : {"all-gather/direct", "reduce-scatter/direct"}) {
    for (const char* transfer : {"push", "pull"})
      cases.push_back({name, {{"transfer", transfer}, {"in_place", "1"}}});
    cases.push_back({name, {{"protocol", "ll"}, {"in_place", "1"}}});
  }
  for (const char* transfer : {"push", "pull"})
    for (const char* name : {"all-gather/direct", "all-to-all/direct"})
      cases.push_back({name, {{"transfer", transfer}, {"order", "counter-clockwise"}}});
  cases.push_back({"reduce-scatter/direct", {{"transfer", "push"}, {"barrier", "0"}}});
  cases.push_back(
      {"all-reduce/one-shot", {{"transfer", "push"}, {"barrier", "0"}, {"in_place", "1"}}});
  for (const char* in_place : {"0", "1"}) {
    for (const char* transfer : {"push", "pull"}) {
      for (const char* gather : {"push", "pull"}) {
        cases.push_back({"all-reduce/two-shot",
                         {{"transfer", transfer}, {"gather", gather}, {"in_place", in_place}}});
      }
    }
    cases.push_back({"all-reduce/two-shot", {{"protocol", "ll"}, {"in_place", in_place}}});
  }
  for (Case& a : cases) a.parameters.emplace_back("workgroups", "3");
  return cases;
}

/// Every case for all numbers of ranks; sizes with fewer units than workgroups, and with short
/// ends.
void expect_all_right(const std::vector<Case>& cases) {
  std::uint32_t seed = 1;
  for (const Case& a : cases) {
    std::string text = a.name;
    for (const auto& [name, value] : a.parameters) text += " " + name + "=" + value;
    SCOPED_TRACE(text);
    for (const int ranks : {2, 3, 4, 5, 8, 16}) {
      const Program program = built_in(a.name, ranks, a.parameters);
      for (const std::int64_t units : {1, 7, 20}) {
        if (ranks > 5 && units > 7) continue;
        expect_right(program, units, seed++);
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST(Lower, rings_give_the_right_result_in_all_protocols_in_and_out_of_place) {
  expect_all_right(ring_cases());
}

TEST(Lower, exchanges_give_the_right_result_pushed_pulled_and_as_packets) {
  expect_all_right(exchange_cases());
}

TEST(Lower, fifos_of_a_ring_go_round_more_often_than_they_have_slots) {
  for (const char* protocol : {"simple", "ll", "ll128"}) {
    const Program program = built_in("all-reduce/ring", 3,
                                     {{"protocol", protocol}, {"channels", "1"}, {"piece", "16B"}});
    expect_right(program, 23, 7);  // 23 pieces of 4 sends each, 8 slots
  }
}

TEST(Lower, a_broadcast_reaches_all_ranks_from_every_root) {
  for (int root = 0; root < 4; ++root) {
    expect_right(built_in("broadcast/ring", 4, {{"root", std::to_string(root)}, {"channels", "2"}}),
                 5, 3);
  }
}

/// Removes one operation of the kind; true if some order then gives a wrong result or a hang.
bool breaks_without(Program program, OpKind kind, std::size_t number) {
  for (Body& body : program.bodies) {
    std::size_t seen = 0;
    for (std::size_t i = 0; i < body.ops.size(); ++i) {
      if (body.ops[i].kind == kind && seen++ == number) {
        body.ops.erase(body.ops.begin() + static_cast<std::ptrdiff_t>(i));
        break;
      }
    }
  }
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    ::testing::TestPartResultArray failures;
    ::testing::ScopedFakeTestPartResultReporter quiet(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
    expect_right(program, 6, seed);
    for (int i = 0; i < failures.size(); ++i)
      if (failures.GetTestPartResult(i).failed()) return true;
  }
  return false;
}

TEST(Lower, no_barrier_and_no_wait_is_superfluous) {
  const Program pulled =
      built_in("all-reduce/two-shot", 4, {{"workgroups", "1"}, {"gather", "pull"}});
  EXPECT_FALSE(breaks_without(pulled, OpKind::wait, 1));         // there is no second one
  EXPECT_TRUE(breaks_without(pulled, OpKind::relaxed_wait, 0));  // inputs of the next launch
  EXPECT_TRUE(breaks_without(pulled, OpKind::wait, 0));          // reduced chunks
  const Program gathered =
      built_in("all-gather/direct", 4, {{"workgroups", "1"}, {"transfer", "pull"}});
  EXPECT_TRUE(breaks_without(gathered, OpKind::relaxed_wait, 0));
  EXPECT_TRUE(breaks_without(gathered, OpKind::relaxed_wait, 1));
  const Program pushed = built_in("all-gather/direct", 4, {{"workgroups", "1"}});
  EXPECT_TRUE(breaks_without(pushed, OpKind::relaxed_wait, 0));
  EXPECT_TRUE(breaks_without(pushed, OpKind::wait, 0));
}

}  // namespace
}  // namespace hemiola::program
