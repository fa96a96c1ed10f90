#include "compile/python/formula.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "compile/python/modules.h"
#include "compile/python/syntax.h"

namespace hemiola::compile {
namespace {

/// As Python rounds: down.
std::optional<std::int64_t> floor_divided(std::int64_t a, std::int64_t b) {
  if (b == 0) return std::nullopt;
  const std::int64_t quotient = a / b;
  return quotient - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

std::optional<std::int64_t> whole(bool has_overflown, const std::int64_t& number) {
  return has_overflown ? std::nullopt : std::optional(number);
}

}  // namespace

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
    std::int64_t value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    return read.ec == std::errc() && read.ptr == text.data() + text.size() &&
           step(Formula::Operation::number, value);
  }

  bool name(std::string text) {
    auto at = std::find(made_.names_.begin(), made_.names_.end(), text);
    if (at == made_.names_.end()) at = made_.names_.insert(at, std::move(text));
    return step(Formula::Operation::name, at - made_.names_.begin());
  }

  bool infix(const std::string& text) {
    using Operation = Formula::Operation;
    static constexpr std::pair<const char*, Operation> kOperators[] = {
        {"+", Operation::add},         {"-", Operation::subtract}, {"*", Operation::multiply},
        {"//", Operation::divide},     {"%", Operation::modulo},   {"<", Operation::less},
        {"<=", Operation::less_equal}, {">", Operation::greater},  {">=", Operation::greater_equal},
        {"==", Operation::equal},      {"!=", Operation::unequal}, {"and", Operation::both},
        {"or", Operation::either},     {"**", Operation::power}};
    for (const auto& [sign, operation] : kOperators)
      if (text == sign) return step(operation);
    return false;
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
    static constexpr std::pair<std::string_view, Operation> kFunctions[] = {
        {"cdiv", Operation::divide_up},  {"min", Operation::minimum},
        {"minimum", Operation::minimum}, {"max", Operation::maximum},
        {"maximum", Operation::maximum}, {"where", Operation::choose}};
    for (const auto& [known, operation] : kFunctions) {
      if (function != known) continue;
      if (values.size() != (operation == Operation::choose ? 3U : 2U)) return false;
      for (const Node* value : values)
        if (value == nullptr || !read(*value)) return false;
      return step(operation);
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
    std::optional<std::int64_t> made;
    std::int64_t number = 0;
    switch (step.operation) {
      case Operation::add:
        made = whole(__builtin_add_overflow(a, b, &number), number);
        break;
      case Operation::subtract:
        made = whole(__builtin_sub_overflow(a, b, &number), number);
        break;
      case Operation::multiply:
        made = whole(__builtin_mul_overflow(a, b, &number), number);
        break;
      case Operation::divide:
        made = floor_divided(a, b);
        break;
      case Operation::modulo:
        if (const auto quotient = floor_divided(a, b)) made = a - *quotient * b;
        break;
      case Operation::divide_up:
        if (const auto quotient = floor_divided(-a, b)) made = -*quotient;
        break;
      case Operation::minimum:
        made = std::min(a, b);
        break;
      case Operation::maximum:
        made = std::max(a, b);
        break;
      case Operation::less:
        made = a < b ? 1 : 0;
        break;
      case Operation::less_equal:
        made = a <= b ? 1 : 0;
        break;
      case Operation::greater:
        made = a > b ? 1 : 0;
        break;
      case Operation::greater_equal:
        made = a >= b ? 1 : 0;
        break;
      case Operation::equal:
        made = a == b ? 1 : 0;
        break;
      case Operation::unequal:
        made = a != b ? 1 : 0;
        break;
      case Operation::both:
        made = a != 0 ? b : a;
        break;
      case Operation::either:
        made = a != 0 ? a : b;
        break;
      case Operation::choose:
        made = pop() != 0 ? a : b;
        break;
      case Operation::power:
        if (b < 0 || b >= 63) break;
        made = 1;
        for (std::int64_t i = 0; made && i < b; ++i)
          made = whole(__builtin_mul_overflow(*made, a, &number), number);
        break;
      default:
        break;
    }
    if (!made) return std::nullopt;
    stack.push_back(*made);
  }
  return stack.size() == 1 ? std::optional(stack.back()) : std::nullopt;
}

std::optional<std::int64_t> number_in(std::string_view text, const Names& names) {
  return text.empty() ? std::nullopt : Formula(text).value(names);
}

}  // namespace hemiola::compile
