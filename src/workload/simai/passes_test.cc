#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "workload/testing/traces.h"

namespace hemiola::workload {
namespace {

using test::Folder;
using test::has_notice;
using testing::ElementsAre;
using testing::HasSubstr;

Workload read_layers(const std::string& text, std::optional<int> ranks = {}, bool lenient = false) {
  const Folder folder;
  return read_workload(
      {.path = folder.write("text.txt", text), .lenient = lenient, .replicate = ranks});
}
std::string layer_refusal(const std::string& text, std::optional<int> ranks = 8) {
  const Folder folder;
  return test::failure_of(folder, {.path = folder.write("t.txt", text), .replicate = ranks});
}

/// "a forward", and "(a forward)" for a call.
std::vector<std::string> pass_order(const Workload& workload) {
  std::vector<std::string> order;
  for (const Node& node : workload.classes.at(0).trace->nodes) {
    const std::string& name = workload.names[node.name];
    if (name == "update") continue;
    order.push_back(node.kind == NodeKind::collective ? "(" + name + ")" : name);
  }
  return order;
}
const std::vector<int>& layer_group(const Workload& workload, std::size_t call,
                                    std::size_t group = 0) {
  return workload.families.at(static_cast<std::size_t>(workload.collectives.at(call).family))
      .groups.at(group);
}

constexpr const char* kTwoLayers =
    "2\na -1 10 ALLREDUCE 1 20 ALLREDUCE 2 30 ALLREDUCE 3 5\n"
    "b -1 40 ALLREDUCE 4 50 ALLREDUCE 5 60 ALLREDUCE 6 0\n";
std::string two_layers(const std::string& head) {
  return head + "\n" + kTwoLayers;
}
const std::string kTransformer = "HYBRID_TRANSFORMER model_parallel_NPU_group: 2";

TEST(AstraText, a_transformer_waits_for_each_input_gradient) {
  const Workload workload = read_layers(two_layers(kTransformer), 8);
  EXPECT_EQ(workload.ranks, 8);
  EXPECT_EQ(workload.name, "text.txt");
  EXPECT_THAT(pass_order(workload),
              ElementsAre("a forward", "(a forward)", "b forward", "(b forward)",
                          "b input gradient", "(b input gradient)", "b weight gradient",
                          "(b weight gradient)", "a input gradient", "(a input gradient)",
                          "a weight gradient", "(a weight gradient)"));
  EXPECT_EQ(workload.classes.at(0).trace->nodes.at(0).recorded, Time::from_ns(10));
  const Trace& trace = *workload.classes.at(0).trace;
  EXPECT_THAT(test::waits_of(trace, 3), ElementsAre(0u, 2u)) << "b forward: the update of a's call";
  // b's weight gradient's call, of the data parallel group, is waited for by none.
  EXPECT_THAT(test::waits_of(trace, 9), ElementsAre(7u));
}

TEST(AstraText, groups_follow_from_their_sizes) {
  const Workload workload = read_layers(
      "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 2 pp: 2 vpp: 1 ga: 4 "
      "all_gpus: 16 checkpoints: 0 checkpoint_initiates: 0 pp_comm: 64.0\n1\n"
      "a\t-1\t1\tALLREDUCE\t8\t1\tALLTOALL_EP\t16\t1\tREDUCESCATTER_DP_EP\t32\t100\n");
  EXPECT_THAT(layer_group(workload, 0), ElementsAre(0, 1));
  EXPECT_THAT(layer_group(workload, 1), ElementsAre(0, 2));
  EXPECT_THAT(layer_group(workload, 2), ElementsAre(0, 4));
  EXPECT_THAT(layer_group(workload, 2, 4), ElementsAre(8, 12)) << "the second stage";
  EXPECT_TRUE(has_notice(workload, "one of 2 stages"));
  EXPECT_THAT(layer_group(read_layers(two_layers(kTransformer), 8), 3), ElementsAre(0, 2, 4, 6))
      << "data parallel";
  const Workload outer =
      read_layers(two_layers("HYBRID_MODEL_DATA model_parallel_NPU_group: 2"), 8);
  EXPECT_THAT(layer_group(outer, 0), ElementsAre(0, 4));
  EXPECT_THAT(layer_group(outer, 3), ElementsAre(0, 1, 2, 3));
}

TEST(AstraText, each_parallelism_has_its_order) {
  EXPECT_THAT(pass_order(read_layers(two_layers("DATA"), 8)),
              ElementsAre("a forward", "b forward", "b weight gradient", "(b weight gradient)",
                          "b input gradient", "a weight gradient", "(a weight gradient)"));
  EXPECT_THAT(pass_order(read_layers(two_layers("MODEL"), 8)),
              ElementsAre("a forward", "(a forward)", "b forward", "(b forward)",
                          "b input gradient", "(b input gradient)", "b weight gradient",
                          "a input gradient", "a weight gradient"));
  EXPECT_THAT(pass_order(read_layers(two_layers("DISTRIBUTED_INFERENCE"), 8)),
              ElementsAre("a forward", "(a forward)", "b forward", "(b forward)"));
  EXPECT_THAT(pass_order(read_layers(two_layers("MICRO"), 8)),
              ElementsAre("(a weight gradient)", "(b weight gradient)"));
  EXPECT_THAT(pass_order(read_layers("HYBRID_DLRM 0\n2\ne -1 1 ALLTOALL 8 1 ALLTOALL 8 1 NONE 0 0\n"
                                     "m -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 8 0\n",
                                     8)),
              ElementsAre("e forward", "(e forward)", "m forward", "m weight gradient",
                          "(m weight gradient)", "m input gradient", "(e input gradient)",
                          "e weight gradient"));
  EXPECT_THAT(
      pass_order(read_layers(
          "HYBRID_CUSTOMIZED\n1\na -1 1 ALLREDUCE 8 1 NONE 0 1 ALLREDUCE 8 0 DATA\n", 8)),
      ElementsAre("a forward", "a input gradient", "a weight gradient", "(a weight gradient)"));
}

TEST(AstraText, layers_after_a_checkpoint_run_forward_again) {
  std::string text =
      "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 checkpoints: 1 0 "
      "checkpoint_initiates: 1 2\n3\n";
  for (const char* name : {"a", "b", "c"})
    text += std::string(name) + " -1 1 NONE 0 1 NONE 0 0 NONE 0 0\n";
  EXPECT_THAT(pass_order(read_layers(text, 8)),
              ElementsAre("a forward", "b forward", "c forward", "a forward", "b forward",
                          "c input gradient", "b input gradient", "a input gradient"));
}

TEST(AstraText, what_moves_nothing_is_left_out_and_said) {
  const Workload workload = read_layers(
      "HYBRID_TRANSFORMER model_parallel_NPU_group: 1\n1\n"
      "a -1 1 ALLGATHER 8 1 BROADCAST 8 1 ALLREDUCE 0 0\n",
      8, true);
  EXPECT_THAT(pass_order(workload),
              ElementsAre("a forward", "a input gradient", "a weight gradient"));
  EXPECT_TRUE(has_notice(workload, "ignored: calls in groups of one rank: 1 time,"));
  EXPECT_TRUE(has_notice(workload, "ignored: calls of 0 bytes: 1 time,"));
  EXPECT_TRUE(has_notice(workload, "ignored: collectives 'BROADCAST'"));
  EXPECT_TRUE(has_notice(workload, "one rank's share"));
}

TEST(AstraText, another_number_of_ranks_is_said) {
  const Workload workload = read_layers(two_layers(kTransformer + " all_gpus: 64"), 8);
  EXPECT_EQ(workload.ranks, 8);
  EXPECT_TRUE(has_notice(workload, "runs on 8 ranks, and is written for 64"));
}

TEST(AstraText, what_is_wrong_is_said_with_its_line) {
  const std::string layer = "a -1 1 NONE 0 1 NONE 0 1 NONE 0 0\n";
  const std::array cases{
      std::pair{two_layers("HYBRID_TRANSFORMR"),
                "t.txt:1: error: 'HYBRID_TRANSFORMR' is no parallelism"},
      std::pair{two_layers("HYBRID_TRANSFORMER"), "t.txt:1: error: nothing says how large"},
      std::pair{two_layers(kTransformer + " ep: 3"),
                "t.txt:1: error: 8 ranks are no multiple of 6"},
      std::pair{two_layers(kTransformer + " epp: 3"), "t.txt:1: error: 'epp' is no field"},
      std::pair{two_layers(kTransformer + " ep: 1 ep: 1"), "t.txt:1: error: 'ep' stands twice"},
      std::pair{two_layers(kTransformer + " ep:"), "t.txt:1: error: 'ep' has no number"},
      std::pair{two_layers(kTransformer + " ga: 99999999999999999999"), "t.txt:1: error:"},
      std::pair{two_layers(kTransformer + " checkpoints: 1 7"), "t.txt:1: error: layer 7"},
      std::pair{two_layers(kTransformer + " checkpoint_initiates: 1 1"),
                "t.txt:1: error: layer 1 initiates"},
      std::pair{std::string("HYBRID_DLRM\n1\n") + layer, "t.txt:1: error: nothing says which"},
      std::pair{std::string("MICRO\n1\n") + layer, "t.txt: error: nothing in it takes any time"},
      std::pair{std::string("MICRO\n"), "t.txt:2: error: the second line"},
      std::pair{std::string("MICRO\n2\n") + layer, "t.txt:3: error: 2 layers are announced"},
      std::pair{std::string("MICRO\n1\n") + layer + layer,
                "t.txt:4: error: 1 layers are announced"},
      std::pair{std::string("MICRO\n1\na -1 1 NONE 0\n"), "t.txt:3: error: a layer has 12 words"},
      std::pair{std::string("MICRO\n1\na -1 1 ALLSUM 0 1 NONE 0 1 NONE 0 0\n"),
                "t.txt:3: error: 'ALLSUM' is no collective"},
      std::pair{std::string("MICRO\n1\na -1 -1 NONE 0 1 NONE 0 1 NONE 0 0\n"),
                "t.txt:3: error: '-1'"},
      std::pair{std::string("MICRO\n1\na -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 99999999999999999 0\n"),
                "t.txt:3: error:"},
      std::pair{std::string("MICRO\n1\na -1 1000000000000 NONE 0 1 NONE 0 1 NONE 0 0\n"),
                "t.txt:3: error: the times of the layers"}};
  for (const auto& [text, message] : cases)
    EXPECT_THAT(layer_refusal(text), HasSubstr(message)) << text;
  EXPECT_THAT(layer_refusal(two_layers("DATA"), {}),
              HasSubstr("nothing says how many ranks there are"));
}

TEST(AstraText, files_of_simai) {
  HEMIOLA_SHARED_INPUT(micro, "simai/microAllReduce.txt");
  const Workload small = read_workload({.path = micro});
  EXPECT_EQ(small.ranks, 8);
  EXPECT_EQ(small.collectives.size(), 2u);
  HEMIOLA_SHARED_INPUT(path, "simai/workload_analytical.txt");
  const Workload workload = read_workload({.path = path});
  EXPECT_EQ(workload.ranks, 9216);
  EXPECT_EQ(workload.families.size(), 4u) << "tp, dp, ep, dp_ep";
}

}  // namespace
}  // namespace hemiola::workload
