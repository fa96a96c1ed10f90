#include "compile/skeleton/value.h"

#include <algorithm>
#include <optional>

#include "compile/python/formula.h"

namespace hemiola::compile::skeleton {
namespace {

constexpr std::size_t kMostElements = 1U << 16U;

using EK = Element::Kind;

/// Whatever is added to a parameter that may be an address, or to an address.
Element moved(Arrays& arrays, Element base, const Element& by, int sign) {
  if (base.kind == EK::loaded) base = arrays.target(base);
  if (by.is_number()) {
    base.number += sign * by.number;
  } else {
    if (by.kind == EK::open) arrays[by.array].is_number = true;
    base.is_vague = true;
  }
  return base;
}

bool is_based(const Element& one) {
  return one.kind == EK::address || one.kind == EK::loaded || one.kind == EK::open;
}

Element added(Arrays& arrays, const Element& a, const Element& b) {
  if (a.kind == EK::distance && is_based(b)) return added(arrays, b, a);
  if (b.kind == EK::distance && is_based(a)) {
    Element there = a.kind == EK::loaded ? arrays.target(a) : a;
    if (b.array < 0) {
      there.rank = b.rank;
      return there;
    }
    return {.kind = EK::address,
            .is_vague = b.is_vague,
            .array = b.array,
            .rank = there.rank,
            .number = b.number};
  }
  // The base of an address is what points: far + rank is at `far`.
  if (a.kind == EK::address) return moved(arrays, a, b, 1);
  if (b.kind == EK::address) return moved(arrays, b, a, 1);
  if (a.kind == EK::loaded && b.is_number()) return moved(arrays, a, b, 1);
  if (b.kind == EK::loaded && a.is_number()) return moved(arrays, b, a, 1);
  if (a.kind == EK::open && !arrays[a.array].is_number) return moved(arrays, a, b, 1);
  if (b.kind == EK::open && !arrays[b.array].is_number) return moved(arrays, b, a, 1);
  return {};
}

Element subtracted(Arrays& arrays, const Element& a, const Element& b) {
  if (a.kind == EK::loaded && b.kind == EK::loaded && a.array == b.array)
    return {.kind = EK::distance, .array = -1, .rank = arrays.target(a).rank};
  if ((a.kind == EK::address || a.kind == EK::open) &&
      (b.kind == EK::loaded || b.kind == EK::address)) {
    Element rest = a;
    rest.kind = EK::distance;
    return rest;
  }
  if (a.kind == EK::address || (a.kind == EK::loaded && b.is_number()) ||
      (a.kind == EK::open && !arrays[a.array].is_number))
    return moved(arrays, a, b, -1);
  return {};
}

bool is_that(const Element& one, std::int64_t number) {
  return one.is_number() && one.number == number;
}

/// What needs no numbers: comparisons of one address with itself, 0 and anything.
Element of_unknown(std::string_view op, const Element& a, const Element& b) {
  if ((op == "&" || op == "and") && (is_that(a, 0) || is_that(b, 0))) return number_element(0);
  if (op == "or" && (is_that(a, 1) || is_that(b, 1))) return number_element(1);
  const bool same = a == b && (a.kind == EK::address || a.kind == EK::loaded) && !a.is_vague;
  const auto equal = same ? infix(op, 0, 0) : std::nullopt;
  return equal ? number_element(*equal) : Element{};
}

Element combined(Arrays& arrays, std::string_view op, const Element& a, const Element& b) {
  if (a.is_number() && b.is_number()) {
    const auto result = infix(op, a.number, b.number);
    return result ? number_element(*result) : Element{};
  }
  if (op == "+") return added(arrays, a, b);
  if (op == "-") return subtracted(arrays, a, b);
  const bool only_compares = op == "==" || op == "!=" || op == "is" || op == "is not";
  for (const Element* one : {&a, &b})
    if (one->kind == EK::open && (!only_compares || (one == &a ? b : a).kind != EK::address))
      arrays[one->array].is_number = true;
  return of_unknown(op, a, b);
}

/// By numpy's rules; nothing where they do not fit.
std::optional<std::vector<int>> common(const std::vector<int>& a, const std::vector<int>& b) {
  std::vector<int> shape(std::max(a.size(), b.size()));
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const int x = i < a.size() ? a[a.size() - 1 - i] : 1,
              y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return {};
    shape[shape.size() - 1 - i] = std::max(x, y);
  }
  return shape;
}

std::size_t volume(const std::vector<int>& shape) {
  std::size_t product = 1;
  for (const int one : shape) product *= static_cast<std::size_t>(one);
  return product;
}

Value truth_of(bool value) {
  return Value::of(value ? 1 : 0);
}

/// Of None, texts and tuples.
Value of_others(std::string_view op, const Value& a, const Value& b) {
  using Kind = Value::Kind;
  const bool equal = op == "==" || op == "is", unequal = op == "!=" || op == "is not";
  if (a.kind == Kind::none || b.kind == Kind::none) {
    const Value& other = a.kind == Kind::none ? b : a;
    const bool known = other.kind != Kind::elements || other.elements[0].kind != EK::unknown;
    if (!known || (!equal && !unequal)) return {};
    return truth_of((a.kind == b.kind) == equal);
  }
  if (a.kind == Kind::text && b.kind == Kind::text) {
    if (op == "+") return Value::of_text(a.text + b.text);
    return equal || unequal ? truth_of((a.text == b.text) == equal) : Value{};
  }
  if (b.kind != Kind::tuple || b.has_unknown() || (op != "in" && op != "not in")) return {};
  const bool has = std::ranges::find(b.items, a) != b.items.end();
  return truth_of(has == (op == "in"));
}

}  // namespace

