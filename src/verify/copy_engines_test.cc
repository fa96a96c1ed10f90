// Broadcasts, swaps and batches of copy engines: right ones are proven and run, wrong ones are not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <optional>

#include "machine/machine.h"
#include "plan/template.h"
#include "program/lower/lower.h"
#include "program/testing/plan_fixtures.h"
#include "verify/execute.h"
#include "verify/testing/programs.h"
#include "verify/verify.h"

namespace hemiola::verify {
namespace {

using program::CopyCommand;
using program::CopyOptions;
using program::CopyQueues;
using program::Op;
using program::OpKind;
using test::is_right;

program::Program lowered(const std::string& name, int ranks, CopyOptions copies, bool in_place,
                         bool barrier = true) {
  program::LowerOptions options{.realization = program::Realization::copy_engine, .copies = copies};
  options.in_place = in_place;
  options.barrier = barrier;
  return program::lower(plan::make(name, ranks), options);
}

program::Bound bound(const program::Program& program) {
  return program::bind(
      program, nullptr,
      {.size = program.next_legal_size({256}, DataType::float32), .type = DataType::float32});
}

struct Case {
  std::string name;
  CopyOptions copies;
  bool in_place = false;
};

TEST(CopyEngines, do_what_the_collective_means) {
  for (const Case& one : std::vector<Case>{
           {"all-gather/direct", {.queues = CopyQueues::peer}},
           {"all-gather/direct", {.queues = CopyQueues::peer}, true},
           {"all-gather/direct", {.command = CopyCommand::broadcast}},
           {"all-gather/direct",
            {.command = CopyCommand::broadcast, .queues = CopyQueues::peer, .prelaunch = true},
            true},
           {"all-gather/direct", {.batch = 0}, true},
           {"all-to-all/direct", {.queues = CopyQueues::peer, .batch = 0}},
           {"all-to-all/direct", {.command = CopyCommand::swap}, true},
           {"all-to-all/direct",
            {.command = CopyCommand::swap, .queues = CopyQueues::peer, .batch = 0},
            true},
           {"all-gather/ring", {.queues = CopyQueues::peer, .batch = 0}}}) {
    for (const int ranks : {3, 4, 8}) {
      const program::Bound program = bound(lowered(one.name, ranks, one.copies, one.in_place));
      const Proof proof = check(program);
      EXPECT_TRUE(is_right(proof)) << one.name << " of " << ranks << ": " << proof.summary;
      const Execution run = execute(program);
      EXPECT_EQ(run.outcome, Outcome::right) << one.name << ": " << run.summary;
    }
  }
}

/// The plan by copy engines; none where they cannot do it (they do not add), or a word fits
/// nothing.
std::optional<program::Bound> by_engines(const plan::Plan& plan, const CopyOptions& copies) {
  program::LowerOptions options{.realization = program::Realization::copy_engine, .copies = copies};
  try {
    return bound(program::lower(plan, options));
  } catch (const Failure&) {
    return std::nullopt;
  }
}

TEST(CopyEngines, of_any_plan_are_in_the_order_that_it_needs) {
  int done = 0;
  EXPECT_TRUE(rc::check([&] {
    const plan::Plan plan = program::fixtures::RandomPlan(*rc::gen::arbitrary<unsigned>()).make();
    plan::validate(plan);
    const CopyOptions copies{
        .command = *rc::gen::element(CopyCommand::copy, CopyCommand::broadcast),
        .queues = *rc::gen::element(CopyQueues::stream, CopyQueues::peer),
        .batch = *rc::gen::element(1, 2, 0),
        .prelaunch = *rc::gen::arbitrary<bool>()};
    const std::optional<program::Bound> program = by_engines(plan, copies);
    if (!program) return;
    ++done;
    const Proof proof = check(*program);
    if (!is_right(proof)) RC_FAIL(proof.summary);
  }));
  EXPECT_GT(done, 0);
}

/// Changes the first operation of this kind.
template <class Change>
program::Program with_changed(program::Program program, OpKind kind, Change&& change) {
  for (program::Body& body : program.bodies) {
    for (Op& op : body.ops) {
      if (op.kind != kind) continue;
      change(op);
      return program;
    }
  }
  ADD_FAILURE() << "there is no such operation";
  return program;
}

TEST(CopyEngines, that_miss_a_destination_of_a_broadcast_are_found_out) {
  const program::Bound wrong = bound(
      with_changed(lowered("all-gather/direct", 4, {.command = CopyCommand::broadcast}, false),
                   OpKind::copy, [](Op& op) {
                     ASSERT_EQ(op.dst.size(), 2u);
                     op.dst.pop_back();
                   }));
  EXPECT_FALSE(is_right(check(wrong)));
  EXPECT_EQ(execute(wrong).outcome, Outcome::wrong);
}

TEST(CopyEngines, that_swap_what_another_swaps_are_found_out) {
  // Two queues swap one place with two others.
  const program::Bound wrong =
      bound(with_changed(lowered("all-to-all/direct", 4,
                                 {.command = CopyCommand::swap, .queues = CopyQueues::peer}, true),
                         OpKind::swap, [](Op& op) {
                           op.src[0].chunk.constant += 1;
                           op.dst[1] = op.src[0];
                         }));
  EXPECT_FALSE(is_right(check(wrong)));
}

TEST(CopyEngines, that_need_an_order_within_a_submission_are_found_out) {
  const program::Program right = lowered("all-gather/direct", 3, {.batch = 0}, false);
  const auto changed = [&](bool together) {
    return bound(with_changed(right, OpKind::put, [&](Op& op) { op.batched = together; }));
  };
  EXPECT_TRUE(is_right(check(changed(false))));
  program::Program twice = right;
  for (program::Body& body : twice.bodies) {
    const auto first = std::find_if(body.ops.begin(), body.ops.end(),
                                    [](const Op& op) { return op.kind == OpKind::put; });
    if (first == body.ops.end()) continue;
    const Op again = *first;
    body.ops.insert(first, again);
  }
  const Proof proof = check(bound(twice));
  EXPECT_FALSE(is_right(proof)) << "it writes the same twice";
  std::string text = proof.summary;
  for (const Witness& step : proof.counterexample) text += step.text;
  EXPECT_THAT(text, ::testing::HasSubstr("same submission"));
}

}  // namespace
}  // namespace hemiola::verify
