// Of a replay: answers that take as long as they took when they were recorded.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/result/profile.h"

namespace hemiola::sim {

/// The rows that answer a rank, by who answers, and whether data or an acknowledgement: the k-th
/// request of a kind gets what the k-th one of that kind got, whatever stood between them.
class RecordedLatencies {
 public:
  void add(const ProfileRow& row, std::int32_t number) {
    queues_[{row.destination, row.source, row.kind}].rows.emplace_back(row.request, number);
  }
  void finish() {
    for (auto& [key, queue] : queues_) std::ranges::sort(queue.rows);
  }
  /// The next row that answers such a request of `rank`; -1: there were no more.
  std::int32_t take(int rank, int source, bool load) {
    const auto found =
        queues_.find({rank, source, load ? ProfileKind::response : ProfileKind::acknowledgement});
    if (found == queues_.end() || found->second.next == found->second.rows.size()) return -1;
    return found->second.rows[found->second.next++].second;
  }

 private:
  struct Queue {
    std::vector<std::pair<std::int64_t, std::int32_t>> rows;  ///< request, number of the row
    std::size_t next = 0;
  };
  std::map<std::tuple<int, int, ProfileKind>, Queue> queues_;
};

}  // namespace hemiola::sim
