// Products by their dimensions, kernels by bytes and flop: against JAX's own analysis and by hand.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "workload/hlo/groups.h"
#include "workload/hlo/loops.h"
#include "workload/hlo/opcodes.h"
#include "workload/hlo/work.h"
#include "workload/testing/hlo.h"

namespace hemiola::workload {
namespace {

using test::hlo_instruction;
using test::small_hlo;

/// What XLA's analysis counts: each computation that is called once, sums of collectives too.
double counted_flop(const hlo::Module& module, const hlo::Computation& computation,
                    hlo::KernelWork& work) {
  double sum = 0;
  for (const hlo::Instruction& one : computation.instructions) {
    sum += static_cast<double>(work.flop(computation, one));
    if (one.opcode == "all-reduce") sum += static_cast<double>(hlo::elements_of(one.shape));
    if (one.opcode == "while") {
      sum += counted_flop(module, module.called(one, "body"), work);
      sum += counted_flop(module, module.called(one, "condition"), work);
    }
  }
  return sum;
}

TEST(HloWork, flop_are_those_of_jax_s_cost_analysis) {
  const auto costs = nlohmann::json::parse(read_file(test::hlo_folder() + "costs.json"));
  for (const std::string& name : test::kDumpedModules) {
    const hlo::Module module = test::hlo_module(name);
    hlo::KernelWork work(module);
    const double expected = costs["modules"][name]["flops"].get<double>();
    const double counted = counted_flop(module, module.entry_computation(), work);
    EXPECT_NEAR(counted / expected, 1, 1e-7) << name << ": " << counted << " and " << expected;
  }
}

machine::GemmShape shape_of(const std::string& name, const std::string& instruction) {
  const hlo::Module module = test::hlo_module(name);
  for (const hlo::Computation& computation : module.computations) {
    for (const hlo::Instruction& one : computation.instructions)
      if (one.name == instruction) return *hlo::product_of(module, computation, one);
  }
  throw std::runtime_error("no such product");
}

void expect_shape(const machine::GemmShape& shape, std::int64_t m, std::int64_t n, std::int64_t k,
                  DataType type) {
  EXPECT_EQ(shape.m, m);
  EXPECT_EQ(shape.n, n);
  EXPECT_EQ(shape.k, k);
  EXPECT_EQ(shape.batch, 1);
  EXPECT_EQ(shape.type, type);
}

TEST(HloWork, products_are_known_by_their_dimension_numbers) {
  expect_shape(shape_of("mlp_tensor_parallel", "dot.3"), 1024, 256, 512, DataType::float32);
  expect_shape(shape_of("gpu_layer", "dot.1"), 1024, 256, 512, DataType::bfloat16);
  // cuBLAS, with its configuration as JSON and as JSON in a string.
  expect_shape(shape_of("gpu_layer", "custom-call.1"), 1024, 512, 256, DataType::bfloat16);
  expect_shape(shape_of("gpu_loop", "custom-call.1"), 128, 256, 256, DataType::float16);
  // Convolutions as products: 3 x 3 x 32 for each place of the result, and the filter's gradient.
  expect_shape(shape_of("convolution", "convolution.4"), 8 * 16 * 16, 64, 3 * 3 * 32,
               DataType::float32);
  expect_shape(shape_of("convolution", "convolution.3"), 32 * 3 * 3, 64, 16 * 16 * 8,
               DataType::float32);
}

TEST(HloWork, batches_and_transposed_operands_are_understood) {
  const hlo::Module module = hlo::parse("m.txt", small_hlo(R"(
  %a = bf16[4,8,16]{2,1,0} broadcast(%p), dimensions={1,2}
  %b = bf16[16,32,4]{2,1,0} broadcast(%p), dimensions={2,0}
  %d = f32[4,8,32]{2,1,0} dot(%a, %b), lhs_batch_dims={0}, rhs_batch_dims={2}, lhs_contracting_dims={2}, rhs_contracting_dims={0}
  ROOT %r = f32[8,16]{1,0} copy(%p)
)"));
  const auto shape =
      hlo::product_of(module, module.entry_computation(), hlo_instruction(module, "d"));
  ASSERT_TRUE(shape);
  EXPECT_EQ(shape->batch, 4);
  EXPECT_EQ(shape->m, 8);
  EXPECT_EQ(shape->n, 32);
  EXPECT_EQ(shape->k, 16);
  EXPECT_EQ(shape->output, DataType::float32);
}

TEST(HloWork, calls_of_cudnn_name_their_arrays_by_what_they_compute) {
  const auto product = [](const std::string& target, const std::string& shapes) {
    const hlo::Module module = hlo::parse(
        "m.txt",
        small_hlo("  %i = f16[4,18,18,64]{3,2,1,0} broadcast(%p), dimensions={0,1}\n  %f = "
                  "f16[32,3,3,64]{3,2,1,0} broadcast(%p), dimensions={0,1}\n  %o = "
                  "f16[4,16,16,32]{3,2,1,0} broadcast(%p), dimensions={0,1}\n  ROOT %c = " +
                  shapes + ", dim_labels=b01f_o01i->b01f, custom_call_target=\"" + target +
                  "\"\n"));
    return *hlo::product_of(module, module.entry_computation(), hlo_instruction(module, "c"));
  };
  for (const auto& [target, shapes] :
       {std::pair("__cudnn$convForward", "(f16[4,16,16,32], u8[0]) custom-call(%i, %f)"),
        std::pair("__cudnn$convBackwardInput", "(f16[4,18,18,64], u8[0]) custom-call(%o, %f)"),
        std::pair("__cudnn$convBackwardFilter", "(f16[32,3,3,64], u8[0]) custom-call(%i, %o)")})
    expect_shape(product(target, shapes), 4 * 16 * 16, 32, 3 * 3 * 64, DataType::float16);
}

Compute work_of(const hlo::Module& module, const std::string& name) {
  for (const hlo::Computation& computation : module.computations) {
    for (const hlo::Instruction& one : computation.instructions)
      if (one.name == name) return hlo::KernelWork(module).of(computation, one);
  }
  throw std::runtime_error("no such kernel");
}

TEST(HloWork, kernels_read_what_they_use_and_write_what_they_change) {
  const hlo::Module loop = test::hlo_module("gpu_loop");
  const Compute slice = work_of(loop, "slice_fusion");
  EXPECT_EQ(slice.read, 256 * 256 * 2 + 4) << "one of five matrices, and where it is";
  EXPECT_EQ(slice.written, 256 * 256 * 2);
  const hlo::Module module = hlo::parse("m.txt", small_hlo(R"(
  %z = s32[] constant(0)
  %u = f32[1,16]{1,0} slice(%p), slice={[0:1], [0:16]}
  %w = f32[8,16]{1,0} dynamic-update-slice(%p, %u, %z, %z)
  %f = f32[8,16]{1,0} fusion(%p, %u, %z), kind=kLoop, calls=%update
  ROOT %s = f32[8]{0} reduce(%p, %z), dimensions={1}, to_apply=%sum
)",
                                                           R"(sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
update {
  q = f32[8,16]{1,0} parameter(0)
  v = f32[1,16]{1,0} parameter(1)
  i = s32[] parameter(2)
  e = f32[1,16]{1,0} exponential(v)
  ROOT d = f32[8,16]{1,0} dynamic-update-slice(q, e, i, i)
}
)"));
  EXPECT_EQ(work_of(module, "u").read, 16 * 4);
  for (const char* in_place : {"w", "f"}) {
    EXPECT_EQ(work_of(module, in_place).read, 16 * 4 + 4) << in_place;
    EXPECT_EQ(work_of(module, in_place).written, 16 * 4) << in_place;
  }
  EXPECT_EQ(work_of(module, "f").flop, 16);
  EXPECT_EQ(work_of(module, "s").flop, 8 * 16 - 8);
}

TEST(HloWork, a_fusion_with_one_product_is_that_product) {
  const Compute work = work_of(test::hlo_module("mlp_tensor_parallel"), "ynn_fusion");
  EXPECT_EQ(work.kind, Compute::Kind::product);
  EXPECT_EQ(work.flop, 2LL * 1024 * 512 * 256);
  EXPECT_EQ(work.read, (1024 * 256 + 256 * 512) * 4);
  EXPECT_EQ(work.written, 1024 * 512 * 4);
}

TEST(HloLoops, trips_are_those_that_the_compiler_says_or_the_condition) {
  const auto trips = [](const std::string& module_name, const std::string& loop) {
    const hlo::Module module = test::hlo_module(module_name);
    return hlo::trip_count(module, module.entry_computation(), hlo_instruction(module, loop));
  };
  EXPECT_EQ(trips("scan_layers", "while.3"), 6);
  EXPECT_EQ(trips("gpu_loop", "while.1"), 5);
  // The same with the compiler's word taken out: what it knows stands in the text, too.
  std::string text = test::hlo_text("scan_layers");
  const std::string said = "\"known_trip_count\":{\"n\":\"6\"},";
  const std::size_t at = text.find(said);
  ASSERT_NE(at, std::string::npos);
  text.erase(at, said.size());
  const hlo::Module module = hlo::parse("m.txt", text);
  EXPECT_EQ(hlo::trip_count(module, module.entry_computation(), hlo_instruction(module, "while.3")),
            6);
}

TEST(HloOpcodes, endings_tell_the_phase) {
  EXPECT_EQ(hlo::phase_of("all-gather-start").opcode, "all-gather");
  EXPECT_EQ(hlo::phase_of("all-gather-start").phase, hlo::Phase::start);
  EXPECT_EQ(hlo::phase_of("async-done").phase, hlo::Phase::done);
  EXPECT_EQ(hlo::phase_of("dot").phase, hlo::Phase::whole);
  for (const std::string& opcode : hlo::known_opcodes())
    EXPECT_NE(hlo::class_of(opcode), hlo::OpcodeClass::unknown) << opcode;
  EXPECT_EQ(hlo::class_of("dott"), hlo::OpcodeClass::unknown);
}

}  // namespace
}  // namespace hemiola::workload
