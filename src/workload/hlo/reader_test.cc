// Modules as workloads: which calls with which bytes, after what, on which ranks.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <map>

#include "workload/testing/hlo.h"
#include "workload/testing/traces.h"

namespace hemiola::workload {
namespace {

using test::has_notice;
using test::hlo_failure;
using test::hlo_workload;
using test::small_hlo;
using test::trace_of;

/// How often a rank calls each kind of collective, with how many bytes in all, in groups of how
/// many.
struct CallsOfKind {
  int calls = 0;
  std::int64_t bytes = 0;
  std::size_t group = 0;
  bool operator==(const CallsOfKind&) const = default;
};
std::map<Collective, CallsOfKind> calls_of(const Workload& workload, int rank = 0) {
  std::map<Collective, CallsOfKind> all;
  for (const Node& node : trace_of(workload, rank).nodes) {
    if (node.kind != NodeKind::collective && node.kind != NodeKind::send) continue;
    const Call call = workload::call_of(workload, node.kind, node.work);
    CallsOfKind& of_kind = all[call.kind];
    ++of_kind.calls;
    of_kind.bytes += call.bytes;
    of_kind.group = workload.families[static_cast<std::size_t>(call.family)].groups.front().size();
  }
  return all;
}

TEST(HloReader, collectives_have_the_bytes_of_closed_forms) {
  using Calls = std::map<Collective, CallsOfKind>;
  constexpr std::int64_t kRows = 1024, kHidden = 512, kWide = 2048, kBytes = 4;
  const std::int64_t activations = kRows * kHidden * kBytes, weights = kHidden * kWide * kBytes;
  EXPECT_EQ(calls_of(hlo_workload("mlp_tensor_parallel")),
            (Calls{{Collective::all_reduce, {1, activations, 8}}}));
  EXPECT_EQ(calls_of(hlo_workload("mlp_sequence_parallel")),
            (Calls{{Collective::all_gather, {1, activations, 8}},
                   {Collective::reduce_scatter, {1, activations, 8}}}));
  EXPECT_EQ(calls_of(hlo_workload("fsdp")), (Calls{{Collective::all_gather, {2, 2 * weights, 8}}}));
  EXPECT_EQ(calls_of(hlo_workload("scan_layers")),
            (Calls{{Collective::all_reduce, {6, 6 * activations, 8}}}));
  EXPECT_EQ(calls_of(hlo_workload("moe_dispatch")),
            (Calls{{Collective::all_to_all, {2, 2 * activations, 8}}}));
  EXPECT_EQ(calls_of(hlo_workload("heads_to_rows")),
            (Calls{{Collective::all_to_all, {1, activations / 8, 8}}}));
  EXPECT_EQ(calls_of(hlo_workload("pipeline")),
            (Calls{{Collective::send_recv, {4, 4 * activations, 2}}}));
  // 512 rows along dp; weights of 512 x 512 on each GPU.
  const Workload train = hlo_workload("train_2d");
  EXPECT_EQ(calls_of(train).at(Collective::all_reduce).calls, 2);
  EXPECT_EQ(calls_of(train).at(Collective::all_reduce).bytes, (512 * 512 + 2 * 512 * 512) * kBytes);
  ASSERT_EQ(train.families.size(), 2u);
  EXPECT_EQ(train.families[0].groups, (std::vector<std::vector<int>>{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(train.families[1].groups,
            (std::vector<std::vector<int>>{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
}

TEST(HloReader, ranks_that_do_the_same_are_one_class) {
  EXPECT_EQ(hlo_workload("fsdp").classes.size(), 1u);
  // Of a ring, even ranks send to the right in one set of pairs, odd ones in the other.
  const Workload ring = hlo_workload("pipeline");
  ASSERT_EQ(ring.classes.size(), 4u) << "the ends of the ring meet in a pair the other way round";
  int ranks = 0;
  for (const RankClass& one : ring.classes) ranks += static_cast<int>(one.ranks.size());
  EXPECT_EQ(ranks, 8);
}

std::vector<std::string> waits_of(const Workload& workload, const std::string& name,
                                  int occurrence = 0) {
  const Trace& trace = trace_of(workload, 0);
  for (const Node& node : trace.nodes) {
    if (workload.names[node.name] != name || occurrence-- > 0) continue;
    std::vector<std::string> names;
    for (std::uint32_t d = 0; d < node.dependencies; ++d)
      names.push_back(
          workload.names[trace.nodes[trace.dependencies[node.first_dependency + d]].name]);
    return names;
  }
  return {"no such node"};
}
std::string stream_of(const Workload& workload, const std::string& name) {
  for (const Node& node : trace_of(workload, 0).nodes)
    if (workload.names[node.name] == name) return workload.streams[node.stream].name;
  return {};
}

TEST(HloReader, what_is_started_runs_beside_kernels_until_it_is_waited_for) {
  const Workload workload = hlo_workload("gpu_layer");
  using Names = std::vector<std::string>;
  EXPECT_EQ(stream_of(workload, "all-gather-start.1"), "communication");
  EXPECT_EQ(waits_of(workload, "all-gather-start.1"), Names{});
  EXPECT_EQ(stream_of(workload, "loop_multiply_fusion"), "compute");
  EXPECT_EQ(waits_of(workload, "loop_multiply_fusion"), Names{}) << "beside the all-gather";
  EXPECT_EQ(waits_of(workload, "gemm_fusion_dot.1"), Names{"all-gather-start.1"});
  EXPECT_EQ(waits_of(workload, "all-reduce-start.1"), Names{"gemm_fusion_dot.1"})
      << "the stream of communication waits for what was launched before";
  EXPECT_EQ(waits_of(workload, "custom-call.1"), Names{});
  EXPECT_EQ(stream_of(workload, "reduce-scatter.1"), "communication");
  EXPECT_EQ(waits_of(workload, "reduce-scatter.1"), Names{"custom-call.1"});
  const auto calls = calls_of(workload);
  EXPECT_EQ(calls.at(Collective::all_gather).bytes, 1024 * 512 * 2);
  EXPECT_EQ(calls.at(Collective::reduce_scatter).bytes, 1024 * 512 * 2);
  EXPECT_EQ(calls.at(Collective::all_reduce).bytes, 512 * 256 * 4);
  EXPECT_EQ(calls.at(Collective::all_reduce).group, 2u);
}

TEST(HloReader, loops_are_unrolled_and_carry_what_they_wait_for) {
  const Workload workload = hlo_workload("gpu_loop");
  EXPECT_TRUE(has_notice(workload, "loops are unrolled: while.1 5 times"));
  EXPECT_TRUE(has_notice(workload,
                         "of a conditional the branch that costs most: 1 time, the first "
                         "is 'costly' of 'conditional.1'"));
  int products = 0;
  for (const Node& node : trace_of(workload, 0).nodes)
    products += workload.names[node.name] == "custom-call.1" ? 1 : 0;
  EXPECT_EQ(products, 5);
  EXPECT_EQ(stream_of(workload, "copy-start.1"), "copy");
  using Names = std::vector<std::string>;
  EXPECT_EQ(waits_of(workload, "slice_fusion"), Names{"copy-start.1"});
  // Rank 0 sends and receives nothing: a stage in front of it does not exist.
  EXPECT_EQ(waits_of(workload, "custom-call.1", 1).size(), 0u) << "the kernel before it waited";
  EXPECT_EQ(waits_of(workload, "slice_fusion", 1),
            (Names{"collective-permute-start.1", "collective-permute-start.1"}))
      << "sent and received";
  EXPECT_EQ(calls_of(workload, 0).at(Collective::send_recv).calls, 5);
  EXPECT_FALSE(calls_of(workload, 3).contains(Collective::send_recv))
      << "the last one only receives";
}

TEST(HloReader, synchronous_collectives_stand_among_the_kernels) {
  const Workload workload = hlo_workload("mlp_tensor_parallel");
  EXPECT_EQ(stream_of(workload, "all-reduce"), "compute");
  EXPECT_EQ(workload.streams.size(), 1u);
  EXPECT_EQ(trace_of(workload, 0).nodes.size(), 4u);
  const std::string sync = R"(
  %s = f32[8,16]{1,0} all-reduce-start(%p), channel_id=1, replica_groups={}, to_apply=%sum, backend_config={"collective_backend_config":{"is_sync":true}}
  ROOT %d = f32[8,16]{1,0} all-reduce-done(%s)
)";
  const Workload small =
      read_hlo({}, "m.txt", small_hlo(sync, "sum {\n  a = f32[] parameter(0)\n}\n"));
  EXPECT_EQ(stream_of(small, "s"), "compute");
}

TEST(HloReader, without_a_schedule_communication_waits_for_its_operands_only) {
  std::string text = test::hlo_text("gpu_layer");
  const std::string scheduled = ", is_scheduled=true";
  text.erase(text.find(scheduled), scheduled.size());
  const Workload workload = read_hlo({}, "m.txt", text);
  EXPECT_EQ(waits_of(workload, "all-reduce-start.1"),
            std::vector<std::string>{"loop_multiply_fusion"});
}

TEST(HloReader, control_predecessors_are_waited_for) {
  const Workload workload = read_hlo({}, "m.txt", small_hlo(R"(
  %s = (f32[8,16], f32[32,16]) all-gather-start(%p), channel_id=1, replica_groups={}, dimensions={0}
  %c = f32[8,16]{1,0} copy(%p), control-predecessors={%s}
  %d = f32[32,16]{1,0} all-gather-done(%s)
  ROOT %r = f32[8,16]{1,0} copy(%c)
)"));
  EXPECT_EQ(waits_of(workload, "c"), std::vector<std::string>{"s"});
}

TEST(HloReader, what_is_not_known_is_refused_by_name_and_taken_when_lenient) {
  const auto said = [](const std::string& lines, const std::string& before = {}) {
    return hlo_failure([&] { read_hlo({}, "m.txt", small_hlo(lines, before)); });
  };
  const auto taken = [](const std::string& lines, const std::string& before = {}) {
    return read_hlo({.lenient = true}, "m.txt", small_hlo(lines, before));
  };
  const std::string odd = "  ROOT %r = f32[8,16] transpos(%p)\n";
  EXPECT_EQ(said(odd),
            "m.txt:6:8: error: 'transpos' is no opcode that is known\n"
            "  hint: did you mean 'transpose'?");
  EXPECT_TRUE(has_notice(taken(odd), "converted: 'transpos' is not known"));
  const std::string forever = "  ROOT %r = f32[8,16] while(%p), condition=%c, body=%b\n";
  const std::string computations =
      "c {\n  q = f32[8,16] parameter(0)\n  ROOT t = pred[] constant(true)\n}\nb {\n  q = "
      "f32[8,16] "
      "parameter(0)\n  ROOT n = f32[8,16] negate(q)\n}\n";
  EXPECT_NE(said(forever, computations)
                .find("nothing tells how often the loop 'r' runs\n  hint: "
                      "--lenient takes it as once"),
            std::string::npos);
  EXPECT_EQ(trace_of(taken(forever, computations), 0).nodes.size(), 1u);
  const std::string thousands =
      "  ROOT %r = f32[8,16] while(%p), condition=%c, body=%b, "
      "backend_config={\"known_trip_count\":{\"n\":\"2000000\"}}\n";
  EXPECT_NE(said(thousands, computations)
                .find("the loop 'r' runs 2000000 times with 1 nodes each, and a module may have "
                      "1000000 nodes in all"),
            std::string::npos);
  // Calls that double twenty-five times.
  std::string doubled = "c0 {\n  q = f32[8,16] parameter(0)\n  ROOT n = f32[8,16] negate(q)\n}\n";
  for (int i = 1; i <= 25; ++i)
    doubled += fmt::format(
        "c{0} {{\n  q = f32[8,16] parameter(0)\n  a = f32[8,16] call(q), to_apply=c{1}\n  ROOT b = "
        "f32[8,16] call(a), to_apply=c{1}\n}}\n",
        i, i - 1);
  EXPECT_NE(said("  ROOT %r = f32[8,16] call(%p), to_apply=c25\n", doubled)
                .find("calls of calls make more than 1000000 nodes"),
            std::string::npos);
  const std::string ragged =
      "  ROOT %r = f32[8,16] ragged-all-to-all(%p, %p, %p, %p, %p, %p), channel_id=1, "
      "replica_groups={}\n";
  EXPECT_NE(said(ragged).find("how much ragged-all-to-all 'r' sends is known only when it runs"),
            std::string::npos);
  EXPECT_EQ(calls_of(taken(ragged)).at(Collective::all_to_all).bytes, 8 * 16 * 4);
  const std::string outfeed = "  %t = token[] after-all()\n  ROOT %r = token[] outfeed(%p, %t)\n";
  EXPECT_NE(said(outfeed).find("outfeed 'r' exchanges data with the host"), std::string::npos);
  EXPECT_TRUE(has_notice(taken(outfeed), "ignored: outfeed"));
  const std::string sharding =
      "  ROOT %r = f32[8,16] custom-call(%p), custom_call_target=\"Sharding\"\n";
  EXPECT_NE(said(sharding).find("the module is not yet partitioned"), std::string::npos);
}

TEST(HloReader, a_module_says_its_ranks_groups_and_sizes_itself) {
  const std::string text = small_hlo("");
  EXPECT_EQ(hlo_failure([&] { read_hlo({.replicate = 8}, "m.txt", text); }),
            "--replicate: error: an HLO module says on how many devices it runs\n  hint: leave it "
            "out");
  EXPECT_NE(hlo_failure([&] { read_hlo({.groups = "g.json"}, "m.txt", text); }).find("--groups"),
            std::string::npos);
  EXPECT_NE(hlo_failure([&] { read_hlo({.sizes = "s.yaml"}, "m.txt", text); }).find("--call-sizes"),
            std::string::npos);
}

TEST(HloReader, calls_with_unknown_targets_are_counted) {
  const Workload workload = read_hlo(
      {}, "m.txt",
      small_hlo("  ROOT %r = f32[8,16] custom-call(%p), custom_call_target=\"my_kernel\"\n"));
  EXPECT_TRUE(has_notice(workload, "calls of which only the bytes are known"));
  EXPECT_EQ(trace_of(workload, 0).nodes.size(), 1u);
}

TEST(HloReader, a_collective_that_a_fusion_hands_slices_is_a_collective) {
  const std::string before = R"(sum {
  a = f32[] parameter(0)
}
dynamic-slice-fusion {
  q = f32[8,16]{1,0} parameter(0)
  s = f32[4,16]{1,0} slice(q), slice={[0:4], [0:16]}
  ROOT c = f32[4,16]{1,0} all-reduce(s), channel_id=1, replica_groups={}, to_apply=sum
}
async {
  q = f32[8,16]{1,0} parameter(0)
  ROOT f = f32[4,16]{1,0} fusion(q), kind=kCustom, calls=dynamic-slice-fusion
}
)";
  const Workload whole = read_hlo(
      {}, "m.txt",
      small_hlo("  ROOT %f = f32[4,16] fusion(%p), kind=kCustom, calls=dynamic-slice-fusion\n",
                before));
  EXPECT_EQ(calls_of(whole).at(Collective::all_reduce).bytes, 4 * 16 * 4);
  EXPECT_EQ(stream_of(whole, "c"), "compute");
  const Workload started = read_hlo(
      {}, "m.txt",
      small_hlo("  %s = ((f32[8,16]), f32[4,16]) async-start(%p), calls=async\n  ROOT %d = "
                "f32[4,16] async-done(%s)\n",
                before));
  EXPECT_EQ(stream_of(started, "c"), "communication");
}

TEST(HloReader, send_and_recv_of_partitions_meet_by_their_channel) {
  const std::string pairs =
      "frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,2},{2,3}}}";
  const Workload workload = read_hlo(
      {}, "m.txt",
      small_hlo("  %t = token[] after-all()\n  %v = (f32[8,16], u32[], token[]) recv(%t), "
                "channel_id=5, " +
                pairs + "\n  %s = (f32[8,16], u32[], token[]) send(%p, %t), channel_id=5, " +
                pairs +
                "\n  %w = (f32[8,16], token[]) recv-done(%v), channel_id=5\n  %x = token[] "
                "send-done(%s), channel_id=5\n  ROOT %g = f32[8,16] get-tuple-element(%w), "
                "index=0\n"));
  EXPECT_EQ(calls_of(workload, 0).at(Collective::send_recv).calls, 1);
  EXPECT_EQ(workload.messages.front().tag, 5);
  EXPECT_EQ(workload.messages.front().bytes, 8 * 16 * 4);
}

}  // namespace
}  // namespace hemiola::workload
