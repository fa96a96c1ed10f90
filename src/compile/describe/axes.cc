#include "compile/describe/axes.h"

#include <algorithm>

namespace hemiola::compile {

AxisSplitter::AxisSplitter(Trace& trace, std::set<int> tile_loops)
    : trace_(trace), algebra_(trace.algebra), tile_loops_(std::move(tile_loops)) {
  for (const Comparison& c : trace_.comparisons) {
    const bool less = c.op == "<" || c.op == "<=", more = c.op == ">" || c.op == ">=";
    if (!less && !more) continue;
    const Expr& index = less ? c.left : c.right;
    Expr size = less ? c.right : c.left;
    const Traits of_index = algebra_.traits(index), of_size = algebra_.traits(size);
    if (of_index.is_uniform() || of_size.has_range || of_size.has_data || of_size.has_opaque)
      continue;
    if (c.op == "<=" || c.op == ">=") size = algebra_.add(size, Algebra::number(1));
    // x < size - y, as loops have it, is x + y < size.
    Expr moved = index, rest;
    for (const Term& term : size.terms) {
      Term uniform, varying;
      divide_factors(term, uniform, varying);
      if (varying.factors.empty() || algebra_.traits({{varying}}).has_load)
        rest.terms.push_back(term);
      else
        moved = algebra_.subtract(moved, {{term}});
    }
    compared_.emplace_back(algebra_.flat(moved), rest);
  }
}

void AxisSplitter::divide_factors(const Term& term, Term& uniform, Term& varying) const {
  uniform = {term.coefficient, {}};
  varying = {1, {}};
  for (const AtomId factor : term.factors)
    (algebra_.atom(factor).is_uniform() ? uniform : varying).factors.push_back(factor);
  // A stride that was loaded is a stride where something else varies.
  if (varying.factors.size() < 2) return;
  Term rest{1, {}};
  for (const AtomId factor : varying.factors) {
    const Atom& atom = algebra_.atom(factor);
    const bool is_stride = atom.has_load && !atom.has_range && !atom.has_program &&
                           atom.dims.empty() && atom.loops.empty();
    (is_stride ? uniform : rest).factors.push_back(factor);
  }
  if (rest.factors.empty()) return;
  std::ranges::sort(uniform.factors);
  varying = std::move(rest);
}

bool AxisSplitter::is_tile(const Term& term) const {
  return std::ranges::any_of(term.factors, [&](AtomId id) {
    const Atom& atom = algebra_.atom(id);
    return atom.has_program ||
           std::ranges::any_of(atom.loops, [&](int loop) { return tile_loops_.contains(loop); });
  });
}

/// The one term that is an address: a parameter that no stride is in, or an address that was
/// loaded.
std::optional<AtomId> AxisSplitter::find_base(const Expr& address, Expr& offset) {
  std::optional<AtomId> best;
  int best_score = -1;
  for (const Term& term : address.terms) {
    if (term.coefficient != 1 || term.factors.size() != 1) continue;
    const Atom& atom = algebra_.atom(term.factors[0]);
    int score = -1;
    if (atom.kind == AtomKind::parameter || atom.kind == AtomKind::constexpr_) {
      const std::string& name = atom.name;
      const bool says_so = name.find("ptr") != std::string::npos ||
                           name.find("desc") != std::string::npos ||
                           name.find("Ptr") != std::string::npos;
      score = (atom.kind == AtomKind::parameter ? 2 : 0) + (says_so ? 4 : 0);
      // A pointer is not part of products anywhere.
      for (const RawAccess& other : trace_.accesses) {
        for (const Term& t : other.address.terms)
          if (t.factors.size() > 1 && std::ranges::count(t.factors, term.factors[0]) > 0)
            score = std::min(score, 1);
      }
      for (const Comparison& c : trace_.comparisons)
        if ((c.op == "<" || c.op == ">=") && (algebra_.mentions(c.right, term.factors[0]) ||
                                              algebra_.mentions(c.left, term.factors[0])))
          score = std::min(score, 1);
    } else if (atom.kind == AtomKind::loaded && atom.dims.empty()) {
      score = 0;
    }
    if (score <= best_score) continue;
    // Of two that may be one, the first parameter.
    best = term.factors[0];
    best_score = score;
  }
  if (!best) return best;
  offset = algebra_.difference(address, algebra_.of(*best));
  return best;
}

/// Indices that begin again or stop at the end of an axis, as if they went on.
Expr AxisSplitter::unwrap(const Expr& e, Limits& limits) {
  std::set<std::string>
      divided;  // indices whose // is there too: those are taken apart, not wrapped
  const auto note = [&](const auto& self, const Expr& in) -> void {
    for (const Term& term : in.terms) {
      for (const AtomId id : term.factors) {
        const Atom& atom = algebra_.atom(id);
        if (atom.kind != AtomKind::function || !atom.has_range) continue;
        if (atom.name == "//") divided.insert(algebra_.text(atom.args[0]));
        for (const Expr& arg : atom.args) self(self, arg);
      }
    }
  };
  note(note, e);
  Expr sum;
  for (const Term& term : e.terms) {
    Expr product = Algebra::number(term.coefficient);
    for (const AtomId id : term.factors) {
      Expr factor = algebra_.of(id);
      for (int level = 0; level < 4; ++level) {
        if (factor.terms.size() != 1 || factor.terms[0].factors.size() != 1) break;
        const Atom atom = algebra_.atom(factor.terms[0].factors[0]);
        if (atom.kind != AtomKind::function ||
            !(atom.has_range || atom.has_program || !atom.loops.empty()))
          break;
        if (atom.name == "%" && atom.has_range && !divided.contains(algebra_.text(atom.args[0])) &&
            algebra_.traits(atom.args[0]).has_range) {
          limits.sizes.emplace_back(algebra_.flat(atom.args[0]), atom.args[1]);
          limits.wrapped.push_back(algebra_.flat(atom.args[0]));
          factor = atom.args[0];
        } else if ((atom.name == "min" || atom.name == "max") && atom.args.size() == 2) {
          const bool first = !algebra_.traits(atom.args[0]).is_uniform(),
                     second = !algebra_.traits(atom.args[1]).is_uniform();
          const bool ranged =
              algebra_.traits(atom.args[0]).has_range || algebra_.traits(atom.args[1]).has_range;
          if (first == second || !ranged) break;
          if (atom.name == "min")
            limits.sizes.emplace_back(algebra_.flat(atom.args[first ? 0 : 1]),
                                      algebra_.add(atom.args[first ? 1 : 0], Algebra::number(1)));
          factor = atom.args[first ? 0 : 1];
          limits.clamped.push_back(algebra_.flat(factor));
        } else if (atom.name == "where" && atom.has_range) {
          const Traits a = algebra_.traits(atom.args[1]), b = algebra_.traits(atom.args[2]);
          if (a.has_range && b.is_uniform())
            factor = atom.args[1];
          else if (b.has_range && a.is_uniform())
            factor = atom.args[2];
          else
            break;
          limits.clamped.push_back(algebra_.flat(factor));
        } else {
          break;
        }
      }
      product = algebra_.multiply(product, factor);
    }
    sum = algebra_.add(sum, product);
  }
  return sum;
}

/// Whether a mask compares an index in which the axis' range and this term stand together.
bool AxisSplitter::is_compared(const SplitAxis& axis, const Term& quotient, const Term& varying) {
  Term product = varying;
  product.coefficient = quotient.coefficient;
  product.factors.insert(product.factors.end(), quotient.factors.begin(), quotient.factors.end());
  std::ranges::sort(product.factors);
  const Expr wanted = algebra_.flat({{product}});
  for (const AtomId range : axis.ranges) {
    const Expr flat_range = algebra_.flat(algebra_.of(range));
    for (const auto& [index, size] : compared_) {
      const auto has = [&, &in = index](const Expr& e) {
        return std::ranges::all_of(e.terms, [&](const Term& t) {
          return std::ranges::find(in.terms, t) != in.terms.end();
        });
      };
      if (has(flat_range) && has(wanted)) return true;
    }
  }
  return false;
}

/// Whether it looks like the distance of rows, not like the extent of a block.
bool AxisSplitter::is_stride_like(const Term& t) const {
  return std::ranges::any_of(t.factors, [&](AtomId id) {
    const Atom& atom = algebra_.atom(id);
    return atom.kind != AtomKind::constexpr_ && atom.kind != AtomKind::programs;
  });
}

void AxisSplitter::place_scalar(std::vector<SplitAxis>& axes, const Term& stride,
                                const Term& varying) {
  SplitAxis* best = nullptr;
  Term best_quotient;
  int best_score = -1;
  for (SplitAxis& axis : axes) {
    Term quotient;
    if (!axis.has_stride || !Algebra::divide(stride, axis.stride, quotient)) continue;
    int score = -1;
    Term rest;
    const bool is_multiple =
        axis.extent.terms.size() == 1 && Algebra::divide(quotient, axis.extent.terms[0], rest);
    if (is_compared(axis, quotient, varying))
      score = 300;
    else if (is_multiple && !is_stride_like(rest))
      score = 200;
    else if (quotient.factors.empty() && (quotient.coefficient == 1 || axis.extent.is_zero()))
      score = 100;
    else if (axis.extent.is_zero() && !is_stride_like(quotient))
      score = 50;
    else
      continue;
    score += static_cast<int>(axis.stride.factors.size());
    if (score <= best_score) continue;
    best = &axis;
    best_score = score;
    best_quotient = quotient;
  }
  if (best == nullptr) {
    axes.push_back({.stride = stride});
    best = &axes.back();
    best_quotient = {1, {}};
  }
  best->sum = algebra_.add(best->sum, algebra_.multiply({{best_quotient}}, {{varying}}));
}

void AxisSplitter::place(std::vector<SplitAxis>& axes, const Expr& offset, Expr& rest) {
  struct Piece {
    Term stride, varying;
  };
  std::vector<Piece> ranged, scalar;
  Expr uniform;
  for (const Term& term : offset.terms) {
    Piece piece;
    divide_factors(term, piece.stride, piece.varying);
    if (piece.varying.factors.empty()) {
      uniform.terms.push_back(term);
      continue;
    }
    const Traits traits = algebra_.traits({{piece.varying}});
    const bool has_dims = std::ranges::any_of(
        piece.varying.factors, [&](AtomId id) { return !algebra_.atom(id).dims.empty(); });
    (traits.has_range || has_dims ? ranged : scalar).push_back(std::move(piece));
  }
  for (const Piece& piece : ranged) {
    auto at = std::ranges::find_if(
        axes, [&](const SplitAxis& a) { return a.has_stride && a.stride == piece.stride; });
    if (at == axes.end()) at = axes.insert(axes.end(), {.stride = piece.stride});
    at->sum = algebra_.add(at->sum, {{piece.varying}});
    for (const AtomId id : piece.varying.factors) {
      const Atom& atom = algebra_.atom(id);
      if (atom.kind == AtomKind::range) {
        at->ranges.push_back(id);
        at->extent = algebra_.subtract(atom.args[1], atom.args[0]);
        at->dimension = atom.dims[0];
      } else if (atom.has_range) {
        at->is_derived = true;
      }
      if (at->dimension < 0 && !atom.dims.empty()) at->dimension = atom.dims[0];
    }
  }
  // Small strides first: larger ones may be multiples of them.
  std::ranges::stable_sort(scalar, [](const Piece& a, const Piece& b) {
    return a.stride.factors.size() < b.stride.factors.size();
  });
  for (const Piece& piece : scalar) place_scalar(axes, piece.stride, piece.varying);
  // What is the same everywhere belongs to the axis of its stride; where there is none, to none.
  for (const Term& term : uniform.terms) {
    SplitAxis* best = nullptr;
    Term quotient, best_quotient;
    for (SplitAxis& axis : axes) {
      if (!axis.has_stride || !Algebra::divide(term, axis.stride, quotient)) continue;
      if (best != nullptr && axis.stride.factors.size() <= best->stride.factors.size()) continue;
      best = &axis;
      best_quotient = quotient;
    }
    if (best != nullptr)
      best->sum = algebra_.add(best->sum, {{best_quotient}});
    else
      rest.terms.push_back(term);
  }
}

Expr* AxisSplitter::part_of(SplitAxis& axis, const Term& varying) const {
  const Traits traits = algebra_.traits({{varying}});
  const bool is_found = (traits.has_load && !(traits.has_program && traits.has_carried)) ||
                        (traits.has_data && !traits.loads.empty());
  if (traits.has_opaque) return &axis.strange;
  if (is_found) return &axis.indirect;
  if (traits.has_data || (traits.has_range && varying.factors.size() > 1)) return &axis.strange;
  if (traits.has_range) return nullptr;  // a number of elements, taken apart
  if (is_tile(varying)) return &axis.tiles;
  return !traits.loops.empty() && !traits.has_carried ? &axis.loops : &axis.strange;
}

void AxisSplitter::classify(SplitAxis& axis) {
  for (const Term& term : axis.sum.terms) {
    Term uniform, varying;
    divide_factors(term, uniform, varying);
    if (varying.factors.empty()) {
      axis.uniform.terms.push_back(term);
      continue;
    }
    const bool is_range =
        varying.factors.size() == 1 && algebra_.atom(varying.factors[0]).kind == AtomKind::range;
    if (is_range) continue;
    if (Expr* part = part_of(axis, varying))
      part->terms.push_back(term);
    else
      axis.is_derived = true;
  }
}

void AxisSplitter::find_size(SplitAxis& axis, const std::vector<std::pair<Expr, Expr>>& sizes) {
  if (axis.size) return;
  const Expr whole = algebra_.flat(axis.sum);
  for (const auto* list :
       {&sizes, static_cast<const std::vector<std::pair<Expr, Expr>>*>(&compared_)}) {
    for (const auto& [index, size] : *list) {
      if (index == whole && !algebra_.traits(size).has_program) {
        axis.size = size;
        return;
      }
    }
  }
}

/// Of an index such as head * LENGTH + tile * BLOCK what goes by lengths: elements of an axis of
/// its own, whose stride is that of so many.
Expr AxisSplitter::take_rows(SplitAxis& axis) {
  Expr taken, left;
  for (const Term& term : axis.sum.terms) {
    Term uniform, varying;
    divide_factors(term, uniform, varying);
    const bool is_row = !varying.factors.empty() && is_stride_like(uniform) &&
                        !algebra_.traits({{varying}}).has_range;
    if (is_row) axis.size = Expr{{uniform}};
    (is_row ? taken : left).terms.push_back(term);
  }
  axis.sum = std::move(left);
  return algebra_.multiply(taken, {{axis.stride}});
}

SplitAccess AxisSplitter::split(const RawAccess& access) {
  SplitAccess result;
  Expr offset;
  result.base = find_base(access.address, offset);
  if (!result.base) {
    const Traits traits = algebra_.traits(access.address);
    result.unknown = "no parameter is the base of the address";
    for (const Term& term : access.address.terms) {
      for (const AtomId id : term.factors) {
        const Atom& atom = algebra_.atom(id);
        if (atom.kind == AtomKind::opaque) result.unknown = atom.name, result.puzzle = atom.number;
        if (atom.kind == AtomKind::function && atom.name == "where")
          result.unknown = "the address is one of several tensors, by a condition";
        if (atom.kind == AtomKind::data)
          result.unknown = "the address is computed from loaded values";
      }
    }
    return result;
  }
  Limits limits;
  if (access.mechanism == Mechanism::pointer) {
    const Expr whole = unwrap(offset, limits);
    place(result.axes, whole, result.offset);
    std::ranges::stable_sort(result.axes, [](const SplitAxis& a, const SplitAxis& b) {
      return (a.dimension < 0 ? 99 : a.dimension) < (b.dimension < 0 ? 99 : b.dimension);
    });
  } else {
    Expr rows;  // of a tensor whose axes were made one: heads, of which each has its own
    for (std::size_t i = 0; i < access.offsets.size(); ++i) {
      SplitAxis axis{.has_stride = i < access.strides.size(),
                     .sum = unwrap(access.offsets[i], limits)};
      if (axis.has_stride && access.strides[i].terms.size() == 1)
        axis.stride = access.strides[i].terms[0];
      if (i < access.sizes.size()) axis.size = access.sizes[i];
      if (i < access.block.size()) axis.extent = access.block[i];
      axis.dimension = static_cast<int>(i);
      if (axis.has_stride) rows = algebra_.add(rows, take_rows(axis));
      result.axes.push_back(std::move(axis));
    }
    // What is in the base: a batch, a head.
    std::vector<SplitAxis> outer;
    place(outer, algebra_.add(unwrap(offset, limits), rows), result.offset);
    for (SplitAxis& axis : outer) result.axes.push_back(std::move(axis));
  }
  for (SplitAxis& axis : result.axes) {
    classify(axis);
    find_size(axis, limits.sizes);
    const Expr whole = algebra_.flat(axis.sum);
    const auto is_among = [&](const std::vector<Expr>& indices) {
      return std::ranges::find(indices, whole) != indices.end();
    };
    axis.wraps = is_among(limits.wrapped);
    axis.clamps = is_among(limits.clamped);
  }
  return result;
}

}  // namespace hemiola::compile
