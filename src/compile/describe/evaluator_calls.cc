// Calls: helpers are followed inside.
#include <algorithm>

#include "compile/describe/evaluator.h"

namespace hemiola::compile {

Arguments Evaluator::arguments(const Node& node) {
  Arguments given;
  const Node* list = node.child(Field::arguments);
  if (list == nullptr) return given;
  for (const Node* child : list->children) {
    if (child->kind == Kind::keyword_argument) {
      const Node* name = child->child(Field::name);
      const Node* value = child->child(Field::value);
      if (name != nullptr && value != nullptr)
        given.named[std::string(text_of(*name))] = evaluate(*value);
    } else if (child->kind == Kind::list_splat || child->kind == Kind::dictionary_splat) {
      Ref value = child->children.empty() ? values::other("") : evaluate(*child->children.front());
      if (child->kind == Kind::list_splat && value->type == Value::Type::tuple)
        given.positional.insert(given.positional.end(), value->items.begin(), value->items.end());
      else
        given.complete = false;
    } else {
      given.positional.push_back(evaluate(*child));
    }
  }
  return given;
}

Ref Evaluator::call(const Node& node) {
  const Node* callee = node.child(Field::function);
  if (callee == nullptr) return here_.opaque("a call", node);
  const std::string name(last_name(source(), node));
  if (callee->kind == Kind::identifier) {
    Ref value = identifier(*callee);
    const Arguments given = arguments(node);
    if (value->type == Value::Type::function) return inlined(*value->function, given, node);
    if (here_.frame->names.contains(name)) {  // a function that is a parameter
      const Traits traits =
          given.positional.empty() ? Traits() : here_.traits_of(*given.positional[0]);
      if (!traits.loads.empty() || traits.has_data)
        return here_.data_of(given.positional, given.positional[0]->shape);
      return here_.opaque(
          "'" + name + "' is called, which is not known before the kernel is launched", node);
    }
    // A name of the module for something of Triton's: `exp = tl.exp`.
    return builtins_.call(
        value->type == Value::Type::other && !value->text.empty() ? value->text : name, given,
        node);
  }
  if (callee->kind == Kind::attribute) {
    const Node* object = callee->child(Field::object);
    // Of a module: tl.load, tl.math.exp2, helpers.tile(...). The root of the names tells.
    const Node* root = object;
    while (root != nullptr && root->kind == Kind::attribute) root = root->child(Field::object);
    const bool is_module = root != nullptr && root->kind == Kind::identifier &&
                           !here_.frame->names.contains(text_of(*root));
    if (is_module) {
      Ref value = attribute(*callee);
      const Arguments given = arguments(node);
      if (value->type == Value::Type::function) return inlined(*value->function, given, node);
      return builtins_.call(name, given, node);
    }
    const Ref self = object == nullptr ? values::other("") : evaluate(*object);
    return builtins_.method(self, name, arguments(node), node);
  }
  Ref value = evaluate(*callee);
  const Arguments given = arguments(node);
  if (value->type == Value::Type::function) return inlined(*value->function, given, node);
  return here_.opaque("a call of what is no name", node);
}

Ref Evaluator::inlined(const Function& function, const Arguments& given, const Node& node) {
  const auto deep = std::ranges::count(calls_, &function);
  if (static_cast<int>(calls_.size()) > kDeepestCall || deep > 2)
    return here_.opaque("calls are nested too deeply", node);
  Frame frame{.function = &function,
              .module = function.module,
              .path = Here::key(path_ids_, node, here_.frame->path) + 1};
  std::size_t position = 0;
  std::set<std::string, std::less<>> used;
  for (const Parameter& parameter : function.parameters) {
    if (parameter.is_rest) continue;
    Ref value = given.get(parameter.name, position++);
    if (!value && parameter.default_value != nullptr) {
      Frame home{.module = function.module, .path = frame.path};
      Frame* const caller = std::exchange(here_.frame, &home);
      value = evaluate(*parameter.default_value);
      here_.frame = caller;
    }
    if (!value)
      value = here_.opaque("'" + parameter.name + "' of '" + function.name +
                               "' is given in a way that is not followed",
                           node);
    frame.names[parameter.name] = std::move(value);
  }
  Frame* const caller = std::exchange(here_.frame, &frame);
  calls_.push_back(&function);
  block(function.body());
  calls_.pop_back();
  here_.frame = caller;
  if (frame.returns.empty()) return values::nothing();
  Ref result = frame.returns.back();
  for (std::size_t i = frame.returns.size() - 1; i-- > 0;) {
    const Expr which =
        algebra_.function("#return_" + std::to_string(frame.path) + '_' + std::to_string(i), {});
    result = merge(which, frame.returns[i], result);
  }
  return result;
}

}  // namespace hemiola::compile
