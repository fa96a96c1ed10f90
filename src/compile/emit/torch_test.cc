// Plans as PyTorch: what is emitted of small ones, and what is refused. tests/torch executes it.
#include "compile/emit/torch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/testing/failure.h"
#include "hemiola/parts/build_plan.h"
#include "plan/plan_json.h"
#include "plan/shape.h"
#include "plan/template.h"

namespace hemiola::compile {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const TorchOptions kOptions{
    .file = "plan.json", .command = "hemiola compile ...", .version = "1.2.3"};

plan::Plan gemm_plan(const std::string& name, plan::Parameters more = {}) {
  plan::Parameters all{{"m", "128"},     {"n", "64"},      {"k", "64"},     {"tile_m", "16"},
                       {"tile_n", "16"}, {"tile_k", "16"}, {"degree", "4"}, {"dtype", "float32"}};
  if (name.find("sequence") == name.npos) all.erase(all.begin() + 6);
  all.insert(all.end(), more.begin(), more.end());
  return plan::make(name, 4, all);
}

TEST(Torch, says_what_it_was_written_from) {
  const plan::Plan plan = gemm_plan("ag-gemm/sequence");
  const std::string text = torch_of(plan, kOptions).text;
  EXPECT_THAT(text, HasSubstr("Written by Hemiola 1.2.3 from plan.json (plan "));
  EXPECT_THAT(text, HasSubstr("    hemiola compile ...\n"));
  EXPECT_THAT(text, HasSubstr("a  [4, 32, 64] float, input, peers reach it\n"));
  EXPECT_EQ(text, torch_of(plan::read_plan(plan::write_plan(plan), "plan.json"), kOptions).text);
}

TEST(Torch, pulls_what_a_product_needs_in_front_of_it_and_waits_for_nothing_else) {
  const TorchFile file = torch_of(gemm_plan("ag-gemm/shards"), kOptions);
  EXPECT_THAT(file.text, HasSubstr("    rt.begin()\n"
                                   "    compute[0].mm(t.a[rank], t.b, out=t.c[rank])\n"
                                   "    for d in range(1, 4):\n"
                                   "        peer = (rank + d) % 4\n"
                                   "        copies[0].copy(t.a[peer], t.a_at[peer][peer])\n"
                                   "        compute[0].wait(copies[0])\n"
                                   "        compute[0].mm(t.a[peer], t.b, out=t.c[peer])\n"
                                   "    rt.end()\n"));
  EXPECT_EQ(file.copies, 3);
  EXPECT_EQ(file.products, 4);
  EXPECT_EQ(file.waits, 3);
  EXPECT_EQ(file.signals, 0);
}

TEST(Torch, signals_to_the_ranks_that_wait_for_what_is_pushed) {
  const TorchFile file = torch_of(gemm_plan("ag-gemm/sequence", {{"transfer", "push"}}), kOptions);
  EXPECT_THAT(file.text, HasSubstr("t.arrived = rt.signals((RANKS, 3), steps=4)\n"));
  EXPECT_THAT(
      file.text,
      HasSubstr("            copies[d - 1].signal(t.arrived[rank, d - 1], to=peer, step=step)\n"));
  EXPECT_THAT(file.text, HasSubstr("compute[0].wait_signal(t.arrived[(rank - d) % 4, d - 1], "
                                   "step=step)\n"));
  EXPECT_EQ(file.signals, 12);
}

TEST(Torch, adds_the_later_parts_of_what_is_summed_over) {
  const std::string text = torch_of(gemm_plan("ag-gemm/sequence", {{"axis", "k"}}), kOptions).text;
  EXPECT_THAT(text, HasSubstr("compute[0].mm(t.a[:, :, 0:16], t.b[0:16], out=t.c)\n"));
  EXPECT_THAT(text, HasSubstr("compute[0].addmm(t.a[:, :, 16 * step:16 * (step + 1)], "));
}

TEST(Torch, leaves_collectives_to_the_library) {
  const plan::Plan plan =
      plan::shaped(plan::make("reduce-scatter/collective", 4), {16, 4}, DataType::float32, 0);
  EXPECT_THAT(torch_of(plan, kOptions).text,
              HasSubstr("copies[0].collective(\"reduce-scatter\", t.output, t.input, "
                        "t.groups[0])\n"));
}

TEST(Torch, gives_tensors_names_that_python_takes) {
  plan::Plan plan = plan::shaped(plan::make("all-gather/direct", 2), {4}, DataType::int8, 0);
  plan.tensors[0].name = "for";
  plan.tensors[1].name = "2 parts";
  const std::string text = torch_of(plan, kOptions).text;
  EXPECT_THAT(text, HasSubstr("t.for_ = rt.local(\"for_\", (2,), torch.int8)\n"));
  EXPECT_THAT(text, HasSubstr("t.t_2_parts = rt.symmetric(\"t_2_parts\", (4,), torch.int8)\n"));
}

TEST(Torch, knows_no_reference_of_a_plan_that_only_has_the_name) {
  plan::Plan plan = gemm_plan("ag-gemm/sequence");
  EXPECT_THAT(torch_of(plan, kOptions).text, HasSubstr("def reference(rank, held):"));
  plan.tensors[0].name = "activations";
  EXPECT_THAT(torch_of(plan, kOptions).text, HasSubstr("reference = None"));
}

TEST(Torch, of_ranks_that_do_other_things_has_a_branch_for_each_kind) {
  const plan::Plan plan =
      plan::shaped(plan::make("broadcast/tree", 4), {16, 4}, DataType::float32, 0);
  const std::string text = torch_of(plan, kOptions).text;
  EXPECT_THAT(text, HasSubstr("    if rank in (0,):\n"));
  EXPECT_THAT(text, HasSubstr("    elif rank in (1, 3):\n        pass\n"));
}

/// What is said of a plan that does not compile.
std::string refusal(const plan::Plan& plan) {
  return test::message_of([&] { torch_of(plan, kOptions); });
}

TEST(Torch, writes_what_groups_do_for_a_switch) {
  TorchOptions options = kOptions;
  options.movers = {.workgroups = 4, .by_switch = true};
  const plan::Plan plan =
      plan::shaped(plan::make("all-reduce/nvls", 4), {16}, DataType::float32, 0);
  const std::string text = torch_of(plan, options).text;
  EXPECT_THAT(text, HasSubstr("copies[0].sum_of_all("));
  EXPECT_THAT(text, HasSubstr("copies[0].to_all("));
  EXPECT_THAT(text, HasSubstr("t.groups[0])"));
  EXPECT_THAT(test::message_of([&] {
                torch_of(plan::shaped(plan::make("all-gather/ring", 4), {16}, DataType::float32, 0),
                         options);
              }),
              HasSubstr("has no groups that a switch could serve"));
}

TEST(Torch, refuses_by_name_what_has_no_counterpart) {
  EXPECT_THAT(refusal(plan::make("all-gather/ring", 4)),
              HasSubstr("plan.json: error: is a plan of chunks, whose size is not said"));
  EXPECT_THAT(refusal(plan::make("ag-gemm/swizzle", 4)),
              HasSubstr("compute 'gemm' waits for its data inside the kernel"));
  EXPECT_THAT(refusal(plan::shaped(plan::make("all-reduce/nvls", 4), {16}, DataType::float32, 0)),
              HasSubstr("rank 0, stream 'switch': reduction by the switch"));
  EXPECT_THAT(refusal(plan::shaped(plan::make("all-gather/ring", 4), {16}, DataType::uint32, 0)),
              HasSubstr("tensor 'input' is of uint32"));
  EXPECT_THAT(refusal(plan::shaped(plan::make("all-reduce/ring", 4), {16}, DataType::fp8_e4m3, 0)),
              HasSubstr("works on fp8_e4m3, for which PyTorch has no sums"));
  EXPECT_THAT(refusal(gemm_plan("ag-gemm/serial", {{"dtype", "fp8_e5m2"}})),
              HasSubstr("compute 'step 0' works on fp8_e5m2"));
  plan::Plan plan = gemm_plan("ag-gemm/serial");
  plan.codes[0].computes[0].kernel = "attention";
  EXPECT_THAT(refusal(plan), HasSubstr("compute 'step 0' runs kernel 'attention'"));
  plan = gemm_plan("ag-gemm/serial");
  plan.tensors[0].strides = {4096, 128, 1};
  EXPECT_THAT(refusal(plan), HasSubstr("tensor 'a' has strides"));
}

TEST(Torch, refuses_computes_that_are_no_products_of_two_matrices) {
  plan::Plan plan = gemm_plan("ag-gemm/serial");
  plan::Compute& compute = plan.codes[0].computes[0];
  const plan::Compute product = compute;
  compute.operands.pop_back();
  EXPECT_THAT(refusal(plan), HasSubstr("does not read two tensors and write one"));
  compute = product;
  compute.operands.push_back(compute.operands.front());
  EXPECT_THAT(refusal(plan), HasSubstr("has more than three operands"));
  compute = product;
  std::swap(compute.operands[1].axes[0], compute.operands[1].axes[1]);
  EXPECT_THAT(refusal(plan), HasSubstr("in another order than rows, depth and columns"));
}

TEST(Torch, that_only_moves_takes_any_type_and_has_no_stream_of_products) {
  const std::string text =
      torch_of(plan::shaped(plan::make("all-gather/ring", 4), {16}, DataType::int64, 0), kOptions)
          .text;
  EXPECT_THAT(text, Not(HasSubstr("t.compute")));
  EXPECT_THAT(text, HasSubstr("torch.int64"));
}

}  // namespace
}  // namespace hemiola::compile
