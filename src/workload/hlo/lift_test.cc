// Products with their collectives as plans: the same as what templates make, or why there is none.
#include <gtest/gtest.h>

#include "plan/plan_json.h"
#include "workload/hlo/lift.h"
#include "workload/testing/hlo.h"

namespace hemiola::workload {
namespace {

using test::hlo_failure;

struct Expected {
  std::string module, product, made_by;
  int ranks;
  std::int64_t m, n, k;
  std::string type;
};

TEST(HloLift, plans_are_those_that_templates_make_at_the_product_s_size) {
  const std::vector<Expected> all{
      {"mlp_sequence_parallel", "dot_general.9", "ag-gemm/serial", 8, 1024, 2048, 512, "float32"},
      {"mlp_sequence_parallel", "dot_general.9", "ag-gemm/ring", 8, 1024, 2048, 512, "float32"},
      {"mlp_sequence_parallel", "dot_general.8", "gemm-rs/serial", 8, 1024, 512, 2048, "float32"},
      {"mlp_sequence_parallel", "ynn_fusion", "gemm-rs/direct", 8, 1024, 512, 2048, "float32"},
      {"mlp_tensor_parallel", "dot.2", "gemm-ar/serial", 8, 1024, 512, 2048, "float32"},
      {"heads_to_rows", "dot_general.4", "a2a-gemm/direct", 8, 1024, 2048, 512, "float32"},
      {"moe_dispatch", "dot_general.9", "dispatch-gemm/serial", 8, 8192, 2048, 512, "float32"},
      {"moe_dispatch", "dot_general.8", "gemm-combine/serial", 8, 8192, 512, 2048, "float32"},
      {"train_2d", "dot.6", "gemm-ar/serial", 4, 512, 512, 2048, "float32"},
      // Weights that are gathered along their columns: rows of the transposed product.
      {"fsdp", "dot.3", "ag-gemm/serial", 8, 2048, 1024, 512, "float32"},
      {"scan_layers", "dot.2", "gemm-ar/serial", 8, 1024, 512, 2048, "float32"},
      {"gpu_layer", "dot.1", "ag-gemm/serial", 4, 1024, 1024, 512, "bfloat16"},
      {"gpu_layer", "%custom-call.1", "gemm-rs/serial", 4, 1024, 512, 1024, "bfloat16"}};
  for (const Expected& one : all) {
    const hlo::Module module = test::hlo_module(one.module);
    const hlo::LiftedPlan lifted =
        hlo::lift_product(module, {.product = one.product, .template_name = one.made_by});
    const plan::Plan made = plan::make(one.made_by, one.ranks,
                                       {{"m", std::to_string(one.m)},
                                        {"n", std::to_string(one.n)},
                                        {"k", std::to_string(one.k)},
                                        {"dtype", one.type}});
    EXPECT_EQ(plan::write_plan(lifted.plan), plan::write_plan(made))
        << one.module << ' ' << one.product << ": m=" << lifted.lift.m << " n=" << lifted.lift.n
        << " k=" << lifted.lift.k << " on " << lifted.lift.ranks;
  }
}

TEST(HloLift, without_a_template_the_plan_does_what_the_module_does) {
  const hlo::Module module = test::hlo_module("mlp_sequence_parallel");
  const hlo::LiftedPlan serial = hlo::lift_product(module, {.product = "dot_general.9"});
  EXPECT_EQ(serial.template_name, "ag-gemm/serial");
  EXPECT_EQ(serial.lift.groups, 1);
  const hlo::LiftedPlan tiles =
      hlo::lift_product(module, {.product = "dot_general.9", .parameters = {{"tile_m", "64"}}});
  EXPECT_NE(plan::write_plan(tiles.plan), plan::write_plan(serial.plan)) << "parameters pass";
}

TEST(HloLift, what_is_transposed_or_in_several_groups_is_said) {
  const hlo::Module fsdp = test::hlo_module("fsdp"), train = test::hlo_module("train_2d");
  EXPECT_TRUE(hlo::lift_product(fsdp, {.product = "dot.3"}).lift.is_transposed);
  EXPECT_EQ(hlo::lift_product(train, {.product = "dot.6"}).lift.groups, 2);
}

TEST(HloLift, what_no_template_does_is_refused_with_its_reason) {
  const auto said = [](const std::string& name, const hlo::LiftRequest& request) {
    return hlo_failure([&] { hlo::lift_product(test::hlo_module(name), request); });
  };
  EXPECT_EQ(said("mlp_tensor_parallel", {.product = "dot.9"}),
            "--dot: error: there is no product 'dot.9' in mlp_tensor_parallel.txt\n  hint: did you "
            "mean 'dot.3'? there are dot.3, dot.2");
  EXPECT_EQ(said("mlp_tensor_parallel", {.product = "dot.3"}),
            "mlp_tensor_parallel.txt:41:8: error: no collective feeds product 'dot.3' or follows "
            "it, with nothing computed between\n  hint: --describe lists products and their "
            "collectives");
  EXPECT_EQ(
      said("fsdp", {.product = "dot.2"}),
      "fsdp.txt:65:3: error: all-gather 'all-gather.1' and product 'dot.2' are no operator of "
      "a template: it gathers along what is summed over: no template of AG-GEMM divides k "
      "among the ranks");
  EXPECT_NE(said("train_2d", {.product = "dot.3"}).find("it sums other values, too"),
            std::string::npos);
  EXPECT_EQ(
      said("mlp_sequence_parallel", {.product = "dot_general.9", .template_name = "gemm-rs/ring"}),
      "--template: error: product 'dot_general.9' is ag-gemm with 'all_gather.3', not "
      "gemm-rs");
  EXPECT_NE(
      said("mlp_sequence_parallel", {.product = "dot_general.9", .template_name = "ag-gemm/rings"})
          .find("ag-gemm/rings"),
      std::string::npos);
  EXPECT_EQ(said("mlp_sequence_parallel", {.product = "dot_general.9", .parameters = {{"m", "1"}}}),
            "--param: error: 'm' is what the module says");
  EXPECT_NE(said("gpu_loop", {.product = "dot.1"}).find("there are custom-call.1"),
            std::string::npos);
}

/// A product of [32, 16] with its rows gathered from four ranks, and what stands between.
std::string gathered(const std::string& between, const std::string& matrix) {
  return test::small_hlo(
      "  %w = f32[16,4]{1,0} constant({...})\n  %g = f32[32,16]{1,0} all-gather(%p), channel_id=1, "
      "replica_groups={}, dimensions={0}\n" +
      between + "  %d = f32[32,4]{1,0} dot(%" + matrix +
      ", %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n  ROOT %r = f32[8,16]{1,0} "
      "copy(%p)\n");
}

TEST(HloLift, dimensions_are_followed_through_changes_of_shape) {
  const auto rows = [](const std::string& between, const std::string& matrix) {
    return hlo::lift_product(hlo::parse("m.txt", gathered(between, matrix)), {.product = "d"})
        .lift.m;
  };
  EXPECT_EQ(rows("", "g"), 32);
  EXPECT_EQ(
      rows("  %a = f32[4,8,16]{2,1,0} reshape(%g)\n  %b = f32[32,16]{1,0} bitcast(%a)\n", "b"), 32);
  EXPECT_EQ(rows("  %a = bf16[32,16]{1,0} convert(%g)\n  %b = bf16[16,32]{0,1} transpose(%a), "
                 "dimensions={1,0}\n  %c = bf16[32,16]{1,0} bitcast(%b)\n",
                 "c"),
            32)
      << "a bitcast is a transposition where layouts say so";
  const std::string mixed = gathered(
      "  %a = f32[4,8,16]{2,1,0} reshape(%g)\n  %b = f32[8,4,16]{2,1,0} transpose(%a), "
      "dimensions={1,0,2}\n  %c = f32[32,16]{1,0} reshape(%b)\n",
      "c");
  EXPECT_NE(hlo_failure([&] {
              hlo::lift_product(hlo::parse("m.txt", mixed), {.product = "d"});
            }).find("the pieces of the ranks are mixed before they reach the product"),
            std::string::npos);
}

TEST(HloLift, two_collectives_beside_one_product_have_to_be_chosen_between) {
  const std::string both = test::small_hlo(
      "  %w = f32[16,4]{1,0} constant({...})\n  %g = f32[32,16]{1,0} all-gather(%p), channel_id=1, "
      "replica_groups={}, dimensions={0}\n  %d = f32[32,4]{1,0} dot(%g, %w), "
      "lhs_contracting_dims={1}, rhs_contracting_dims={0}\n  %s = f32[8,4]{1,0} "
      "reduce-scatter(%d), channel_id=2, replica_groups={}, dimensions={0}, to_apply=%sum\n",
      "sum {\n  a = f32[] parameter(0)\n}\n");
  const hlo::Module module = hlo::parse("m.txt", both);
  EXPECT_NE(hlo_failure([&] {
              hlo::lift_product(module, {.product = "d"});
            }).find("product 'd' is ag-gemm with 'g' and gemm-rs with 's'"),
            std::string::npos);
  EXPECT_EQ(hlo::lift_product(module, {.product = "d", .template_name = "gemm-rs/serial"}).lift.k,
            64);
}

}  // namespace
}  // namespace hemiola::workload
