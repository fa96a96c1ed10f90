// Expressions of a text that is followed with numbers.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "compile/python/formula.h"
#include "compile/readback/term.h"
#include "compile/readback/walk.h"

namespace hemiola::compile::readback {
namespace {

constexpr std::int64_t kMostItems = 1'000'000;  // of a range that is a list

/// `import triton.language as tl` is "tl", whatever it is called.
std::string name_of_import(const Import& import) {
  std::string made = import.module;
  if (!import.name.empty()) made += '.' + import.name;
  constexpr std::string_view kLanguage = "triton.language";
  if (made.starts_with(kLanguage)) made.replace(0, kLanguage.size(), "tl");
  return made;
}

bool is_same_key(const Value& a, const Value& b) {
  if (a.type != b.type || a.text != b.text || a.base != b.base) return false;
  if (a.type != Type::list) return true;
  const std::vector<Value>&of_a = a.more->items, &of_b = b.more->items;
  return std::ranges::equal(of_a, of_b, is_same_key);
}

/// An entry of a dictionary, in the place of one with the same key.
void put(Compound& dictionary, const Value& key, Value value) {
  const auto known = std::ranges::find_if(
      dictionary.entries, [&](const auto& entry) { return is_same_key(entry.first, key); });
  if (known != dictionary.entries.end())
    known->second = std::move(value);
  else
    dictionary.entries.emplace_back(key, std::move(value));
}

bool is_of_python(std::string_view name) {
  static constexpr std::string_view kKnown[] = {"range", "min",       "max",       "len",  "abs",
                                                "float", "int",       "tuple",     "list", "dict",
                                                "bool",  "enumerate", "isinstance"};
  return std::ranges::find(kKnown, name) != std::end(kKnown);
}

/// Of a dictionary: a number or a text, or a tuple of these.
Value key_of(const Walker& walker, const std::vector<Index>& at, const Node& node) {
  std::vector<Value> keys;
  for (const Index& one : at) {
    if (one.is_range) walker.refuse(node, "a range of a dictionary");
    keys.push_back(one.value);
  }
  return keys.size() == 1 ? keys.front() : list(std::move(keys));
}

}  // namespace

Value Walker::evaluate(const Node& node) {
  const Level level(*this, node);
  step(node);
  return expression(node);
}

Value Walker::literal(const Node& node) const {
  if (node.kind == Kind::none) return {};
  if (node.kind == Kind::string) return text(content_of(words(node)));
  if (node.kind == Kind::concatenated_string) return text("");
  if (node.kind == Kind::float_) return fraction(words(node));
  if (node.kind != Kind::integer) return number(node.kind == Kind::true_ ? 1 : 0);
  std::int64_t value = 0;
  const std::string_view digits = words(node);
  const char* end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, value);
  if (read.ec != std::errc() || read.ptr != end || !fits(value))
    refuse(node, "a number of this form");
  return number(value);
}

Value Walker::operation(const Node& node) {
  const Value left = evaluate(*node.children[0]);
  Holding holding(*this);
  holding.add(left, node);
  const Value right = evaluate(*node.children[1]);
  return binary(sign(node, 0), left, right, node);
}

Value Walker::binary(std::string_view op, const Value& a, const Value& b, const Node& node) {
  if ((op == "//" || op == "%") && a.type == Type::number && b.is_number() && b.base == 0)
    wrong(node, "something is divided by zero");
  Value made = readback::binary(op, a, b, &node);
  step(node, weight(made) / 64);
  return made;
}

Value Walker::other_expression(const Node& node) {
  Compound made;
  Holding holding(*this);
  switch (node.kind) {
    case Kind::tuple:
    case Kind::list:
    case Kind::expression_list:
      for (const Node* child : node.children) {
        made.items.push_back(evaluate(*child));
        holding.add(made.items.back(), node);
      }
      return list(std::move(made.items));
    case Kind::dictionary:

      for (const Node* pair : node.children) {
        if (pair->kind == Kind::dictionary_splat) {
          const Value all = evaluate(*pair->children.front());
          if (all.type != Type::dictionary) refuse(*pair, "what is put into a dictionary");
          for (const auto& [key, value] : all.more->entries) put(made, key, value);
          continue;
        }
        if (pair->kind != Kind::pair) refuse(*pair, "a dictionary in a dictionary");
        Value key = evaluate(*pair->child(Field::key)),
              value = evaluate(*pair->child(Field::value));
        holding.add(value, node);
        put(made, key, std::move(value));
      }
      return {.type = Type::dictionary, .more = held(std::move(made))};

    case Kind::list_comprehension:
    case Kind::generator_expression:
      return comprehension(node);
    case Kind::lambda:
      made.lambda = &node;
      if (!frames_.empty())
        made.seen.assign(frames_.back().names.begin(), frames_.back().names.end());
      return {.type = Type::function, .more = held(std::move(made))};
    default:
      refuse(node, fmt::format("an expression of this kind ({})", node.name));
  }
}

