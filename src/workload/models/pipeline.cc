#include "workload/models/pipeline.h"

#include <algorithm>

#include "core/names.h"

namespace hemiola::workload {
namespace {

constexpr std::array<std::string_view, 4> kScheduleNames{"gpipe", "1f1b", "interleaved",
                                                         "zero-bubble"};

class PassWriter {
 public:
  PassWriter(const Pipeline& pipeline, int stage)
      : stages_(pipeline.stages),
        chunks_(pipeline.chunks),
        count_(pipeline.micro_batches),
        stage_(stage) {}

  std::vector<Pass> gpipe() {
    for (std::int64_t m = 0; m < count_; ++m) add(PassKind::forward, 0, m);
    for (std::int64_t m = 0; m < count_; ++m) add(PassKind::backward, 0, m);
    return std::move(passes_);
  }

  std::vector<Pass> one_forward_one_backward() {
    const std::int64_t ahead = std::min<std::int64_t>(stages_ - stage_ - 1, count_);
    for (std::int64_t m = 0; m < ahead; ++m) add(PassKind::forward, 0, m);
    for (std::int64_t m = 0; m < count_; ++m) {
      if (m + ahead < count_) add(PassKind::forward, 0, m + ahead);
      add(PassKind::backward, 0, m);
    }
    return std::move(passes_);
  }

  /// Micro batches go through the chunks in rounds of as many as there are stages.
  std::vector<Pass> interleaved() {
    const std::int64_t all = count_ * chunks_;
    const std::int64_t ahead =
        std::min<std::int64_t>((stages_ - stage_ - 1) * 2 + (chunks_ - 1) * stages_, all);
    for (std::int64_t k = 0; k < ahead; ++k) add_turn(PassKind::forward, k);
    for (std::int64_t k = 0; k < all; ++k) {
      if (k + ahead < all) add_turn(PassKind::forward, k + ahead);
      add_turn(PassKind::backward, k);
    }
    return std::move(passes_);
  }

  /// As 1F1B, with gradients of weights behind by as many micro batches as there are stages before
  /// this one: so every stage holds as many micro batches as the first of 1F1B.
  std::vector<Pass> zero_bubble() {
    const std::int64_t ahead = std::min<std::int64_t>(stages_ - stage_ - 1, count_);
    const std::int64_t behind = std::min<std::int64_t>(stage_, count_);
    for (std::int64_t m = 0; m < ahead; ++m) add(PassKind::forward, 0, m);
    for (std::int64_t m = 0; m < count_; ++m) {
      if (m + ahead < count_) add(PassKind::forward, 0, m + ahead);
      add(PassKind::input_gradient, 0, m);
      if (m >= behind) add(PassKind::weight_gradient, 0, m - behind);
    }
    for (std::int64_t m = count_ - behind; m < count_; ++m) add(PassKind::weight_gradient, 0, m);
    return std::move(passes_);
  }

 private:
  void add(PassKind kind, int chunk, std::int64_t micro_batch) {
    passes_.push_back({.kind = kind, .chunk = chunk, .micro_batch = micro_batch});
  }
  void add_turn(PassKind kind, std::int64_t turn) {
    const std::int64_t round = std::int64_t{stages_} * chunks_;
    const int chunk = static_cast<int>(turn % round / stages_);
    add(kind, kind == PassKind::forward ? chunk : chunks_ - 1 - chunk,
        turn / round * stages_ + turn % stages_);
  }

  int stages_;
  int chunks_;
  std::int64_t count_;
  int stage_;
  std::vector<Pass> passes_;
};

}  // namespace

std::string_view name_of(Schedule schedule) {
  return name_in(kScheduleNames, schedule);
}

std::optional<Schedule> parse_schedule(std::string_view name) {
  return value_named<Schedule>(kScheduleNames, name);
}

std::vector<Pass> passes_of(const Pipeline& pipeline, int stage) {
  PassWriter writer(pipeline, stage);
  switch (pipeline.schedule) {
    case Schedule::gpipe:
      return writer.gpipe();
    case Schedule::one_forward_one_backward:
      return writer.one_forward_one_backward();
    case Schedule::interleaved:
      return writer.interleaved();
    case Schedule::zero_bubble:
      return writer.zero_bubble();
  }
  return {};
}

std::vector<Pass> forward_passes_of(const Pipeline& pipeline) {
  std::vector<Pass> passes;
  for (std::int64_t m = 0; m < pipeline.micro_batches; ++m)
    passes.push_back({.kind = PassKind::forward, .chunk = 0, .micro_batch = m});
  return passes;
}

}  // namespace hemiola::workload
