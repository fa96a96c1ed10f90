// reference() of a file as terms.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "compile/python/formula.h"
#include "compile/readback/values.h"
#include "core/index.h"

namespace hemiola::compile::readback {
namespace {

/// What is not followed.
struct Unread {
  std::string what;
};

/// The number of each element along an axis.
Value places_along(std::size_t axis, const std::vector<std::int64_t>& shape) {
  Value made{.type = Type::number};
  for (std::size_t i = 0; i < shape.size(); ++i)
    made.axes.push_back({.count = shape[i], .stride = i == axis ? 1 : 0});
  return made;
}

class ReferenceReader {
 public:
  ReferenceReader(Walker& walker, const RankRecord& record)
      : walker_(walker), source_(walker.module().source), record_(record) {}

  std::vector<Formula> read(const Function& reference, std::string& why) {
    block(reference.body(), why);
    return std::move(made_);
  }

 private:
  std::string_view text(const Node& node) const { return source_.text(node); }

  void block(const Node& body, std::string& why) {
    for (const Node* statement : body.children) {
      try {
        follow(*statement, why);
      } catch (const Unread& unread) {
        if (why.empty())
          why = fmt::format("'{}' of reference() is not followed (line {})", unread.what,
                            source_.line(statement->begin));
      }
    }
  }

  void follow(const Node& node, std::string& why) {
    if (node.kind == Kind::function_definition) {
      block(*node.child(Field::body), why);
      return;
    }
    if (node.kind == Kind::return_statement && !node.children.empty()) {
      const Node& value = *node.children.front();
      if (value.kind != Kind::dictionary) {
        add("", value);
        return;
      }
      for (const Node* pair : value.children)
        if (pair->kind == Kind::pair)
          add(quoted(*pair->child(Field::key)), *pair->child(Field::value));
      return;
    }
    if (node.kind != Kind::expression_statement) return;
    for (const Node* child : node.children) {
      const Node* right = child->kind == Kind::assignment ? child->child(Field::right) : nullptr;
      if (right == nullptr) continue;
      const Node& left = *child->child(Field::left);
      if (left.kind == Kind::pattern_list) {
        for (const Node* one : left.children) gathered_.insert({std::string(text(*one)), right});
        continue;
      }
      const std::string name(text(left));
      if (right->kind == Kind::list_comprehension) {
        add(name, *right->child(Field::body));
        gathered_.insert({name, right});
      } else if (is_gathered(*right)) {
        gathered_.insert({name, right});
      } else {
        assign(name, *right);
      }
    }
  }

  void assign(const std::string& name, const Node& value) {
    try {
      names_.insert_or_assign(name, read(value));
    } catch (const Unread&) {
      names_.erase(name);
      throw;
    }
  }

  void add(const std::string& name, const Node& node) {
    if (node.kind == Kind::identifier || is_gathered(node)) return;  // what is moved
    made_.push_back({.name = name, .value = term_of(read(node)), .node = &node});
  }

  /// torch.cat(...), torch.stack(...): what movements put together.
  bool is_gathered(const Node& node) const {
    if (node.kind != Kind::call) return false;
    const std::string_view name = text(*node.child(Field::function));
    return name == "torch.cat" || name == "torch.stack";
  }

  std::string quoted(const Node& node) const { return content_of(text(node)); }

  /// All of a tensor of the rank.
  Value whole(const std::string& name, const Node& node) const {
    for (std::size_t i = 0; i < record_.tensors.size(); ++i) {
      if (record_.tensors[i].name != name) continue;
      std::vector<Along> axes;
      std::int64_t stride = 1;
      for (std::size_t a = record_.tensors[i].shape.size(); a-- > 0;) {
        axes.insert(axes.begin(), {.count = record_.tensors[i].shape[a], .stride = stride});
        stride *= record_.tensors[i].shape[a];
      }
      return data_of(load_term({.memory = static_cast<std::int32_t>(i), .node = &node}, axes,
                               nullptr, nullptr));
    }
    throw Unread{std::string(text(node))};
  }

  /// held[rank]["b"], of["a"]: what the caller fills.
  Value input(const std::string& name, const Node& node) const {
    for (const auto& [known, region] : record_.inputs) {
      if (known != name) continue;
      std::vector<Along> axes;
      for (const auto& [count, stride] : region.axes)
        axes.push_back({.count = count, .stride = stride});
      return data_of(load_term({.base = region.offset, .memory = region.tensor, .node = &node},
                               axes, nullptr, nullptr));
    }
    throw Unread{std::string(text(node))};
  }

  Value identifier(const Node& node) const {
    const std::string name(text(node));
    if (const auto known = names_.find(name); known != names_.end()) return known->second;
    if (gathered_.contains(name)) return whole(name, node);
    throw Unread{name};
  }

  std::int64_t integer(const Node& node) const {
    const auto value = integer_in(text(node));
    if (!value) throw Unread{std::string(text(node))};
    return *value;
  }
  /// Of an axis, which may be counted from the end.
  std::size_t axis(const Node& node, std::size_t axes) const {
    const std::int64_t number = integer(node);
    const std::int64_t at = number < 0 ? number + static_cast<std::int64_t>(axes) : number;
    if (at < 0 || at >= static_cast<std::int64_t>(axes)) throw Unread{std::string(text(node))};
    return index(at);
  }

