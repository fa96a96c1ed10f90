// Statements other than loops.
#include <algorithm>

#include "compile/describe/evaluator.h"

namespace hemiola::compile {

Flow Evaluator::block(const Node& node) {
  for (const Node* child : node.children) {
    const Flow flow = statement(*child);
    if (flow != Flow::on) return flow;
  }
  return Flow::on;
}

Flow Evaluator::statement(const Node& node) {
  if (tired() || depth_ > kDeepest) return Flow::on;
  ++depth_;
  const bool is_kernel = frame_->path == 0;
  if (is_kernel) statements_.push_back(&node);
  const Flow flow = simple_statement(node);
  if (is_kernel) statements_.pop_back();
  --depth_;
  return flow;
}

Flow Evaluator::simple_statement(const Node& node) {
  switch (node.kind) {
    case Kind::expression_statement:
      for (const Node* child : node.children) {
        if (child->kind == Kind::assignment) {
          const Node* left = child->child(Field::left);
          const Node* right = child->child(Field::right);
          std::vector<const Node*> targets{left};
          while (right != nullptr && right->kind == Kind::assignment) {  // a = b = value
            targets.push_back(right->child(Field::left));
            right = right->child(Field::right);
          }
          if (right == nullptr) continue;
          const Ref value = evaluate(*right);
          for (const Node* target : targets)
            if (target != nullptr) assign(*target, value, node);
        } else if (child->kind == Kind::augmented_assignment) {
          augmented(*child);
        } else {
          evaluate(*child);
        }
      }
      return Flow::on;
    case Kind::if_statement:
      return if_statement(node, 0);
    case Kind::for_statement:
      return for_statement(node);
    case Kind::while_statement:
      return while_statement(node);
    case Kind::return_statement:
      frame_->returns.push_back(node.children.empty() ? nothing()
                                                      : evaluate(*node.children.front()));
      return Flow::returned;
    case Kind::break_statement:
    case Kind::continue_statement:
      return Flow::left;
    case Kind::with_statement:
      if (const Node* body = node.child(Field::body)) return block(*body);
      return Flow::on;
    case Kind::block:
      return block(node);
    case Kind::function_definition:
    case Kind::decorated_definition:
      opaque("a function inside of a kernel", node);
      return Flow::on;
    default:
      return Flow::on;  // pass, assert, del, import, raise
  }
}

void Evaluator::bind_name(std::string_view name, const Ref& value, const Node* statement) {
  frame_->names.insert_or_assign(std::string(name), value);
  if (is_silent() || statement == nullptr || !is_number(value)) return;
  RawAssignment made{.name = std::string(name),
                     .statement = statement,
                     .path = frame_->path,
                     .value = value->number,
                     .rank = static_cast<int>(value->shape.size()),
                     .statements = statements_};
  trace_.assignments.push_back(std::move(made));
}

void Evaluator::assign(const Node& target, const Ref& value, const Node& statement) {
  switch (target.kind) {
    case Kind::identifier:
      bind_name(text_of(target), value, &statement);
      return;
    case Kind::parenthesized_expression:
      if (!target.children.empty()) assign(*target.children.front(), value, statement);
      return;
    case Kind::pattern_list:
    case Kind::tuple_pattern:
    case Kind::list_pattern: {
      const bool fits =
          value->type == Value::Type::tuple && value->items.size() == target.children.size();
      for (std::size_t i = 0; i < target.children.size(); ++i) {
        const Node& part = *target.children[i];
        if (fits) {
          assign(part, value->items[i], statement);
          continue;
        }
        const Traits traits = traits_of(*value);
        assign(part,
               !traits.loads.empty() || traits.has_data
                   ? data_of({value}, {})
                   : opaque("a tuple that is not known is taken apart", part),
               statement);
      }
      return;
    }
    default:
      return;  // an attribute or an element of something
  }
}

void Evaluator::augmented(const Node& node) {
  const Node* left = node.child(Field::left);
  const Node* right = node.child(Field::right);
  if (left == nullptr || right == nullptr) return;
  const Ref more = evaluate(*right);
  if (left->kind != Kind::identifier) return;
  std::string op = source().between(node, 0);
  if (!op.empty() && op.back() == '=') op.pop_back();
  bind_name(text_of(*left), binary(op, evaluate(*left), more, node), &node);
}

/// Remembers what follows from a condition: of `a and b` both parts, of `not a` the opposite.
void Evaluator::suppose(const Expr& condition, bool holds) {
  if (condition.terms.size() != 1 || condition.terms[0].factors.size() != 1) return;
  const AtomId id = condition.terms[0].factors[0];
  const Atom atom = algebra_.atom(id);
  facts_[id] = holds;
  if (atom.kind != AtomKind::function) return;
  if (atom.name == "not") suppose(atom.args[0], !holds);
  if ((atom.name == "and" && holds) || (atom.name == "or" && !holds))
    for (const Expr& arg : atom.args) suppose(arg, holds);
  if (atom.name == "==" || atom.name == "!=") {
    const Expr opposite = algebra_.function(atom.name == "==" ? "!=" : "==", atom.args);
    facts_[opposite.terms[0].factors[0]] = !holds;
  }
}

std::optional<bool> Evaluator::known(const Expr& condition) const {
  if (condition.is_constant()) return condition.constant() != 0;
  if (condition.terms.size() != 1 || condition.terms[0].factors.size() != 1) return std::nullopt;
  const auto found = facts_.find(condition.terms[0].factors[0]);
  return found == facts_.end() ? std::nullopt : std::optional<bool>(found->second);
}

/// An address where the conditions around it are taken into account.
Expr Evaluator::under_facts(const Expr& e) {
  if (facts_.empty()) return e;
  return algebra_.decide(e, facts_);
}

Flow Evaluator::choose_branch(const Node& condition, const Node* then,
                              const std::function<Flow()>& otherwise) {
  const Ref decided = evaluate(condition);
  if (decided && decided->type == Value::Type::nothing) return otherwise();
  if (decided && decided->type == Value::Type::text && decided->text.empty()) return otherwise();
  const Expr by = is_number(decided) ? decided->number : opaque("a condition", condition)->number;
  if (const std::optional<bool> holds = known(by))
    return *holds ? (then == nullptr ? Flow::on : block(*then)) : otherwise();
  ++conditions_;
  const std::map<AtomId, bool> facts = facts_;
  const Environment before = frame_->names;
  suppose(by, true);
  const Flow first = then == nullptr ? Flow::on : block(*then);
  facts_ = facts;
  Environment after_first = std::move(frame_->names);
  frame_->names = before;
  suppose(by, false);
  const Flow second = otherwise();
  facts_ = facts;
  --conditions_;
  if (first == Flow::on && second == Flow::on) {
    const Environment after_second = std::move(frame_->names);
    frame_->names = merge(by, after_first, after_second);
    note_merged(after_first, after_second);
    return Flow::on;
  }
  if (first == Flow::on) {
    frame_->names = std::move(after_first);
    return Flow::on;
  }
  if (second == Flow::on) return Flow::on;
  return first == second ? first : Flow::left;
}

/// What both branches gave a value is assigned by the if statement as a whole.
void Evaluator::note_merged(const Environment& a, const Environment& b) {
  if (is_silent() || frame_->path != 0 || statements_.empty()) return;
  for (const auto& [name, value] : frame_->names) {
    const auto first = a.find(name), second = b.find(name);
    if (first == a.end() || second == b.end() || first->second == second->second ||
        !is_number(value))
      continue;
    trace_.assignments.push_back({.name = name,
                                  .statement = statements_.back(),
                                  .path = 0,
                                  .value = value->number,
                                  .rank = static_cast<int>(value->shape.size()),
                                  .statements = statements_});
  }
}

/// The part of an if statement from child `from` on: 0 is the if itself, others are elif and else
/// clauses.
Flow Evaluator::if_statement(const Node& node, std::size_t from) {
  std::vector<const Node*> clauses;
  for (const Node* child : node.children)
    if (child->kind == Kind::elif_clause || child->kind == Kind::else_clause)
      clauses.push_back(child);
  const auto rest = [this, &node, from]() { return if_statement(node, from + 1); };
  if (from == 0) {
    const Node* condition = node.child(Field::condition);
    return condition == nullptr ? Flow::on
                                : choose_branch(*condition, node.child(Field::consequence), rest);
  }
  if (from > clauses.size()) return Flow::on;
  const Node& clause = *clauses[from - 1];
  if (clause.kind == Kind::else_clause) {
    const Node* body = clause.child(Field::body);
    return body == nullptr ? Flow::on : block(*body);
  }
  const Node* condition = clause.child(Field::condition);
  return condition == nullptr ? Flow::on
                              : choose_branch(*condition, clause.child(Field::consequence), rest);
}

Ref Evaluator::merge(const Expr& condition, const Ref& a, const Ref& b) {
  if (a == b) return a;
  using Type = Value::Type;
  // What is None in one case is not used in it.
  if (a->type == Type::nothing || a->type == Type::other) return b;
  if (b->type == Type::nothing || b->type == Type::other) return a;
  if (a->type != b->type) return is_number(a) ? b : a;
  switch (a->type) {
    case Type::number: {
      const bool is_data = algebra_.is_data(a->number) || algebra_.is_data(b->number);
      std::vector<Expr> shape = a->shape.size() >= b->shape.size() ? a->shape : b->shape;
      if (is_data) return data_of({a, b}, std::move(shape));
      return number(algebra_.choose(condition, a->number, b->number), std::move(shape));
    }
    case Type::tuple: {
      if (a->items.size() != b->items.size()) return a;
      std::vector<Ref> items;
      for (std::size_t i = 0; i < a->items.size(); ++i)
        items.push_back(merge(condition, a->items[i], b->items[i]));
      return tuple(std::move(items));
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
