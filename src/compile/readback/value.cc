#include "compile/readback/value.h"

#include <algorithm>
#include <optional>

#include "compile/python/formula.h"
#include "compile/readback/term.h"

namespace hemiola::compile::readback {
namespace {

using Number = std::int64_t;

/// What one element adds is part of the base.
void settle(Value& value) {
  for (Along& along : value.axes) {
    if (along.values.empty() || value.type == Type::mask) continue;
    const Number first = along.values.front();
    bool is_even = true;
    const Number step = along.count > 1 ? along.values[1] - first : 0;
    for (std::size_t i = 1; is_even && i < along.values.size(); ++i)
      is_even = along.values[i] - along.values[i - 1] == step;
    value.base += first;
    if (is_even) {
      along.stride = step;
      along.values.clear();
    } else {
      for (Number& one : along.values) one -= first;
    }
  }
}

bool fits(const Along& along) {
  return readback::fits(times(along.count - 1, along.stride)) &&
         std::ranges::all_of(along.values, [](Number one) { return readback::fits(one); });
}

/// Data instead, where a number of it does not fit.
Value fitting(Value made) {
  const bool does = readback::fits(made.base) &&
                    std::ranges::all_of(made.axes, [](const Along& along) { return fits(along); });
  return does ? made : unknown(made.axes);
}

/// Axes of both side by side, the last ones with each other.
void align(std::vector<Along>& a, std::vector<Along>& b) {
  std::vector<Along>& shorter = a.size() < b.size() ? a : b;
  const std::size_t missing = std::max(a.size(), b.size()) - shorter.size();
  shorter.insert(shorter.begin(), missing, Along{});
}

std::vector<Along> shape_of(const Value& a, const Value& b) {
  std::vector<Along> left = a.axes, right = b.axes;
  align(left, right);
  for (std::size_t i = 0; i < left.size(); ++i)
    left[i] = {.count = std::max(left[i].count, right[i].count)};
  return left;
}

/// Whether they have as many elements along each axis, or one of them a single one.
bool go_together(const Value& a, const Value& b) {
  std::vector<Along> left = a.axes, right = b.axes;
  align(left, right);
  for (std::size_t i = 0; i < left.size(); ++i)
    if (left[i].count != right[i].count && left[i].count != 1 && right[i].count != 1) return false;
  return true;
}

Along sum(const Along& a, const Along& b, Number sign) {
  Along made{.count = std::max(a.count, b.count)};
  if (a.values.empty() && b.values.empty()) {
    made.stride = (a.count > 1 ? a.stride : 0) + sign * (b.count > 1 ? b.stride : 0);
    return made;
  }
  for (Number i = 0; i < made.count; ++i)
    made.values.push_back((a.count > 1 ? a.at(i) : 0) + sign * (b.count > 1 ? b.at(i) : 0));
  return made;
}

Value added(const Value& a, const Value& b, Number sign) {
  Value made = a.type == Type::number && b.type != Type::number ? b : a;
  made.base = a.base + sign * b.base;
  std::vector<Along> left = a.axes, right = b.axes;
  align(left, right);
  made.axes.clear();
  for (std::size_t i = 0; i < left.size(); ++i) {
    made.axes.push_back(sum(left[i], right[i], sign));
    if (!fits(made.axes.back())) return unknown(shape_of(a, b));
  }
  settle(made);
  return fitting(std::move(made));
}

bool varies(const Value& value) {
  return std::ranges::any_of(value.axes, [](const Along& along) { return along.varies(); });
}

/// The one axis along which one of them is not the same everywhere; nothing: there are several.
std::optional<std::size_t> axis_of(const std::vector<Along>& a, const std::vector<Along>& b) {
  std::size_t found = 0;
  int count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!a[i].varies() && !b[i].varies()) continue;
    found = i;
    ++count;
  }
  return count > 1 ? std::nullopt : std::optional(found);
}

/// Nothing: there is no such operator, it is no whole number, or does not fit.
std::optional<Number> computed(Infix op, Number a, Number b) {
  const auto made = op == nullptr ? std::nullopt : op(a, b);
  return made && readback::fits(*made) ? made : std::nullopt;
}

