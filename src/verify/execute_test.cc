// Programs on real data: what check accepts gives right results, what it rejects can go wrong.
#include "verify/execute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program/built_in.h"
#include "verify/testing/programs.h"

namespace hemiola::verify {
namespace {

using namespace test;
using ::testing::HasSubstr;

program::Bound built_in(const std::string& name, int ranks,
                        std::vector<std::pair<std::string, std::string>> parameters,
                        std::int64_t size) {
  const program::Program program =
      program::load(name, {.ranks = ranks, .parameters = std::move(parameters)});
  return program::bind(program, nullptr,
                       {.size = program.next_legal_size(Bytes{size}, DataType::float32)});
}

TEST(ExecuteProgram, built_ins_give_the_result_of_their_collective) {
  for (const char* name : {"all-reduce/ring", "all-reduce/two-shot", "all-reduce/one-shot",
                           "all-gather/direct", "all-gather/ring", "reduce-scatter/direct",
                           "reduce-scatter/ring", "all-to-all/direct", "broadcast/ring"}) {
    for (const char* protocol : {"simple", "ll"}) {
      const bool ring = std::string(name).ends_with("ring");
      const program::Bound program = built_in(
          name, 3, {{"protocol", protocol}, {ring ? "channels" : "workgroups", "2"}}, 1536);
      const Execution execution = execute(program, {.rounds = 2});
      EXPECT_EQ(execution.outcome, Outcome::right)
          << name << ' ' << protocol << ": " << execution.summary;
      EXPECT_GE(execution.compared, 2 * 3 * 128) << name;
    }
  }
}

TEST(ExecuteProgram, results_may_take_the_place_of_inputs) {
  for (const char* name : {"all-reduce/ring", "all-reduce/two-shot", "all-gather/direct"}) {
    const Execution execution = execute(built_in(name, 3, {{"in_place", "1"}}, 1536), {});
    EXPECT_EQ(execution.outcome, Outcome::right) << name << ": " << execution.summary;
  }
}

TEST(ExecuteProgram, ll128_packets_carry_data_and_flag) {
  const Execution execution =
      execute(built_in("all-reduce/ring", 4, {{"protocol", "ll128"}, {"channels", "1"}}, 4096), {});
  EXPECT_EQ(execution.outcome, Outcome::right) << execution.summary;
}

TEST(ExecuteProgram, a_wait_that_nobody_ends_is_a_hang_with_its_place) {
  auto bodies = exchange();
  bodies[0][0].erase(bodies[0][0].begin() + 3);
  const Execution execution = execute(make(Collective::all_gather, 2, bodies), {});
  EXPECT_EQ(execution.outcome, Outcome::hang);
  EXPECT_THAT(execution.summary, HasSubstr("workgroup 0 of rank 1 waits for ever"));
  ASSERT_EQ(execution.steps.size(), 1u);
  EXPECT_EQ(execution.steps[0].operation, "op 4 (wait)");
}

TEST(ExecuteProgram, a_wrong_chunk_is_a_wrong_result) {
  auto bodies = exchange_and_add();
  bodies[1][0][5].src.pop_back();
  const Execution execution = execute(make(Collective::all_reduce, 2, bodies), {});
  EXPECT_EQ(execution.outcome, Outcome::wrong);
  EXPECT_THAT(execution.summary, HasSubstr("of the result of rank 1"));
}

TEST(ExecuteProgram, threads_that_do_not_wait_run_ahead_and_signal) {
  auto bodies = exchange();
  for (int rank = 0; rank < 2; ++rank) {
    auto& ops = bodies[static_cast<std::size_t>(rank)][0];
    const int peer = 1 - rank;
    ops[3] = wait(rank, 0);
    ops[4] = flag(OpKind::signal, {{peer, 1}, {peer, 0}});
    ops.insert(ops.begin() + 5, sync());
    ops.insert(ops.begin() + 6, wait(rank, 1));
  }
  EXPECT_EQ(execute(make(Collective::all_gather, 2, bodies), {}).outcome, Outcome::right);
}

TEST(ExecuteProgram, what_cannot_be_run_is_refused) {
  const program::Bound program = make(Collective::all_gather, 2, exchange());
  program::Frame halves = program.frame();
  halves.type = DataType::float16;
  EXPECT_THROW(execute({halves, nullptr, {}}, {}), Failure);
  EXPECT_THROW(execute(make(Collective::custom, 2, exchange()), {}), Failure);
}

}  // namespace
}  // namespace hemiola::verify
