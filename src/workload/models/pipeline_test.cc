#include "workload/models/pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "workload/testing/models.h"

namespace hemiola::workload {
namespace {

/// The most pairs of chunk and micro batch whose activations a stage holds at once: from the
/// beginning of the forward pass to the end of the pass that computes gradients of weights.
std::int64_t most_in_flight(std::span<const Pass> passes) {
  std::int64_t now = 0;
  std::int64_t most = 0;
  for (const Pass& pass : passes) {
    if (pass.kind == PassKind::forward) most = std::max(most, ++now);
    if (pass.kind == PassKind::backward || pass.kind == PassKind::weight_gradient) --now;
  }
  return most;
}

using generated::Simulation;

MakeRequest pipelined(Schedule schedule, int stages, int micro_batches, int chunks) {
  return {.model = generated::tiny_gpt(std::int64_t{stages} * chunks),
          .parallelism = {.pp = stages},
          .global_batch = micro_batches,
          .schedule = schedule,
          .chunks = chunks};
}

/// One kernel of each kind of pass takes the time, and each chunk has one layer.
std::int64_t unit_time(const std::string& name) {
  return name == "attention output" || name == "attention output input gradient" ||
                 name == "attention output weight gradient"
             ? 1
             : 0;
}

/// Idle time of the whole over the time that a stage is busy.
double bubble(Schedule schedule, int stages, int micro_batches, int chunks = 1) {
  const Workload workload = make_workload(pipelined(schedule, stages, micro_batches, chunks));
  const generated::Duration duration = unit_time;
  const Simulation simulation(workload, duration);
  EXPECT_EQ(simulation.stuck(), "");
  EXPECT_EQ(simulation.busy(0), 3 * micro_batches * chunks);
  const auto busy = static_cast<double>(simulation.busy(0));
  return (static_cast<double>(simulation.time()) - busy) / busy;
}

TEST(Pipeline, BubblesAreThoseOfThePapers) {
  for (const int p : {2, 3, 4, 8}) {
    for (const int rounds : {1, 2, 4}) {
      const int m = p * rounds;
      const double plain = static_cast<double>(p - 1) / m;
      EXPECT_DOUBLE_EQ(bubble(Schedule::gpipe, p, m), plain) << p << " " << m;
      EXPECT_DOUBLE_EQ(bubble(Schedule::one_forward_one_backward, p, m), plain) << p << " " << m;
      for (const int v : {2, 3})
        EXPECT_DOUBLE_EQ(bubble(Schedule::interleaved, p, m, v), plain / v)
            << p << " " << m << " " << v;
      EXPECT_DOUBLE_EQ(bubble(Schedule::zero_bubble, p, m), plain / 3) << p << " " << m;
    }
  }
}

TEST(Pipeline, FewerMicroBatchesThanStagesDoNotDeadlock) {
  for (const Schedule schedule :
       {Schedule::gpipe, Schedule::one_forward_one_backward, Schedule::zero_bubble})
    EXPECT_GT(bubble(schedule, 6, 2), 1);
}

TEST(Pipeline, EveryStageDoesEveryPassOnceAndInOrder) {
  for (const Pipeline pipeline :
       {Pipeline{.schedule = Schedule::gpipe, .stages = 4, .micro_batches = 7},
        Pipeline{.schedule = Schedule::one_forward_one_backward, .stages = 4, .micro_batches = 7},
        Pipeline{.schedule = Schedule::interleaved, .stages = 4, .chunks = 3, .micro_batches = 8},
        Pipeline{.schedule = Schedule::zero_bubble, .stages = 4, .micro_batches = 7}}) {
    const bool splits = pipeline.schedule == Schedule::zero_bubble;
    for (int stage = 0; stage < 4; ++stage) {
      const std::vector<Pass> passes = passes_of(pipeline, stage);
      const auto of_each = static_cast<std::size_t>(pipeline.chunks * pipeline.micro_batches);
      EXPECT_EQ(passes.size(), (splits ? 3 : 2) * of_each);
      std::map<std::pair<int, std::int64_t>, std::vector<PassKind>> kinds;
      for (const Pass& pass : passes) kinds[{pass.chunk, pass.micro_batch}].push_back(pass.kind);
      EXPECT_EQ(kinds.size(), of_each);
      const std::vector<PassKind> order =
          splits
              ? std::vector{PassKind::forward, PassKind::input_gradient, PassKind::weight_gradient}
              : std::vector{PassKind::forward, PassKind::backward};
      for (const auto& [key, value] : kinds) EXPECT_EQ(value, order);
    }
  }
}

TEST(Pipeline, ActivationsInFlight) {
  constexpr int kStages = 6;
  constexpr std::int64_t kMicroBatches = 24;
  const auto most = [](Schedule schedule, int chunks, int stage) {
    return most_in_flight(passes_of(
        {.schedule = schedule, .stages = kStages, .chunks = chunks, .micro_batches = kMicroBatches},
        stage));
  };
  for (int stage = 0; stage < kStages; ++stage) {
    EXPECT_EQ(most(Schedule::gpipe, 1, stage), kMicroBatches);
    EXPECT_EQ(most(Schedule::one_forward_one_backward, 1, stage), kStages - stage);
    EXPECT_EQ(most(Schedule::zero_bubble, 1, stage), kStages);
  }
  // p v (1 + (p - 1) / (p v)) on the first stage (arXiv:2205.05198, section 4.2.3).
  EXPECT_EQ(most(Schedule::interleaved, 3, 0), kStages * 3 + kStages - 1);
}

TEST(Pipeline, NamesAreReadAgain) {
  for (const char* name : {"gpipe", "1f1b", "interleaved", "zero-bubble"}) {
    ASSERT_TRUE(parse_schedule(name)) << name;
    EXPECT_EQ(name_of(*parse_schedule(name)), name);
  }
  EXPECT_FALSE(parse_schedule("GPipe"));
}

}  // namespace
}  // namespace hemiola::workload
