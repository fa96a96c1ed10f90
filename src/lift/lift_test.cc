#include "lift/lift.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>
#include <set>

#include "plan/area.h"
#include "plan/waves.h"
#include "program/built_in.h"

namespace hemiola::lift {
namespace {

using plan::Plan;
using plan::Transfer;

program::Bound bound(const std::string& name, int ranks,
                     std::vector<std::pair<std::string, std::string>> parameters = {}) {
  parameters.emplace_back(name.ends_with("ring") ? "channels" : "workgroups", "2");
  const program::Program program =
      program::load(name, {.ranks = ranks, .parameters = std::move(parameters)});
  return program::bind(program, nullptr,
                       {.size = program.next_legal_size({4096}, DataType::float32)});
}

/// Contributions by (input chunk, rank); nothing for memory that nobody wrote.
using Value = std::multiset<std::pair<std::int64_t, int>>;

/// Executes a lifted plan (rows of chunks, constants only) on symbols, in an order that a seed
/// chooses among those that streams and dependencies allow.
class Execution {
 public:
  Execution(const Plan& plan, unsigned seed) : plan_(plan), random_(seed) {
    for (int rank = 0; rank < plan.ranks; ++rank) {
      for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
        auto& memory = memory_[{rank, static_cast<std::int32_t>(t)}];
        memory.resize(static_cast<std::size_t>(plan.tensors[t].elements()));
        if (!resident(rank, static_cast<std::int32_t>(t))) continue;
        for (std::size_t i = 0; i < memory.size(); ++i)
          memory[i] = {{static_cast<std::int64_t>(i), rank}};
      }
      std::vector<std::size_t>& done = done_.emplace_back();
      done.resize(plan.code(rank).streams.size(), 0);
    }
  }

  bool run() {
    for (;;) {
      std::vector<std::pair<int, std::size_t>> ready;
      bool rest = false;
      for (int rank = 0; rank < plan_.ranks; ++rank) {
        for (std::size_t s = 0; s < plan_.code(rank).streams.size(); ++s) {
          const auto& items = plan_.code(rank).streams[s].items;
          if (done(rank, s) == items.size()) continue;
          rest = true;
          if (is_ready(std::get<Transfer>(items[done(rank, s)]))) ready.emplace_back(rank, s);
        }
      }
      if (ready.empty()) return !rest;
      const auto [rank, s] = ready[random_() % ready.size()];
      execute(std::get<Transfer>(plan_.code(rank).streams[s].items[done(rank, s)]), rank);
      ++done(rank, s);
    }
  }

  const std::vector<Value>& memory(int rank, const std::string& tensor) {
    for (std::size_t t = 0; t < plan_.tensors.size(); ++t)
      if (plan_.tensors[t].name == tensor) return memory_[{rank, static_cast<std::int32_t>(t)}];
    throw std::out_of_range(tensor);
  }

 private:
  bool resident(int rank, std::int32_t tensor) const {
    const auto& regions = plan_.code(rank).resident;
    if (!regions) return plan_.tensors[static_cast<std::size_t>(tensor)].role == plan::Role::input;
    return std::any_of(regions->begin(), regions->end(),
                       [&](const plan::Region& region) { return region.tensor == tensor; });
  }
  std::size_t& done(int rank, std::size_t stream) {
    return done_[static_cast<std::size_t>(rank)][stream];
  }
  bool is_ready(const Transfer& transfer) {
    return std::all_of(transfer.after.begin(), transfer.after.end(), [&](const auto& dependency) {
      return done(static_cast<int>(dependency.rank({})),
                  static_cast<std::size_t>(dependency.stream)) >
             static_cast<std::size_t>(dependency.transfer({}));
    });
  }
  Value& at(int rank, const plan::Region& region, std::int64_t i) {
    return memory_.at({rank, region.tensor}).at(static_cast<std::size_t>(region.first()({}) + i));
  }
  void execute(const Transfer& transfer, int rank) {
    const auto peer = static_cast<int>(transfer.peer({.rank = rank}));
    const int from = transfer.kind == plan::TransferKind::pull ? peer : rank;
    const int to = transfer.kind == plan::TransferKind::push ? peer : rank;
    for (std::int64_t i = 0; i < transfer.source.count(); ++i) {
      Value value = at(from, transfer.source, i);
      ASSERT_FALSE(value.empty()) << "reads what nobody wrote";
      if (transfer.reduce != ReduceOp::none) {
        const Value& operand = at(to, transfer.operand, i);
        ASSERT_FALSE(operand.empty()) << "reduces with what nobody wrote";
        value.insert(operand.begin(), operand.end());
      }
      at(to, transfer.destination, i) = value;
    }
  }

