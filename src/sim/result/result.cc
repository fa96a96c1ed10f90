#include "sim/result/result.h"

#include <algorithm>
#include <cstddef>

namespace hemiola::sim {

std::size_t latest_rank(const Result& result) {
  if (!result.rank_end.empty()) {
    return static_cast<std::size_t>(std::ranges::max_element(result.rank_end) -
                                    result.rank_end.begin());
  }
  const auto finished = static_cast<std::size_t>(Reason::finished);
  const auto less = [&](const Attribution& a, const Attribution& b) {
    return a[finished] < b[finished];
  };
  return static_cast<std::size_t>(std::ranges::min_element(result.attribution, less) -
                                  result.attribution.begin());
}

}  // namespace hemiola::sim
