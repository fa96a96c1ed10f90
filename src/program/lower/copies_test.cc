// Words of copy engines: what they make of plans, and what they do not fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/testing/failure.h"
#include "plan/template.h"
#include "program/lower/lower.h"

namespace hemiola::program {
namespace {

using hemiola::test::message_of;
using ::testing::HasSubstr;

LowerOptions engines(CopyOptions copies, bool in_place = false) {
  LowerOptions options{.realization = Realization::copy_engine, .copies = copies};
  options.in_place = in_place;
  options.barrier = false;
  return options;
}

/// Of the queues of a rank that copy something: the operations that do.
std::vector<std::vector<Op>> copies_of(const Program& program, int rank) {
  std::vector<std::vector<Op>> queues;
  for (const Stream& stream :
       program.codes[static_cast<std::size_t>(program.code_of[static_cast<std::size_t>(rank)])]
           .streams) {
    for (const StreamItem& item : stream) {
      std::vector<Op> ops = program.bodies[static_cast<std::size_t>(item.index)].ops;
      std::erase_if(ops, [](const Op& op) { return op.src.empty(); });
      if (!ops.empty()) queues.push_back(std::move(ops));
    }
  }
  return queues;
}

TEST(LowerCopies, takes_one_peer_after_the_other_or_all_at_once) {
  const plan::Plan plan = plan::make("all-gather/direct", 8);
  EXPECT_EQ(copies_of(lower(plan, engines({})), 0).size(), 1u);
  const auto queues = copies_of(lower(plan, engines({.queues = CopyQueues::peer})), 3);
  ASSERT_EQ(queues.size(), 8u) << "seven peers and its own memory";
  for (const auto& ops : queues) EXPECT_EQ(ops.size(), 1u);
}

TEST(LowerCopies, leaves_out_what_is_in_place_already) {
  const plan::Plan plan = plan::make("all-gather/direct", 8);
  const Program program = lower(plan, engines({.queues = CopyQueues::peer}, true));
  EXPECT_TRUE(program.in_place);
  EXPECT_EQ(copies_of(program, 0).size(), 7u);
}

TEST(LowerCopies, broadcasts_to_two_peers_with_one_command) {
  const plan::Plan plan = plan::make("all-gather/direct", 8);
  const CopyOptions words{.command = CopyCommand::broadcast, .queues = CopyQueues::peer};
  const auto queues = copies_of(lower(plan, engines(words, true)), 5);
  ASSERT_EQ(queues.size(), 4u) << "half of seven";
  std::vector<std::size_t> destinations;
  for (const auto& ops : queues) destinations.push_back(ops.at(0).dst.size());
  EXPECT_THAT(destinations, ::testing::UnorderedElementsAre(2, 2, 2, 1));
}

TEST(LowerCopies, swaps_every_pair_once) {
  const plan::Plan plan = plan::make("all-to-all/direct", 8);
  const CopyOptions words{.command = CopyCommand::swap, .queues = CopyQueues::peer};
  const Program program = lower(plan, engines(words, true));
  std::size_t swaps = 0;
  for (int rank = 0; rank < 8; ++rank) {
    for (const auto& ops : copies_of(program, rank)) {
      ASSERT_EQ(ops.size(), 1u);
      EXPECT_EQ(ops.front().kind, OpKind::swap);
      EXPECT_EQ(ops.front().src[0], ops.front().dst[1]);
      EXPECT_EQ(ops.front().src[1], ops.front().dst[0]);
      ++swaps;
    }
  }
  EXPECT_EQ(swaps, 8u * 7 / 2);
}

TEST(LowerCopies, batches_so_many_copies_as_are_said) {
  const plan::Plan plan = plan::make("all-gather/direct", 8);
  const auto batches = [&](int batch) {
    std::vector<int> sizes(1, 0);
    const auto queues = copies_of(lower(plan, engines({.batch = batch}, true)), 0);
    for (const Op& op : queues.at(0)) {
      ++sizes.back();
      if (!op.batched) sizes.push_back(0);
    }
    sizes.pop_back();
    return sizes;
  };
  EXPECT_THAT(batches(1), ::testing::ElementsAre(1, 1, 1, 1, 1, 1, 1));
  EXPECT_THAT(batches(3), ::testing::ElementsAre(3, 3, 1));
  EXPECT_THAT(batches(0), ::testing::ElementsAre(7));
}

TEST(LowerCopies, prelaunches_queues_and_not_gates_and_bells) {
  const plan::Parameters small{{"m", "64"},     {"n", "32"},     {"k", "32"},     {"tile_m", "8"},
                               {"tile_n", "8"}, {"tile_k", "8"}, {"degree", "2"}, {"axis", "k"}};
  const Program program =
      lower(plan::make("ag-gemm/sequence", 4, small), engines({.prelaunch = true}));
  const auto& streams = program.codes[0].streams;
  for (std::size_t s = 0; s < 3; ++s) EXPECT_TRUE(streams[s].front().prelaunched);
  for (const StreamItem& item : streams[3]) EXPECT_FALSE(item.prelaunched);
}

TEST(LowerCopies, refuses_words_that_fit_nothing) {
  const plan::Plan gather = plan::make("all-gather/direct", 4);
  const plan::Plan exchange = plan::make("all-to-all/direct", 4);
  const auto refused = [](const plan::Plan& plan, const LowerOptions& options) {
    return message_of([&] { lower(plan, options); });
  };
  EXPECT_THAT(refused(gather, {.copies = {.prelaunch = true}}),
              HasSubstr("'prelaunch' is said of copy engines"));
  EXPECT_THAT(refused(gather, {.copies = {.batch = 2}}), HasSubstr("'batch'"));
  EXPECT_THAT(refused(gather, engines({.command = CopyCommand::swap}, true)),
              HasSubstr("is an algorithm for all-gather"));
  EXPECT_THAT(refused(exchange, engines({.command = CopyCommand::swap})),
              HasSubstr("input and output are one memory"));
  EXPECT_THAT(refused(exchange, engines({.command = CopyCommand::broadcast})),
              HasSubstr("copies one place to two other GPUs"));
  EXPECT_THAT(
      refused(plan::make("all-gather/direct", 2), engines({.command = CopyCommand::broadcast})),
      HasSubstr("copies one place to two other GPUs"));
  EXPECT_THAT(refused(exchange, engines({}, true)), HasSubstr("cannot run in place"));
}

}  // namespace
}  // namespace hemiola::program
