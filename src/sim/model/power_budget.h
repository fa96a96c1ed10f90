// How long a device may compute products at the clock of short loads (docs/model.md, docs/gemm.md).
#pragma once

#include <algorithm>
#include <cstdint>

namespace hemiola::sim {

/// The power limit is the device's, not a kernel's: it holds from gemm.burst_time after the first
/// step of products on, whatever kernels they are of, until the device has rested for as long.
/// Times are femtoseconds.
struct PowerBudget {
  std::int64_t began = -1;  ///< first step since the last rest; -1: there was none yet
  std::int64_t last = 0;    ///< until when its steps go on, as far as is known
  std::int64_t free = 0;    ///< when the limit lets the next step through; 0: at once

  /// Whether a step that starts at `now` begins a burst.
  bool begins(std::int64_t now, std::int64_t burst) {
    if (began >= 0 && now - last <= burst) return false;
    began = last = now;
    free = 0;
    return true;
  }
  void goes_on_until(std::int64_t time) { last = std::max(last, time); }

  /// When a step that starts at `now`, takes `time` on its compute unit and `sustained` of all of
  /// the device under the limit is let through.
  std::int64_t step(std::int64_t now, std::int64_t time, std::int64_t sustained,
                    std::int64_t burst) {
    begins(now, burst);
    std::int64_t through = now;
    // What idle times save may be spent later.
    if (now - began >= burst) through = free = (free > 0 ? free : now) + sustained;
    goes_on_until(std::max(now + time, through));
    return through;
  }

  /// The same of many steps in a row, which begin at `now` and take `time` without a limit: only
  /// those beyond the burst count.
  std::int64_t steps(std::int64_t now, std::int64_t time, std::int64_t sustained,
                     std::int64_t burst) {
    begins(now, burst);
    const std::int64_t limited = std::max(now, began + burst);
    std::int64_t through = now;
    if (const std::int64_t beyond = now + time - limited; beyond > 0) {
      const auto share =
          static_cast<std::int64_t>(static_cast<__int128>(sustained) * beyond / time);
      through = free = (free > 0 ? free : limited) + share;
    }
    goes_on_until(std::max(now + time, through));
    return through;
  }
};

}  // namespace hemiola::sim
