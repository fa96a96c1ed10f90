// Products and their collectives in one launch.
#include "workload/costs/fuse.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/testing/failure.h"
#include "workload/costs/collective_rules.h"
#include "workload/iteration/iteration.h"
#include "workload/iteration/job_text.h"
#include "workload/testing/models.h"

namespace hemiola::workload {
namespace {

using generated::nodes_named;
using hemiola::test::message_of;

/// Two layers over four ranks; products of 512 tokens.
std::shared_ptr<const Workload> layers(bool sequence_parallel, Phase phase) {
  Model model = generated::tiny_gpt(2);
  model.hidden = 512;
  model.sequence = 512;
  model.biases = Biases::none;
  return std::make_shared<const Workload>(
      make_workload({.model = complete(model),
                     .parallelism = {.tp = 4, .sequence_parallel = sequence_parallel},
                     .phase = phase,
                     .micro_batch = 1}));
}

std::vector<CollectiveRule> rules(const std::string& list) {
  return parse_collective_rules("collectives:\n" + list, "rules.yaml");
}
const std::string kBoth =
    "- {fuse: ag-gemm, run: ag-gemm/swizzle}\n- {fuse: gemm-rs, run: gemm-rs/direct}\n";

std::int64_t fused_nodes(const Workload& workload) {
  const std::vector<Node>& nodes = workload.classes[0].trace->nodes;
  return std::count_if(nodes.begin(), nodes.end(), [&](const Node& node) {
    return has_product(workload, node.kind, node.work);
  });
}

TEST(Fuse, TakesWhatAProductWaitsForAndWhatTheNextKernelDoes) {
  const auto before = layers(true, Phase::prefill);
  const auto after = fuse_products(before, rules(kBoth), {});
  // qkv and up wait for their input; the sums of attention output and down are waited for.
  EXPECT_EQ(fused_nodes(*before), 0);
  EXPECT_EQ(fused_nodes(*after), 2 * 4);
  for (const char* name :
       {"qkv with tp all-gather", "up with tp all-gather",
        "attention output with tp reduce-scatter", "down with tp reduce-scatter"})
    EXPECT_EQ(nodes_named(*after, 0, name), 2) << name;
  check(*after);
  // The embedding's sum has no product.
  EXPECT_EQ(nodes_named(*after, 0, "qkv"), 0);
  const std::vector<Node>& nodes = after->classes[0].trace->nodes;
  EXPECT_EQ(std::count_if(nodes.begin(), nodes.end(),
                          [&](const Node& node) {
                            return node.kind == NodeKind::collective &&
                                   !has_product(*after, node.kind, node.work);
                          }),
            2);
}

TEST(Fuse, LeavesWhatRunsBesideAKernelAsItIs) {
  const auto before = layers(true, Phase::train);
  const auto after = fuse_products(before, rules(kBoth), {});
  // Backward the input is gathered beside one product and the sum runs beside another; only the
  // gathers that a product waits for are fused: of down's and the attention output's gradients, and
  // of the logits.
  EXPECT_EQ(nodes_named(*after, 0, "down input gradient with tp all-gather"), 2);
  EXPECT_EQ(nodes_named(*after, 0, "up input gradient with tp reduce-scatter"), 0);
  EXPECT_EQ(nodes_named(*after, 0, "up weight gradient"), 2);
  EXPECT_EQ(nodes_named(*after, 0, "up input gradient"), 2);
}

TEST(Fuse, IsForRulesThatFit) {
  const auto before = layers(true, Phase::prefill);
  EXPECT_EQ(fuse_products(before, rules("- {kind: all-gather, run: all-gather/ring}\n"), {}),
            before);
  EXPECT_EQ(fuse_products(before, rules("- {fuse: gemm-ar, run: gemm-ar/nvls}\n"), {}), before);
  EXPECT_EQ(fuse_products(before, rules("- {fuse: ag-gemm, ranks: 8, run: ag-gemm/ring}\n"), {}),
            before);
  // As `explore --gemm` counts it: over all ranks.
  const std::string of_one = "- {fuse: ag-gemm, gemm: [512, 256, 512], run: ag-gemm/ring}\n";
  EXPECT_EQ(fused_nodes(*fuse_products(before, rules(of_one), {})), 2) << "of up";
  EXPECT_EQ(fused_nodes(*fuse_products(before, rules(kBoth), {Collective::all_gather})), 2 * 2);
  const auto sums = fuse_products(layers(false, Phase::prefill),
                                  rules("- {fuse: gemm-ar, run: gemm-ar/nvls}\n"), {});
  EXPECT_EQ(nodes_named(*sums, 0, "down with tp all-reduce"), 2);
}

TEST(Fuse, TheLaunchIsFasterThanOneAfterTheOtherAndIsBothComputeAndCommunication) {
  study::Laboratory laboratory;
  Model model = generated::tiny_gpt(1);
  model.hidden = 2048;
  model.sequence = 2048;
  model.biases = Biases::none;
  IterationRequest request{.workload = std::make_shared<const Workload>(
                               make_workload({.model = complete(model),
                                              .parallelism = {.tp = 4, .sequence_parallel = true},
                                              .phase = Phase::prefill,
                                              .micro_batch = 1})),
                           .machine = {.name = "dgx-h100", .ranks = "4"}};
  const IterationOutcome apart = run_iteration(laboratory, request);
  request.costs.rules = rules(kBoth);
  const IterationOutcome fused = run_iteration(laboratory, request);
  EXPECT_LT(fused.result.time, apart.result.time);
  const ClassTime &one = apart.result.classes[0], &other = fused.result.classes[0];
  EXPECT_LT(other.exposed(), one.exposed());
  EXPECT_EQ(one.hidden.fs, 0);
  EXPECT_GT(other.hidden.fs, 0);
  EXPECT_LE(other.hidden, other.compute);
  // The bytes are the same calls'.
  const auto bytes = [](const ClassTime& times) {
    std::int64_t sum = 0;
    for (const auto& [key, call] : times.calls) sum += call.bytes;
    return sum;
  };
  EXPECT_EQ(bytes(one), bytes(other));
}

TEST(Fuse, BadRulesHaveOneMessage) {
  const std::pair<const char*, const char*> cases[] = {
      {"- {fuse: gemm-xx, run: a}\n", "'gemm-xx' is no product with its collective"},
      {"- {fuse: ag-gemm, kind: all-gather, run: a}\n", "'fuse' says the collective"},
      {"- {fuse: ag-gemm, gemm: [1, 2], run: a}\n", "'gemm' is a list of three sizes"},
      {"- {fuse: ag-gemm, gemm: [1, 2, x], run: a}\n", "is no size of a matrix"},
      {"- {kind: all-gather, gemm: [1, 2, 3], run: a}\n", "'gemm' goes with 'fuse'"}};
  for (const auto& [text, expected] : cases)
    EXPECT_NE(message_of([&] { rules(text); }).find(expected), std::string::npos)
        << message_of([&] { rules(text); });
  // A built-in that does not take the product.
  study::Laboratory laboratory;
  IterationRequest request{.workload = layers(true, Phase::prefill),
                           .machine = {.name = "dgx-h100", .ranks = "4"}};
  request.costs.level = Level::estimate;
  request.costs.rules = rules("- {fuse: ag-gemm, run: ag-gemm/ring, param: {split: 7}}\n");
  EXPECT_NE(message_of([&] {
              run_iteration(laboratory, request);
            }).find("over 4 ranks cannot run ag-gemm/ring: "),
            std::string::npos);
  request.costs.rules = rules(kBoth);
  const IterationOutcome outcome = run_iteration(laboratory, request);
  Places places(*outcome.workload);
  EXPECT_NE(message_of([&] {
              job_text(*outcome.workload, places, outcome.result);
            }).find("are not written as a job"),
            std::string::npos);
}

}  // namespace
}  // namespace hemiola::workload
