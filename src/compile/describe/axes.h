// Addresses taken apart: base, and one index for each axis of the tensor.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compile/describe/trace.h"

namespace hemiola::compile {

/// The index along one axis, in the algebra of the trace.
struct SplitAxis {
  Term stride{1, {}};
  bool has_stride = true;                         ///< false: a descriptor of the host
  Expr sum;                                       ///< the index with its ranges
  Expr tiles, loops, indirect, uniform, strange;  ///< parts of `sum` that are no range
  std::vector<AtomId> ranges;
  Expr extent;  ///< of the block along it; 0: one element
  int dimension = -1;
  /// Loops whose counter as a whole is in the index, and what its first value adds to it.
  std::vector<std::pair<int, Expr>> begins;
  std::optional<Expr> size;
  bool wraps = false, clamps = false;
  bool is_derived = false;
};

struct SplitAccess {
  std::optional<AtomId> base;  ///< the parameter, or the loaded address
  std::vector<SplitAxis> axes;
  Expr offset;          ///< elements that no axis has a stride for, the same everywhere
  std::string unknown;  ///< why there is no base
  int puzzle = -1;      ///< of Trace::puzzles, that explains it
};

class AxisSplitter {
 public:
  /// `tile_loops`: loops whose iterations are tiles.
  AxisSplitter(Trace& trace, std::set<int> tile_loops);
  SplitAccess split(const RawAccess& access);
  /// Factors of a term that are the same everywhere, and the others.
  void divide_factors(const Term& term, Term& uniform, Term& varying) const;
  bool is_tile(const Term& term) const;

 private:
  /// What unwrap() took away from indices.
  struct Limits {
    std::vector<std::pair<Expr, Expr>> sizes;  ///< flat index, size
    std::vector<Expr> wrapped, clamped;        ///< flat indices
  };
  std::optional<AtomId> find_base(const Expr& address, Expr& offset);
  Expr unwrap(const Expr& e, Limits& limits);
  void place(std::vector<SplitAxis>& axes, const Expr& offset, Expr& rest);
  Expr take_rows(SplitAxis& axis);
  void place_scalar(std::vector<SplitAxis>& axes, const Term& stride, const Term& varying);
  bool is_compared(const SplitAxis& axis, const Term& quotient, const Term& varying);
  /// Which part of the index a term belongs to. Null: an index that // and % take apart.
  Expr* part_of(SplitAxis& axis, const Term& varying) const;
  void classify(SplitAxis& axis);
  void find_size(SplitAxis& axis, const std::vector<std::pair<Expr, Expr>>& sizes);
  bool is_stride_like(const Term& t) const;

  Trace& trace_;
  Algebra& algebra_;
  std::set<int> tile_loops_;
  std::vector<std::pair<Expr, Expr>> compared_;  ///< flat index, size
};

}  // namespace hemiola::compile
