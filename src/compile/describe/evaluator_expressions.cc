// Expressions without calls.
#include <algorithm>

#include "compile/describe/evaluator.h"
#include "compile/python/formula.h"

namespace hemiola::compile {

Ref Evaluator::evaluate(const Node& node) {
  if (tired() || depth_ > kDeepest)
    return here_.opaque("the kernel takes more work to follow than one is given", node);
  ++depth_;
  Ref value = expression(node);
  --depth_;
  return value ? value : values::other("");
}

Ref Evaluator::literal(const Node& node) const {
  const std::string_view written = text_of(node);
  if (node.kind == Kind::concatenated_string) return values::text(std::string(written));
  return node.kind == Kind::string ? values::text(content_of(written)) : here_.literal(written);
}

Ref Evaluator::unary(std::string_view sign, const Ref& value, const Node& node) {
  if (sign == "not" && value->type == Value::Type::nothing)
    return values::number(Algebra::number(1));
  if (!values::is_number(value))
    return here_.opaque(sign == "not" ? "a condition" : "this is not a number", node);
  const Expr& of = value->number;
  if (sign == "not")
    return of.is_constant() ? values::number(Algebra::number(of.constant() == 0 ? 1 : 0))
                            : values::number(algebra_.function("not", {of}), value->shape);
  if (sign == "+" || (sign == "-" && algebra_.traits(of).has_data)) return value;
  return values::number(sign == "-" ? algebra_.scale(of, -1) : algebra_.function("~", {of}),
                        value->shape);
}

Ref Evaluator::other_expression(const Node& node) {
  if (node.kind == Kind::lambda || node.kind == Kind::dictionary) return values::other("");
  if (node.kind == Kind::tuple || node.kind == Kind::list || node.kind == Kind::expression_list) {
    std::vector<Ref> items;
    for (const Node* child : node.children) items.push_back(evaluate(*child));
    return values::tuple(std::move(items));
  }
  if (node.kind != Kind::named_expression)
    return here_.opaque("'" + std::string(node.name) + "' is not followed", node);
  Ref result = evaluate(*node.child(Field::value));
  assign(*node.child(Field::name), result, node);
  return result;
}

Ref Evaluator::identifier(const Node& node) {
  const std::string_view name = text_of(node);
  if (const auto found = here_.frame->names.find(name); found != here_.frame->names.end())
    return found->second;
  return global(*here_.frame->module, std::string(name), node);
}

Ref Evaluator::global(const Module& module, const std::string& name, const Node& node) {
  if (const Function* function = library_.function(module, name))
    return std::make_shared<Value>(Value{.type = Value::Type::function, .function = function});
  const Module* home = nullptr;
  const Node* constant = library_.constant(module, name, home);
  if (constant == nullptr) {
    if (module.imports.contains(name)) return values::other(name);
    constexpr std::string_view builtins[] = {"range", "min",   "max",  "len",  "abs",
                                             "int",   "float", "bool", "print"};
    if (std::ranges::find(builtins, name) != std::end(builtins)) return values::other(name);
    return here_.opaque("'" + name + "' has no value here", node);
  }
  const std::string open = home->source.file() + '\n' + name;
  if (!constants_open_.insert(open).second) return values::number(algebra_.parameter(name, true));
  Frame frame{.module = home, .path = Here::key(path_ids_, *constant, 0) + 1};
  Frame* const outer = std::exchange(here_.frame, &frame);
  ++here_.muted;
  Ref value = evaluate(*constant);
  --here_.muted;
  here_.frame = outer;
  constants_open_.erase(open);
  // A constant that is computed from what is not in the text keeps its name.
  if (values::is_number(value) && !value->number.is_constant())
    return values::number(algebra_.parameter(name, true));
  return value;
}

Ref Evaluator::attribute(const Node& node) {
  const Node* object = node.child(Field::object);
  const Node* what = node.child(Field::attribute);
  if (object == nullptr || what == nullptr) return here_.opaque("an attribute", node);
  const std::string_view name = text_of(*what);
  if (object->kind == Kind::identifier && !here_.frame->names.contains(text_of(*object))) {
    const auto import = here_.frame->module->imports.find(text_of(*object));
    if (import != here_.frame->module->imports.end()) {
      if (const Module* module = library_.module_of(*here_.frame->module, import->second)) {
        if (module->find(name) != nullptr || module->constants.contains(name))
          return global(*module, std::string(name), node);
      }
    }
    return values::other(std::string(name));
  }
  Ref value = evaluate(*object);
  if (name == "T" && values::is_number(value))
    return builtins_.call("trans", Arguments{.positional = {value}}, node);
  if (name == "shape" && values::is_number(value)) {
    std::vector<Ref> extents;
    for (const Expr& extent : value->shape) extents.push_back(values::number(extent));
    return values::tuple(std::move(extents));
  }
  if (name == "value" && values::is_number(value)) return value;
  return values::other(std::string(name));
}

Ref Evaluator::subscript(const Node& node) {
  const Node* object = node.child(Field::value);
  if (object == nullptr) return here_.opaque("a subscript", node);
  Ref value = evaluate(*object);
  std::vector<const Node*> indices;
  for (const Node* child : node.children) {
    if (child->field != Field::subscript) continue;
    if (child->kind == Kind::tuple)
      indices.insert(indices.end(), child->children.begin(), child->children.end());
    else
      indices.push_back(child);
  }
  if (value->type == Value::Type::tuple && indices.size() == 1) {
    const Ref index = evaluate(*indices[0]);
    if (values::is_number(index) && index->number.is_constant()) {
      std::int64_t at = index->number.constant();
      const auto count = static_cast<std::int64_t>(value->items.size());
      if (at < 0) at += count;
      if (at >= 0 && at < count) return value->items[static_cast<std::size_t>(at)];
    }
    if (indices[0]->kind == Kind::slice) return value;
    return here_.opaque("an element that is not known", node);
  }
  if (!values::is_number(value)) return here_.opaque("an element of what is no tuple", node);
  // x[:, None]: old dimensions in their order, new ones of extent 1.
  std::vector<int> to;
  std::vector<Expr> shape;
  for (const Node* index : indices) {
    if (index->kind == Kind::none) {
      shape.push_back(Algebra::number(1));
    } else if (index->kind == Kind::slice && to.size() < value->shape.size()) {
      shape.push_back(value->shape[to.size()]);
      to.push_back(static_cast<int>(shape.size()) - 1);
    } else if (index->kind != Kind::slice) {
      const Traits traits = algebra_.traits(value->number);
      if (traits.has_data || traits.has_load) return here_.data_of({value}, {});
      return here_.opaque("an element of a block", node);
    }
  }
  while (to.size() < value->shape.size()) {
    shape.push_back(value->shape[to.size()]);
    to.push_back(static_cast<int>(shape.size()) - 1);
  }
  return values::number(algebra_.move_dims(value->number, to), std::move(shape));
}

Ref Evaluator::binary(std::string_view op, const Ref& a, const Ref& b, const Node& node) {
  if (a->type == Value::Type::tuple && b->type == Value::Type::tuple && op == "+") {
    std::vector<Ref> items = a->items;
    items.insert(items.end(), b->items.begin(), b->items.end());
    return values::tuple(std::move(items));
  }
  if (!values::is_number(a) || !values::is_number(b)) {
    const Traits left = here_.traits_of(*a), right = here_.traits_of(*b);
    if (!left.loads.empty() || !right.loads.empty()) return here_.data_of({a, b}, {});
    return here_.opaque("an operator on what is no number", node);
  }
  Value left = *a, right = *b;
  here_.align(left, right);
  std::vector<Expr> shape = left.shape;
  const Expr& x = left.number;
  const Expr& y = right.number;
  const Traits of_x = algebra_.traits(x), of_y = algebra_.traits(y);
  const bool adds = op == "+" || op == "-";
  const bool both = (of_x.has_data || of_x.has_load) && (of_y.has_data || of_y.has_load);
  if (!adds && !shape.empty() && both) return here_.data_of({a, b}, std::move(shape));
  if (op == "/" && x.is_constant() && y.is_constant() && y.constant() != 0 &&
      x.constant() % y.constant() == 0)
    return values::number(Algebra::number(x.constant() / y.constant()), std::move(shape));
  return values::number(algebra_.infix(std::string(op), x, y), std::move(shape));
}

namespace {

/// Two texts, or two types.
bool are_named(const Value& a, const Value& b) {
  const auto is_named = [](const Value& one) {
    return one.type == Value::Type::text || (one.type == Value::Type::other && !one.text.empty());
  };
  return a.type == b.type && is_named(a) && is_named(b);
}

}  // namespace

Ref Evaluator::comparison(const Node& node) {
  std::vector<Ref> values;
  for (const Node* child : node.children) values.push_back(evaluate(*child));
  Expr all = Algebra::number(1);
  std::vector<Expr> shape;
  for (std::size_t i = 0; i + 1 < values.size(); ++i) {
    const std::string op = source().between(node, i);
    const Ref &a = values[i], &b = values[i + 1];
    using Type = Value::Type;
    Expr one;
    if (a->type == Type::nothing || b->type == Type::nothing) {
      if (a->type == b->type)
        one = Algebra::number(op == "is" || op == "==" ? 1 : 0);
      else if (!values::is_number(a->type == Type::nothing ? b : a))
        one = Algebra::number(op == "is" || op == "==" ? 0 : 1);
      else  // a parameter may be None
        one = algebra_.function(op, {here_.number_of(a, node), here_.number_of(b, node)});
    } else if (are_named(*a, *b)) {
      one = Algebra::number((a->text == b->text) == (op == "==") ? 1 : 0);
    } else if (values::is_number(a) && values::is_number(b)) {
      Value left = *a, right = *b;
      here_.align(left, right);
      if (shape.size() < left.shape.size()) shape = left.shape;
      if (!here_.is_silent()) trace_.comparisons.push_back({op, left.number, right.number});
      one = algebra_.infix(op, left.number, right.number);
    } else {
      one = here_.opaque("a comparison that is not known", node)->number;
    }
    if (one.is_constant() && one.constant() == 0) return values::number({});
    all = all.is_constant() ? one : algebra_.function("and", {all, one});
  }
  return values::number(std::move(all), std::move(shape));
}

Ref Evaluator::boolean(const Node& node) {
  const std::string op = source().between(node, 0);
  Ref first = evaluate(*node.children[0]);
  if (values::is_number(first) && first->number.is_constant()) {
    const bool holds = first->number.constant() != 0;
    if (holds != (op == "and")) return first;
    return evaluate(*node.children[1]);
  }
  Ref second = evaluate(*node.children[1]);
  if (!values::is_number(first) || !values::is_number(second))
    return here_.opaque("a condition", node);
  if (second->number.is_constant() && (second->number.constant() != 0) == (op == "and"))
    return first;
  if (second->number.is_constant()) return second;
  return values::number(algebra_.function(op, {first->number, second->number}),
                        first->shape.size() >= second->shape.size() ? first->shape : second->shape);
}

Ref Evaluator::conditional(const Node& node) {
  Ref condition = evaluate(*node.children[1]);
  if (values::is_number(condition) && condition->number.is_constant())
    return evaluate(*node.children[condition->number.constant() != 0 ? 0 : 2]);
  if (condition->type == Value::Type::nothing) return evaluate(*node.children[2]);
  Ref a = evaluate(*node.children[0]);
  Ref b = evaluate(*node.children[2]);
  return merge(here_.number_of(condition, node), a, b);
}

}  // namespace hemiola::compile
