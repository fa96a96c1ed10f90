#include "workload/models/pipeline.h"

#include <algorithm>

#include "core/names.h"

namespace hemiola::workload {
namespace {

constexpr std::array<std::string_view, 4> kScheduleNames{"gpipe", "1f1b", "interleaved",
                                                         "zero-bubble"};

}  // namespace

std::string_view name_of(Schedule schedule) {
  return name_in(kScheduleNames, schedule);
}

std::optional<Schedule> parse_schedule(std::string_view name) {
  return value_named<Schedule>(kScheduleNames, name);
}

std::vector<Pass> passes_of(const Pipeline& pipeline, int stage) {
  std::vector<Pass> passes;
  // Micro batches go through the chunks in rounds of as many as there are stages.
  const auto add = [&](PassKind kind, std::int64_t turn) {
    const std::int64_t round = std::int64_t{pipeline.stages} * pipeline.chunks;
    const int chunk = static_cast<int>(turn % round / pipeline.stages);
    passes.push_back({.kind = kind,
                      .chunk = kind == PassKind::forward ? chunk : pipeline.chunks - 1 - chunk,
                      .micro_batch = turn / round * pipeline.stages + turn % pipeline.stages});
  };
  const std::int64_t all = pipeline.micro_batches * pipeline.chunks;
  // Forward passes that the stage is ahead of its backward passes.
  std::int64_t ahead = pipeline.stages - stage - 1;
  if (pipeline.schedule == Schedule::gpipe) ahead = all;
  if (pipeline.schedule == Schedule::interleaved)
    ahead = 2 * ahead + std::int64_t{pipeline.chunks - 1} * pipeline.stages;
  ahead = std::min(ahead, all);
  // Gradients of weights come behind by as many micro batches as there are stages before this one:
  // so every stage holds as many micro batches as the first of 1F1B.
  const bool is_split = pipeline.schedule == Schedule::zero_bubble;
  const std::int64_t behind = is_split ? std::min<std::int64_t>(stage, all) : 0;
  for (std::int64_t k = 0; k < ahead; ++k) add(PassKind::forward, k);
  for (std::int64_t k = 0; k < all; ++k) {
    if (k + ahead < all) add(PassKind::forward, k + ahead);
    add(is_split ? PassKind::input_gradient : PassKind::backward, k);
    if (is_split && k >= behind) add(PassKind::weight_gradient, k - behind);
  }
  for (std::int64_t k = all - behind; k < all; ++k) add(PassKind::weight_gradient, k);
  return passes;
}

std::vector<Pass> forward_passes_of(const Pipeline& pipeline) {
  std::vector<Pass> passes;
  for (std::int64_t m = 0; m < pipeline.micro_batches; ++m)
    passes.push_back({.kind = PassKind::forward, .chunk = 0, .micro_batch = m});
  return passes;
}

}  // namespace hemiola::workload