  Value number(const Node& node) const {
    Value made = fraction(text(node));
    if (!made.term) throw Unread{std::string(text(node))};
    return made;
  }

  Value read(const Node& node) {
    switch (node.kind) {
      case Kind::parenthesized_expression:
        return read(*node.children.front());
      case Kind::integer:
      case Kind::float_:
        return number(node);
      case Kind::identifier:
        return identifier(node);
      case Kind::unary_operator:
        if (text(node).starts_with('-')) return applied("neg", {read(*node.children.front())});
        break;
      case Kind::binary_operator:
      case Kind::comparison_operator: {
        const std::string op = source_.between(node, 0);
        const Value left = read(*node.children[0]), right = read(*node.children[1]);
        return op == "@" ? product(left, right, node) : applied(op, {left, right}, &node);
      }
      case Kind::subscript:
        return subscript(node);
      case Kind::call:
        return call(node);
      default:
        break;
    }
    throw Unread{std::string(text(node))};
  }

  Value product(const Value& left, const Value& right, const Node& node) const {
    if (left.axes.size() < 2 || right.axes.size() < 2 ||
        left.axes.back().count != right.axes[right.axes.size() - 2].count)
      throw Unread{std::string(text(node))};
    Term made = *product_term(nullptr, term_of(left), term_of(right), &node);
    // Axes in front are those of both together.
    const auto &a = term_of(left)->shape, &b = term_of(right)->shape;
    made.shape = a.size() >= b.size() ? a : b;
    for (std::size_t i = 0; i + 2 < made.shape.size(); ++i) {
      const std::size_t behind = made.shape.size() - i;
      const std::int64_t of_a = behind <= a.size() ? a[a.size() - behind] : 1;
      const std::int64_t of_b = behind <= b.size() ? b[b.size() - behind] : 1;
      if (of_a != of_b && of_a != 1 && of_b != 1) throw Unread{std::string(text(node))};
      made.shape[i] = std::max(of_a, of_b);
    }
    made.shape[made.shape.size() - 2] = a[a.size() - 2];
    made.shape.back() = b.back();
    return data_of(std::make_shared<const Term>(std::move(made)));
  }

  Value subscript(const Node& node) {
    const Node& of = *node.child(Field::value);
    const Node& at = *node.child(Field::subscript);
    if (at.kind == Kind::string) {
      if (text(of) == "VALUES") return constant(quoted(at), node);
      return input(quoted(at), node);
    }
    // .chunk(RANKS)[rank]: which part of it a rank takes is said by movements.
    if (of.kind == Kind::call && text(*of.child(Field::function)).ends_with(".chunk"))
      return read(*of.child(Field::function)->child(Field::object));
    Value made = read(of);
    std::size_t place = 0;
    for (const Node* child : node.children) {
      if (child->field != Field::subscript) continue;
      if (child->kind == Kind::none)
        made = expanded(made, place);
      else if (child->kind != Kind::slice || text(*child) != ":")
        throw Unread{std::string(text(node))};
      ++place;
    }
    return made;
  }

  /// VALUES["scale"]
  Value constant(const std::string& name, const Node& node) {
    const Value values = walker_.constant("VALUES", node);
    if (values.type == Type::dictionary)
      for (const auto& [key, value] : values.more->entries)
        if (key.text == name) return value;
    throw Unread{std::string(text(node))};
  }

  /// `for one, of in zip(made, held)`: `one` is what every rank made.
  void bind(const Node& comprehension) {
    for (const Node* clause : comprehension.children) {
      if (clause->kind != Kind::for_in_clause) continue;
      const Node &left = *clause->child(Field::left), &over = *clause->child(Field::right);
      if (left.kind != Kind::pattern_list || over.kind != Kind::call) continue;
      const std::vector<const Node*> lists = arguments(over);
      for (std::size_t i = 0; i < lists.size() && i < left.children.size(); ++i) {
        const std::string name(text(*lists[i]));
        if (gathered_.contains(name))
          names_.insert_or_assign(std::string(text(*left.children[i])), whole(name, *lists[i]));
      }
    }
  }

  std::vector<const Node*> arguments(const Node& call) const {
    const Node* given = call.child(Field::arguments);
    if (given == nullptr) return {};
    if (given->kind == Kind::generator_expression) return {given};
    return given->children;
  }