/// Whether the same holds for all elements between two that it holds for: of sums that grow or fall
/// evenly.
bool is_monotone(std::string_view op, const Along& a, const Along& b) {
  return (op.front() == '<' || op.front() == '>') && a.values.empty() && b.values.empty();
}

/// Element by element. `is_truth`: the result is a mask where it is a block.
Value pointwise(std::string_view op, const Value& a, const Value& b, bool is_truth) {
  std::vector<Along> left = a.axes, right = b.axes;
  align(left, right);
  Value made{.type = Type::number};
  const auto axis = axis_of(left, right);
  made.axes = shape_of(a, b);
  if (!axis) return applied(op, {a, b});
  std::vector<Number> values;
  const Number count = std::max<Number>(left[*axis].varies() ? left[*axis].count : 1,
                                        right[*axis].varies() ? right[*axis].count : 1);
  const Infix infix = infix_named(op);
  const auto element = [&](Number i) {
    return computed(infix, a.base + (left[*axis].varies() ? left[*axis].at(i) : 0),
                    b.base + (right[*axis].varies() ? right[*axis].at(i) : 0));
  };
  if (is_truth && is_monotone(op, left[*axis], right[*axis]) && element(0) &&
      element(0) == element(count - 1)) {
    made.type = Type::mask;
    made.base = *element(0);
    return made;
  }
  for (Number i = 0; i < count; ++i) {
    const auto value = element(i);
    if (!value) return unknown(made.axes);
    values.push_back(*value);
  }
  const bool is_same =
      std::ranges::all_of(values, [&](Number one) { return one == values.front(); });
  if (is_truth) made.type = Type::mask;
  if (is_same) {
    made.base = values.front();
  } else if (is_truth) {
    made.base = 1;
    made.axes[*axis].values = std::move(values);
  } else {
    made.axes[*axis].values = std::move(values);
    settle(made);
  }
  return fitting(std::move(made));
}

Value scaled(const Value& value, Number by) {
  Value made = value;
  made.base = times(made.base, by);
  for (Along& along : made.axes) {
    along.stride = times(along.stride, by);
    for (Number& one : along.values) one = times(one, by);
  }
  return fitting(std::move(made));
}

/// Whether there is anything true in it.
bool is_false(const Value& value) {
  return value.base == 0;
}
bool is_true(const Value& mask) {
  return mask.base != 0 &&
         std::ranges::all_of(mask.axes, [](const Along& along) { return along.values.empty(); });
}

/// Both, axis by axis: `a` and `b` are masks, or truth that is no block.
Value both(const Value& a, const Value& b) {
  Value made{.type = Type::mask, .base = !is_false(a) && !is_false(b) ? 1 : 0};
  std::vector<Along> left = a.type == Type::mask ? a.axes : std::vector<Along>{};
  std::vector<Along> right = b.type == Type::mask ? b.axes : std::vector<Along>{};
  align(left, right);
  for (std::size_t i = 0; i < left.size(); ++i) {
    Along along{.count = std::max(left[i].count, right[i].count)};
    if (!left[i].values.empty() || !right[i].values.empty()) {
      for (Number k = 0; k < along.count; ++k) {
        const auto holds = [&](const Along& one) {
          return one.values.empty() || one.values[one.count > 1 ? static_cast<std::size_t>(k) : 0];
        };
        along.values.push_back(holds(left[i]) && holds(right[i]) ? 1 : 0);
      }
    }
    made.axes.push_back(std::move(along));
  }
  if (made.axes.empty()) made.type = Type::number;
  return made;
}

bool is_truth(const Value& value) {
  return value.type == Type::mask || value.is_number();
}

bool compares(std::string_view op) {
  return op == "<" || op == "<=" || op == ">" || op == ">=" || op == "==" || op == "!=";
}

}  // namespace

std::int64_t times(std::int64_t a, std::int64_t b) {
  std::int64_t made = 0;
  return __builtin_mul_overflow(a, b, &made) || !fits(made) ? kMostNumber + 1 : made;
}

std::int64_t plus(std::int64_t a, std::int64_t b) {
  std::int64_t made = 0;
  return __builtin_add_overflow(a, b, &made) ? (b < 0 ? INT64_MIN : INT64_MAX) : made;
}

