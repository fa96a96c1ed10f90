#include "compile/python/formula.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "compile/python/modules.h"
#include "compile/python/syntax.h"

namespace hemiola::compile {
namespace {

using I = std::int64_t;
using Whole = std::optional<I>;

Whole sum(I a, I b) {
  return __builtin_add_overflow(a, b, &a) ? std::nullopt : Whole(a);
}
Whole difference(I a, I b) {
  return __builtin_sub_overflow(a, b, &a) ? std::nullopt : Whole(a);
}
Whole product(I a, I b) {
  return __builtin_mul_overflow(a, b, &a) ? std::nullopt : Whole(a);
}

/// As Python rounds: down.
Whole floor_divided(I a, I b) {
  if (b == 0 || (b == -1 && a == INT64_MIN)) return std::nullopt;
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}
Whole remainder(I a, I b) {
  const Whole quotient = floor_divided(a, b);
  return quotient ? Whole(a - *quotient * b) : quotient;
}
Whole divided_up(I a, I b) {
  const Whole quotient = floor_divided(-a, b);
  return quotient ? Whole(-*quotient) : quotient;
}

Whole power(I a, I b) {
  if (b < 0 || b >= 63) return std::nullopt;
  Whole made = 1;
  for (I i = 0; made && i < b; ++i) made = product(*made, a);
  return made;
}

Whole shifted(I a, I b) {
  const Whole by = power(2, b);
  return by ? product(a, *by) : by;
}

constexpr std::pair<std::string_view, Infix> kInfix[] = {
    {"+", sum},
    {"-", difference},
    {"*", product},
    {"//", floor_divided},
    {"%", remainder},
    {"<", [](I a, I b) { return Whole(a < b); }},
    {"<=", [](I a, I b) { return Whole(a <= b); }},
    {">", [](I a, I b) { return Whole(a > b); }},
    {">=", [](I a, I b) { return Whole(a >= b); }},
    {"==", [](I a, I b) { return Whole(a == b); }},
    {"!=", [](I a, I b) { return Whole(a != b); }},
    {"is", [](I a, I b) { return Whole(a == b); }},
    {"is not", [](I a, I b) { return Whole(a != b); }},
    {"and", [](I a, I b) { return Whole(a != 0 ? b : a); }},
    {"or", [](I a, I b) { return Whole(a != 0 ? a : b); }},
    {"min", [](I a, I b) { return Whole(std::min(a, b)); }},
    {"max", [](I a, I b) { return Whole(std::max(a, b)); }},
    {"cdiv", divided_up},
    {"&", [](I a, I b) { return Whole(a & b); }},
    {"|", [](I a, I b) { return Whole(a | b); }},
    {"^", [](I a, I b) { return Whole(a ^ b); }},
    {"<<", shifted},
    {">>", [](I a, I b) { return b < 0 || b > 63 ? Whole() : Whole(a >> b); }},
    {"**", power}};

const std::pair<std::string_view, Infix>* infix_of(std::string_view op) {
  return std::ranges::find_if(kInfix, [&](const auto& one) { return one.first == op; });
}

}  // namespace

Infix infix_named(std::string_view op) {
  const auto* found = infix_of(op);
  return found == std::end(kInfix) ? nullptr : found->second;
}

std::optional<std::int64_t> infix(std::string_view op, std::int64_t a, std::int64_t b) {
  const Infix computed = infix_named(op);
  return computed == nullptr ? std::nullopt : computed(a, b);
}

std::optional<std::int64_t> integer_in(std::string_view literal) {
  std::string digits(literal);
  std::erase(digits, '_');
  const std::string_view kinds = "xXbBoO";
  const std::size_t kind =
      digits.size() > 2 && digits[0] == '0' ? kinds.find(digits[1]) : kinds.npos;
  constexpr int kBases[] = {16, 2, 8};
  const bool has_base = kind != kinds.npos;
  std::int64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data() + (has_base ? 2 : 0), end, value,
                                    has_base ? kBases[kind / 2] : 10);
  return read.ec != std::errc() || read.ptr != end ? Whole() : Whole(value);
}

std::string content_of(std::string_view literal) {
  const std::size_t begin = literal.find_first_of("\"'");
  if (begin == literal.npos) return {};
  const std::string_view quoted = literal.substr(begin);
  const std::size_t quotes = quoted.starts_with("\"\"\"") || quoted.starts_with("'''") ? 3 : 1;
  return quoted.size() < 2 * quotes
             ? ""
             : std::string(quoted.substr(quotes, quoted.size() - 2 * quotes));
}

class FormulaReader {
 public:
  FormulaReader(const Source& source, Formula& made) : source_(source), made_(made) {}

