#include "core/names.h"
#include "workload/models/generate.h"

namespace hemiola::workload {
namespace {

constexpr std::array<std::string_view, 3> kPhaseNames{"train", "prefill", "decode"};
constexpr std::array<std::string_view, 3> kRecomputeNames{"none", "selective", "full"};
constexpr std::array<std::string_view, 2> kAttentionNames{"flash", "unfused"};
constexpr std::array<std::string_view, 2> kContextNames{"gather", "ring"};

}  // namespace

std::string_view name_of(Phase phase) {
  return name_in(kPhaseNames, phase);
}
std::string_view name_of(ContextParallel context) {
  return name_in(kContextNames, context);
}

std::optional<Phase> parse_phase(std::string_view name) {
  return value_named<Phase>(kPhaseNames, name);
}
std::optional<Recompute> parse_recompute(std::string_view name) {
  return value_named<Recompute>(kRecomputeNames, name);
}
std::optional<AttentionKernel> parse_attention(std::string_view name) {
  return value_named<AttentionKernel>(kAttentionNames, name);
}
std::optional<ContextParallel> parse_context_parallel(std::string_view name) {
  return value_named<ContextParallel>(kContextNames, name);
}

}  // namespace hemiola::workload
