// Joint operations, packets and pruned dependencies of the general lowering: what comes out
// computes what the plan says, on symbols and on real data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <random>

#include "hemiola/parts/build_plan.h"
#include "program/lower/lower.h"
#include "verify/execute.h"
#include "verify/verify.h"

namespace hemiola::verify {
namespace {

using program::lower;
using program::LowerOptions;
using program::Op;
using program::OpKind;
using program::Protocol;

program::Bound bound_to_least(const program::Program& program) {
  return program::bind(program, nullptr, {.size = program.next_legal_size({1}, DataType::float32)});
}

/// An all-reduce as an author might write it: every chunk has an owner to whom all push theirs; it
/// adds them up in some order, in its output, in scratch or in transit, and passes the sum on.
/// Waits stand before the first addition or before each.
class RandomReduction {
 public:
  explicit RandomReduction(unsigned seed) : random_(seed) {}

  plan::Plan make() {
    const int ranks = between(2, 4), chunks = between(1, 4);
    plan::Plan plan;
    plan.name = "reduction";
    plan.collective = Collective::all_reduce;
    plan.ranks = ranks;
    plan.chunks_per_size = chunks;
    plan.tensors = {{"input", plan::Role::input, chunks},
                    {"output", plan::Role::output, chunks},
                    {"slots", plan::Role::scratch, chunks * ranks},
                    {"sums", plan::Role::scratch, chunks}};
    for (int rank = 0; rank < ranks; ++rank) {
      plan.code_of.push_back(rank);
      plan.codes.emplace_back().streams.resize(2);
      plan.codes.back().streams[0].name = "push";
      plan.codes.back().streams[1].name = "add";
    }
    for (int chunk = 0; chunk < chunks; ++chunk) add_chunk(plan, chunk, between(0, ranks - 1));
    plan::validate(plan);
    return plan;
  }

 private:
  int between(int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random_);
  }

  void add_chunk(plan::Plan& plan, int chunk, int owner) {
    const plan::Region input = plan::chunk_of(0, constant(chunk));
    const plan::Region output = plan::chunk_of(1, constant(chunk));
    const auto slot = [&](int rank) {
      return plan::chunk_of(2, constant(chunk * plan.ranks + rank));
    };
    std::vector<plan::Dependency> arrivals;
    std::vector<int> others;
    for (int rank = 0; rank < plan.ranks; ++rank) {
      if (rank == owner) continue;
      auto& items = plan.codes[static_cast<std::size_t>(rank)].streams[0].items;
      arrivals.push_back({constant(rank), 0, constant(std::ssize(items)), {}});
      items.emplace_back(plan::push(constant(owner), input, slot(rank)));
      others.push_back(rank);
    }
    std::vector<std::size_t> order(others.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random_);
    auto& items = plan.codes[static_cast<std::size_t>(owner)].streams[1].items;
    const plan::Region sum = between(0, 1) == 0 ? output : plan::chunk_of(3, constant(chunk));
    const bool waits_first = between(0, 1) == 0;
    items.emplace_back(plan::copy(input, sum));
    if (waits_first) std::get<plan::Transfer>(items.back()).after = arrivals;
    for (const std::size_t i : order) {
      plan::Transfer add = plan::accumulating(plan::copy(slot(others[i]), sum));
      if (!waits_first) add.after = {arrivals[i]};
      items.emplace_back(add);
    }
    for (const int rank : others) items.emplace_back(plan::push(constant(rank), sum, output));
    if (!(sum == output)) items.emplace_back(plan::copy(sum, output));
  }

