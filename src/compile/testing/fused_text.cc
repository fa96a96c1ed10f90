#include "compile/testing/fused_text.h"

#include <gtest/gtest.h>

#include <string_view>

#include "compile/fused/fused_file.h"
#include "plan/template.h"

namespace hemiola::compile {

std::string fused_text(const std::string& kernel, const char* plan_name,
                       ParameterValues constants) {
  const bool is_attention = kernel == "attention";
  const std::string_view name = plan_name;
  plan::Parameters sizes{{"m", "64"}, {"n", "64"}, {"k", "64"}};
  if (name.ends_with("/sequence")) sizes.emplace_back("degree", "2");
  if (name.starts_with("gemm-a2a-gemm/") || name.starts_with("mlp/"))
    sizes = {{"m", "64"}, {"h", "32"}, {"f", "64"}};
  const plan::Plan plan =
      is_attention ? plan::make(plan_name, 2, {{"heads", "2"}, {"sequence", "64"}, {"head", "16"}})
                   : plan::make(plan_name, 2, sizes);
  if (is_attention)
    constants = {{"BLOCK_M", "16"}, {"BLOCK_N", "16"}, {"CAUSAL", "False"}, {"scale", "0.25"}};
  if (kernel == "gemm_persistent" || kernel == "gemm_tma") constants["GROUP_M"] = "2";
  const std::string file = HEMIOLA_SOURCE_DIR "/examples/kernels/" + kernel + ".py";
  const KernelRequest request{
      .describe = {.file = file, .kernel = {}, .helpers = {}, .constants = std::move(constants)}};
  return FusedFile(request, plan, "plan.json")
      .write({.file = "plan.json", .command = "hemiola compile", .version = "0"}, "fused.py")
      .text;
}

std::string changed(const std::string& text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from << " is not in\n" << text;
  std::string made = text;
  return at == text.npos ? made : made.replace(at, from.size(), to);
}

}  // namespace hemiola::compile