  /// False: something in it is not followed.
  bool read(const Node& node) {
    using Operation = Formula::Operation;
    switch (node.kind) {
      case Kind::parenthesized_expression:
      case Kind::expression_statement:
        return node.children.size() == 1 && read(*node.children.front());
      case Kind::lambda:
        return node.child(Field::body) != nullptr && read(*node.child(Field::body));
      case Kind::integer:
        return number(source_.text(node));
      case Kind::true_:
      case Kind::false_:
        return step(Operation::number, node.kind == Kind::true_ ? 1 : 0);
      case Kind::identifier:
        return name(std::string(source_.text(node)));
      case Kind::subscript: {
        const Node* key = node.child(Field::subscript);
        if (key == nullptr || key->kind != Kind::string) return false;
        const std::string_view text = source_.text(*key);
        return text.size() > 2 && name(std::string(text.substr(1, text.size() - 2)));
      }
      case Kind::unary_operator: {
        const std::string_view text = source_.text(node);
        if (node.children.size() != 1 || !read(*node.children.front())) return false;
        return text.starts_with("+") || (text.starts_with("-") && step(Operation::negate));
      }
      case Kind::not_operator:
        return node.children.size() == 1 && read(*node.children.front()) && step(Operation::no);
      case Kind::binary_operator:
      case Kind::boolean_operator:
      case Kind::comparison_operator:
        return node.children.size() == 2 && read(*node.children[0]) && read(*node.children[1]) &&
               infix(source_.between(node, 0));
      case Kind::conditional_expression:  // children: then, condition, else
        return node.children.size() == 3 && read(*node.children[1]) && read(*node.children[0]) &&
               read(*node.children[2]) && step(Operation::choose);
      case Kind::call:
        return call(node);
      default:
        return false;
    }
  }

 private:
  bool step(Formula::Operation operation, std::int64_t number = 0) {
    made_.steps_.push_back({operation, number});
    return true;
  }

  bool number(std::string_view text) {
    const auto value = integer_in(text);
    return value && step(Formula::Operation::number, *value);
  }

  bool name(std::string text) {
    auto at = std::ranges::find(made_.names_, text);
    if (at == made_.names_.end()) at = made_.names_.insert(at, std::move(text));
    return step(Formula::Operation::name, at - made_.names_.begin());
  }

  bool infix(std::string_view text) {
    const auto* found = infix_of(text);
    return found != std::end(kInfix) && step(Formula::Operation::infix, found - kInfix);
  }

  bool call(const Node& node) {
    using Operation = Formula::Operation;
    const Node* arguments = node.child(Field::arguments);
    if (arguments == nullptr) return false;
    const std::string_view function = last_name(source_, node);
    std::vector<const Node*> values;
    for (const Node* child : arguments->children) {
      const bool is_named = child->kind == Kind::keyword_argument;
      values.push_back(is_named ? child->child(Field::value) : child);
    }
    if (function == "program_id" || function == "num_programs") {
      if (values.size() != 1 || values[0] == nullptr) return false;
      return name("tl." + std::string(function) + '(' + std::string(source_.text(*values[0])) +
                  ')');
    }
    static constexpr std::pair<std::string_view, std::string_view> kFunctions[] = {
        {"cdiv", "cdiv"}, {"min", "min"},     {"minimum", "min"},
        {"max", "max"},   {"maximum", "max"}, {"where", ""}};
    for (const auto& [known, op] : kFunctions) {
      if (function != known) continue;
      if (values.size() != (op.empty() ? 3U : 2U)) return false;
      for (const Node* value : values)
        if (value == nullptr || !read(*value)) return false;
      return op.empty() ? step(Operation::choose) : infix(op);
    }
    return false;
  }

  const Source& source_;
  Formula& made_;
};

Formula::Formula(std::string_view text) {
  if (!can_parse()) return;
  try {
    const Source source("", "(" + std::string(text) + ")\n");
    const auto& statements = source.root().children;
    if (statements.size() == 1 && FormulaReader(source, *this).read(*statements.front())) return;
  } catch (const Failure&) {  // no Python: it has no value
  }
  steps_.clear();
  names_.clear();
}

std::optional<std::int64_t> Formula::value(const Names& values) const {
  std::vector<std::int64_t> numbers;
  for (const std::string& name : names_) {
    const auto found = values.find(name);
    if (found == values.end()) return std::nullopt;
    numbers.push_back(found->second);
  }
  return value(numbers);
}

std::optional<std::int64_t> Formula::value(const std::vector<std::int64_t>& values) const {
  std::vector<std::int64_t> stack;
  const auto pop = [&] {
    const std::int64_t top = stack.back();
    stack.pop_back();
    return top;
  };
  for (const Step& step : steps_) {
    if (step.operation == Operation::number || step.operation == Operation::name) {
      stack.push_back(step.operation == Operation::number
                          ? step.number
                          : values[static_cast<std::size_t>(step.number)]);
      continue;
    }
    const std::int64_t b = pop();
    if (step.operation == Operation::negate || step.operation == Operation::no) {
      stack.push_back(step.operation == Operation::no ? (b == 0 ? 1 : 0) : -b);
      continue;
    }
    const std::int64_t a = pop();
    const Whole made = step.operation == Operation::choose ? Whole(pop() != 0 ? a : b)
                                                           : kInfix[step.number].second(a, b);
    if (!made) return std::nullopt;
    stack.push_back(*made);
  }
  return stack.size() == 1 ? std::optional(stack.back()) : std::nullopt;
}

std::optional<std::int64_t> number_in(std::string_view text, const Names& names) {
  return text.empty() ? std::nullopt : Formula(text).value(names);
}

}  // namespace hemiola::compile