const std::string& Walker::sign(const Node& node, std::size_t i) {
  const auto known = signs_.find({&node, i});
  if (known != signs_.end()) return known->second;
  return signs_.emplace(std::pair{&node, i}, source().between(node, i)).first->second;
}

Value Walker::identifier(const Node& node) {
  const std::string_view word = words(node);
  const auto& names = frames_.back().names;
  if (const auto found = names.find(word); found != names.end()) return found->second;
  return global(*frames_.back().module, std::string(word), node);
}

Value Walker::constant(std::string_view name, const Node& node) {
  return global(module_, std::string(name), node);
}

Value Walker::global(const Module& module, const std::string& word, const Node& node) {
  const auto known = constants_.find({&module, word});
  if (known != constants_.end()) return known->second;
  Value made;
  const auto stands = module.constants.find(word);
  if (stands != module.constants.end()) {
    push({.module = &module, .names = {}, .returned = {}, .call = nullptr}, node);
    made = evaluate(*stands->second);
    pop();
    remember(node, weight(made));
  } else if (const Function* function = library_.function(module, word)) {
    made = {.type = Type::function, .more = held({.function = function})};
  } else if (const auto import = module.imports.find(word); import != module.imports.end()) {
    made = name(name_of_import(import->second));
  } else if (is_of_python(word)) {
    made = name(word);
  } else {
    wrong(node, fmt::format("nothing says what '{}' is", word));
  }
  constants_.insert_or_assign({&module, word}, made);
  return made;
}

Value Walker::attribute(const Node& node) {
  const Value of = evaluate(*node.child(Field::object));
  const std::string_view word = words(*node.child(Field::attribute));
  if (of.type == Type::name) {
    const std::string whole = of.text + '.' + std::string(word);
    return name(whole.starts_with("triton.language") ? "tl" + whole.substr(15) : whole);
  }
  if (surroundings_ != nullptr)
    if (auto made = surroundings_->attribute(of, word)) return *made;
  refuse(node, fmt::format("it is not known what '.{}' is here", word));
}

Index Walker::index_of(const Node& node) {
  if (node.kind != Kind::slice) return {.value = evaluate(node)};
  Index made{.is_range = true};
  const std::string_view all = words(node);
  for (const Node* child : node.children) {
    // What stands before the colon is the beginning.
    int depth = 0;
    bool is_behind = false;
    for (std::size_t i = 0; i < child->begin - node.begin; ++i) {
      if (all[i] == '(' || all[i] == '[') ++depth;
      if (all[i] == ')' || all[i] == ']') --depth;
      if (all[i] == ':' && depth == 0) is_behind = true;
    }
    if ((is_behind ? made.end : made.begin).has_value()) refuse(node, "a slice with a step");
    (is_behind ? made.end : made.begin) = evaluate(*child);
  }
  return made;
}

std::vector<Index> Walker::indices_of(const Node& node) {
  std::vector<Index> at;
  for (const Node* child : node.children) {
    if (child->field != Field::subscript) continue;
    if (child->kind == Kind::tuple)
      for (const Node* one : child->children) at.push_back(index_of(*one));
    else
      at.push_back(index_of(*child));
  }
  return at;
}

/// `events[3, 1] = ...`: the name stands for another dictionary from here on.
void Walker::assign_entry(const Node& target, const Value& value) {
  const Node& name = *target.child(Field::value);
  const Value of = evaluate(name);
  if (name.kind != Kind::identifier || of.type != Type::dictionary ||
      !frames_.back().names.contains(words(name)))
    refuse(target, "what is assigned to here");
  const Value key = key_of(*this, indices_of(target), target);
  step(target, std::ssize(of.more->entries));
  Compound made{.entries = of.more->entries};
  put(made, key, value);
  give(frames_.back(), words(name), {.type = Type::dictionary, .more = held(std::move(made))},
       target);
}

