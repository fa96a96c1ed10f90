// What a link carried over time, in a bounded number of bins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/time.h"

namespace hemiola::report {

/// Wire bytes and the deepest queue per bin of time, for one link. A request's bytes are spread
/// evenly over the time it occupied the link. The bins double in width whenever time outgrows them,
/// so memory is bounded, and what is read at the end does not depend on the order of the calls.
class LinkHistory {
 public:
  static constexpr std::size_t kBins = 1024;
  static constexpr Time kFirstWidth{1 << 20};  ///< about a nanosecond

  /// 0 <= begin <= end, bytes >= 0.
  void add(Time begin, Time end, std::int64_t bytes, std::int64_t queue);

  struct Bin {
    std::int64_t bytes = 0;
    std::int64_t queue = 0;
  };
  Time width() const { return width_; }
  Time end() const { return end_; }  ///< of the last request
  /// Up to the last bin with anything in it.
  const std::vector<Bin>& bins() const { return bins_; }
  /// Makes bins at least `width` wide: all links of a trace get the same ones. A width of another
  /// LinkHistory.
  void widen(Time width);

 private:
  void double_width();
  Time width_ = kFirstWidth;
  Time end_{};
  std::vector<Bin> bins_;
};

}  // namespace hemiola::report
