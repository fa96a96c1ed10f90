// Rows that all movements of a plan treat alike. Private to lower/.
#pragma once

#include <cstdint>
#include <vector>

#include "program/lower/general.h"

namespace hemiola::program::general {

/// Memory of the tensors of a plan without rows that add nothing: of neighbours of which every
/// place of every movement has the same columns, the first one. A matrix has thousands of rows, and
/// who touches what after whom is the same in all of them. Of a plan of chunks all memory is there.
class DistinctRows {
 public:
  DistinctRows(const plan::Plan& plan, const Movements& movements);

  /// Visits the rows of a place of these movements, in its order, as visit(begin, end) in units
  /// that count without the rows that are left out.
  template <class Visit>
  void each(const Place& place, Visit&& visit) const {
    const Memory& memory = memories_[index(place.area.tensor)];
    for (const Strip& strip : place.rows) {
      if (!memory.has_rows(strip)) {
        for (std::int64_t r = 0, at = strip.offset[0]; r < strip.rows; ++r, at += strip.pitch[0])
          visit(memory.without_others(at), memory.without_others(at + strip.run));
        continue;
      }
      std::int64_t at = memory.without_others(strip.offset[0]);
      const std::int64_t next = strip.offset[0] + strip.rows * strip.pitch[0];
      for (const std::int64_t end = memory.without_others(next); at < end; at += memory.pitch)
        visit(at, at + strip.run);
    }
  }

 private:
  struct Memory {
    std::int64_t pitch = 0;          ///< units from row to row; 0: rows are not told apart
    std::vector<std::int64_t> rows;  ///< sorted: the first of each sequence of rows that are alike

    /// Whether each row of the strip lies within one row of the tensor, in the same columns.
    bool has_rows(const Strip& strip) const {
      return pitch > 0 && strip.rows > 1 && strip.pitch[0] == pitch &&
             strip.offset[0] % pitch + strip.run <= pitch;
    }
    void cut_at(std::int64_t unit);
    /// Where a unit, which is in the first row of its sequence, is without the other rows.
    std::int64_t without_others(std::int64_t unit) const;
  };
  std::vector<Memory> memories_;  ///< by tensor, of any rank
};

}  // namespace hemiola::program::general