int Arrays::add(Array array) {
  arrays_.push_back(std::move(array));
  return size() - 1;
}

void Arrays::keep(int count) {
  arrays_.resize(static_cast<std::size_t>(count));
  targets_.clear();
}

Element Arrays::target(const Element& loaded) {
  Array& table = arrays_[loaded.array];
  if (loaded.number != 0 || loaded.is_vague) table.is_indexed = true;
  // In a table of tables the outer index says which table.
  const bool is_inner = table.table >= 0;
  std::int64_t kind = loaded.is_vague ? 0 : *infix("//", loaded.number, world);
  const std::int64_t outer = kind;
  if (is_inner) kind = kind * 1024 + loaded.rank;
  const auto [found, is_new] = targets_.try_emplace({loaded.array, kind}, size());
  const bool is_indexed = table.is_indexed;
  if (is_new)
    add({.name = table.name + (kind == 0 ? "[]" : "[" + std::to_string(kind) + "][]"),
         .table = loaded.array,
         .parameter = table.parameter,
         .kind = is_inner ? 0 : outer,
         .is_pointer = true});
  const auto slot = static_cast<std::int32_t>(*infix("%", loaded.number, world));
  return {.kind = EK::address,
          .array = found->second,
          .rank = loaded.is_vague          ? -1
                  : is_indexed || is_inner ? slot
                                           : (loaded.rank + 1) % world,
          .number = 0};
}

bool Value::has_unknown() const {
  if (kind == Kind::tuple)
    return std::ranges::any_of(items, [](const Value& v) { return v.has_unknown(); });
  if (kind != Kind::elements) return false;
  return std::ranges::any_of(elements, [](const Element& one) { return !one.is_number(); });
}

Value binary(Arrays& arrays, std::string_view op, const Value& a, const Value& b) {
  using Kind = Value::Kind;
  if (a.kind != Kind::elements || b.kind != Kind::elements) return of_others(op, a, b);
  if (a.is_scalar() && b.is_scalar() && a.shape.empty() && b.shape.empty())
    return Value::of(combined(arrays, op, a.elements[0], b.elements[0]));
  const auto shape = common(a.shape, b.shape);
  if (!shape || volume(*shape) > kMostElements) return {};
  const Value x = broadcast(a, *shape), y = broadcast(b, *shape);
  Value result{.shape = *shape, .elements = {}};
  result.elements.reserve(x.elements.size());
  for (std::size_t i = 0; i < x.elements.size(); ++i)
    result.elements.push_back(combined(arrays, op, x.elements[i], y.elements[i]));
  return result;
}

Value unary(Arrays& arrays, std::string_view op, const Value& a) {
  if (a.kind != Value::Kind::elements)
    return op == "not" && a.kind == Value::Kind::none ? Value::of(1) : Value{};
  if (op == "not" && a.is_number()) return Value::of(a.number() == 0 ? 1 : 0);
  if (op == "-") return binary(arrays, "-", Value::of(0), a);
  if (op == "+") return a;
  if (op == "~") {
    Value result = a;
    for (Element& one : result.elements)
      one = one.is_number() ? number_element(one.number == 0   ? 1
                                             : one.number == 1 ? 0
                                                               : ~one.number)
                            : Element{};
    return result;
  }
  return {};
}

Value reduced(std::string_view name, const Value& a, bool has_axis) {
  if (a.kind != Value::Kind::elements || a.has_unknown() || (has_axis && a.shape.size() > 1))
    return {};
  std::int64_t total = a.elements[0].number;
  const std::string_view op = name == "max"       ? "max"
                              : name == "min"     ? "min"
                              : name == "xor_sum" ? "^"
                                                  : "+";
  for (std::size_t i = 1; i < a.elements.size(); ++i)
    total = *infix(op, total, a.elements[i].number);
  return Value::of(total);
}

Value reshaped(const Value& a, std::string_view pattern) {
  if (a.kind != Value::Kind::elements || a.shape.empty()) return a;
  Value result = a;
  result.shape.clear();
  std::size_t axis = 0;
  for (const char c : pattern) {
    if (c == 'n')
      result.shape.push_back(1);
    else if (axis < a.shape.size())
      result.shape.push_back(a.shape[axis++]);
  }
  while (axis < a.shape.size()) result.shape.push_back(a.shape[axis++]);
  return result;
}

Value broadcast(const Value& a, const std::vector<int>& shape) {
  if (a.kind != Value::Kind::elements || a.shape == shape || volume(shape) > kMostElements)
    return a;
  Value result{.shape = shape, .elements = {}};
  const std::size_t count = volume(shape);
  result.elements.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t rest = i, from = 0, pitch = 1;
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      const auto extent = static_cast<std::size_t>(shape[axis]);
      const std::size_t at = rest % extent;
      rest /= extent;
      const std::size_t behind = shape.size() - axis;
      if (behind > a.shape.size()) continue;
      const auto own = static_cast<std::size_t>(a.shape[a.shape.size() - behind]);
      from += (own == 1 ? 0 : std::min(at, own - 1)) * pitch;
      pitch *= own;
    }
    result.elements.push_back(a.elements[std::min(from, a.elements.size() - 1)]);
  }
  return result;
}

Value transposed(const Value& a) {
  if (a.kind != Value::Kind::elements || a.shape.size() != 2) return a;
  Value result{.shape = {a.shape[1], a.shape[0]}, .elements = {}};
  for (int j = 0; j < a.shape[1]; ++j)
    for (int i = 0; i < a.shape[0]; ++i) result.elements.push_back(a.elements[i * a.shape[1] + j]);
  return result;
}

}  // namespace hemiola::compile::skeleton
