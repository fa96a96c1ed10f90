// Statements of a text that is followed with numbers; readback/expressions.cc has the rest.
#include "compile/readback/walk.h"

#include "compile/readback/readback.h"

#include <fmt/format.h>

#include <algorithm>

namespace hemiola::compile::readback {

const Value* Arguments::find(std::string_view wanted, std::size_t position) const {
  for (const auto& [name, value] : named)
    if (name == wanted) return &value;
  return position < positional.size() ? &positional[position] : nullptr;
}

void Walker::wrong(const Node& node, const std::string& what, const std::string& hint,
                   ExitCode code) const {
  throw Failure(what, source().where(node.begin), hint, code);
}

void Walker::refuse(const Node& node, const std::string& what, const std::string& hint) const {
  throw NotReadBack("not read back: " + what, source().where(node.begin),
                    hint.empty() ? "docs/compile_kernel.md says what is" : hint);
}

const Value& need(const Walker& walker, const Arguments& given, std::string_view name,
                  std::size_t position) {
  const Value* value = given.find(name, position);
  if (value == nullptr) walker.refuse(*given.node, fmt::format("'{}' is not given", name));
  return *value;
}

std::int64_t Walker::whole(const Value& value, const Node& node, std::string_view what) const {
  if (!value.is_number())
    refuse(node, fmt::format("{} is no whole number that the text says", what));
  return value.base;
}

std::vector<std::int64_t> Walker::wholes(const Value& value, const Node& node,
                                         std::string_view what) const {
  if (value.type != Type::list) return {whole(value, node, what)};
  std::vector<std::int64_t> made;
  for (const Value& item : value.more->items) made.push_back(whole(item, node, what));
  return made;
}

void Walker::step(const Node& node, std::int64_t count) {
  steps_ += count;
  if (steps_ > limits_.steps)
    refuse(node, "the file takes too long to follow: too many tiles and turns",
           "compile the kernel for smaller sizes, or with larger blocks");
}

void Walker::hold(std::int64_t words, const Node& node) {
  held_ += words;
  // A small part of what there is: lists and blocks of a file are copied on the way.
  if (held_ > limits_.words / 8) refuse(node, "lists and blocks that take too much memory");
}

void Walker::remember(const Node& node, std::int64_t words) {
  remembered_ += words;
  if (remembered_ > limits_.words)
    refuse(node, "the file takes too much memory to read: too many tiles and turns",
           "compile the kernel for smaller sizes, or with larger blocks");
}

void Walker::Holding::add(const Value& value, const Node& node) {
  const std::int64_t words = weight(value);
  held_ += words;
  walker_.hold(words, node);
}

Walker::Level::Level(Walker& walker, const Node& node) : walker_(walker) {
  if (walker_.depth_ >= kDeepestLevel)
    walker_.refuse(node, "expressions and calls are nested too deeply");
  ++walker_.depth_;
}

void Walker::push(Frame frame, const Node& node) {
  if (frames_.size() >= kDeepest) refuse(node, "functions call each other too deeply");
  frames_.push_back(std::move(frame));
}

void Walker::pop() {
  held_ -= frames_.back().held;
  frames_.pop_back();
}

void Walker::give(Frame& frame, std::string_view name, const Value& value, const Node& node) {
  const auto at = frame.names.find(name);
  const std::int64_t words = weight(value) - (at == frame.names.end() ? 0 : weight(at->second));
  frame.held += words;
  hold(words, node);
  if (at == frame.names.end())
    frame.names.emplace(std::string(name), value);
  else
    at->second = value;
}

const Node& Walker::place(const Node& inside) const {
  return frames_.size() > 1 && frames_[1].call != nullptr ? *frames_[1].call : inside;
}

Value Walker::run(const Function& function, const Arguments& given) {
  Frame frame{.module = function.module, .names = {}, .returned = {}, .call = given.node};
  std::size_t position = 0;
  for (const Parameter& parameter : function.parameters) {
    if (parameter.is_rest) {
      frame.names[parameter.name] = Value{.type = Type::dictionary, .more = held({})};
      continue;
    }
    const Value* value = given.find(parameter.name, position++);
    if (value != nullptr) {
      give(frame, parameter.name, *value, *given.node);
    } else if (parameter.default_value != nullptr) {
      push({.module = function.module, .names = {}, .returned = {}, .call = nullptr}, *given.node);
      const Value made = evaluate(*parameter.default_value);
      pop();
      give(frame, parameter.name, made, *given.node);
    } else {
      throw Failure(
          fmt::format("'{}' is called without its parameter '{}'", function.name, parameter.name),
          function.module->source.where(function.node->begin), "", ExitCode::wrong_program);
    }
  }
  push(std::move(frame), *given.node);
  block(function.body());
  Value made = std::move(frames_.back().returned);
  pop();
  return made;
}

Value Walker::apply(const Value& function, const Arguments& given) {
  if (function.type != Type::function) {
    if (function.type != Type::name) refuse(*given.node, "what is called is no function");
    if (auto made = builtin(function.text, given)) return *made;
    if (surroundings_ != nullptr)
      if (auto made = surroundings_->call(function.text, given)) return *made;
    refuse(*given.node, fmt::format("it is not known what '{}' does", function.text));
  }
  if (function.more->function != nullptr) return run(*function.more->function, given);
  const Node& lambda = *function.more->lambda;
  Frame frame{.module = frames_.empty() ? &module_ : frames_.back().module,
              .names = {},
              .returned = {},
              .call = given.node};
  for (const auto& [name, value] : function.more->seen) give(frame, name, value, *given.node);
  std::size_t position = 0;
  if (const Node* parameters = lambda.child(Field::parameters)) {
    for (const Node* one : parameters->children) {
      if (one->kind != Kind::identifier) continue;  // **others
      const std::string name(frame.module->source.text(*one));
      const Value* value = given.find(name, position++);
      if (value == nullptr) refuse(*one, fmt::format("'{}' has no value here", name));
      give(frame, name, *value, *given.node);
    }
  }
  push(std::move(frame), *given.node);
  Value made = evaluate(*lambda.child(Field::body));
  pop();
  return made;
}

Flow Walker::block(const Node& node) {
  const Level level(*this, node);
  return Interpreter::block(node);
}

Flow Walker::other_statement(const Node& node) {
  switch (node.kind) {
    case Kind::return_statement:
      frames_.back().returned = node.children.empty() ? Value{} : evaluate(*node.children.front());
      return Flow::returned;
    case Kind::break_statement:
      return Flow::left;
    case Kind::continue_statement:
      return Flow::next;
    case Kind::pass_statement:
    case Kind::assert_statement:
      return Flow::on;
    default:
      refuse(node, fmt::format("a statement of this kind ({})", node.name));
  }
}

bool Walker::holds(const Value& value, const Node& node) const {
  if (value.type == Type::none) return false;
  if (value.type == Type::text || value.type == Type::list)
    return value.type == Type::text ? !value.text.empty() : !value.more->items.empty();
  if (value.type == Type::mask && value.axes.empty()) return value.base != 0;
  if (!value.is_number())
    refuse(node, "whether this condition holds depends on data, not on numbers of the text");
  return value.base != 0;
}

Flow Walker::choose(const Branch& branch) {
  const Node& condition = branch.condition();
  return holds(evaluate(condition), condition) ? block(branch.body()) : otherwise(branch);
}

Flow Walker::for_statement(const Node& node) {
  const Node& left = *node.child(Field::left);
  const Node& over = *node.child(Field::right);
  if (is_range(over)) return turns(node, range(arguments(over)));  // which need not be a list
  const Value list = evaluate(over);
  Holding holding(*this);
  holding.add(list, node);
  for (const Value& item : items_of(list, node)) {
    step(node);
    assign(left, item, node);
    const Flow flow = block(*node.child(Field::body));
    if (flow == Flow::returned) return flow;
    if (flow == Flow::left) break;
  }
  return Flow::on;
}

bool names_range(std::string_view name) {
  return name == "range" || name == "tl.range" || name == "tl.static_range";
}

bool Walker::is_range(const Node& call) {
  if (call.kind != Kind::call) return false;
  const Node& callee = *call.child(Field::function);
  const bool is_member = callee.kind == Kind::attribute;
  if (is_member ? evaluate(*callee.child(Field::object)).type != Type::name
                : callee.kind != Kind::identifier)
    return false;
  const Value function = evaluate(callee);
  return function.type == Type::name && names_range(function.text);
}

Flow Walker::turns(const Node& loop, const Turns& turns) {
  const Node& left = *loop.child(Field::left);
  for (std::int64_t i = 0; i < turns.count; ++i) {
    step(loop);
    assign(left, number(turns.begin + i * turns.step), loop);
    const Flow flow = block(*loop.child(Field::body));
    if (flow == Flow::returned) return flow;
    if (flow == Flow::left) break;
  }
  return Flow::on;
}

Flow Walker::while_statement(const Node& node) {
  const Node& condition = *node.child(Field::condition);
  const Node* inner = &condition;
  while (inner->kind == Kind::parenthesized_expression) inner = inner->children.front();
  const Node& body = *node.child(Field::body);
  const bool spins = std::ranges::all_of(
      body.children, [](const Node* child) { return child->kind == Kind::pass_statement; });
  if (spins && inner->kind == Kind::comparison_operator && inner->children.size() == 2) {
    const Value left = evaluate(*inner->children[0]), right = evaluate(*inner->children[1]);
    if (left.type != Type::look && right.type != Type::look)
      refuse(node, "a loop that does nothing, and waits for no signal");
    if (!surroundings_->wait(source().between(*inner, 0), left, right, *inner))
      refuse(node, "a wait for something else than that a signal has reached a number");
    return Flow::on;
  }
  while (holds(evaluate(condition), condition)) {
    const Flow flow = block(body);
    if (flow == Flow::returned) return flow;
    if (flow == Flow::left) break;
  }
  return Flow::on;
}

void Walker::assign_other(const Node& target, const Value& value, const Node& statement) {
  if (target.kind == Kind::subscript) return assign_entry(target, value);
  if (target.kind == Kind::attribute) {
    const Value object = evaluate(*target.child(Field::object));
    remember(target, weight(value));
    if (surroundings_ != nullptr &&
        surroundings_->assign(object, words(*target.child(Field::attribute)), value))
      return;
  } else if (value.type == Type::list && value.more->items.size() == target.children.size()) {
    for (std::size_t i = 0; i < target.children.size(); ++i)
      assign(*target.children[i], value.more->items[i], statement);
    return;
  }
  refuse(target, "what is assigned to here");
}

const std::vector<Value>& Walker::items_of(const Value& value, const Node& node) const {
  if (value.type == Type::list) return value.more->items;
  refuse(node, "a loop over something else than numbers or a list");
}

}  // namespace hemiola::compile::readback
