#include <array>

#include "workload/models/generate.h"

namespace hemiola::workload {
namespace {

constexpr std::array<std::string_view, 3> kPhaseNames{"train", "prefill", "decode"};
constexpr std::array<std::string_view, 3> kRecomputeNames{"none", "selective", "full"};
constexpr std::array<std::string_view, 2> kAttentionNames{"flash", "unfused"};
constexpr std::array<std::string_view, 2> kContextNames{"gather", "ring"};

template <class Value, std::size_t count>
std::optional<Value> value_of(const std::array<std::string_view, count>& names,
                              std::string_view name) {
  for (std::size_t i = 0; i < count; ++i) {
    if (names[i] == name) return static_cast<Value>(i);
  }
  return {};
}

}  // namespace

std::string_view name_of(Phase phase) {
  return kPhaseNames.at(static_cast<std::size_t>(phase));
}
std::string_view name_of(Recompute recompute) {
  return kRecomputeNames.at(static_cast<std::size_t>(recompute));
}
std::string_view name_of(AttentionKernel kernel) {
  return kAttentionNames.at(static_cast<std::size_t>(kernel));
}
std::string_view name_of(ContextParallel context) {
  return kContextNames.at(static_cast<std::size_t>(context));
}

std::optional<Phase> parse_phase(std::string_view name) {
  return value_of<Phase>(kPhaseNames, name);
}
std::optional<Recompute> parse_recompute(std::string_view name) {
  return value_of<Recompute>(kRecomputeNames, name);
}
std::optional<AttentionKernel> parse_attention(std::string_view name) {
  return value_of<AttentionKernel>(kAttentionNames, name);
}
std::optional<ContextParallel> parse_context_parallel(std::string_view name) {
  return value_of<ContextParallel>(kContextNames, name);
}

}  // namespace hemiola::workload