  const Plan& plan_;
  std::mt19937 random_;
  std::map<std::pair<int, std::int32_t>, std::vector<Value>> memory_;
  std::vector<std::vector<std::size_t>> done_;
};

/// What chunk i of the output has to hold on a rank.
Value expected(const Plan& plan, int rank, std::int64_t chunk) {
  const std::int64_t shard = plan.chunks_per_size / plan.ranks;
  Value value;
  const auto owner = static_cast<int>(chunk / std::max<std::int64_t>(1, shard));
  switch (plan.collective) {
    case Collective::all_reduce:
      for (int r = 0; r < plan.ranks; ++r) value.emplace(chunk, r);
      break;
    case Collective::reduce_scatter:
      for (int r = 0; r < plan.ranks; ++r) value.emplace(rank * shard + chunk, r);
      break;
    case Collective::all_gather:
      value.emplace(chunk % shard, owner);
      break;
    case Collective::all_to_all:
      value.emplace(rank * shard + chunk % shard, owner);
      break;
    default:
      break;
  }
  return value;
}

struct Case {
  const char* name;
  std::vector<std::pair<std::string, std::string>> parameters;
};
class LiftedBuiltIn : public testing::TestWithParam<Case> {};

// What only a lift can lose is order: every order that the dependencies leave open has to work.
TEST_P(LiftedBuiltIn, does_what_the_program_did_in_any_order) {
  for (const int ranks : {2, 3, 4}) {
    const Plan plan = lift(bound(GetParam().name, ranks, GetParam().parameters));
    for (unsigned seed = 0; seed < 8; ++seed) {
      Execution execution(plan, seed);
      ASSERT_TRUE(execution.run()) << "transfers wait for each other";
      for (int rank = 0; rank < ranks; ++rank) {
        const std::vector<Value>& output = execution.memory(rank, "output");
        for (std::size_t i = 0; i < output.size(); ++i)
          ASSERT_EQ(output[i], expected(plan, rank, static_cast<std::int64_t>(i)))
              << "rank " << rank << " chunk " << i << " of " << ranks << " ranks";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, LiftedBuiltIn,
                         testing::Values(Case{"all-reduce/ring", {}},
                                         Case{"all-reduce/ring", {{"protocol", "ll"}}},
                                         Case{"all-reduce/ring", {{"protocol", "ll128"}}},
                                         Case{"all-reduce/two-shot", {}},
                                         Case{"all-reduce/two-shot", {{"gather", "pull"}}},
                                         Case{"all-reduce/two-shot", {{"protocol", "ll"}}},
                                         Case{"all-reduce/one-shot", {}},
                                         Case{"all-gather/direct", {}}, Case{"all-gather/ring", {}},
                                         Case{"reduce-scatter/direct", {{"transfer", "push"}}},
                                         Case{"reduce-scatter/ring", {}},
                                         Case{"all-to-all/direct", {}}));

TEST(Lift, chunks_are_the_largest_unit_that_fits) {
  const Plan plan = lift(bound("all-gather/direct", 4));
  EXPECT_EQ(plan.ranks, 4);
  EXPECT_EQ(plan.chunks_per_size, 8) << "two workgroups halve each of four chunks";
  EXPECT_EQ(plan.code(1).streams.size(), 2U);
}

TEST(Lift, in_place_is_said_by_what_is_resident_and_expected) {
  const Plan plan = lift(bound("all-gather/direct", 2, {{"in_place", "1"}}));
  EXPECT_EQ(plan.collective, Collective::all_gather);
  EXPECT_TRUE(plan.in_place_safe);
  ASSERT_EQ(plan.code(1).expected.size(), 1U);
  EXPECT_FALSE(plan.code(1).expected.front().reduced);
  EXPECT_EQ(plan.code(1).resident->front().first()({}), plan.chunks_per_size / 2);
}

std::string proposed(const Plan& plan, const std::string& parameter) {
  for (const auto& [name, value] : plan.lowering)
    if (name == parameter) return value;
  return {};
}

TEST(Lift, proposes_to_be_lowered_as_it_was) {
  const Plan ring = lift(bound("all-reduce/ring", 4, {{"protocol", "ll"}, {"threads", "256"}}));
  EXPECT_EQ(proposed(ring, "protocol"), "ll");
  EXPECT_EQ(proposed(ring, "threads"), "256");
  EXPECT_EQ(proposed(ring, "barrier"), "0");
  EXPECT_EQ(proposed(ring, "realization"), "");
  const Plan exchange = lift(bound("all-gather/direct", 4));
  EXPECT_EQ(proposed(exchange, "protocol"), "");
  EXPECT_EQ(proposed(exchange, "barrier"), "");  // it begins with one
  // Whoever writes to the caller's memory has to meet its owner first.
  EXPECT_EQ(proposed(lift(bound("all-gather/direct", 4, {{"barrier", "0"}})), "barrier"), "");
}

TEST(Lift, of_a_ring_is_lowered_to_as_many_operations) {
  for (const char* protocol : {"simple", "ll"}) {
    const program::Bound ring = bound("all-reduce/ring", 4, {{"protocol", protocol}});
    const program::Program again = program::lower_plan(lift(ring), {});
    const auto moves = [](const program::Program& program, std::size_t kernel) {
      std::int64_t count = 0;
      for (const std::int32_t body : program.kernels[kernel].bodies)
        for (const program::Op& op : program.bodies[static_cast<std::size_t>(body)].ops)
          count += op.src.empty() && op.dst.empty() ? 0 : 1;
      return count;
    };
    // In each of two channels: send, twice reduce and send, reduce and copy and send, twice copy
    // and send, and a receive.
    EXPECT_EQ(moves(again, 0), 2 * 7) << protocol;
  }
}

}  // namespace
}  // namespace hemiola::lift
