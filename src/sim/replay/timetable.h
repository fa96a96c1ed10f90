// When rows of a profile come: at their time, or behind what they wait for (docs/replay.md).
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "sim/replay/write_table.h"
#include "sim/result/profile.h"

namespace hemiola::sim {

/// Chains of rows are resolved when it is made: each row is due at a time, or some time behind a
/// signal that has come.
class Timetable {
 public:
  /// The profile outlives it and is in_order(). Failure for times that are too long.
  Timetable(const Profile& profile, std::unique_ptr<WriteTable> table);

  /// The row whose `after_buffer` a row waits for, through others; -1: it has a time.
  std::int32_t signal_of(std::int32_t row) const;
  /// A row that has a time is to come.
  void expect(std::int32_t row);
  /// One that comes at `due`, fs, whatever it says itself.
  void expect_at(std::int32_t row, std::int64_t due);
  /// A row that waits: for a value of at least signal_of()'s `after_value` at a place.
  void expect(std::int32_t row, std::uint64_t place);
  bool awaits(std::uint64_t place) const { return signals_.contains(place); }
  /// The value at a place has become larger. How many rows got their time.
  std::int64_t reached(std::uint64_t place, std::int64_t value, std::int64_t now);
  std::int64_t value_at(std::uint64_t place) const;

  /// As WriteTable: of rows that have a time.
  std::int64_t next() const { return table_->next(); }
  std::int32_t take(std::int64_t end) { return table_->take(end); }
  bool empty() const { return table_->empty(); }
  std::int64_t polls() const { return table_->polls(); }
  /// fs; INT64_MAX: its signal has not come.
  std::int64_t due(std::int32_t row) const { return due_[static_cast<std::size_t>(row)]; }

 private:
  struct Signal {
    std::int64_t value = 0;
    std::vector<std::int32_t> rows;
  };
  const Profile& profile_;
  std::unique_ptr<WriteTable> table_;
  std::vector<std::int32_t> root_;   ///< by row: the first of its chain
  std::vector<std::int64_t> delay_;  ///< by row, fs: behind the root's signal, or since 0
  std::vector<std::int64_t> due_;    ///< by row
  std::unordered_map<std::uint64_t, Signal> signals_;
};

}  // namespace hemiola::sim
