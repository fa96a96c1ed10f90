// Places: the code that computes coordinates, where waits and signals can stand, what is not
// understood.
#include <algorithm>

#include "compile/describe/describer.h"

namespace hemiola::compile {
namespace {

void targets_of(const Source& source, const Node& node, std::set<std::string>& names) {
  const auto add = [&](const auto& self, const Node& target) -> void {
    if (target.kind == Kind::identifier) names.emplace(source.text(target));
    if (target.kind == Kind::pattern_list || target.kind == Kind::tuple_pattern ||
        target.kind == Kind::parenthesized_expression)
      for (const Node* child : target.children) self(self, *child);
  };
  if (node.kind == Kind::assignment || node.kind == Kind::augmented_assignment) {
    if (const Node* left = node.child(Field::left)) add(add, *left);
  }
  for (const Node* child : node.children) targets_of(source, *child, names);
}

/// Whether a statement gives coordinates the values that they have; one with others in it may.
bool gives_the_same(const Trace& trace, const std::vector<TileAxis>& axes, const Node& statement) {
  if (statement.kind != Kind::expression_statement) return true;
  return std::ranges::all_of(trace.assignments, [&](const RawAssignment& made) {
    if (made.statement->begin < statement.begin || made.statement->end > statement.end) return true;
    return std::ranges::all_of(axes, [&](const TileAxis& axis) {
      return axis.coordinate != made.name || axis.value == made.value;
    });
  });
}

/// Variables that go on by the same steps as the one that numbers tiles, from the same number on:
/// with them kernels keep what stores apart from what loads.
std::vector<std::string> copies_of(Trace& trace, const RawLoop& loop) {
  std::vector<std::string> copies;
  if (loop.is_while && !loop.has_range) return copies;
  Algebra& algebra = trace.algebra;
  const Expr tile =
      algebra.add(loop.begin, algebra.multiply(algebra.iteration(loop.id), loop.step));
  for (const RawAssignment& made : trace.assignments)
    if (made.path == 0 && made.name != loop.variable && made.value == tile &&
        std::ranges::find(copies, made.name) == copies.end())
      copies.push_back(made.name);
  return copies;
}

/// Whether one of these names is among those.
bool has_any(const std::set<std::string>& names, const std::set<std::string>& among) {
  return std::ranges::any_of(names, [&](const std::string& name) { return among.contains(name); });
}

}  // namespace

/// The block whose statements one tile goes through: the body of the persistent loop, or of the
/// kernel.
const Node* Describer::tile_suite() const {
  if (d_.scheduler.loop >= 0) {
    const RawLoop& loop = trace_.loops.at(d_.scheduler.loop);
    if (loop.in_kernel) return loop.statement.node->child(Field::body);
  }
  return &kernel_.body();
}

/// Of statements around a place, outermost first, the one that is in the tile's block. Null: the
/// place is outside of it.
const Node* Describer::suite_statement(const std::vector<const Node*>& chain) const {
  const Node* suite = tile_suite();
  for (const Node* statement : chain)
    if (std::ranges::find(suite->children, statement) != suite->children.end()) return statement;
  return nullptr;
}

int Describer::indentation_of(const Node& statement) const {
  return source_.column(statement.begin) - 1;
}

void Describer::dispatch() {
  Dispatch& found = d_.dispatch;
  for (const ProgramUse& use : trace_.programs) {
    Span span = span_of(*use.call.source, *use.call.node);
    const bool known = std::ranges::any_of(found.program_ids, [&](const Span& s) {
      return s.begin == span.begin && s.file == span.file;
    });
    if (!known) found.program_ids.push_back(std::move(span));
  }
  if (d_.axes.empty()) return;
  const Node* suite = tile_suite();
  found.is_in_loop = suite != &kernel_.body();
  std::set<std::string> wanted;
  for (const TileAxis& axis : d_.axes)
    if (axis.is_variable) wanted.insert(axis.coordinate);
  // Loads come after: what is assigned behind the first one computes coordinates again.
  const Node* first_load = nullptr;
  for (const RawAccess& access : trace_.accesses) {
    const Node* statement = suite_statement(access.statements);
    if (statement != nullptr && (first_load == nullptr || statement->begin < first_load->begin) &&
        access.shape.size() + access.offsets.size() > 0)
      first_load = statement;
  }
  const std::set<std::string> coordinates = wanted;
  std::vector<const Node*> slice;
  for (auto at = suite->children.rbegin(); at != suite->children.rend(); ++at) {
    const Node& statement = **at;
    std::set<std::string> targets;
    targets_of(source_, statement, targets);
    if (!has_any(targets, wanted)) continue;
    if (first_load != nullptr && statement.begin >= first_load->begin) {
      if (has_any(targets, coordinates) && !gives_the_same(trace_, d_.axes, statement))
        found.repeated.push_back(span_of(source_, statement));
      continue;
    }
    slice.push_back(&statement);
    names_in(source_, statement, wanted);
  }
  // Program ids that are used where they stand, without a variable.
  if (slice.empty()) {
    for (const ProgramUse& use : trace_.programs) {
      const Node* statement = suite_statement(use.statements);
      if (statement != nullptr && std::ranges::find(slice, statement) == slice.end())
        slice.push_back(statement);
    }
  }
  std::ranges::sort(slice, {}, &Node::begin);
  std::ranges::reverse(found.repeated);
  for (const Node* statement : slice) found.statements.push_back(span_of(source_, *statement));
  if (!slice.empty()) {
    found.region = span_of(source_, source_.line_begin(slice.front()->begin),
                           source_.line_end(slice.back()->end > 0 ? slice.back()->end - 1 : 0));
    found.indentation = indentation_of(*slice.front());
  }
  // The variable that numbers tiles.
  if (d_.scheduler.loop >= 0) {
    const RawLoop& loop = trace_.loops.at(d_.scheduler.loop);
    found.tile_id = loop.variable;
    found.copies = copies_of(trace_, loop);
    found.tile_id_assigned = span_of(*loop.statement.source, *loop.statement.node);
    if (!loop.is_while && loop.statement.node->child(Field::body) != nullptr)
      found.tile_id_assigned = span_of(*loop.statement.source, loop.statement.node->begin,
                                       loop.statement.node->child(Field::body)->begin);
    return;
  }
  if (d_.scheduler.order == Scheduler::Order::plain) return;
  for (const RawAssignment& made : trace_.assignments) {
    if (made.path != 0 || made.rank != 0 || made.value.terms.empty()) continue;
    const bool is_id = algebra_.traits(made.value).has_program &&
                       std::ranges::all_of(made.value.terms, [&](const Term& t) {
                         return std::ranges::all_of(t.factors, [&](AtomId id) {
                           const Atom& atom = algebra_.atom(id);
                           return atom.kind == AtomKind::program || atom.kind == AtomKind::programs;
                         });
                       });
    const bool is_used =
        is_id && std::ranges::any_of(d_.axes, [&](const TileAxis& axis) {
          if (axis.value == made.value) return false;
          const auto inside = [&](const auto& self, const Expr& e, int depth) -> bool {
            if (depth > 8) return false;
            for (const Term& t : e.terms) {
              for (const AtomId id : t.factors) {
                for (const Expr& arg : algebra_.atom(id).args) {
                  if (arg == made.value || self(self, arg, depth + 1)) return true;
                }
              }
            }
            return false;
          };
          return inside(inside, axis.value, 0);
        });
    if (!is_used) continue;
    found.tile_id = made.name;
    found.tile_id_assigned = span_of(source_, *made.statement);
  }
}

void Describer::reductions() {
  for (const RawDot& dot : trace_.dots) {
    ReductionDescription reduction{.function = "tl.dot",
                                   .call = span_of(*dot.call.source, *dot.call.node)};
    const auto inner_axis = [&](int id, bool transposed, bool is_left) -> const AxisIndex* {
      for (const AccessDescription& access : d_.accesses) {
        if (access.id != id) continue;
        int rank = 0;
        for (const AxisIndex& axis : access.axes) rank += axis.range.empty() ? 0 : 1;
        const int wanted = (is_left != transposed) ? rank - 1 : std::max(0, rank - 2);
        for (const AxisIndex& axis : access.axes) {
          if (!axis.range.empty() && axis.dimension == wanted) return &axis;
        }
      }
      return nullptr;
    };
    // An operand that one of several loads of one tensor gave is as good as one load.
    const auto only = [&](int id, const std::vector<int>& loads) {
      if (id >= 0 || loads.empty()) return id;
      std::set<std::string> names;
      for (const AccessDescription& access : d_.accesses)
        if (std::ranges::count(loads, access.id) > 0) names.insert(access.operand);
      return names.size() == 1 ? loads.front() : -1;
    };
    const AxisIndex* left = inner_axis(only(dot.left_access, dot.left), dot.left_transposed, true);
    const AxisIndex* right =
        inner_axis(only(dot.right_access, dot.right), dot.right_transposed, false);
    for (const AxisIndex* axis : {left, right}) {
      if (axis == nullptr) continue;
      for (const AxisIndex::LoopPart& part : axis->loops) {
        const LoopDescription* loop = d_.loop(part.loop);
        if (loop == nullptr) continue;
        reduction.loop = part.loop;
        if (reduction.axis.empty()) reduction.axis = loop->axis;
      }
      if (reduction.axis.empty() && is_identifier(axis->size)) reduction.axis = axis->size;
      if (reduction.axis.empty() && is_identifier(axis->range)) reduction.axis = axis->range;
    }
    const auto name = [&](int id, const std::vector<int>& loads) -> std::string {
      for (const AccessDescription& access : d_.accesses)
        if (access.id == id) return access.operand;
      std::set<std::string> names;
      for (const AccessDescription& access : d_.accesses)
        if (std::ranges::count(loads, access.id) > 0) names.insert(access.operand);
      std::string all;
      for (const std::string& one : names) all += (all.empty() ? "" : ", ") + one;
      return names.empty() ? "?" : "(from " + all + ")";
    };
    reduction.operands = {name(dot.left_access, dot.left), name(dot.right_access, dot.right)};
    const bool known = std::ranges::any_of(d_.reductions, [&](const ReductionDescription& r) {
      return r.call.begin == reduction.call.begin && r.call.file == reduction.call.file &&
             r.operands == reduction.operands;
    });
    if (!known) d_.reductions.push_back(std::move(reduction));
  }
  for (const RawReduction& raw : trace_.reductions) {
    ReductionDescription reduction{.function = "tl." + raw.function,
                                   .call = span_of(*raw.call.source, *raw.call.node)};
    // Along the dimension of the block that the loads it was computed from have in common.
    const std::string extent = raw.extent.is_zero() ? "" : text(raw.extent);
    for (const AccessDescription& access : d_.accesses) {
      if (std::ranges::count(raw.loads, access.id) == 0) continue;
      for (const AxisIndex& axis : access.axes) {
        if (axis.range.empty() || (!extent.empty() && axis.range != extent)) continue;
        if (reduction.axis.empty())
          reduction.axis = is_identifier(axis.size) ? axis.size : axis.range;
        if (!axis.loops.empty() && reduction.loop < 0) reduction.loop = axis.loops.front().loop;
      }
    }
    const bool known = std::ranges::any_of(d_.reductions, [&](const ReductionDescription& r) {
      return r.call.begin == reduction.call.begin && r.call.file == reduction.call.file;
    });
    if (!known) d_.reductions.push_back(std::move(reduction));
  }
}

void Describer::operands() {
  for (const AccessDescription& access : d_.accesses) {
    if (access.operand.empty()) continue;
    auto at = std::ranges::find(d_.operands, access.operand, &OperandDescription::name);
    if (at == d_.operands.end()) at = d_.operands.insert(at, {.name = access.operand});
    at->accesses.push_back(access.id);
    at->is_read |= access.action == Action::load;
    at->is_written |= access.action == Action::store;
    at->is_added_to |= access.action == Action::atomic;
    if (std::ranges::find(at->mechanisms, access.mechanism) == at->mechanisms.end())
      at->mechanisms.push_back(access.mechanism);
    if (!at->axes.empty()) continue;
    for (const AxisIndex& axis : access.axes) {
      std::string name;
      for (const AxisIndex::LoopPart& part : axis.loops)
        if (const LoopDescription* loop = d_.loop(part.loop);
            loop != nullptr && !loop->axis.empty())
          name = loop->axis;
      if (!axis.tiles.empty() &&
          (name.empty() || !d_.axes[static_cast<std::size_t>(axis.tiles[0].axis)].splits_reduction))
        name = d_.axes[static_cast<std::size_t>(axis.tiles[0].axis)].name;
      if (name.empty())
        name = is_identifier(axis.size) ? axis.size : is_identifier(axis.range) ? axis.range : "";
      at->axes.push_back(name);
    }
  }
  // In the order of the parameters, loaded tensors last.
  const auto position = [&](const OperandDescription& operand) {
    std::size_t i = 0;
    while (i < kernel_.parameters.size() && kernel_.parameters[i].name != operand.name) ++i;
    return i;
  };
  std::ranges::stable_sort(d_.operands,
                           [&](const OperandDescription& a, const OperandDescription& b) {
                             return position(a) < position(b);
                           });
  for (OperandDescription& operand : d_.operands) {
    for (const auto& [plan, parameter] : request_.bind)
      if (parameter == operand.name) operand.bound_as = plan;
    for (const auto& [name, role] : request_.roles)
      if (name == operand.name || (!operand.bound_as.empty() && name == operand.bound_as))
        operand.role = role;
  }
}

Site Describer::site_before(const std::string& operand, const Node& statement) const {
  Site site{.operand = operand,
            .statement = span_of(source_, statement),
            .offset = source_.line_begin(statement.begin),
            .indentation = indentation_of(statement)};
  const std::string_view before = source_.text().substr(site.offset, statement.begin - site.offset);
  site.is_own_line = before.find_first_not_of(" \t") == std::string_view::npos;
  return site;
}

Site Describer::site_after(const std::string& operand, const Node& statement) const {
  Site site{.operand = operand,
            .statement = span_of(source_, statement),
            .indentation = indentation_of(statement)};
  const std::uint32_t last = statement.end > statement.begin ? statement.end - 1 : statement.end;
  site.offset = source_.line_end(last);
  std::string_view rest =
      source_.text().substr(statement.end, site.offset - std::min(site.offset, statement.end));
  const std::size_t more = rest.find_first_not_of(" \t\r\n");
  const std::uint32_t line = source_.line_begin(statement.begin);
  const std::string_view before = source_.text().substr(line, statement.begin - line);
  site.is_own_line = (more == std::string_view::npos || rest[more] == '#') &&
                     before.find_first_not_of(" \t") == std::string_view::npos;
  return site;
}

void Describer::sites() {
  for (const OperandDescription& operand : d_.operands) {
    const RawAccess* first = nullptr;
    const RawAccess* last = nullptr;
    for (const SplitDescription& s : splits_) {
      bool is_loaded = false;
      if (operand_name(s.split, is_loaded) != operand.name) continue;
      if (s.raw->action == Action::load && first == nullptr) first = s.raw;
      if (s.raw->action != Action::load) last = s.raw;
    }
    if (first != nullptr) {
      const Node* statement = suite_statement(first->statements);
      const Node* innermost = first->statements.empty() ? nullptr : first->statements.back();
      if (statement == nullptr)
        statement = first->statements.empty() ? nullptr : first->statements.front();
      if (statement != nullptr) {
        d_.waits.push_back(site_before(operand.name, *statement));
        d_.waits.back().is_conditional = false;
      }
      if (innermost != nullptr && innermost != statement) {
        Site inner = site_before(operand.name, *innermost);
        inner.is_inside_loop = std::ranges::any_of(first->loops, [&](int loop) {
          return !tile_loops_.contains(loop) && trace_.loops.at(loop).in_kernel;
        });
        inner.is_conditional = first->conditional;
        d_.waits.push_back(std::move(inner));
      }
    }
    if (last != nullptr && !last->statements.empty()) {
      const Node* statement = suite_statement(last->statements);
      if (statement == nullptr) statement = last->statements.front();
      Site site = site_after(operand.name, *statement);
      site.is_conditional = last->conditional;
      d_.signals.push_back(std::move(site));
    }
  }
}

void Describer::say_unknown(std::string what, const Span& span, std::string hint) {
  const bool known = std::ranges::any_of(
      d_.unknown, [&](const Unknown& u) { return u.span.begin == span.begin && u.what == what; });
  if (!known) d_.unknown.push_back({std::move(what), span, std::move(hint)});
}

/// What the kernel is for has to be made of tiles that can be cut: every store of as many
/// dimensions as any has.
void Describer::check_outputs() {
  const bool by_problem =
      std::ranges::any_of(d_.axes, [](const TileAxis& a) { return a.is_problem && a.can_be_cut; });
  if (by_problem) return;
  const auto dimensions = [](const AccessDescription& access) {
    return std::ranges::count_if(access.axes, [](const AxisIndex& a) { return !a.range.empty(); });
  };
  std::ptrdiff_t most = 0;
  for (const AccessDescription& access : d_.accesses)
    if (access.action != Action::load) most = std::max(most, dimensions(access));
  for (const AccessDescription& access : d_.accesses) {
    if (access.action == Action::load || dimensions(access) < most || !access.unknown.empty())
      continue;
    bool can_be_cut = false;
    std::string why = "none of its indices depends on a program id";
    for (const AxisIndex& axis : access.axes) {
      for (const AxisIndex::TilePart& part : axis.tiles) {
        const TileAxis& tile = d_.axes[static_cast<std::size_t>(part.axis)];
        can_be_cut |= tile.can_be_cut;
        if (!tile.can_be_cut) why = tile.name + ": " + tile.why_not;
      }
    }
    if (!can_be_cut)
      say_unknown("no axis of '" + access.operand + "' can be cut into chunks: " + why, access.call,
                  "'# @sy.pid_map M=pid_m N=pid_n' in the kernel says which variables are tile "
                  "coordinates");
  }
}

void Describer::unknowns() {
  if (trace_.exhausted)
    say_unknown("the kernel takes more work to follow than one is given", d_.definition,
                "leave out branches with --constexpr NAME=VALUE");
  for (std::size_t i = 0; i < d_.accesses.size(); ++i) {
    const AccessDescription& access = d_.accesses[i];
    if (access.unknown.empty()) continue;
    Span span = access.call;
    const SplitAccess& split = splits_[i].split;
    int puzzle = split.puzzle;
    for (const SplitAxis& axis : split.axes)
      if (puzzle < 0) why_unknown(axis.strange, &puzzle);
    std::string hint = "the address of this access";
    if (puzzle >= 0 && puzzle < static_cast<int>(trace_.puzzles.size()) &&
        trace_.puzzles[static_cast<std::size_t>(puzzle)].place.source != nullptr) {
      const Place& place = trace_.puzzles[static_cast<std::size_t>(puzzle)].place;
      const SourceLocation where = place.where();
      hint = "it comes from " + where.file + ':' + std::to_string(where.line) + ':' +
             std::to_string(where.column) + "; --constexpr NAME=VALUE decides conditions";
    } else {
      hint = "--constexpr NAME=VALUE decides conditions that the address depends on";
    }
    say_unknown((access.operand.empty() ? access.function
                                        : access.function + " of '" + access.operand + "'") +
                    ": " + access.unknown,
                span, hint);
  }
  const bool any_cut = std::ranges::any_of(d_.axes, [](const TileAxis& a) { return a.can_be_cut; });
  if (d_.axes.empty())
    say_unknown(
        "no index depends on a program id: there are no tiles", d_.definition,
        "'# @sy.pid_map M=pid_m N=pid_n' in the kernel says which variables are tile coordinates");
  else if (any_cut)
    check_outputs();
  else
    say_unknown(
        "no axis can be cut into chunks: " + d_.axes.front().name + ": " + d_.axes.front().why_not,
        d_.axes.front().assigned.value_or(d_.definition),
        "'# @sy.pid_map M=pid_m N=pid_n' in the kernel says which variables are tile coordinates");
  if (d_.accesses.empty()) say_unknown("it neither loads nor stores", d_.definition, "");
  std::ranges::stable_sort(
      d_.unknown, [](const Unknown& a, const Unknown& b) { return a.span.begin < b.span.begin; });
  const bool scheduled = d_.scheduler.order != Scheduler::Order::none;
  d_.is_understood = scheduled && any_cut && d_.unknown.empty();
}

}  // namespace hemiola::compile
