#include "explore/search/block_explorer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/testing/failure.h"
#include "verify/verify.h"

namespace hemiola::explore {
namespace {

using ::testing::HasSubstr;

BlockRequest block_request(const Block& block) {
  BlockRequest request{{.machine = {.name = "mi300x-8", .ranks = "4"}}, block};
  request.limits.degrees = {2, 4};
  request.fluid = 12;
  return request;
}
const Block kMlp{.kind = BlockKind::mlp, .tokens = 256, .hidden = 256, .intermediate = 512};
const Block kAttention{.kind = BlockKind::attention,
                       .tokens = 256,
                       .hidden = 256,
                       .heads = 8,
                       .kv_heads = 4,
                       .head_dim = 64,
                       .sequences = 2};

// Compute takes 1, both collectives together r.
TEST(ChainPipeline, uniform_steps_expose_the_first_gather_and_the_last_scatter) {
  const double r = 0.5, steps = 8;
  const ChainPipeline chain{.groups = 8,
                            .gather = r / 2 / steps,
                            .scatter = r / 2 / steps,
                            .first = 0.6 / steps,
                            .last = 0.4 / steps};
  EXPECT_DOUBLE_EQ(chain.time(), 1 + r / steps);
}

TEST(ChainPipeline, own_rows_at_both_ends_hide_them) {
  const double r = 0.5, steps = 8, own = 1.0 / 8;
  const ChainPipeline chain{.groups = 8,
                            .gather = r / 2 / steps,
                            .scatter = r / 2 / steps,
                            .first = 0.6 * (1 - own) / steps,
                            .last = 0.4 * (1 - own) / steps,
                            .own_first = 0.6 * own,
                            .own_last = 0.4 * own};
  EXPECT_DOUBLE_EQ(chain.time(), 1);
}

TEST(ChainPipeline, where_links_are_slower_compute_hides_behind_all_but_one_step) {
  // Every step arrives after what the one before it took: gathers, one step of compute, a scatter.
  const ChainPipeline chain{.groups = 4, .gather = 1, .scatter = 1, .first = 0.25, .last = 0.25};
  EXPECT_DOUBLE_EQ(chain.time(), 4 + 0.5 + 1);
}

TEST(ChainPipeline, steps_of_one_sequence_wait_for_each_other_in_the_middle) {
  ChainPipeline chain{
      .groups = 4, .group = 1, .gather = 1, .scatter = 1, .first = 0.5, .middle = 0.5, .last = 1};
  const double of_sequences = chain.time();
  chain.groups = 1;
  chain.group = 4;
  // Of one sequence nothing leaves before all have arrived.
  EXPECT_DOUBLE_EQ(chain.time(), 4 + 0.5 + 4 * 1.5 + 1);
  EXPECT_LT(of_sequences, chain.time());
}

TEST(ExploreBlock, finds_chains_whose_losses_sum_to_what_is_lost) {
  study::Laboratory laboratory;
  for (const Block& block : {kMlp, kAttention}) {
    BlockRequest request = block_request(block);
    request.losses = LossesOf::all;
    const BlockExploration found = explore_block(laboratory, request);
    ASSERT_FALSE(found.candidates.empty());
    EXPECT_TRUE(found.refused.empty()) << found.refused.front().refused;
    ASSERT_EQ(found.serial.parts.size(), 5U);
    EXPECT_GT(found.serial.time, found.ideal);
    EXPECT_GT(found.apart.time, found.ideal);
    for (const BlockCandidate& one : found.candidates) {
      ASSERT_TRUE(one.losses);
      EXPECT_EQ(one.losses->decomposition + one.losses->exposed + one.losses->contention,
                (one.fluid - found.ideal).fs)
          << one.schedule.text();
      for (const auto& [name, part] : one.losses->parts()) EXPECT_GE(part, 0) << name;
      // What arrives is in the L2, where nobody sends it comes from memory: computing alone can
      // take a little longer.
      EXPECT_GE(static_cast<double>(one.fluid.fs),
                0.97 * static_cast<double>(one.losses->computes.fs))
          << one.schedule.text();
    }
  }
}

TEST(ExploreBlock, is_the_same_with_several_threads) {
  study::Laboratory one, other;
  BlockRequest request = block_request(kMlp);
  const BlockExploration first = explore_block(one, request);
  request.options.threads = 3;
  const BlockExploration second = explore_block(other, request);
  EXPECT_EQ(first.apart.time, second.apart.time);
  ASSERT_EQ(first.candidates.size(), second.candidates.size());
  for (std::size_t i = 0; i < first.candidates.size(); ++i) {
    EXPECT_EQ(first.candidates[i].schedule, second.candidates[i].schedule);
    EXPECT_EQ(first.candidates[i].fluid, second.candidates[i].fluid);
  }
}

TEST(ExploreBlock, the_fastest_chain_is_a_plan_that_is_proven) {
  study::Laboratory laboratory;
  for (const Block& block : {kMlp, kAttention}) {
    BlockRequest request = block_request(block);
    request.fluid = 4;
    request.losses = LossesOf::none;
    const BlockExploration found = explore_block(laboratory, request);
    study::Experiment experiment{.machine = request.machine,
                                 .subject = std::make_shared<const plan::Plan>(plan_of(
                                     laboratory, request, found.candidates.front().schedule)),
                                 .type = DataType::bfloat16};
    experiment.options.engine = sim::Engine::fluid;
    EXPECT_EQ(laboratory.run(experiment).result.checked, "full");
  }
}

TEST(Block, sizes_that_do_not_divide_are_refused_with_the_next_ones) {
  Block block = kMlp;
  block.ranks = 8;
  block.tokens = 8193;
  EXPECT_THAT(test::message_of([&] { check(block); }),
              ::testing::AllOf(HasSubstr("--tokens"), HasSubstr("does not divide by 8"),
                               HasSubstr("8192 and 8200")));
  block.tokens = 0;
  EXPECT_THAT(test::message_of([&] { check(block); }), HasSubstr("is not given"));
  Block attention = kAttention;
  attention.ranks = 8;
  EXPECT_THAT(test::message_of([&] { check(attention); }), HasSubstr("--kv-heads"));
  EXPECT_THAT(test::message_of([] { block_named("mlpp", {.file = "--block"}); }),
              HasSubstr("did you mean 'mlp'?"));
}

TEST(BlockSpace, degrees_that_divide_nothing_are_refused) {
  Block block = kMlp;
  block.ranks = 4;
  const machine::Machine machine = machine::load("mi300x-8");
  EXPECT_THAT(test::message_of([&] {
                space_of(block, machine, {.degrees = {7, 512}});
              }),
              HasSubstr("no number of steps divides the 64 rows"));
}

}  // namespace
}  // namespace hemiola::explore
