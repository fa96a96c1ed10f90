// Schedules of pipeline parallelism: in which order a stage does the passes of its micro batches.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace hemiola::workload {

/// p stages, m micro batches, v chunks of layers on each stage. With a forward pass of 1, a
/// backward pass of 2 and no communication the idle share of the busy time is named for each.
enum class Schedule : std::uint8_t {
  gpipe,  ///< all forward, then all backward: (p - 1) / m (Huang et al., arXiv:1811.06965)
  one_forward_one_backward,  ///< 1F1B, "PipeDream-flush": the same, at most p micro batches in
                             ///< flight (Narayanan et al., arXiv:2006.09503)
  interleaved,  ///< 1F1B of v chunks: (p - 1) / (m v) (Narayanan et al., arXiv:2104.04473)
  zero_bubble   ///< ZB-H1: gradients of weights fill the gaps of 1F1B: (p - 1) / (3 m)
                ///< (Qi et al., arXiv:2401.10241)
};
std::string_view name_of(Schedule schedule);  ///< "gpipe", "1f1b", "interleaved", "zero-bubble"
std::optional<Schedule> parse_schedule(std::string_view name);

enum class PassKind : std::uint8_t {
  forward,
  backward,        ///< gradients of inputs and of weights
  input_gradient,  ///< zero-bubble: the first half of backward
  weight_gradient  ///< and the second
};

/// What a stage does with one micro batch. Chunk c of stage s holds the (c p + s)-th part of the
/// layers.
struct Pass {
  PassKind kind = PassKind::forward;
  int chunk = 0;
  std::int64_t micro_batch = 0;
  bool operator==(const Pass&) const = default;
};

struct Pipeline {
  Schedule schedule = Schedule::one_forward_one_backward;
  int stages = 1;
  int chunks = 1;                  ///< more than 1 with `interleaved` only
  std::int64_t micro_batches = 1;  ///< `interleaved`: a multiple of `stages`
};

/// In the order in which the stage does them.
std::vector<Pass> passes_of(const Pipeline& pipeline, int stage);
/// Of inference: the forward passes, in order.
std::vector<Pass> forward_passes_of(const Pipeline& pipeline);

}  // namespace hemiola::workload
