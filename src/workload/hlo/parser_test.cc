// HLO's text as a module, and what is said of text that is none.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "workload/hlo/attributes.h"
#include "workload/testing/hlo.h"

namespace hemiola::workload {
namespace {

using test::hlo_failure;
using test::hlo_instruction;
using test::small_hlo;

TEST(HloParser, a_dump_of_jax_becomes_a_module) {
  const hlo::Module module = test::hlo_module("mlp_tensor_parallel");
  EXPECT_EQ(module.name, "jit_step");
  EXPECT_EQ(module.header_attribute("num_partitions"), "8");
  EXPECT_EQ(module.header_attribute("is_scheduled"), "true");
  ASSERT_EQ(module.computations.size(), 5u);
  const hlo::Computation& entry = module.entry_computation();
  EXPECT_EQ(entry.name, "main.1_spmd");
  ASSERT_EQ(entry.instructions.size(), 7u);
  const hlo::Instruction& sum = entry.root_instruction();
  EXPECT_EQ(sum.opcode, "all-reduce");
  EXPECT_EQ(hlo::text_of(sum.shape), "f32[1024,512]");
  EXPECT_EQ(sum.shape.layout, "1,0");
  ASSERT_EQ(sum.operands.size(), 1u);
  EXPECT_EQ(entry.instructions[sum.operands[0]].name, "ynn_fusion");
  EXPECT_EQ(module.attribute(sum, "replica_groups"), "mesh['axis_0'=1,'axis_1'=8] {'axis_1'}");
  EXPECT_EQ(module.attribute(sum, "channel_id"), "1");
  EXPECT_EQ(module.called(sum, "to_apply").name, "add.clone");
  EXPECT_EQ(module.origin(sum), "make_modules.py:50, jit(step)/dot_general");
}

TEST(HloParser, every_module_of_the_folder_is_read) {
  for (const auto& names : {test::kDumpedModules, test::kGpuModules})
    for (const std::string& name : names) EXPECT_FALSE(test::hlo_module(name).name.empty()) << name;
}

TEST(HloParser, forms_that_dumps_have_are_understood) {
  const hlo::Module module = hlo::parse("m.txt", R"(// a comment
HloModule m.2, entry_computation_layout={(f32[])->f32[]}, replica_count=2

helper {
  a = f32[] parameter(0), metadata={op_name="it's \"quoted\", {"}
  ROOT b = f32[] add(f32[] a, a)
}

ENTRY main {
  p = (f32[2,3]{1,0:T(8,128)S(1)}, /*index=1*/(s4[<=5], token[])) parameter(0)
  c = f32[2]{0} constant({1, 2})
  t = s4[<=5]{0} get-tuple-element((f32[2,3], (s4[5], token[])) p), index=1,
      something_new={1,{2,3}}, backend_config="{\"a\": \"b\"}"
  e = () tuple()
  ROOT call = f32[] call(%c),
      to_apply=%helper
}, execution_thread="main"
)");
  EXPECT_EQ(module.name, "m.2");
  const hlo::Instruction& p = hlo_instruction(module, "p");
  EXPECT_EQ(hlo::text_of(p.shape), "(f32[2,3], (s4[5], token[]))");
  EXPECT_EQ(hlo::bytes_of(p.shape), 24 + 3) << "five elements of four bits";
  EXPECT_EQ(p.literal, "0");
  const hlo::Instruction& t = hlo_instruction(module, "t");
  EXPECT_EQ(module.attribute(t, "something_new"), "{1,{2,3}}") << "unknown attributes are kept";
  EXPECT_EQ(hlo::backend_config(module, t)["a"], "b") << "JSON in a string";
  EXPECT_TRUE(hlo_instruction(module, "e").shape.is_tuple());
  EXPECT_EQ(module.called(module.entry_computation().root_instruction(), "to_apply").name,
            "helper");
  EXPECT_EQ(module.origin(hlo_instruction(module, "a")), R"(it's \"quoted\", {)");
}

TEST(HloParser, what_is_wrong_is_said_with_line_and_column) {
  const auto message = [](const std::string& text) {
    return hlo_failure([&] { hlo::parse("m.txt", text); });
  };
  const auto entry = [&](const std::string& lines) { return message(small_hlo(lines)); };
  EXPECT_EQ(message("module @jit_f {\n}\n").substr(0, 49),
            "m.txt:1:1: error: expected 'HloModule', not 'modu");
  EXPECT_EQ(
      message("HloModule m\n\n%f (p: f32[]) -> f32[] {\n"),
      "m.txt:4:1: error: the text ends in computation 'f'\n  hint: the text may be cut short");
  EXPECT_EQ(message("HloModule m\n"),
            "m.txt:2:1: error: there is no ENTRY computation up to the end of the text\n"
            "  hint: the text may be cut short");
  EXPECT_EQ(entry("  ROOT %r = f32[8,16] add(%p, %q)\n"),
            "m.txt:6:31: error: 'r' uses 'q', which is not there before it");
  EXPECT_EQ(entry("  ROOT %r = f33[8,16] add(%p, %p)\n"),
            "m.txt:6:13: error: 'f33' is no element type\n  hint: such as f32, bf16, s32 or pred");
  EXPECT_EQ(entry("  ROOT %r = f32[8,-16] add(%p, %p)\n"), "m.txt:6:19: error: a dimension of -16");
  EXPECT_EQ(entry("  ROOT %r = f32[8,99999999999999999999] add(%p, %p)\n"),
            "m.txt:6:19: error: a dimension is a number beyond 64 bits");
  EXPECT_EQ(entry("  ROOT %r = f32[8,16] add(%p, %p), a={1,2\n"),
            "m.txt:8:1: error: the text ends in computation 'main'\n"
            "  hint: the text may be cut short")
      << "the computation's '}' closed the list";
  EXPECT_EQ(entry("  ROOT %r = f32[8,16] add(%p, %p), a=(1,2\n"),
            "m.txt:7:1: error: expected ')' before this '}'");
  EXPECT_EQ(entry("  ROOT %r = f32[8,16] add(%p, %p), a=\"1,2\n"),
            "m.txt:6:38: error: the string that begins here does not end\n"
            "  hint: the text may be cut short");
  EXPECT_EQ(
      entry("  ROOT %r = f32[8,16] add(%p, %p) b\n"),
      "m.txt:6:35: error: expected a ',' and an attribute of 'r', or the end of the line, not "
      "'b'");
  EXPECT_EQ(entry("  ROOT %r = f32[8,16] call(%p), to_apply=%nobody\n"),
            "m.txt:6:8: error: there is no computation '%nobody', which call 'r' names as "
            "'to_apply'");
  EXPECT_EQ(entry("  ROOT %r = f32[8,16] call(%p), to_apply=%main\n"),
            "m.txt:6:8: error: 'r' calls 'main', which does not stand before 'main'");
  EXPECT_EQ(entry("  %p = f32[] parameter(1)\n"),
            "m.txt:6:3: error: there is an instruction 'p' in 'main' already");
  EXPECT_EQ(message(small_hlo("") + "ENTRY %other { a = f32[] parameter(0) }\n"),
            "m.txt:7:1: error: there is a second ENTRY computation");
  std::string deep = "  ROOT %r = ";
  for (int i = 0; i < 200; ++i) deep += '(';
  EXPECT_EQ(entry(deep), "m.txt:6:114: error: a shape with more than 100 tuples in tuples");
}

TEST(HloParser, calls_that_are_too_deep_are_refused) {
  std::string computations = "c0 {\n  a = f32[] parameter(0)\n}\n";
  for (int i = 1; i < 150; ++i)
    computations += "c" + std::to_string(i) +
                    " {\n  a = f32[] parameter(0)\n  ROOT b = f32[] call(a), to_apply=c" +
                    std::to_string(i - 1) + "\n}\n";
  const std::string said = hlo_failure([&] { hlo::parse("m.txt", small_hlo("", computations)); });
  EXPECT_NE(said.find("computations call each other 101 deep"), std::string::npos) << said;
}

}  // namespace
}  // namespace hemiola::workload