  std::mt19937 random_;
};

TEST(FusedLowering, of_any_reduction_is_proven_and_gives_its_sums) {
  EXPECT_TRUE(rc::check([] {
    const plan::Plan plan = RandomReduction(*rc::gen::arbitrary<unsigned>()).make();
    LowerOptions options;
    options.protocol = *rc::gen::element(Protocol::simple, Protocol::ll);
    options.workgroups = *rc::gen::inRange(1, 7);
    const program::Bound program = bound_to_least(lower(plan, options));
    const Proof proof = check(program);
    if (proof.verdict != Verdict::proven || !proof.warnings.items().empty()) RC_FAIL(proof.summary);
    const Execution execution = execute(program, {.rounds = 2, .delays = false});
    if (execution.outcome != Outcome::right) RC_FAIL(execution.summary);
  }));
}

/// Rank 0 adds what the others pushed, and pushes the sum to rank 1.
plan::Plan sum_and_push() {
  plan::Plan plan;
  plan.name = "sum";
  plan.ranks = 4;
  plan.tensors = {{"input", plan::Role::input, 1},
                  {"slots", plan::Role::scratch, 4},
                  {"sum", plan::Role::scratch, 1},
                  {"output", plan::Role::output, 1}};
  plan.codes.resize(4);
  plan.code_of = {0, 1, 2, 3};
  std::vector<plan::Dependency> arrivals;
  for (int rank = 1; rank < 4; ++rank) {
    plan.codes[static_cast<std::size_t>(rank)].streams = {
        {.name = "push",
         .items = {plan::push(constant(0), plan::chunk_of(0), plan::chunk_of(1, constant(rank)))}}};
    arrivals.push_back({constant(rank), 0, constant(0), {}});
  }
  plan::Stream stream{.name = "sum", .items = {plan::copy(plan::chunk_of(0), plan::chunk_of(2))}};
  std::get<plan::Transfer>(stream.items.back()).after = arrivals;
  for (int rank = 1; rank < 4; ++rank)
    stream.items.emplace_back(
        plan::accumulating(plan::copy(plan::chunk_of(1, constant(rank)), plan::chunk_of(2))));
  stream.items.emplace_back(plan::push(constant(1), plan::chunk_of(2), plan::chunk_of(3)));
  plan.codes[0].streams = {stream};
  plan::validate(plan);
  return plan;
}

std::vector<Op> moves_of(const program::Program& program, int rank) {
  const auto& code =
      program.codes[static_cast<std::size_t>(program.code_of[static_cast<std::size_t>(rank)])];
  const auto& kernel = program.kernels[static_cast<std::size_t>(code.streams[0][0].index)];
  std::vector<Op> moves;
  for (const Op& op : program.bodies[static_cast<std::size_t>(kernel.bodies[0])].ops)
    if (!op.src.empty() || !op.dst.empty()) moves.push_back(op);
  return moves;
}

TEST(FusedLowering, adds_all_sources_and_passes_the_sum_on_in_one_operation) {
  const std::vector<Op> moves = moves_of(lower(sum_and_push(), {.workgroups = 1}), 0);
  ASSERT_EQ(moves.size(), 1u);
  EXPECT_EQ(moves[0].kind, OpKind::reduce_send);
  ASSERT_EQ(moves[0].src.size(), 4u);
  // The own contribution, then the others as the plan adds them.
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(moves[0].src[i].buffer, i == 0 ? 0 : 1);
    EXPECT_EQ(moves[0].src[i].chunk(Indices{}), static_cast<std::int64_t>(i));
  }
  ASSERT_EQ(moves[0].dst.size(), 2u);
  EXPECT_EQ(moves[0].dst[0].buffer, 2);  // for a NIC only
  EXPECT_TRUE(moves[0].staged);
}

TEST(FusedLowering, keeps_a_sum_that_somebody_else_reads) {
  plan::Plan plan = sum_and_push();
  plan.codes[2].streams.push_back(
      {.name = "look",
       .items = {plan::after(plan::pull(constant(0), plan::chunk_of(2), plan::chunk_of(3)),
                             constant(0), constant(3))}});
  plan::validate(plan);
  const std::vector<Op> moves = moves_of(lower(plan, {.workgroups = 1}), 0);
  ASSERT_EQ(moves.size(), 1u);
  EXPECT_EQ(moves[0].dst[0].buffer, 2);
  EXPECT_FALSE(moves[0].staged);
}

TEST(FusedLowering, of_what_is_awaited_in_between_stays_apart) {
  plan::Plan plan = sum_and_push();
  auto& items = plan.codes[0].streams[0].items;
  auto& first = std::get<plan::Transfer>(items[0]);
  std::get<plan::Transfer>(items[2]).after = {first.after[1]};
  first.after.erase(first.after.begin() + 1);
  plan::validate(plan);
  EXPECT_EQ(moves_of(lower(plan, {.workgroups = 1}), 0).size(), 2u);
}

TEST(FusedLowering, packets_need_no_signals) {
  const program::Program program =
      lower(sum_and_push(), {.protocol = Protocol::ll, .workgroups = 1, .barrier = false});
  for (const int rank : {1, 2, 3}) {
    const std::vector<Op> moves = moves_of(program, rank);
    ASSERT_EQ(moves.size(), 1u);
    EXPECT_EQ(moves[0].kind, OpKind::put_packets);
  }
  EXPECT_EQ(moves_of(program, 0)[0].kind, OpKind::reduce_send_packets);
  // Only rank 1 waits for a signal: that its output, which is not read, has arrived.
  std::int64_t waits = 0;
  for (const program::Body& body : program.bodies)
    waits += std::count_if(body.ops.begin(), body.ops.end(),
                           [](const Op& op) { return op.kind == OpKind::dep_wait; });
  EXPECT_EQ(waits, 1);
}

TEST(FusedLowering, lines_of_ll128_are_not_shared_by_workgroups) {
  const program::Program program =
      lower(sum_and_push(), {.protocol = Protocol::ll128, .workgroups = 1});
  const Proof proof = check(bound_to_least(program));
  EXPECT_EQ(proof.verdict, Verdict::partial) << proof.summary;  // a custom collective
  EXPECT_TRUE(proof.warnings.items().empty());
  try {
    lower(sum_and_push(), {.protocol = Protocol::ll128, .workgroups = 4});
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_THAT(failure.what(), testing::HasSubstr("workgroups share the LL128 lines"));
  }
}

// What is overwritten after it was read needs no fence; what is read after it was written does.
TEST(FusedLowering, without_its_fences_is_found_wrong) {
  int relaxed = 0, wrong = 0, all = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    program::Program program = lower(RandomReduction(seed).make(), {.workgroups = 1});
    for (program::Body& body : program.bodies) {
      for (Op& op : body.ops) {
        if (op.kind != OpKind::dep_signal) continue;
        relaxed += op.relaxed ? 1 : 0;
        op.relaxed = true;
      }
    }
    wrong += check(bound_to_least(program)).verdict == Verdict::wrong ? 1 : 0;
    ++all;
  }
  EXPECT_GT(relaxed, 10);
  EXPECT_EQ(wrong, all);
}

}  // namespace
}  // namespace hemiola::verify
