// Tile axes: which scalars the programs of the grid divide the work by, in which order, and what
// kind of kernel that makes.
#include <algorithm>

#include "compile/describe/describer.h"

namespace hemiola::compile {

/// Loops that go from tile to tile: they begin at a program id (or a multiple of it), go on by a
/// number of programs, and store.
void Describer::find_tile_loops() {
  for (const auto& [id, loop] : trace_.loops) {
    if (!loop.has_range) continue;
    const bool stores = std::ranges::any_of(trace_.accesses, [&, id = id](const RawAccess& a) {
      return a.action != Action::load && std::ranges::count(a.loops, id) > 0;
    });
    if (!stores || loop.step.is_constant()) continue;
    bool begins = false;
    for (const Term& term : loop.begin.terms) {
      for (const AtomId factor : term.factors) {
        const Atom& atom = algebra_.atom(factor);
        if (!atom.has_program || term.coefficient < 1) continue;
        Term multiple{term.coefficient, {}};
        for (const AtomId other : term.factors)
          if (other != factor) multiple.factors.push_back(other);
        Expr strides;
        begins |= algebra_.divide(loop.step, multiple, strides) && !strides.is_constant();
      }
    }
    if (begins) tile_loops_.insert(id);
  }
}

/// Tiles as coordinate x block: what is common to all terms and the same everywhere is the block.
bool Describer::coordinate_of(const Expr& tiles, Expr& coordinate, Expr& block) const {
  if (tiles.is_zero()) return false;
  Term common = Algebra::common_factor(tiles);
  std::erase_if(common.factors, [&](AtomId id) {
    const Atom& atom = algebra_.atom(id);
    return !atom.is_uniform() &&
           !(atom.has_load && !atom.has_program && atom.loops.empty() && atom.dims.empty());
  });
  block = {{common}};
  return algebra_.divide(tiles, common, coordinate);
}

int Describer::register_axis(const Expr& coordinate, const Expr& block,
                             const std::optional<Expr>& size) {
  for (std::size_t i = 0; i < d_.axes.size(); ++i) {
    if (d_.axes[i].value != coordinate) continue;
    if (!facts_[i].size && size) {
      facts_[i].size = size;
      facts_[i].block = block;
    }
    return static_cast<int>(i);
  }
  TileAxis axis{.value = coordinate};
  for (int program = 0; program < 3; ++program) {
    const AtomId id = algebra_.program(program).terms[0].factors[0];
    if (algebra_.mentions(coordinate, id)) axis.program_axes.push_back(program);
  }
  d_.axes.push_back(std::move(axis));
  facts_.push_back({.block = block, .size = size});
  return static_cast<int>(d_.axes.size()) - 1;
}

/// A loop that begins where the program's tile is, as that of causal attention does, goes along its
/// own axis: what it begins with is no tile of that axis.
void Describer::take_begins_of_loops() {
  std::vector<Expr> stored;
  for (const SplitDescription& s : splits_) {
    if (s.raw->action == Action::load) continue;
    for (const SplitAxis& axis : s.split.axes) {
      Expr coordinate, block;
      if (coordinate_of(axis.tiles, coordinate, block)) stored.push_back(coordinate);
    }
  }
  for (SplitDescription& s : splits_) {
    for (SplitAxis& axis : s.split.axes) {
      const Traits traits = algebra_.traits(axis.loops);
      for (const int id : traits.loops) {
        const bool stores = std::ranges::any_of(trace_.accesses, [&](const RawAccess& a) {
          return a.action != Action::load && std::ranges::count(a.loops, id) > 0;
        });
        if (!stores && trace_.loops.at(id).has_range) take_begin(axis, trace_.loops.at(id), stored);
      }
    }
  }
}

void Describer::take_begin(SplitAxis& axis, const RawLoop& loop, const std::vector<Expr>& stored) {
  const AtomId counter = algebra_.iteration(loop.id).terms[0].factors[0];
  Expr steps, times;
  for (const Term& term : axis.loops.terms) {
    Term part;
    if (Algebra::divide(term, {1, {counter}}, part)) steps = algebra_.add(steps, {{part}});
  }
  if (steps.is_zero() || loop.step.terms.size() != 1 ||
      !algebra_.divide(steps, loop.step.terms[0], times))
    return;
  const Expr begin = algebra_.multiply(times, loop.begin);
  Expr moved;
  for (const Term& term : begin.terms) {
    const Traits traits = algebra_.traits({{term}});
    if (traits.has_program) moved.terms.push_back(term);
  }
  Expr coordinate, block;
  if (moved.is_zero() || !coordinate_of(moved, coordinate, block)) return;
  const bool is_stored = std::ranges::find(stored, coordinate) != stored.end();
  const bool is_chosen =
      moved.terms.size() == 1 && std::ranges::any_of(moved.terms[0].factors, [&](AtomId id) {
        const std::string& name = algebra_.atom(id).name;
        return name == "where" || name == "min" || name == "max";
      });
  const Expr rest = algebra_.subtract(axis.tiles, moved);
  if (!(is_stored || is_chosen) ||
      rest.terms.size() + moved.terms.size() != axis.tiles.terms.size())
    return;
  axis.tiles = rest;
  axis.begins.emplace_back(loop.id, begin);
}

/// Loops whose iterations are products of their own: those inside have sizes that were loaded.
void Describer::find_problem_loops() {
  for (LoopDescription& loop : d_.loops) {
    if (loop.in_helper || loop.is_persistent) continue;
    const auto is_in = [&](const std::vector<int>& loops) {
      return std::ranges::count(loops, loop.id) > 0;
    };
    const bool has_product = std::ranges::any_of(
        trace_.dots, [&](const RawDot& dot) { return is_in(dot.loops) && dot.loops.size() > 1; });
    const bool has_sizes = std::ranges::any_of(trace_.loops, [&](const auto& inner) {
      return is_in(inner.second.outer) &&
             (inner.second.has_range ? algebra_.traits(inner.second.end).has_load
                                     : inner.second.is_while);
    });
    const bool stores = std::ranges::any_of(trace_.accesses, [&](const RawAccess& a) {
      return a.action != Action::load && is_in(a.loops);
    });
    const std::vector<int>& outer = trace_.loops.at(loop.id).outer;
    const bool is_nested = std::ranges::any_of(d_.loops, [&](const LoopDescription& l) {
      return l.is_over_problems && std::ranges::count(outer, l.id) > 0;
    });
    loop.is_over_problems =
        trace_.loops.at(loop.id).has_range && has_product && has_sizes && stores && !is_nested;
  }
}

/// Whether a loop leaves out the blocks of other tiles: then there are not as many tiles as blocks.
bool Describer::is_strided(const SplitAxis& axis, const Expr& block) const {
  return std::ranges::any_of(axis.loops.terms, [&](const Term& term) {
    Term rest;
    if (block.terms.size() != 1 || !Algebra::divide(term, block.terms[0], rest)) return false;
    return rest.coefficient > 1 || rest.factors.size() > 1;
  });
}

void Describer::tile_axes() {
  // Stores first: what they are divided by is what the kernel is about.
  for (const bool stores : {true, false}) {
    for (const SplitDescription& s : splits_) {
      if ((s.raw->action != Action::load) != stores) continue;
      for (const SplitAxis& axis : s.split.axes) {
        SplitAxis inner;
        const SplitAxis* from = &axis;
        if (axis.is_derived && axis.tiles.is_zero()) {
          if (const SplitAxis* taken_apart = inner_of(axis, inner)) {
            from = taken_apart;
            const Expr flat = algebra_.flat(inner.sum);
            for (const Comparison& c : trace_.comparisons)
              if (c.op == "<" && algebra_.flat(c.left) == flat &&
                  algebra_.traits(c.right).is_uniform())
                inner.size = c.right;
          }
        }
        Expr coordinate, block;
        if (from->tiles.is_zero() || !coordinate_of(from->tiles, coordinate, block)) continue;
        // Where a loop goes on inside of the tile, the axis is as long as the loop goes.
        const int index = register_axis(coordinate, block, from->size);
        facts_[static_cast<std::size_t>(index)].is_strided |= is_strided(axis, block);
      }
    }
  }
}

std::string Describer::tiles_of(const TileAxis& axis, const std::optional<Expr>& size,
                                const Expr& block) const {
  if (size) return text(algebra_.infix("cdiv", *size, block));
  const Expr& c = axis.value;
  if (c.terms.size() != 1 || c.terms[0].coefficient != 1 || c.terms[0].factors.size() != 1) {
    // A persistent loop over this axis alone.
    for (const int id : tile_loops_) {
      const RawLoop& loop = trace_.loops.at(id);
      Algebra& algebra = const_cast<Algebra&>(algebra_);
      const Expr value =
          algebra.add(loop.begin, algebra.multiply(algebra.iteration(id), loop.step));
      if (value == c) return text(loop.end);
    }
    return {};
  }
  const Atom& atom = algebra_.atom(c.terms[0].factors[0]);
  if (atom.kind == AtomKind::program) return "tl.num_programs(" + std::to_string(atom.number) + ")";
  if (atom.kind == AtomKind::function && atom.name == "%") return text(atom.args[1]);
  if (atom.kind == AtomKind::function && atom.name == "//" && axis.program_axes.size() == 1 &&
      atom.args[0].terms.size() == 1 &&
      atom.args[0] == const_cast<Algebra&>(algebra_).program(axis.program_axes[0]))
    return "tl.num_programs(" + std::to_string(axis.program_axes[0]) + ") // " +
           (atom.args[1].terms.size() == 1 ? text(atom.args[1]) : '(' + text(atom.args[1]) + ')');
  return {};
}

void Describer::name_axis(TileAxis& axis, std::set<std::string>& used) const {
  std::string name;
  if (is_identifier(axis.size)) {
    name = axis.size;
  } else if (axis.is_variable) {
    name = axis.coordinate;
    for (const std::string_view extra :
         {"tl_", "pid_", "tile_", "start_", "off_", "i_", "cur_", "idx_", "block_"})
      if (name.starts_with(extra) && name.size() > extra.size()) name = name.substr(extra.size());
    for (const std::string_view extra : {"_idx", "_id", "_index", "_pid"})
      if (name.ends_with(extra) && name.size() > extra.size())
        name = name.substr(0, name.size() - extra.size());
  }
  if (name.empty() || name == "pid") name = "tiles";
  std::string unique = name;
  for (int i = 2; !used.insert(unique).second; ++i) unique = name + std::to_string(i);
  axis.name = unique;
}

namespace {

/// Elements along an axis, where nothing but the order of its tiles tells: `cdiv(M, BLOCK_M)` in
/// it.
void find_counted(const Algebra& algebra, const Expr& e, const Expr& block,
                  std::vector<Expr>& sizes) {
  for (const Term& term : e.terms) {
    for (const AtomId id : term.factors) {
      const Atom& atom = algebra.atom(id);
      for (const Expr& arg : atom.args) find_counted(algebra, arg, block, sizes);
      const bool counts = atom.kind == AtomKind::function && atom.name == "cdiv" &&
                          atom.args[1] == block && algebra.traits(atom.args[0]).is_uniform();
      if (counts && std::ranges::find(sizes, atom.args[0]) == sizes.end())
        sizes.push_back(atom.args[0]);
    }
  }
}

std::optional<Expr> counted(const Algebra& algebra, const Expr& value, const Expr& block) {
  std::vector<Expr> sizes;
  find_counted(algebra, value, block, sizes);
  return sizes.size() == 1 ? std::optional(sizes.front()) : std::nullopt;
}

/// Whether programs are multiplied with each other.
bool multiplies(const Algebra& algebra, const Expr& e) {
  return std::ranges::any_of(e.terms, [&](const Term& term) {
    return std::ranges::count_if(term.factors,
                                 [&](AtomId id) { return !algebra.atom(id).is_uniform(); }) > 1;
  });
}

}  // namespace

void Describer::finish_axes() {
  std::set<std::string> used;
  for (std::size_t i = 0; i < d_.axes.size(); ++i) {
    TileAxis& axis = d_.axes[i];
    AxisFacts& facts = facts_[i];
    if (!facts.size) facts.size = counted(algebra_, axis.value, facts.block);
    axis.block = text(facts.block);
    if (facts.size) axis.size = text(*facts.size);
    axis.coordinate = axis.formula = text(axis.value);
    for (const RawAssignment& made : trace_.assignments) {
      if (made.path != 0 || made.rank != 0 || made.value != axis.value) continue;
      axis.coordinate = made.name;
      axis.aliases.push_back(made.name);
      axis.is_variable = true;
      axis.assigned = span_of(source_, *made.statement);
    }
    axis.tiles = tiles_of(axis, facts.is_strided ? std::nullopt : facts.size, facts.block);
    name_axis(axis, used);
    const Traits traits = algebra_.traits(axis.value);
    bool negative = false;
    for (const Term& term : axis.value.terms) negative |= term.coefficient < 0;
    if (traits.has_opaque || traits.has_carried || traits.has_data)
      axis.why_not = why_unknown(axis.value);
    else if (traits.has_load)
      axis.why_not = "the tile is found through loaded values";
    else if (negative && axis.value.terms.size() == 1)
      axis.why_not = "the tiles go backwards";
    else if (multiplies(algebra_, axis.value))
      axis.why_not = "the coordinate is a product of program ids";
    else if (const std::optional<Expr>& size = facts.size;
             size && size->is_constant() && facts.block.is_constant() &&
             size->constant() < 4 * facts.block.constant())
      axis.why_not = "it has fewer than four tiles";
    axis.can_be_cut = axis.why_not.empty();
  }
  for (const LoopDescription& loop : d_.loops) {
    if (!loop.is_over_problems) continue;
    TileAxis axis{.coordinate = loop.variable,
                  .is_variable = true,
                  .value = algebra_.iteration(loop.id),
                  .block = "1",
                  .size = loop.end,
                  .tiles = loop.end,
                  .is_problem = true,
                  .can_be_cut = !loop.end.empty()};
    if (!axis.can_be_cut) axis.why_not = "how many problems there are is not known";
    axis.name = "problems";
    d_.axes.push_back(std::move(axis));
  }
}

namespace {

/// What a tile id goes through on its way to a coordinate.
struct Steps {
  bool divides = false, groups = false, chooses = false, other = false;
  std::string group;
};

}  // namespace

void Describer::scheduler() {
  Scheduler& s = d_.scheduler;
  if (d_.axes.empty()) return;
  Steps steps;
  const bool by_problem =
      std::ranges::any_of(d_.axes, [](const TileAxis& a) { return a.is_problem; });
  const auto look = [&](const auto& self, const Expr& e, int depth) -> void {
    if (depth > 10) return;
    for (const Term& term : e.terms) {
      for (const AtomId id : term.factors) {
        const Atom& atom = algebra_.atom(id);
        if (!atom.has_program && atom.loops.empty()) continue;
        if (atom.kind != AtomKind::function) continue;
        if (atom.name == "//" || atom.name == "%") {
          steps.divides = true;
          // id % min(tiles - first, GROUP): the groups of rows of the usual order.
          for (const Term& by : atom.args[1].terms) {
            for (const AtomId divisor : by.factors) {
              const Atom& group = algebra_.atom(divisor);
              if (group.kind != AtomKind::function ||
                  !(group.name == "min" || group.name == "where"))
                continue;
              steps.groups = true;
              for (const Expr& arg : group.args) {
                if (!algebra_.traits(arg).is_uniform() || arg.terms.size() != 1) continue;
                const std::string size = text(arg);
                if (steps.group.empty() || (is_identifier(size) && !is_identifier(steps.group)))
                  steps.group = size;
              }
            }
          }
        } else if (atom.name == "where") {
          steps.chooses = true;
        } else {
          steps.other = true;
        }
        for (const Expr& arg : atom.args) self(self, arg, depth + 1);
      }
    }
  };
  for (const TileAxis& axis : d_.axes) {
    // The tiles of a problem are dealt out like those of one product, after the problems.
    const bool of_problem = by_problem && algebra_.traits(axis.value).has_program;
    if (axis.can_be_cut || of_problem) look(look, axis.value, 0);
    s.is_persistent |= of_problem && algebra_.traits(axis.value).has_carried;
  }
  s.order = steps.groups    ? Scheduler::Order::grouped
            : steps.other   ? Scheduler::Order::other
            : steps.divides ? Scheduler::Order::linear
                            : Scheduler::Order::plain;
  s.group_size = steps.group;
  for (const TileAxis& axis : d_.axes) {
    const Traits traits = algebra_.traits(axis.value);
    for (const int loop : traits.loops) {
      if (!tile_loops_.contains(loop)) continue;
      s.is_persistent = true;
      s.loop = loop;
    }
  }
  if (s.loop >= 0) {
    const RawLoop& loop = trace_.loops.at(s.loop);
    s.tiles = text(loop.end);
    s.workers = text(loop.step);
  }
}

void Describer::family() {
  const bool has_dot = !trace_.dots.empty();
  const bool over_problems =
      std::ranges::any_of(d_.loops, [](const LoopDescription& l) { return l.is_over_problems; });
  if (has_dot) {
    const bool attention = std::ranges::any_of(
        trace_.dots, [](const RawDot& d) { return d.left_has_dot && d.left_has_exp; });
    // Rows of one operand, or the operand itself, by expert.
    bool by_expert = over_problems;
    for (const RawDot& dot : trace_.dots) {
      for (const int id : {dot.left_access, dot.right_access}) {
        for (const AccessDescription& access : d_.accesses) {
          if (access.id != id) continue;
          by_expert |= access.is_loaded_address;
          for (const AxisIndex& axis : access.axes)
            by_expert |= id == dot.right_access && !axis.indirect.empty() && axis.range.empty();
        }
      }
    }
    d_.family = attention   ? Family::attention
                : by_expert ? Family::grouped_product
                            : Family::product;
    // Split-K: programs that differ in a coordinate go along different parts of what is summed
    // over.
    for (std::size_t i = 0; i < d_.axes.size(); ++i) {
      bool on_reduction = false, on_store = false;
      for (const AccessDescription& access : d_.accesses) {
        for (const AxisIndex& axis : access.axes) {
          const bool here = std::ranges::any_of(
              axis.tiles, [&](const auto& part) { return part.axis == static_cast<int>(i); });
          if (!here) continue;
          on_store |= access.action != Action::load && !axis.range.empty();
          on_reduction |=
              access.action == Action::load && !axis.loops.empty() && !axis.range.empty();
        }
      }
      d_.axes[i].splits_reduction = on_reduction && !on_store && d_.family != Family::attention;
      d_.is_split_k |= d_.axes[i].splits_reduction;
    }
    return;
  }
  bool two_dimensions = false;
  bool by_rows = false;
  for (const AccessDescription& access : d_.accesses) {
    int ranges = 0;
    for (const AxisIndex& axis : access.axes) {
      ranges += axis.range.empty() ? 0 : 1;
      by_rows |= !axis.tiles.empty() && axis.range.empty();
    }
    two_dimensions |= ranges > 1;
  }
  const bool reduces = !trace_.reductions.empty();
  d_.family = by_rows && (reduces || !two_dimensions)
                  ? (reduces ? Family::row : Family::element_wise)
              : reduces         ? Family::reduction
              : d_.axes.empty() ? Family::other
                                : Family::element_wise;
}

}  // namespace hemiola::compile
