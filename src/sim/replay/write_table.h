// The table of writes that wait for their time (docs/replay.md, "Tables").
#pragma once

#include <cstdint>
#include <memory>

#include "core/time.h"
#include "sim/result/options.h"

namespace hemiola::sim {

/// Writes come out in the order of (time, number); every implementation gives the same.
class WriteTable {
 public:
  virtual ~WriteTable() = default;
  /// Not before what has come out.
  virtual void add(std::int64_t time, std::int32_t number) = 0;
  /// When it has to be asked next (fs): not later than its first write is due; INT64_MAX: empty.
  virtual std::int64_t next() const = 0;
  /// The next write due before `end` (fs); -1: none. Calls come with ends that do not go back.
  virtual std::int32_t take(std::int64_t end) = 0;
  virtual bool empty() const = 0;
  /// Cycles in which the head was compared.
  virtual std::int64_t polls() const { return 0; }
};

/// `cycle`: of the GPU's clock.
std::unique_ptr<WriteTable> make_write_table(TableKind kind, Time cycle);

}  // namespace hemiola::sim
