// Statements other than loops.
#include <algorithm>

#include "compile/describe/evaluator.h"

namespace hemiola::compile {

Flow Evaluator::statement(const Node& node) {
  if (tired() || depth_ > kDeepest) return Flow::on;
  ++depth_;
  const bool is_kernel = here_.frame->path == 0;
  if (is_kernel) here_.statements.push_back(&node);
  const Flow flow = Interpreter::statement(node);
  if (is_kernel) here_.statements.pop_back();
  --depth_;
  return flow;
}

/// Nothing is done for pass, assert, del, import, raise.
Flow Evaluator::other_statement(const Node& node) {
  switch (node.kind) {
    case Kind::return_statement:
      here_.frame->returns.push_back(node.children.empty() ? values::nothing()
                                                           : evaluate(*node.children.front()));
      return Flow::returned;
    case Kind::break_statement:
    case Kind::continue_statement:
      return Flow::left;
    case Kind::with_statement:
      return block(*node.child(Field::body));
    case Kind::function_definition:
    case Kind::decorated_definition:
      here_.opaque("a function inside of a kernel", node);
      return Flow::on;
    default:
      return Flow::on;
  }
}

void Evaluator::bind(const Node& name, const Ref& value, const Node& statement) {
  here_.frame->names.insert_or_assign(std::string(text_of(name)), value);
  if (here_.is_silent() || !values::is_number(value)) return;
  trace_.assignments.push_back({.name = std::string(text_of(name)),
                                .statement = &statement,
                                .path = here_.frame->path,
                                .value = value->number,
                                .rank = static_cast<int>(value->shape.size()),
                                .statements = here_.statements});
}

void Evaluator::assign_other(const Node& target, const Ref& value, const Node& statement) {
  if (target.kind == Kind::attribute || target.kind == Kind::subscript) return;
  const bool fits =
      value->type == Value::Type::tuple && value->items.size() == target.children.size();
  for (std::size_t i = 0; i < target.children.size(); ++i) {
    const Node& part = *target.children[i];
    const Traits traits = fits ? Traits() : here_.traits_of(*value);
    assign(part,
           fits ? value->items[i]
           : !traits.loads.empty() || traits.has_data
               ? here_.data_of({value}, {})
               : here_.opaque("a tuple that is not known is taken apart", part),
           statement);
  }
}

/// Remembers what follows from a condition: of `a and b` both parts, of `not a` the opposite.
void Evaluator::suppose(const Expr& condition, bool holds) {
  if (condition.terms.size() != 1 || condition.terms[0].factors.size() != 1) return;
  const AtomId id = condition.terms[0].factors[0];
  const Atom atom = algebra_.atom(id);
  here_.facts[id] = holds;
  if (atom.kind != AtomKind::function) return;
  if (atom.name == "not") suppose(atom.args[0], !holds);
  if ((atom.name == "and" && holds) || (atom.name == "or" && !holds))
    for (const Expr& arg : atom.args) suppose(arg, holds);
  if (atom.name == "==" || atom.name == "!=") {
    const Expr opposite = algebra_.function(atom.name == "==" ? "!=" : "==", atom.args);
    here_.facts[opposite.terms[0].factors[0]] = !holds;
  }
}

std::optional<bool> Evaluator::known(const Expr& condition) const {
  if (condition.is_constant()) return condition.constant() != 0;
  if (condition.terms.size() != 1 || condition.terms[0].factors.size() != 1) return std::nullopt;
  const auto found = here_.facts.find(condition.terms[0].factors[0]);
  return found == here_.facts.end() ? std::nullopt : std::optional<bool>(found->second);
}

Flow Evaluator::choose(const Branch& branch) {
  const Ref decided = evaluate(branch.condition());
  if (decided->type == Value::Type::nothing) return otherwise(branch);
  if (decided->type == Value::Type::text && decided->text.empty()) return otherwise(branch);
  const Expr by = values::is_number(decided)
                      ? decided->number
                      : here_.opaque("a condition", branch.condition())->number;
  if (const std::optional<bool> holds = known(by))
    return *holds ? block(branch.body()) : otherwise(branch);
  ++here_.conditions;
  const std::map<AtomId, bool> facts = here_.facts;
  const Environment before = here_.frame->names;
  suppose(by, true);
  const Flow first = block(branch.body());
  here_.facts = facts;
  Environment after_first = std::move(here_.frame->names);
  here_.frame->names = before;
  suppose(by, false);
  const Flow second = otherwise(branch);
  here_.facts = facts;
  --here_.conditions;
  if (first == Flow::on && second == Flow::on) {
    const Environment after_second = std::move(here_.frame->names);
    here_.frame->names = merge(by, after_first, after_second);
    note_merged(after_first, after_second);
    return Flow::on;
  }
  if (first == Flow::on) {
    here_.frame->names = std::move(after_first);
    return Flow::on;
  }
  if (second == Flow::on) return Flow::on;
  return first == second ? first : Flow::left;
}

/// What both branches gave a value is assigned by the if statement as a whole.
void Evaluator::note_merged(const Environment& a, const Environment& b) {
  if (here_.is_silent() || here_.frame->path != 0 || here_.statements.empty()) return;
  for (const auto& [name, value] : here_.frame->names) {
    const auto first = a.find(name), second = b.find(name);
    if (first == a.end() || second == b.end() || first->second == second->second ||
        !values::is_number(value))
      continue;
    trace_.assignments.push_back({.name = name,
                                  .statement = here_.statements.back(),
                                  .path = 0,
                                  .value = value->number,
                                  .rank = static_cast<int>(value->shape.size()),
                                  .statements = here_.statements});
  }
}

Ref Evaluator::merge(const Expr& condition, const Ref& a, const Ref& b) {
  if (a == b) return a;
  using Type = Value::Type;
  // What is None in one case is not used in it.
  if (a->type == Type::nothing || a->type == Type::other) return b;
  if (b->type == Type::nothing || b->type == Type::other) return a;
  if (a->type != b->type) return values::is_number(a) ? b : a;
  switch (a->type) {
    case Type::number: {
      const bool is_data = algebra_.is_data(a->number) || algebra_.is_data(b->number);
      std::vector<Expr> shape = a->shape.size() >= b->shape.size() ? a->shape : b->shape;
      if (is_data) return here_.data_of({a, b}, std::move(shape));
      return values::number(algebra_.choose(condition, a->number, b->number), std::move(shape));
    }
    case Type::tuple: {
      if (a->items.size() != b->items.size()) return a;
      std::vector<Ref> items;
      for (std::size_t i = 0; i < a->items.size(); ++i)
        items.push_back(merge(condition, a->items[i], b->items[i]));
      return values::tuple(std::move(items));
    }
    case Type::block_pointer:
    case Type::descriptor: {
      const std::vector<Expr> parts = parts_of(*a), others = parts_of(*b);
      if (parts.size() != others.size()) return a;
      std::vector<Expr> merged;
      for (std::size_t i = 0; i < parts.size(); ++i)
        merged.push_back(algebra_.choose(condition, parts[i], others[i]));
      return with_parts(a, merged);
    }
    default:
      return a;
  }
}

Environment Evaluator::merge(const Expr& condition, const Environment& a, const Environment& b) {
  Environment both = a;
  for (const auto& [name, value] : b) {
    const auto [known, is_new] = both.emplace(name, value);
    if (!is_new && known->second != value) known->second = merge(condition, known->second, value);
  }
  return both;
}

}  // namespace hemiola::compile
