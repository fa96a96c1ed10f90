// Names with Python slices: "xpu[0:4]", "cx5[0:2].port[0]", "server[0:2]xpu[0:3]", "dgx.0.xpu.3".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/diagnostics.h"

namespace hemiola::machine::infragraph {

/// The indices first, first + step, ... (count of them, at least one).
struct Indices {
  std::int64_t first = 0, count = 0, step = 1;
  std::int64_t at(std::int64_t i) const { return first + i * step; }
};

/// "xpu[0:4]" without its brackets; no slice means all.
struct Segment {
  std::string name;
  std::string slice;
  bool has_slice = false;

  /// The indices that the slice takes out of `size`: end exclusive, negative ones count from the
  /// end. Throws Failure where Python would clamp or select nothing.
  Indices resolve(std::int64_t size, const SourceLocation& where) const;
  std::string text() const { return has_slice ? name + "[" + slice + "]" : name; }
};

/// Segments are parted by a dot or by the end of a slice; a number after a dot is an index. Throws
/// Failure for malformed text.
std::vector<Segment> parse_path(std::string_view text, const SourceLocation& where);

}  // namespace hemiola::machine::infragraph
