// The L2 of a GPU as tags: one cache, or one in each of its partitions (docs/model.md, "Memory").
#pragma once

#include <cstdint>
#include <vector>

#include "core/modulo.h"
#include "machine/devices/gpu_model.h"
#include "sim/model/tags.h"

namespace hemiola::sim {

/// CUs and slices are dealt to partitions round robin; a line's own partition is that of its slice.
class L2 {
 public:
  L2() = default;  ///< of a GPU that is not simulated
  L2(const machine::GpuModel& model, std::int64_t line_size)
      : parts_(static_cast<std::size_t>(copies_of(model)),
               Tags(model.l2_size.count / line_size / copies_of(model), model.l2_ways)),
        part_(static_cast<std::uint32_t>(parts_.size())) {}

  bool exists() const { return parts_.front().exists(); }

  /// Whether partitions may hold copies of each other's lines.
  bool has_copies() const { return part_.divisor() > 1; }
  /// Whether that of the CU may hold one of a line of this slice.
  bool may_copy(std::int32_t cu, std::int32_t slice) const {
    return has_copies() && of(cu) != of(slice);
  }

  /// In the line's own partition. A write ends all copies.
  Tags::Outcome access(std::int32_t line, std::int32_t slice, bool write) {
    if (!has_copies()) return parts_.front().access(line, write);
    const std::size_t own = of(slice);
    if (write) {
      for (std::size_t p = 0; p < parts_.size(); ++p)
        if (p != own) parts_[p].forget(line);
    }
    return parts_[own].access(line, write);
  }

  /// In the partition of the CU, another one: a miss makes a copy there, which is never dirty.
  Tags::Outcome copy(std::int32_t line, std::int32_t cu) {
    return parts_[of(cu)].access(line, false);
  }

  void prefetch(std::int32_t line, std::int32_t cu_or_slice) const {
    parts_[of(cu_or_slice)].prefetch(line);
  }

 private:
  static std::int64_t copies_of(const machine::GpuModel& model) {
    const bool apart =
        model.l2_copies && model.noc_kind == machine::NocKind::crossbar && model.l2_size.count > 0;
    return apart ? model.noc_partitions : 1;
  }
  std::size_t of(std::int32_t cu_or_slice) const {
    return part_(static_cast<std::uint32_t>(cu_or_slice));
  }

  std::vector<Tags> parts_ = std::vector<Tags>(1);
  Modulo part_{1};
};

}  // namespace hemiola::sim
