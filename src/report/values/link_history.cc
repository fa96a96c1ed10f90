#include "report/values/link_history.h"

#include <algorithm>
#include <cassert>

namespace hemiola::report {

void LinkHistory::double_width() {
  for (std::size_t i = 0; i < bins_.size(); i += 2) {
    Bin sum = bins_[i];
    if (i + 1 < bins_.size()) {
      sum.bytes += bins_[i + 1].bytes;
      sum.queue = std::max(sum.queue, bins_[i + 1].queue);
    }
    bins_[i / 2] = sum;
  }
  bins_.resize((bins_.size() + 1) / 2);
  width_ = 2 * width_;
}

void LinkHistory::widen(Time width) {
  while (width_ < width) double_width();
}

void LinkHistory::add(Time begin, Time end, std::int64_t bytes, std::int64_t queue) {
  assert(0 <= begin.fs && begin <= end && bytes >= 0);
  while (end.fs / width_.fs >= static_cast<std::int64_t>(kBins)) double_width();
  end_ = std::max(end_, end);
  const std::int64_t first = begin.fs / width_.fs;
  // A request that ends on the edge of a bin leaves nothing in the next one.
  const std::int64_t last = end > begin ? (end.fs - 1) / width_.fs : first;
  if (static_cast<std::int64_t>(bins_.size()) <= last)
    bins_.resize(static_cast<std::size_t>(last) + 1);
  // Differences of the running share, so that the parts of any merged bins add up to the same.
  std::int64_t before = 0;
  for (std::int64_t i = first; i <= last; ++i) {
    std::int64_t carried = bytes;
    if (i < last) {
      const std::int64_t passed = (i + 1) * width_.fs - begin.fs;
      carried =
          static_cast<std::int64_t>(static_cast<__int128>(bytes) * passed / (end.fs - begin.fs));
    }
    Bin& bin = bins_[static_cast<std::size_t>(i)];
    bin.bytes += carried - before;
    bin.queue = std::max(bin.queue, queue);
    before = carried;
  }
}

}  // namespace hemiola::report
