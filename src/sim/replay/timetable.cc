#include "sim/replay/timetable.h"

#include <algorithm>
#include <utility>

#include "core/diagnostics.h"
#include "sim/support/index.h"

namespace hemiola::sim {

Timetable::Timetable(const Profile& profile, std::unique_ptr<WriteTable> table)
    : profile_(profile),
      table_(std::move(table)),
      root_(profile.rows.size(), -1),
      delay_(profile.rows.size()),
      due_(profile.rows.size(), INT64_MAX) {
  constexpr std::int64_t kLatest = INT64_MAX / 4;
  std::vector<std::int32_t> chain;
  for (std::size_t r = 0; r < profile.rows.size(); ++r) {
    chain.clear();
    for (auto at = static_cast<std::int32_t>(r); at >= 0 && root_[index(at)] < 0;
         at = profile.rows[index(at)].after_row)
      chain.push_back(at);
    for (; !chain.empty(); chain.pop_back()) {
      const std::int32_t row = chain.back(), after = profile.rows[index(row)].after_row;
      root_[index(row)] = after < 0 ? row : root_[index(after)];
      delay_[index(row)] =
          profile.rows[index(row)].time.fs + (after < 0 ? 0 : delay_[index(after)]);
      if (delay_[index(row)] > kLatest)
        throw Failure("the " + profile.describe(row) + " comes too late", {.file = profile.file},
                      "times end after half an hour");
    }
  }
}

std::int32_t Timetable::signal_of(std::int32_t row) const {
  const std::int32_t root = root_[index(row)];
  return profile_.rows[index(root)].after_buffer < 0 ? -1 : root;
}

void Timetable::expect(std::int32_t row) {
  due_[index(row)] = delay_[index(row)];
  table_->add(due_[index(row)], row);
}

void Timetable::expect_at(std::int32_t row, std::int64_t due) {
  due_[index(row)] = due;
  table_->add(due, row);
}

void Timetable::expect(std::int32_t row, std::uint64_t place) {
  signals_[place].rows.push_back(row);
}

std::int64_t Timetable::reached(std::uint64_t place, std::int64_t value, std::int64_t now) {
  const auto found = signals_.find(place);
  if (found == signals_.end()) return 0;
  Signal& signal = found->second;
  signal.value = std::max(signal.value, value);
  return static_cast<std::int64_t>(std::erase_if(signal.rows, [&](std::int32_t row) {
    if (profile_.rows[index(root_[index(row)])].after_value > signal.value) return false;
    due_[index(row)] = now + delay_[index(row)];
    table_->add(due_[index(row)], row);
    return true;
  }));
}

std::int64_t Timetable::value_at(std::uint64_t place) const {
  const auto found = signals_.find(place);
  return found == signals_.end() ? 0 : found->second.value;
}

}  // namespace hemiola::sim
