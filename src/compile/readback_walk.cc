// Statements of a text that is followed with numbers; readback_expressions.cc has the rest.
#include "compile/readback_walk.h"

#include "compile/readback.h"

#include <fmt/format.h>

#include <algorithm>

namespace hemiola::compile::readback {

const Value* Arguments::find(std::string_view wanted, std::size_t position) const {
  for (const auto& [name, value] : named)
    if (name == wanted) return &value;
  return position < positional.size() ? &positional[position] : nullptr;
}

void Walker::wrong(const Node& node, const std::string& what) const {
  throw Failure(what, source().where(node.begin), "", ExitCode::wrong_program);
}

void Walker::refuse(const Node& node, const std::string& what, const std::string& hint) const {
  throw NotReadBack("not read back: " + what, source().where(node.begin),
                    hint.empty() ? "docs/compile_kernel.md says what is" : hint);
}

std::int64_t Walker::whole(const Value& value, const Node& node, std::string_view what) const {
  if (!value.is_number())
    refuse(node, fmt::format("{} is no whole number that the text says", what));
  return value.base;
}

const Node& Walker::place(const Node& inside) const {
  return frames_.size() > 1 && frames_[1].call != nullptr ? *frames_[1].call : inside;
}

Value Walker::run(const Function& function, const Arguments& given) {
  if (frames_.size() >= kDeepest) refuse(*given.node, "functions call each other too deeply");
  return enter(function, given);
}

Value Walker::enter(const Function& function, const Arguments& given) {
  Frame frame{.module = function.module, .names = {}, .returned = {}, .call = given.node};
  std::size_t position = 0;
  for (const Parameter& parameter : function.parameters) {
    if (parameter.is_rest) {
      frame.names[parameter.name] =
          Value{.type = Type::dictionary, .more = std::make_shared<const Compound>()};
      continue;
    }
    const Value* value = given.find(parameter.name, position++);
    if (value != nullptr) {
      frame.names[parameter.name] = *value;
    } else if (parameter.default_value != nullptr) {
      frames_.push_back({.module = function.module, .names = {}, .returned = {}, .call = nullptr});
      Value made = evaluate(*parameter.default_value);
      frames_.pop_back();
      frame.names[parameter.name] = std::move(made);
    } else {
      throw Failure(
          fmt::format("'{}' is called without its parameter '{}'", function.name, parameter.name),
          function.module->source.where(function.node->begin), "", ExitCode::wrong_program);
    }
  }
  frames_.push_back(std::move(frame));
  block(function.body());
  Value made = std::move(frames_.back().returned);
  frames_.pop_back();
  return made;
}

Value Walker::apply(const Value& function, const Arguments& given) {
  if (function.type != Type::function) {
    if (function.type != Type::name) refuse(*given.node, "what is called is no function");
    if (auto made = builtin(function.text, given)) return *made;
    if (auto made = surroundings_->call(function.text, given)) return *made;
    refuse(*given.node, fmt::format("it is not known what '{}' does", function.text));
  }
  if (function.more->function != nullptr) return run(*function.more->function, given);
  const Node& lambda = *function.more->lambda;
  Frame frame{.module = frames_.empty() ? &module_ : frames_.back().module,
              .names = {},
              .returned = {},
              .call = given.node};
  for (const auto& [name, value] : function.more->seen) frame.names[name] = value;
  std::size_t position = 0;
  if (const Node* parameters = lambda.child(Field::parameters)) {
    for (const Node* one : parameters->children) {
      if (one->kind != Kind::identifier) continue;  // **others
      const std::string name(frame.module->source.text(*one));
      const Value* value = given.find(name, position++);
      if (value == nullptr) refuse(*one, fmt::format("'{}' has no value here", name));
      frame.names[name] = *value;
    }
  }
  frames_.push_back(std::move(frame));
  Value made = evaluate(*lambda.child(Field::body));
  frames_.pop_back();
  return made;
}

Walker::Flow Walker::block(const Node& node) {
  for (const Node* child : node.children) {
    const Flow flow = statement(*child);
    if (flow != Flow::on) return flow;
  }
  return Flow::on;
}

Walker::Flow Walker::statement(const Node& node) {
  switch (node.kind) {
    case Kind::expression_statement:
      for (const Node* child : node.children) {
        if (child->kind == Kind::augmented_assignment)
          augmented(*child);
        else if (child->kind != Kind::string)
          evaluate(*child);
      }
      return Flow::on;
    case Kind::return_statement:
      frames_.back().returned = node.children.empty() ? Value{} : evaluate(*node.children.front());
      return Flow::returned;
    case Kind::if_statement:
      return if_statement(node);
    case Kind::for_statement:
      return for_statement(node);
    case Kind::while_statement:
      return while_statement(node);
    case Kind::pass_statement:
    case Kind::assert_statement:
      return Flow::on;
    case Kind::break_statement:
      return Flow::left;
    case Kind::continue_statement:
      return Flow::next;
    case Kind::block:
      return block(node);
    default:
      refuse(node, fmt::format("a statement of this kind ({})", node.name));
  }
}

bool Walker::holds(const Node& node) {
  const Value value = evaluate(node);
  if (value.type == Type::none) return false;
  if (value.type == Type::text || value.type == Type::list)
    return value.type == Type::text ? !value.text.empty() : !value.more->items.empty();
  if (value.type == Type::mask && value.axes.empty()) return value.base != 0;
  if (!value.is_number())
    refuse(node, "whether this condition holds depends on data, not on numbers of the text");
  return value.base != 0;
}

Walker::Flow Walker::if_statement(const Node& node) {
  if (holds(*node.child(Field::condition))) return block(*node.child(Field::consequence));
  for (const Node* child : node.children) {
    if (child->kind == Kind::elif_clause && holds(*child->child(Field::condition)))
      return block(*child->child(Field::consequence));
    if (child->kind == Kind::else_clause) return block(*child->child(Field::body));
  }
  return Flow::on;
}

Walker::Flow Walker::for_statement(const Node& node) {
  const Node& left = *node.child(Field::left);
  for (const Value& item : items_of(evaluate(*node.child(Field::right)), node)) {
    assign(left, item);
    const Flow flow = block(*node.child(Field::body));
    if (flow == Flow::returned) return flow;
    if (flow == Flow::left) break;
  }
  return Flow::on;
}

Walker::Flow Walker::while_statement(const Node& node) {
  const Node& condition = *node.child(Field::condition);
  const Node* inner = &condition;
  while (inner->kind == Kind::parenthesized_expression) inner = inner->children.front();
  const Node& body = *node.child(Field::body);
  const bool spins = std::all_of(body.children.begin(), body.children.end(), [](const Node* child) {
    return child->kind == Kind::pass_statement;
  });
  if (spins && inner->kind == Kind::comparison_operator && inner->children.size() == 2) {
    const Value left = evaluate(*inner->children[0]), right = evaluate(*inner->children[1]);
    if (left.type != Type::look && right.type != Type::look)
      refuse(node, "a loop that does nothing, and waits for no signal");
    if (!surroundings_->wait(source().between(*inner, 0), left, right, *inner))
      refuse(node, "a wait for something else than that a signal has reached a number");
    return Flow::on;
  }
  while (holds(condition)) {
    const Flow flow = block(body);
    if (flow == Flow::returned) return flow;
    if (flow == Flow::left) break;
  }
  return Flow::on;
}

void Walker::assign(const Node& target, const Value& value) {
  if (target.kind == Kind::identifier) {
    const auto at = frames_.back().names.find(words(target));
    if (at != frames_.back().names.end())
      at->second = value;
    else
      frames_.back().names.emplace(std::string(words(target)), value);
    return;
  }
  if (target.kind == Kind::attribute) {
    const Value object = evaluate(*target.child(Field::object));
    if (!surroundings_->assign(object, words(*target.child(Field::attribute)), value))
      refuse(target, "what is assigned to here");
    return;
  }
  const bool is_list = target.kind == Kind::pattern_list || target.kind == Kind::tuple_pattern ||
                       target.kind == Kind::tuple || target.kind == Kind::expression_list;
  if (!is_list || value.type != Type::list || value.more->items.size() != target.children.size())
    refuse(target, "what is assigned to here");
  for (std::size_t i = 0; i < target.children.size(); ++i)
    assign(*target.children[i], value.more->items[i]);
}

void Walker::augmented(const Node& node) {
  const Node& left = *node.child(Field::left);
  const Value right = evaluate(*node.child(Field::right));
  std::string op = sign(node, 0);
  if (!op.empty() && op.back() == '=') op.pop_back();
  assign(left, binary(op, evaluate(left), right));
}

std::vector<Value> Walker::items_of(const Value& value, const Node& node) const {
  if (value.type == Type::list) return value.more->items;
  refuse(node, "a loop over something else than numbers or a list");
}

}  // namespace hemiola::compile::readback
