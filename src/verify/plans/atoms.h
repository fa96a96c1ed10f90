// Atoms: the pieces of tensors that no region of a plan divides. What happens to one element of an
// atom happens to all of them, so a plan over large tensors is checked piece by piece.
#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "core/index.h"
#include "plan/area.h"
#include "verify/plans/unrolled.h"

namespace hemiola::verify {

/// Atoms are numbered tensor by tensor, in each the last axis fastest; all ranks have the same.
class Atoms {
 public:
  /// Pairs of areas whose elements correspond.
  using Alignment = std::vector<std::pair<plan::Area, plan::Area>>;

  /// Cuts every tensor at the borders of all areas that transfers, tiles and `aligned` touch, and
  /// carries cuts through movements and `aligned`, so that the i-th atom of a source goes to the
  /// i-th of its destination. Failure: more than 2^24 atoms over all ranks.
  Atoms(const Unrolled& unrolled, const Alignment& aligned);

  std::int32_t count() const { return first_.back(); }  ///< per rank
  /// Appends the atoms of an area, in its order of elements.
  void append(const plan::Area& area, std::vector<std::int32_t>& out) const;
  void append(const plan::Region& region, const Indices& at, std::vector<std::int32_t>& out) const;
  std::vector<std::int32_t> of(const plan::Area& area) const;
  /// The elements of one atom.
  plan::Area area(std::int32_t atom) const;
  std::int32_t tensor(std::int32_t atom) const;
  /// Where an axis of a tensor is cut: 0, ..., its extent.
  const std::vector<std::int64_t>& cuts(std::int32_t tensor, std::size_t axis) const {
    return axes(tensor)[axis].cuts;
  }

 private:
  /// Cut positions of one axis: 0, ..., its extent.
  struct Axis {
    std::int64_t extent = 0;
    std::vector<std::int64_t> cuts;        ///< sorted
    std::unordered_set<std::int64_t> all;  ///< only while they are collected
    bool identity = false;                 ///< every position is a cut
    bool add(std::int64_t position);
    void sort();
    std::int64_t find(std::int64_t position) const;
    std::int64_t pieces() const { return static_cast<std::int64_t>(cuts.size()) - 1; }
  };
  struct Pair {
    std::int32_t a_tensor, b_tensor;
    plan::Rect a, b;
    auto operator<=>(const Pair&) const = default;
  };

  void cut(const plan::Area& area);
  void cut(const plan::Region& region, const Indices& at);
  void cut_everything(const Unrolled& unrolled, const Alignment& aligned);
  void pair(const plan::Area& a, const plan::Area& b);
  void collect_pairs(const Unrolled& unrolled, const Alignment& aligned);
  bool carry(const Pair& pair);
  bool carry(std::int32_t from, const plan::Rect& a, std::size_t a_axis, std::int32_t to,
             const plan::Rect& b, std::size_t b_axis);
  void divide(std::int32_t tensor, const plan::Rect& rect);
  void append(std::int32_t tensor, const std::int64_t* begin, const std::int64_t* end,
              std::vector<std::int32_t>& out) const;
  std::vector<Axis>& axes(std::int32_t tensor) { return axes_[index(tensor)]; }
  const std::vector<Axis>& axes(std::int32_t tensor) const { return axes_[index(tensor)]; }

  std::vector<std::vector<Axis>> axes_;  ///< by tensor
  std::vector<std::int32_t> first_;      ///< by tensor: its first atom; then their number
  std::vector<Pair> pairs_;              ///< areas of equal shape that data move between
};

struct Postconditions;
/// What a plan promises of a collective or expects, as areas that correspond.
Atoms::Alignment alignment(const plan::Plan& plan, const Postconditions& postconditions);

}  // namespace hemiola::verify
