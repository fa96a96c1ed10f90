#include "compile/describe/describer.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/lists.h"

namespace hemiola::compile {

bool Describer::is_identifier(const std::string& text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) == 0 &&
         std::ranges::all_of(text,
                             [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

void Describer::parameters() {
  std::set<std::string> operands;
  for (const SplitDescription& s : splits_)
    if (s.split.base) operands.insert(algebra_.atom(*s.split.base).name);
  for (const Parameter& parameter : kernel_.parameters) {
    KernelParameter described{
        .name = parameter.name,
        .default_value = parameter.default_value == nullptr
                             ? ""
                             : std::string(source_.text(*parameter.default_value)),
        .span = span_of(source_, *parameter.node)};
    described.use = operands.contains(parameter.name) ? KernelParameter::Use::operand
                    : parameter.is_constexpr          ? KernelParameter::Use::constant
                                                      : KernelParameter::Use::scalar;
    if (const auto given = request_.constants.find(parameter.name);
        given != request_.constants.end())
      described.value = given->second;
    d_.parameters.push_back(std::move(described));
  }
}

void Describer::loops() {
  for (const auto& [id, raw] : trace_.loops) {
    LoopDescription loop{.id = id,
                         .variable = raw.variable,
                         .is_persistent = tile_loops_.contains(id),
                         .in_helper = !raw.in_kernel,
                         .statement = span_of(*raw.statement.source, *raw.statement.node)};
    if (raw.has_range) {
      loop.begin = text(raw.begin);
      loop.end = text(raw.end);
      loop.step = text(raw.step);
    }
    const Node* body = raw.statement.node->child(Field::body);
    if (body != nullptr) {
      loop.body = span_of(*raw.statement.source, *body);
      loop.indentation = body->children.empty()
                             ? 0
                             : raw.statement.source->column(body->children.front()->begin) - 1;
    }
    d_.loops.push_back(std::move(loop));
  }
  std::ranges::stable_sort(d_.loops, [](const LoopDescription& a, const LoopDescription& b) {
    return std::pair(a.in_helper, a.statement.begin) < std::pair(b.in_helper, b.statement.begin);
  });
}

void Describer::split_accesses() {
  AxisSplitter splitter(trace_, tile_loops_);
  for (const RawAccess& raw : trace_.accesses) splits_.push_back({&raw, splitter.split(raw)});
}

std::string Describer::operand_name(const SplitAccess& split, bool& is_loaded) const {
  is_loaded = false;
  if (!split.base) return {};
  const Atom& base = algebra_.atom(*split.base);
  if (base.kind == AtomKind::parameter || base.kind == AtomKind::constexpr_) return base.name;
  is_loaded = true;
  for (const SplitDescription& s : splits_) {
    bool nested = false;
    if (s.raw->id == base.number && s.split.base && *s.split.base != *split.base)
      return '*' + operand_name(s.split, nested);
  }
  return "*?";
}

std::string Describer::why_unknown(const Expr& e, int* puzzle) const {
  for (const Term& term : e.terms) {
    for (const AtomId id : term.factors) {
      const Atom& atom = algebra_.atom(id);
      if (atom.kind == AtomKind::opaque) {
        if (puzzle != nullptr) *puzzle = atom.number;
        return atom.name;
      }
      if (atom.kind == AtomKind::carried)
        return "'" + atom.name + "' changes in a loop, and not by the same step each time";
      if (atom.kind == AtomKind::trips) return "how often a loop runs is not known before it";
      if (atom.kind == AtomKind::data)
        return "it is computed, and not from program ids, loops and parameters";
      for (const Expr& arg : atom.args) {
        std::string inner = why_unknown(arg, puzzle);
        if (!inner.empty()) return inner;
      }
    }
  }
  return {};
}

/// The index that // and % of an axis take apart, where there is one.
const SplitAxis* Describer::inner_of(const SplitAxis& axis, SplitAxis& inner) {
  for (const Term& term : axis.sum.terms) {
    for (const AtomId id : term.factors) {
      const Atom* atom = &algebra_.atom(id);
      if (atom->kind != AtomKind::function || !(atom->has_range)) continue;
      for (int level = 0; level < 8; ++level) {
        const Expr argument = atom->args[0];
        const Atom* next = nullptr;
        inner = {.sum = argument};
        for (const Term& t : argument.terms) {
          Term copy = t;
          const bool single = t.factors.size() == 1;
          const Atom* a = single ? &algebra_.atom(t.factors[0]) : nullptr;
          if (a != nullptr && a->kind == AtomKind::range) {
            inner.ranges.push_back(t.factors[0]);
            inner.extent = algebra_.subtract(a->args[1], a->args[0]);
            inner.dimension = a->dims[0];
          } else if (a != nullptr && a->kind == AtomKind::function && a->has_range) {
            next = a;
          }
        }
        if (!inner.ranges.empty() || next == nullptr || next->args.empty()) break;
        atom = next;
      }
      if (inner.ranges.empty()) continue;
      for (const Term& t : inner.sum.terms) {
        const Traits traits = algebra_.traits({{t}});
        if (!traits.has_range && !traits.has_load && !traits.has_data && !traits.has_opaque &&
            traits.has_program)
          inner.tiles.terms.push_back(t);
      }
      return &inner;
    }
  }
  return nullptr;
}

AxisIndex Describer::index_of(const RawAccess& raw, const SplitAxis& axis) {
  AxisIndex index{.stride = axis.has_stride ? algebra_.text(axis.stride) : "",
                  .dimension = axis.dimension,
                  .wraps = axis.wraps,
                  .clamps = axis.clamps,
                  .is_derived = axis.is_derived};
  Expr without_range;
  for (const Term& term : axis.sum.terms) {
    const bool is_range =
        term.factors.size() == 1 && algebra_.atom(term.factors[0]).kind == AtomKind::range;
    if (!is_range) without_range.terms.push_back(term);
  }
  if (!axis.extent.is_zero()) index.range = text(axis.extent);
  if (axis.size) index.size = text(*axis.size);
  if (!axis.uniform.is_zero()) index.offset = text(axis.uniform);
  SplitAxis inner;
  const SplitAxis* from = &axis;
  if (axis.is_derived && axis.tiles.is_zero()) {
    if (const SplitAxis* taken_apart = inner_of(axis, inner)) from = taken_apart;
    if (index.range.empty() && !from->extent.is_zero()) index.range = text(from->extent);
  }
  Expr coordinate, block;
  if (!from->tiles.is_zero() && coordinate_of(from->tiles, coordinate, block)) {
    for (std::size_t i = 0; i < d_.axes.size(); ++i) {
      if (d_.axes[i].value != coordinate) continue;
      index.tiles.push_back({static_cast<int>(i), text(block)});
      // What the kernel calls it says more than what it is computed from.
      if (from == &axis && d_.axes[i].is_variable) {
        const Expr named =
            algebra_.multiply(algebra_.parameter(d_.axes[i].coordinate, false), block);
        without_range = algebra_.add(algebra_.difference(without_range, axis.tiles), named);
      }
    }
  }
  index.index = text(without_range);
  for (const Term& term : axis.loops.terms) {
    for (const AtomId id : term.factors) {
      for (const int loop : algebra_.atom(id).loops) {
        Expr step;
        const AtomId counter = algebra_.iteration(loop).terms[0].factors[0];
        if (!algebra_.divide({{term}}, {1, {counter}}, step)) step = {};
        const bool known =
            std::ranges::any_of(index.loops, [&](const auto& l) { return l.loop == loop; });
        if (!known && !tile_loops_.contains(loop))
          index.loops.push_back({loop, step.is_zero() ? "" : text(step), ""});
      }
    }
  }
  for (const auto& [loop, first] : axis.begins) {
    for (AxisIndex::LoopPart& part : index.loops)
      if (part.loop == loop) part.begin = text(first);
  }
  const Traits of_indirect = algebra_.traits(axis.indirect);
  index.indirect = of_indirect.loads;
  if (!axis.strange.is_zero()) {
    index.kind = IndexKind::unknown;
    index.unknown = why_unknown(axis.strange);
    if (index.unknown.empty())
      index.unknown =
          "the index '" + text(axis.strange) + "' is not made of tiles, loops and ranges";
  } else if (!axis.indirect.is_zero()) {
    index.kind = IndexKind::indirect;
  } else if (!axis.tiles.is_zero() || !index.tiles.empty()) {
    index.kind = IndexKind::tile;
  } else if (!index.loops.empty()) {
    index.kind = IndexKind::loop;
  } else if (!axis.ranges.empty() || !axis.extent.is_zero() || axis.is_derived) {
    index.kind = IndexKind::whole;
  } else {
    index.kind = IndexKind::fixed;
  }
  // The indices of a descriptor are its elements, whatever its block is.
  if (raw.mechanism != Mechanism::pointer && index.kind == IndexKind::fixed && !index.range.empty())
    index.kind = IndexKind::whole;
  return index;
}

void Describer::accesses() {
  for (const SplitDescription& s : splits_) {
    const RawAccess& raw = *s.raw;
    AccessDescription access{.id = raw.id,
                             .action = raw.action,
                             .mechanism = raw.mechanism,
                             .function = raw.function,
                             .call = span_of(*raw.call.source, *raw.call.node),
                             .loops = raw.loops,
                             .conditional = raw.conditional,
                             .value_from = raw.value_loads};
    access.operand = operand_name(s.split, access.is_loaded_address);
    if (!raw.statements.empty()) access.statement = span_of(source_, *raw.statements.back());
    access.unknown = s.split.unknown;
    if (!s.split.offset.is_zero()) access.offset = text(s.split.offset);
    for (const SplitAxis& axis : s.split.axes) {
      access.axes.push_back(index_of(raw, axis));
      if (access.unknown.empty()) access.unknown = access.axes.back().unknown;
    }
    d_.accesses.push_back(std::move(access));
  }
}

/// What each loop goes along: the size of the axis that it indexes.
void Describer::name_loops() {
  for (LoopDescription& loop : d_.loops) {
    if (loop.is_persistent) continue;
    for (const AccessDescription& access : d_.accesses) {
      for (const AxisIndex& axis : access.axes) {
        const bool along =
            std::ranges::any_of(axis.loops, [&](const auto& part) { return part.loop == loop.id; });
        if (along && is_identifier(axis.size) && loop.axis.empty()) loop.axis = axis.size;
      }
    }
    // The same axis of the same tensor has its size where another access masks it.
    for (const AccessDescription& access : d_.accesses) {
      for (const AxisIndex& axis : access.axes) {
        const bool along =
            std::ranges::any_of(axis.loops, [&](const auto& part) { return part.loop == loop.id; });
        for (const AccessDescription& other : d_.accesses) {
          if (!along || !loop.axis.empty() || other.operand != access.operand) continue;
          for (const AxisIndex& same : other.axes)
            if (same.stride == axis.stride && is_identifier(same.size)) loop.axis = same.size;
        }
      }
    }
    if (!loop.axis.empty()) continue;
    const RawLoop& raw = trace_.loops.at(loop.id);
    if (!raw.has_range) continue;
    // range(0, K, BLOCK_K) and range(0, tl.cdiv(K, BLOCK_K))
    Expr end = raw.end;
    if (end.terms.size() == 1 && end.terms[0].factors.size() == 1) {
      const Atom& atom = algebra_.atom(end.terms[0].factors[0]);
      if (atom.kind == AtomKind::function && atom.name == "cdiv") end = atom.args[0];
    }
    if (is_identifier(text(end))) loop.axis = text(end);
  }
}

/// Whether a loop is called as tiles are, and no index is made of both: keys of self-attention are
/// as many as queries, and another axis all the same.
bool Describer::is_beside_tiles(const LoopDescription& loop) const {
  if (loop.is_persistent || loop.is_over_problems || loop.variable.empty()) return false;
  std::set<int> alike;
  for (std::size_t i = 0; i < d_.axes.size(); ++i)
    if (d_.axes[i].name == loop.axis) alike.insert(static_cast<int>(i));
  const auto has_both = [&](const AxisIndex& axis) {
    return std::ranges::any_of(axis.loops,
                               [&](const auto& part) { return part.loop == loop.id; }) &&
           std::ranges::any_of(axis.tiles,
                               [&](const auto& part) { return alike.contains(part.axis); });
  };
  return !alike.empty() && std::ranges::none_of(d_.accesses, [&](const AccessDescription& access) {
    return std::ranges::any_of(access.axes, has_both);
  });
}

Description Describer::run() {
  d_.file = source_.file();
  d_.kernel = kernel_.name;
  d_.target = request_.target;
  const std::uint32_t begin =
      kernel_.decorators.empty() ? kernel_.node->begin : kernel_.decorators.front()->begin - 1;
  d_.definition = span_of(source_, begin, kernel_.node->end);
  d_.body = span_of(source_, kernel_.body());
  for (const RawAccess& access : trace_.accesses)
    algebra_.load_names[access.id] = std::string(access.call.source->text(*access.call.node));
  // What was loaded has the name of the variable that it was put into.
  for (const RawAssignment& made : trace_.assignments) {
    if (made.path != 0 || made.value.terms.size() != 1 || made.value.terms[0].factors.size() != 1)
      continue;
    const Atom& atom = algebra_.atom(made.value.terms[0].factors[0]);
    if (atom.kind == AtomKind::loaded && made.value.terms[0].coefficient == 1)
      algebra_.load_names[atom.number] = made.name;
  }
  for (const auto& [id, loop] : trace_.loops)
    if (loop.has_range && is_identifier(loop.variable))
      counters_[id] = {algebra_.parameter(loop.variable, false), loop.begin, loop.step};
  find_tile_loops();
  split_accesses();
  parameters();
  loops();
  find_problem_loops();
  take_begins_of_loops();
  tile_axes();
  finish_axes();
  accesses();
  name_loops();
  for (LoopDescription& loop : d_.loops)
    if (is_beside_tiles(loop)) loop.axis = loop.variable;
  scheduler();
  reductions();
  family();
  operands();
  dispatch();
  sites();
  d_.tuning = read_tuning(library_, kernel_);
  apply_annotations(kernel_, d_);
  unknowns();
  return std::move(d_);
}

namespace {

void check_parameter(const Function& kernel, const std::string& name, const char* option) {
  std::vector<std::string> names;
  for (const Parameter& parameter : kernel.parameters) names.push_back(parameter.name);
  if (std::ranges::find(names, name) != names.end()) return;
  std::string hint = suggest(name, names);
  if (hint.empty()) hint = "its parameters are: " + joined(names);
  throw Failure("kernel '" + kernel.name + "' has no parameter '" + name + "'", {.file = option},
                hint);
}

/// What Python has for a value that stands by itself: a number, True, None, "text", tl.float16.
void check_literal(const std::string& name, const std::string& value) {
  const bool is_word = value == "True" || value == "False" || value == "None";
  const bool is_text =
      value.size() > 1 && (value[0] == '"' || value[0] == '\'') && value.back() == value[0];
  const bool is_type = value.starts_with("tl.") || value.starts_with("torch.");
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  const bool is_number = !value.empty() && *end == '\0' && std::abs(number) < 9e18;
  if (is_word || is_text || is_type || is_number) return;
  throw Failure("'" + value + "' of " + name + " is no value", {.file = "--constexpr"},
                "a number of at most 64 bits, True, False, None, \"text\" or tl.float16");
}

}  // namespace

void check_constants(const Function& kernel, const ParameterValues& constants) {
  for (const auto& [name, value] : constants) {
    check_parameter(kernel, name, "--constexpr");
    check_literal(name, value);
  }
}

Description describe(const DescribeRequest& request) {
  Library library(request.helpers);
  return describe(library, library.load(request.file), request);
}

Description describe(Library& library, const Module& module, const DescribeRequest& request) {
  const Function& kernel = choose_kernel(module, request.kernel);
  check_constants(kernel, request.constants);
  for (const auto& [plan, parameter] : request.bind) check_parameter(kernel, parameter, "--bind");
  for (const auto& [name, role] : request.roles)
    if (!request.bind.contains(name)) check_parameter(kernel, name, "--role");
  const std::unique_ptr<Trace> trace = follow(library, kernel, request.constants);
  return Describer(request, library, kernel, *trace).run();
}

const KernelParameter* Description::parameter(std::string_view name) const {
  const auto found = std::ranges::find(parameters, name, &KernelParameter::name);
  return found == parameters.end() ? nullptr : &*found;
}

const LoopDescription* Description::loop(int id) const {
  for (const LoopDescription& found : loops)
    if (found.id == id) return &found;
  return nullptr;
}

}  // namespace hemiola::compile