std::int64_t weight(const Value& value) {
  std::int64_t made = sizeof(Value) / 8;
  for (const Along& along : value.axes)
    made += static_cast<std::int64_t>(sizeof(Along) / 8 + along.values.size());
  return made + (value.more ? value.more->weight : 0);
}

std::shared_ptr<const Compound> held(Compound made) {
  made.weight = sizeof(Compound) / 8;
  for (const Value& item : made.items) made.weight += weight(item);
  for (const auto& [key, value] : made.entries) made.weight += weight(key) + weight(value);
  for (const auto& [name, value] : made.seen) made.weight += weight(value);
  return std::make_shared<const Compound>(std::move(made));
}

Value number(std::int64_t value) {
  return {.type = Type::number, .base = value};
}
Value text(std::string value) {
  return {.type = Type::text, .text = std::move(value)};
}
Value name(std::string value) {
  return {.type = Type::name, .text = std::move(value)};
}

Value list(std::vector<Value> items) {
  return {.type = Type::list, .more = held({.items = std::move(items)})};
}

Value object(std::shared_ptr<Object> made) {
  return {.type = Type::object, .more = held({.object = std::move(made)})};
}

Value unknown(const std::vector<Along>& like) {
  Value made{.type = Type::data};
  for (const Along& along : like) made.axes.push_back({.count = along.count});
  return made;
}

Value range_of(std::int64_t begin, std::int64_t count) {
  return {.type = Type::number, .base = begin, .axes = {{.count = count, .stride = 1}}};
}

Value binary(std::string_view op, const Value& a, const Value& b, const Node* node) {
  if ((a.type == Type::text || a.type == Type::name || a.type == Type::none) &&
      (op == "==" || op == "!=" || op == "is" || op == "is not")) {
    const bool is_same = a.type == b.type && a.text == b.text;
    return number(is_same == (op == "==" || op == "is") ? 1 : 0);
  }
  if (a.type == Type::list && b.type == Type::list && op == "+") {
    std::vector<Value> items = a.more->items;
    items.insert(items.end(), b.more->items.begin(), b.more->items.end());
    return list(std::move(items));
  }
  if (!go_together(a, b)) return unknown(shape_of(a, b));
  const bool is_sum = op == "+" || op == "-";
  if (a.type == Type::number && b.type == Type::number) {
    if (a.axes.empty() && b.axes.empty()) {
      const auto value = computed(infix_named(op), a.base, b.base);
      return value ? number(*value) : unknown();
    }
    if (is_sum) return added(a, b, op == "+" ? 1 : -1);
    if (op == "*" && !varies(a) && a.axes.size() <= b.axes.size()) return scaled(b, a.base);
    if (op == "*" && !varies(b) && b.axes.size() <= a.axes.size()) return scaled(a, b.base);
    return pointwise(op, a, b, compares(op));
  }
  if (a.type == Type::pointer && b.type == Type::number && is_sum)
    return added(a, b, op == "+" ? 1 : -1);
  if (b.type == Type::pointer && a.type == Type::number && op == "+") return added(a, b, 1);
  if (a.type == Type::look && b.is_number() && is_sum) {
    Value made = a;
    made.base += op == "+" ? b.base : -b.base;
    return fitting(std::move(made));
  }
  if (is_truth(a) && is_truth(b)) {
    if (op == "&") return both(a, b);
    if (op == "|" && (is_true(a) || is_true(b))) {
      Value made{.type = Type::mask, .base = 1, .axes = shape_of(a, b)};
      return made;
    }
    if (op == "|" && is_false(a)) return b;
    if (op == "|" && is_false(b)) return a;
  }
  return applied(op, {a, b}, node);
}

