// Plans that are right are proven, and what is wrong with others is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/testing/long_tests.h"
#include "verify/execute.h"
#include "verify/testing/interleave.h"
#include "verify/testing/plans.h"
#include "verify/verify.h"

namespace hemiola::verify {
namespace {

using namespace test;
using ::testing::HasSubstr;

TEST(CheckPlan, good_plans_are_proven_and_run_right) {
  for (const int ranks : {2, 3, 5}) {
    for (const plan::Plan& plan : good_plans(ranks)) {
      ASSERT_NO_THROW(validate(plan)) << plan.name;
      const Proof proof = check(plan);
      EXPECT_EQ(proof.verdict, Verdict::proven)
          << plan.name << " over " << ranks << " ranks: " << proof.summary;
      EXPECT_TRUE(proof.warnings.empty()) << plan.name << ": " << proof.warnings.render();
      for (std::uint64_t seed = 0; seed < some_or_all(1u, 3u); ++seed) {
        const Execution one = interleave(plan, seed);
        EXPECT_EQ(one.outcome, Outcome::right) << plan.name << ": " << one.summary;
        EXPECT_GT(one.compared, 0) << plan.name;
        const Execution many = execute(plan, {.seed = seed});
        EXPECT_EQ(many.outcome, Outcome::right) << plan.name << ": " << many.summary;
      }
    }
  }
}

using plan::chunk_of;
using plan::Role;
using plan::Transfer;

Transfer& item(plan::Plan& plan, std::size_t index, std::size_t stream = 0, std::size_t code = 0) {
  plan::Item& item = plan.codes[code].streams[stream].items[index];
  return std::holds_alternative<Transfer>(item)
             ? std::get<Transfer>(item)
             : std::get<Transfer>(std::get<plan::Loop>(item).items[0]);
}

/// Two ranks exchange their inputs, then each copies what it got.
plan::Plan exchange_plan() {
  plan::Plan plan = start("exchange", 2);
  plan.collective = Collective::all_gather;
  plan.chunks_per_size = 2;
  plan.tensors = {
      {"input", Role::input, 1}, {"output", Role::output, 2}, {"slot", Role::scratch, 1}};
  const Affine peer = neighbour(1, 2);
  run_everywhere(plan, {"exchange",
                        {plan::push(peer, chunk_of(0), chunk_of(2)),
                         plan::copy(chunk_of(0), chunk_of(1, own_rank())),
                         after(plan::copy(chunk_of(2), chunk_of(1, peer)), peer, constant(0))}});
  return plan;
}

Proof valid_check(const plan::Plan& plan) {
  EXPECT_NO_THROW(validate(plan));
  return check(plan);
}

/// Check rejects it, and it goes wrong when it runs.
Proof rejected(const plan::Plan& plan, Verdict verdict, Outcome outcome) {
  const Proof proof = valid_check(plan);
  EXPECT_EQ(proof.verdict, verdict) << proof.summary;
  EXPECT_EQ(interleave(plan, 1).outcome, outcome) << interleave(plan, 1).summary;
  return proof;
}

TEST(CheckPlan, a_read_without_its_dependency_is_a_race_with_both_places) {
  plan::Plan plan = exchange_plan();
  item(plan, 2).after.clear();
  const Proof proof = rejected(plan, Verdict::wrong, Outcome::race);
  EXPECT_THAT(proof.summary, HasSubstr("data race on slot[0] of rank"));
  ASSERT_EQ(proof.counterexample.size(), 2u);
  EXPECT_EQ(proof.counterexample[0].where, "/codes/0/streams/0/items/2");
  EXPECT_EQ(proof.counterexample[1].operation, "transfer 0 (push)");
}

TEST(CheckPlan, overwriting_what_another_rank_may_still_read_is_a_race) {
  plan::Plan plan = exchange_plan();
  plan.codes[0].streams[0].items.emplace_back(
      plan::pull(neighbour(1, 2), chunk_of(0), chunk_of(2)));
  plan.codes[0].streams[0].items.emplace_back(plan::copy(chunk_of(2), chunk_of(0)));
  const Proof proof = rejected(plan, Verdict::wrong, Outcome::race);
  EXPECT_THAT(proof.summary, HasSubstr("data race on input[0] of rank"));
}

TEST(CheckPlan, a_slot_must_be_empty_before_it_is_used_again) {
  // Whichever of the two is interpreted first: the slot is read, or it is overwritten.
  for (const std::size_t first : {0, 1}) {
    plan::Plan plan = start("slot", 2);
    plan.tensors = {{"input", Role::input, 1}, {"output", Role::output, 1}};
    const Transfer read = plan::pull(neighbour(1, 2), chunk_of(0), chunk_of(1));
    Transfer overwrite = plan::copy(chunk_of(1), chunk_of(0));
    plan.codes = {plan::Code{{{"read", {read}}}}, plan::Code{{{"overwrite", {overwrite}}}}};
    plan.codes[1].resident = {chunk_of(0), chunk_of(1)};
    plan.code_of = {static_cast<int>(first), static_cast<int>(1 - first)};
    const Proof proof = rejected(plan, Verdict::wrong, Outcome::race);
    EXPECT_THAT(proof.summary, HasSubstr("data race on input[0] of rank"));
    item(plan, 0, 0, 1) = after(overwrite, neighbour(1, 2), constant(0));
    EXPECT_EQ(valid_check(plan).verdict, Verdict::partial) << valid_check(plan).summary;
  }
}

TEST(CheckPlan, order_goes_through_other_streams) {
  plan::Plan plan = exchange_plan();
  // Rank 1 forwards what it knows: rank 0's last copy waits for rank 1's second transfer only.
  item(plan, 2).after[0].transfer = constant(1);
  EXPECT_EQ(valid_check(plan).verdict, Verdict::proven);
  // A stream beside it, which waits for the end of the first, sees all of it.
  plan.codes[0].streams.push_back(
      {"beside", {after(plan::copy(chunk_of(1), chunk_of(2)), own_rank(), constant(2))}});
  item(plan, 0, 1).source.first() = neighbour(1, 2);
  EXPECT_EQ(valid_check(plan).verdict, Verdict::proven) << valid_check(plan).summary;
}

TEST(CheckPlan, transfers_that_wait_for_each_other_are_shown_as_a_cycle) {
  plan::Plan plan = exchange_plan();
  item(plan, 0) = after(item(plan, 0), neighbour(1, 2), constant(1));
  const Proof proof = rejected(plan, Verdict::deadlock, Outcome::hang);
  EXPECT_THAT(proof.summary, HasSubstr("2 wait for each other"));
  ASSERT_EQ(proof.counterexample.size(), 2u);
  EXPECT_THAT(proof.counterexample[0].text,
              HasSubstr("waits for transfer 1 of stream 0 of rank 1"));
  EXPECT_EQ(execute(plan).outcome, Outcome::hang);
}

TEST(CheckPlan, tiles_and_transfers_that_wait_for_each_other_are_a_cycle) {
  plan::Plan plan = gather_and_multiply(2, false);
  item(plan, 0).after.push_back(computed(own_rank(), rows_of(2, {}, 8, 4)));
  const Proof proof = rejected(plan, Verdict::deadlock, Outcome::hang);
  EXPECT_THAT(proof.summary, HasSubstr("wait for each other"));
  EXPECT_THAT(proof.counterexample[1].text, HasSubstr("which writes a["));
}

TEST(CheckPlan, contributions_are_counted) {
  plan::Plan plan = plan::make("all-reduce/one-shot", 4);
  std::get<plan::Loop>(plan.codes[0].streams[0].items[1]).count = 2;
  EXPECT_THAT(rejected(plan, Verdict::wrong, Outcome::wrong).summary,
              HasSubstr("output[0] of rank 0 holds input[0] of ranks 0 to 2, not "
                        "input[0] of ranks 0 to 3"));
  plan = plan::make("all-reduce/one-shot", 4);
  plan.codes[0].streams[0].items.push_back(
      plan::accumulating(plan::pull(neighbour(1, 4), chunk_of(0), chunk_of(1))));
  EXPECT_THAT(rejected(plan, Verdict::wrong, Outcome::wrong).summary,
              HasSubstr("input[0] of rank 1 (2 times)"));
}

TEST(CheckPlan, a_wrong_chunk_is_named) {
  plan::Plan plan = plan::make("all-to-all/direct", 3);
  item(plan, 0).source.first() = own_rank();
  EXPECT_THAT(rejected(plan, Verdict::wrong, Outcome::wrong).summary,
              HasSubstr("output[1] of rank 0 holds input[1] of rank 1, not input[0] of rank 1"));
}

TEST(CheckPlan, an_output_that_nobody_writes_is_wrong) {
  plan::Plan plan = exchange_plan();
  plan.codes[0].streams[0].items.pop_back();
  const Proof proof = rejected(plan, Verdict::wrong, Outcome::wrong);
  EXPECT_THAT(proof.summary, HasSubstr("output[1] of rank 0 holds nothing"));
  EXPECT_THAT(proof.counterexample.at(0).text, HasSubstr("no transfer writes output[1]"));
}

TEST(CheckPlan, memory_that_nobody_wrote_must_not_be_read) {
  plan::Plan plan = exchange_plan();
  plan.tensors.push_back({"other", Role::scratch, 1});
  item(plan, 1).source.tensor = 3;
  EXPECT_THAT(rejected(plan, Verdict::wrong, Outcome::race).summary,
              HasSubstr("other[0] of rank 0 is read, and nothing has written it"));
}

TEST(CheckPlan, a_reduction_that_adds_to_what_nobody_wrote_is_no_race_with_itself) {
  plan::Plan plan = exchange_plan();
  item(plan, 0).reduce = ReduceOp::sum;  // into the peer's slot, which is empty
  item(plan, 0).operand = item(plan, 0).destination;
  const Proof proof = check(plan);
  EXPECT_EQ(proof.verdict, Verdict::wrong);
  EXPECT_THAT(proof.summary, HasSubstr("a reduction adds to slot[0] of rank"));
  EXPECT_THAT(proof.summary, HasSubstr("which nothing has written"));
  EXPECT_THAT(proof.counterexample.at(0).text, HasSubstr("adds to slot[0]"));
}

TEST(CheckPlan, what_the_own_stream_writes_later_is_no_race_with_what_reads_it) {
  plan::Plan plan = exchange_plan();
  plan.tensors.push_back({"other", Role::scratch, 1});
  item(plan, 1).source.tensor = 3;
  plan.codes[0].streams[0].items.emplace_back(plan::copy(chunk_of(0), chunk_of(3)));
  EXPECT_THAT(check(plan).summary,
              HasSubstr("other[0] of rank 0 is read, and nothing has written"));
}

TEST(CheckPlan, a_transfer_that_overwrites_what_it_reads_is_wrong) {
  plan::Plan plan = exchange_plan();
  plan.codes[0].streams[0].items.push_back(after(
      plan::copy(plan::chunks_of(1, {}, 2), plan::chunks_of(1, {}, 2)), own_rank(), constant(2)));
  EXPECT_EQ(valid_check(plan).verdict, Verdict::proven) << "in place, element by element";
  // Two chunks, one chunk further on, in a tensor that has room for it.
  plan.tensors[2].shape = {3};
  item(plan, 3).source = plan::chunks_of(2, {}, 2);
  item(plan, 3).destination = plan::chunks_of(2, constant(1), 2);
  EXPECT_THAT(valid_check(plan).summary, HasSubstr("a transfer overwrites slot[1] of rank"));
}

TEST(CheckPlan, chunks_in_transit_are_forwarded_once_and_in_order) {
  plan::Plan plan = plan::make("reduce-scatter/ring", 4);
  // Kept in transit instead of forwarded: the last step reads an input.
  const Transfer last = item(plan, 2);
  item(plan, 2).source.tensor = 0;
  EXPECT_THAT(rejected(plan, Verdict::wrong, Outcome::race).summary,
              HasSubstr("is in transit, and never forwarded"));
  item(plan, 2) = last;
  plan.codes[0].streams[0].items.push_back(last);
  EXPECT_THAT(rejected(plan, Verdict::wrong, Outcome::race).summary,
              HasSubstr("is in transit, and read more than once"));
}

TEST(CheckPlan, collectives_need_all_members_and_one_kind) {
  plan::Plan plan = multiply_and_all_reduce(3);
  plan.codes.push_back(plan.codes[0]);
  plan.code_of[2] = 1;
  plan.codes[1].streams[1].items.clear();
  EXPECT_THAT(rejected(plan, Verdict::deadlock, Outcome::hang).summary,
              HasSubstr("waits in a collective of group 0 for rank 2, which runs fewer of them"));
  EXPECT_EQ(execute(plan).outcome, Outcome::hang);
  plan = multiply_and_all_reduce(3);
  plan.codes.push_back(plan.codes[0]);
  plan.code_of[2] = 1;
  item(plan, 0, 1, 1).collective = Collective::broadcast;
  item(plan, 0, 1, 1).reduce = ReduceOp::none;
  EXPECT_THAT(rejected(plan, Verdict::wrong, Outcome::wrong).summary,
              HasSubstr("run different collectives of one group: all-reduce and broadcast"));
  EXPECT_EQ(execute(plan).outcome, Outcome::wrong);
}

TEST(CheckPlan, tiles_read_what_belongs_there) {
  plan::Plan plan = gather_and_multiply(3, false);
  item(plan, 0).destination = rows_of(0, block(neighbour(1, 3), 4), 4, 6);
  EXPECT_NE(valid_check(plan).verdict, Verdict::proven);
  plan = gather_and_multiply(3, true);
  std::get<plan::Loop>(plan.codes[0].streams[0].items[0]).count = 1;
  EXPECT_THAT(rejected(plan, Verdict::wrong, Outcome::race).summary,
              HasSubstr("is read, and nothing has written it"));
}

TEST(CheckPlan, a_result_that_is_read_before_its_tiles_are_done_is_a_race) {
  plan::Plan plan = multiply_and_scatter(3);
  item(plan, 0).after.erase(item(plan, 0).after.begin());
  EXPECT_EQ(rejected(plan, Verdict::wrong, Outcome::race).counterexample.size(), 2u);
}

TEST(CheckPlan, without_expectations_there_is_no_proof) {
  plan::Plan plan = exchange_plan();
  plan.collective = Collective::custom;
  const Proof proof = valid_check(plan);
  EXPECT_EQ(proof.verdict, Verdict::partial);
  EXPECT_THAT(proof.reasons.at(0), HasSubstr("no rank says what it expects"));
  plan.codes[0].expected = {{chunk_of(1), false}};
  EXPECT_THAT(valid_check(plan).reasons.at(0), HasSubstr("no rank holds or computes 'output'"));
}

TEST(CheckPlan, large_matrices_are_checked_in_pieces) {
  plan::Plan plan = gather_and_multiply(4, false);
  const std::int64_t scale = 1024;
  for (plan::Tensor& tensor : plan.tensors)
    for (std::int64_t& extent : tensor.shape) extent *= scale;
  const auto grow = [&](plan::Region& region) {
    for (plan::Box& box : region.boxes) {
      for (plan::Range& range : box) {
        range.extent *= scale;
        range.begin.scale *= scale;
      }
    }
  };
  grow(item(plan, 0).source);
  grow(item(plan, 0).destination);
  for (plan::Region& region : *plan.codes[0].resident) grow(region);
  for (plan::Expectation& expectation : plan.codes[0].expected) grow(expectation.region);
  for (plan::ComputeAxis& axis : plan.codes[0].computes[0].axes) {
    axis.extent *= scale;
    axis.tile *= scale;
  }
  const Proof proof = valid_check(plan);
  EXPECT_EQ(proof.verdict, Verdict::proven) << proof.summary;
  EXPECT_EQ(proof.operations, check(gather_and_multiply(4, false)).operations);
}

TEST(CheckPlan, regions_of_other_shapes_are_followed_element_by_element) {
  plan::Plan plan = start("reshape", 2);
  plan.tensors = {{"x", Role::input, {4, 6}, DataType::float32},
                  {"y", Role::scratch, {24}, DataType::float32},
                  {"z", Role::scratch, {6, 4}, DataType::float32}};
  const Affine peer = neighbour(1, 2);
  const plan::Region x = rows_of(0, block(own_rank(), 2), 2, 6);
  const plan::Region y{1, {{{block(own_rank(), 12), 12}}}};
  const plan::Region y_peer{1, {{{block(peer, 12), 12}}}};
  const plan::Region x_peer = rows_of(0, block(peer, 2), 2, 6);
  plan::Transfer back = after(plan::copy(y_peer, x_peer), peer, constant(0));
  run_everywhere(plan, {"reshape", {plan::push(peer, x, y), back}});
  plan.codes[0].resident = {x};
  plan.codes[0].expected = {{rows_of(0, {}, 4, 6), false}};
  EXPECT_EQ(valid_check(plan).verdict, Verdict::proven) << valid_check(plan).summary;
  EXPECT_EQ(execute(plan).outcome, Outcome::right) << execute(plan).summary;
  item(plan, 1).destination.boxes = {{{block(peer, 2), 2}, {constant(3), 3}},
                                     {{block(peer, 2), 2}, {{}, 3}}};
  rejected(plan, Verdict::wrong, Outcome::wrong);
}

TEST(CheckPlan, what_is_too_large_to_run_or_to_divide_is_refused) {
  EXPECT_THROW(execute(plan::make("all-reduce/ring", 1024)), Failure) << "threads";
  EXPECT_THROW(interleave(plan::make("all-reduce/ring", 1024), 1), Failure) << "clocks";
  plan::Plan plan = exchange_plan();
  plan.tensors.push_back({"matrix", Role::scratch, {1 << 12, 1 << 12}, {}});
  plan.collective = Collective::custom;
  // A row of 2^12 chunks into 2^11 rows of two: every position that they touch is a cut.
  const plan::Region row{3, {{{{}, 1}, {{}, 1 << 12}}}};
  const plan::Region rows{3, {{{constant(1), 1 << 11}, {{}, 2}}}};
  item(plan, 1) = plan::copy(row, rows);
  plan.codes[0].resident = {row};
  EXPECT_THROW(check(plan), Failure) << "atoms";
}

TEST(CheckPlan, plans_over_1024_ranks_are_proven) {
  for (const char* name : {"all-reduce/ring", "all-to-all/direct"}) {
    const Proof proof = check(plan::make(name, 1024));
    EXPECT_EQ(proof.verdict, Verdict::proven) << name << ": " << proof.summary;
    EXPECT_GT(proof.operations, 1'000'000);
  }
}

}  // namespace
}  // namespace hemiola::verify
