// Accesses that nothing can race with any more.
#include <algorithm>
#include <utility>

#include "verify/programs/memory.h"

namespace hemiola::verify {

/// Trails share their steps; the steps that `visit` has changed are shared as before.
template <class Visit>
void Memory::each_record(Visit visit) {
  using Steps = std::shared_ptr<const std::vector<Trail::Step>>;
  struct Changed {
    Steps before;  ///< stays, so that no other steps get its address
    Steps now;
  };
  std::unordered_map<const std::vector<Trail::Step>*, Changed> seen;
  for (Cells& cells : cells_) {
    for (auto& [begin, cell] : cells) {
      if (cell.writer >= 0) visit(cell.writer);
      for (std::int32_t& reader : cell.readers) visit(reader);
      if (!cell.trail.steps) continue;
      const auto [known, first] = seen.try_emplace(cell.trail.steps.get());
      if (first) {
        auto now = std::make_shared<std::vector<Trail::Step>>(*cell.trail.steps);
        for (Trail::Step& step : *now) visit(step.record);
        known->second = {cell.trail.steps, std::move(now)};
      }
      cell.trail.steps = known->second.now;
    }
  }
}

void Memory::forget() {
  if (records_.size() < many_) return;
  std::vector<std::int32_t> number(records_.size(), -1);
  each_record([&](std::int32_t& record) { number[index(record)] = 0; });
  std::int32_t next = 0;
  for (std::size_t record = 0; record < records_.size(); ++record) {
    if (number[record] < 0) continue;
    records_[index(next)] = records_[record];
    number[record] = next++;
  }
  records_.resize(index(next));
  each_record([&](std::int32_t& record) { record = number[index(record)]; });
  for (auto* stores : {&packet_stores_, &fenced_}) {
    std::unordered_map<std::int32_t, Snapshot> kept;
    for (auto& [record, snapshot] : *stores) {
      const std::int32_t now = number[index(record)];
      if (now >= 0) kept.emplace(now, std::move(snapshot));
    }
    *stores = std::move(kept);
  }
  many_ = std::max<std::size_t>(1 << 16, 2 * records_.size());
}

}  // namespace hemiola::verify