Value Walker::subscript(const Node& node) {
  const Value of = evaluate(*node.child(Field::value));
  const std::vector<Index> at = indices_of(node);
  if (of.type == Type::list && at.size() == 1 && !at.front().is_range) {
    std::int64_t i = whole(at.front().value, node, "what stands between the brackets");
    const auto count = std::ssize(of.more->items);
    if (i < 0) i += count;
    if (i < 0 || i >= count)
      wrong(node, fmt::format("item {} of a list that has {}", at.front().value.base, count));
    return of.more->items[static_cast<std::size_t>(i)];
  }
  if (of.type == Type::dictionary) {
    const Value wanted = key_of(*this, at, node);
    for (const auto& [key, value] : of.more->entries)
      if (is_same_key(key, wanted)) return value;
    refuse(node, "a key that the dictionary does not have");
  }
  const bool is_block = of.type == Type::number || of.type == Type::mask || of.type == Type::data ||
                        of.type == Type::pointer;
  if (is_block) {  // [:, None]
    Value made = of;
    for (std::size_t i = 0; i < at.size(); ++i) {
      if (!at[i].is_range && at[i].value.type != Type::none) refuse(node, "an element of a block");
      if (!at[i].is_range) made = expanded(made, i);
      if (made.axes.size() > kMostAxes) refuse(node, "a block of too many axes");
    }
    return made;
  }
  if (surroundings_ != nullptr)
    if (auto made = surroundings_->subscript(of, at, node)) return *made;
  refuse(node, "what is indexed here");
}

Arguments Walker::arguments(const Node& node) {
  Arguments made{.positional = {}, .named = {}, .node = &node};
  const Node* given = node.child(Field::arguments);
  if (given == nullptr) return made;
  if (given->kind == Kind::generator_expression) {
    made.positional.push_back(evaluate(*given));
    return made;
  }
  Holding holding(*this);
  for (const Node* argument : given->children) {
    if (argument->kind == Kind::keyword_argument) {
      made.named.emplace_back(std::string(words(*argument->child(Field::name))),
                              evaluate(*argument->child(Field::value)));
      holding.add(made.named.back().second, *argument);
    } else if (argument->kind == Kind::list_splat || argument->kind == Kind::dictionary_splat) {
      refuse(*argument, "arguments of a number that the call does not say");
    } else {
      made.positional.push_back(evaluate(*argument));
      holding.add(made.positional.back(), *argument);
    }
  }
  return made;
}

Value Walker::call(const Node& node) {
  const Node& callee = *node.child(Field::function);
  if (callee.kind == Kind::attribute) {
    const Value of = evaluate(*callee.child(Field::object));
    if (of.type != Type::name) {
      const std::string_view word = words(*callee.child(Field::attribute));
      const Arguments given = arguments(node);
      if (surroundings_ != nullptr) {
        if (auto made = surroundings_->method(of, word, given)) return *made;
        if (auto found = surroundings_->attribute(of, word)) return apply(*found, given);
      }
      refuse(node, fmt::format("it is not known what '.{}()' does", word));
    }
  }
  const Value function = evaluate(callee);
  return apply(function, arguments(node));
}

namespace {

/// What is said of types.
std::optional<Value> of_types(std::string_view word, const std::vector<Value>& values) {
  if (word == "isinstance" && values.size() == 2 && values[1].text.ends_with("tensor_descriptor"))
    return number(values[0].type == Type::descriptor ? 1 : 0);
  if (word == "float" && values.size() == 1)
    return values[0].type == Type::text ? fraction(values[0].text) : values[0];
  return std::nullopt;
}

}  // namespace

std::optional<Value> Walker::builtin(std::string_view word, const Arguments& given) {
  const std::vector<Value>& values = given.positional;
  if (auto made = of_types(word, values)) return made;
  if (names_range(word)) {
    const Turns turns = range(given);
    if (turns.count > kMostItems) refuse(*given.node, "a list with too many numbers");
    step(*given.node, turns.count);
    std::vector<Value> items;
    for (std::int64_t i = 0; i < turns.count; ++i)
      items.push_back(number(turns.begin + i * turns.step));
    return list(std::move(items));
  }
  if ((word == "min" || word == "max") && values.size() == 2)
    return readback::binary(word, values[0], values[1]);
  if (word == "len" && values.size() == 1 && values[0].type == Type::list)
    return number(std::ssize(values[0].more->items));
  if ((word == "int" || word == "bool" || word == "tuple" || word == "list") && values.size() == 1)
    return values[0];
  return std::nullopt;
}