  Value swapped(const Value& of, std::size_t a, std::size_t b) const {
    std::vector<std::size_t> order(of.axes.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::swap(order[a], order[b]);
    return transposed(of, order);
  }

  Value reduced(const char* op, const Value& of) const {
    Value made = data_of(term_of(of));
    made.axes.pop_back();
    made = with_term(
        std::move(made),
        {.kind = Term::Kind::reduced, .op = op, .places = {static_cast<int>(of.axes.size()) - 1}},
        of);
    return expanded(made, of.axes.size() - 1);
  }

  Value call(const Node& node) {
    const Node& function = *node.child(Field::function);
    const std::vector<const Node*> given = arguments(node);
    const std::string_view name = text(function);
    if (name == "sum" && given.size() == 1 && given[0]->kind == Kind::generator_expression) {
      bind(*given[0]);
      return read(*given[0]->child(Field::body));
    }
    if (name == "float" && given.size() == 1 && quoted(*given[0]) == "-inf")
      return data_of(constant_term(-INFINITY));
    if (const Function* own = walker_.module().find(name); own != nullptr && !given.empty())
      return inlined(*own, *given[0]);
    if (name.ends_with(".get") && given.size() == 2) {  // what the first rank alone may have
      const bool is_there = std::ranges::any_of(
          record_.inputs, [&](const auto& one) { return one.first == quoted(*given[0]); });
      return is_there ? input(quoted(*given[0]), node) : read(*given[1]);
    }
    if (name.starts_with("torch.") && name.find('(') == name.npos)
      return of_torch(name.substr(name.rfind('.') + 1), given, node);
    if (function.kind != Kind::attribute) throw Unread{std::string(text(node))};
    return method(read(*function.child(Field::object)), text(*function.child(Field::attribute)),
                  given, node);
  }

  /// `epilogue(product, of)`: a function of the file, of its first argument and of inputs.
  Value inlined(const Function& function, const Node& argument) {
    if (depth_ > 8 || function.parameters.empty()) throw Unread{function.name};
    ++depth_;
    const Value given = read(argument);
    const auto before = names_;
    names_.insert_or_assign(function.parameters.front().name, given);
    std::optional<Value> made;
    for (const Node* statement : function.body().children) {
      if (statement->kind == Kind::return_statement && !statement->children.empty())
        made = read(*statement->children.front());
      for (const Node* child : statement->children)
        if (child->kind == Kind::assignment)
          assign(std::string(text(*child->child(Field::left))), *child->child(Field::right));
    }
    names_ = before;
    --depth_;
    if (!made) throw Unread{function.name};
    return *made;
  }

  Value of_torch(std::string_view name, const std::vector<const Node*>& given, const Node& node) {
    if (name == "ones_like")
      return data_of(std::make_shared<const Term>(Term{.kind = Term::Kind::apply,
                                                       .shape = term_of(read(*given.at(0)))->shape,
                                                       .op = "same",
                                                       .args = {constant_term(1)}}));
    if (name == "softmax" && given.size() == 2) {
      const Value of = read(*given[0]);
      if (of.axes.empty() || axis(*given[1], of.axes.size()) + 1 != of.axes.size())
        throw Unread{std::string(text(node))};
      const Value powers = applied("exp", {applied("-", {of, reduced("max", of)})});
      return applied("/", {powers, reduced("sum", powers)});
    }
    std::vector<Value> values;
    for (const Node* one : given)
      if (one->kind != Kind::keyword_argument) values.push_back(read(*one));
    if (values.size() == 3 && name == "where") return applied(name, values, &node);
    if (values.size() == 1 && name == "tensor") return values[0];
    if (values.size() == 2 && (name == "maximum" || name == "minimum"))
      return applied(name.substr(0, 3), values, &node);
    if (values.size() == 1 && is_function_of_elements(name)) return applied(name, values, &node);
    throw Unread{std::string(text(node))};
  }

  Value method(const Value& of, std::string_view name, const std::vector<const Node*>& given,
               const Node& node) {
    if (name == "to" || name == "float" || name == "double") return of;
    const std::size_t axes = of.axes.size();
    if (name == "t" && axes == 2) return swapped(of, 0, 1);
    if (name == "transpose" && given.size() == 2)
      return swapped(of, axis(*given[0], axes), axis(*given[1], axes));
    if (name == "unsqueeze" && given.size() == 1) return expanded(of, axis(*given[0], axes + 1));
    if (name == "triu" && given.size() == 1 && axes >= 2) {
      const auto shape = term_of(of)->shape;
      const Value beyond =
          applied("-", {places_along(axes - 1, shape), places_along(axes - 2, shape)});
      const Value zero = data_of(constant_term(0));
      return applied("where", {applied(">=", {beyond, number(*given[0])}), of, zero}, &node);
    }
    if (name == "masked_fill" && given.size() == 2)
      return applied("where", {read(*given[0]), read(*given[1]), of}, &node);
    if (given.empty() && is_function_of_elements(name)) return applied(name, {of}, &node);
    throw Unread{std::string(text(node))};
  }

  Walker& walker_;
  const Source& source_;
  const RankRecord& record_;
  std::map<std::string, Value, std::less<>> names_;
  std::map<std::string, const Node*, std::less<>> gathered_;
  std::vector<Formula> made_;
  int depth_ = 0;  ///< of functions of the file that call each other
};

}  // namespace

std::vector<Formula> formulas_of(Walker& walker, const RankRecord& record, std::string& why) {
  const Function* reference = walker.module().find("reference");
  if (reference == nullptr) {
    why = "the file has no reference()";
    return {};
  }
  return ReferenceReader(walker, record).read(*reference, why);
}

}  // namespace hemiola::compile::readback