Value where(const Value& condition, const Value& a, const Value& b, const Node* node) {
  if (condition.is_number()) return condition.base != 0 ? a : b;
  if (!go_together(condition, a) || !go_together(condition, b) || !go_together(a, b))
    return unknown(shape_of(condition, Value{.axes = shape_of(a, b)}));
  if (condition.type == Type::mask && a.type == b.type && a.type == Type::number) {
    if (is_true(condition))
      return binary("+", a, Value{.type = Type::number, .axes = unknown(condition.axes).axes});
    if (is_false(condition))
      return binary("+", b, Value{.type = Type::number, .axes = unknown(condition.axes).axes});
    std::vector<Along> at = condition.axes;
    std::optional<std::size_t> axis;
    for (std::size_t i = 0; i < at.size(); ++i) {
      if (at[i].values.empty()) continue;
      if (axis) return applied("where", {condition, a, b}, node);
      axis = at.size() - i;  // from behind
    }
    const auto behind = [&](const Value& value) -> const Along* {
      for (std::size_t i = 0; i < value.axes.size(); ++i)
        if (value.axes[i].varies() && value.axes.size() - i != *axis) return nullptr;
      static const Along kNothing{};
      return value.axes.size() >= *axis ? &value.axes[value.axes.size() - *axis] : &kNothing;
    };
    const Along *left = behind(a), *right = behind(b);
    if (left != nullptr && right != nullptr) {
      Value made{.type = Type::number, .axes = shape_of(condition, Value{.axes = shape_of(a, b)})};
      Along& along = made.axes[made.axes.size() - *axis];
      const std::vector<Number>& holds = at[at.size() - *axis].values;
      for (std::size_t i = 0; i < holds.size(); ++i) {
        const Along& from = holds[i] != 0 ? *left : *right;
        along.values.push_back((holds[i] != 0 ? a.base : b.base) +
                               (from.varies() ? from.at(static_cast<Number>(i)) : 0));
      }
      settle(made);
      return made;
    }
  }
  return applied("where", {condition, a, b}, node);
}

namespace {

/// Axis i of the data is axis places[i] of the result.
void turn(Value& made, const Value& from, std::vector<int> places) {
  if (from.type != Type::data) return;
  made = with_term(std::move(made), {.kind = Term::Kind::view, .places = std::move(places)}, from);
}

}  // namespace

Value transposed(const Value& value, const std::vector<std::size_t>& order) {
  Value made = value;
  made.axes.clear();
  std::vector<int> places(order.size());
  for (const std::size_t axis : order) {
    places[axis] = static_cast<int>(made.axes.size());
    made.axes.push_back(value.axes[axis]);
  }
  turn(made, value, std::move(places));
  return made;
}

Value expanded(const Value& value, std::size_t axis) {
  Value made = value;
  made.axes.insert(
      made.axes.begin() + static_cast<std::ptrdiff_t>(std::min(axis, made.axes.size())), Along{});
  std::vector<int> places;
  for (std::size_t i = 0; i < value.axes.size(); ++i)
    places.push_back(static_cast<int>(i < axis ? i : i + 1));
  turn(made, value, std::move(places));
  return made;
}

std::vector<Run> runs_of(const Along& along, const Along* holds) {
  if (along.values.empty() && holds == nullptr) return {{0, along.count, along.stride}};
  std::vector<Run> runs;
  std::int64_t last = 0;
  for (std::int64_t k = 0; k < along.count; ++k) {
    if (holds != nullptr && holds->values[static_cast<std::size_t>(holds->count > 1 ? k : 0)] == 0)
      continue;
    const std::int64_t at = along.at(k);
    if (!runs.empty() && runs.back().count == 1 && at != last)
      runs.back() = {runs.back().first, 2, at - last};
    else if (!runs.empty() && runs.back().count > 1 && at - last == runs.back().stride)
      ++runs.back().count;
    else if (runs.empty() || at != last)
      runs.push_back({at, 1, 1});
    last = at;
  }
  return runs;
}

bool is_function_of_elements(std::string_view name) {
  static constexpr std::string_view kMath[] = {
      "exp", "exp2", "log",   "log2", "sqrt", "sqrt_rn", "rsqrt",   "abs",
      "sin", "cos",  "floor", "ceil", "erf",  "tanh",    "sigmoid", "softmax"};
  // `tl.math.tanh`, and `libdevice.tanh` of triton.language.extra
  const std::size_t dot = name.find_last_of('.');
  if (dot != name.npos) name.remove_prefix(dot + 1);
  return std::ranges::find(kMath, name) != std::end(kMath);
}

}  // namespace hemiola::compile::readback