Walker::Turns Walker::range(const Arguments& given) const {
  const std::vector<Value>& values = given.positional;
  const Node& node = *given.node;
  if (values.empty() || values.size() > 3) refuse(node, "a range of this form");
  Turns made;
  const std::int64_t end = whole(values[values.size() > 1 ? 1 : 0], node, "the end of a loop");
  if (values.size() > 1) made.begin = whole(values[0], node, "the beginning of a loop");
  if (values.size() > 2) made.step = whole(values[2], node, "the step of a loop");
  if (made.step == 0) refuse(node, "a loop whose step is 0");
  const std::int64_t way = made.step > 0 ? end - made.begin : made.begin - end;
  const std::int64_t each = std::abs(made.step);
  made.count = way <= 0 ? 0 : (way + each - 1) / each;
  return made;
}

Value Walker::comparison(const Node& node) {
  Value left = evaluate(*node.children[0]);
  std::optional<Value> made;
  for (std::size_t i = 1; i < node.children.size(); ++i) {
    Holding holding(*this);
    holding.add(left, node);
    Value right = evaluate(*node.children[i]);
    std::string op = sign(node, i - 1);
    if (op == "in" || op == "not in") {
      if (right.type != Type::list && right.type != Type::dictionary)
        refuse(node, "a comparison of this kind");
      bool is_in = false;
      if (right.type == Type::list) {
        step(node, std::ssize(right.more->items));
        for (const Value& item : right.more->items)
          is_in =
              is_in || (item.type == left.type && item.base == left.base && item.text == left.text);
      } else {
        for (const auto& [key, item] : right.more->entries)
          is_in = is_in || (key.type == left.type && key.text == left.text);
      }
      made = number(is_in == (op == "in") ? 1 : 0);
    } else {
      if (op == "is not") op = left.type == Type::number ? "!=" : "is not";
      Value one =
          op == "is" || op == "is not"
              ? number((left.type == right.type && left.text == right.text) == (op == "is") ? 1 : 0)
              : readback::binary(op, left, right, &node);
      made = made ? readback::binary("&", *made, one) : one;
      step(node, weight(*made) / 64);
    }
    left = std::move(right);
  }
  return *made;
}

Value Walker::boolean(const Node& node) {
  const Value left = evaluate(*node.children[0]);
  const bool is_and = sign(node, 0) == "and";
  if (left.is_number()) {
    if ((left.base != 0) != is_and) return left;
    return evaluate(*node.children[1]);
  }
  const Value right = evaluate(*node.children[1]);
  return readback::binary(is_and ? "&" : "|", left, right);
}

Value Walker::unary(std::string_view sign, const Value& value, const Node& node) {
  if (sign == "not") return number(holds(value, *node.children.front()) ? 0 : 1);
  if (sign == "-" && value.type == Type::number) return readback::binary("-", number(0), value);
  if (sign == "~" && value.type == Type::mask && value.axes.size() <= 1)
    return value.axes.empty() || value.axes[0].values.empty()
               ? readback::binary("==", value, number(0))
               : applied("not", {value}, &node);
  return sign == "+" ? value : applied(sign == "~" ? "not" : "neg", {value}, &node);
}

Value Walker::comprehension(const Node& node) {
  const Node* body = node.child(Field::body);
  const Node* clause = nullptr;
  for (const Node* child : node.children) {
    if (child->kind == Kind::if_clause || (child->kind == Kind::for_in_clause && clause != nullptr))
      refuse(*child, "a comprehension of this kind");
    if (child->kind == Kind::for_in_clause) clause = child;
  }
  const Node& left = *clause->child(Field::left);
  std::vector<Value> items;
  const Value over = evaluate(*clause->child(Field::right));
  Holding holding(*this);
  holding.add(over, node);
  const auto before = frames_.back().names;
  const std::int64_t held_before = frames_.back().held;
  for (const Value& item : items_of(over, node)) {
    step(node);
    assign(left, item, node);
    items.push_back(evaluate(*body));
    holding.add(items.back(), node);
  }
  frames_.back().names = before;
  held_ -= frames_.back().held - held_before;
  frames_.back().held = held_before;
  return list(std::move(items));
}

}  // namespace hemiola::compile::readback
