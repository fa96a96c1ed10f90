// Functions of triton.language that make blocks of others, or of numbers.
#include "compile/readback/blocks.h"

#include <fmt/format.h>

#include <algorithm>

#include "compile/python/formula.h"
#include "compile/readback/term.h"
#include "core/index.h"

namespace hemiola::compile::readback {
namespace {

/// Elements of a block along an axis. Triton has no larger ones.
constexpr std::int64_t kLongest = std::int64_t{1} << 20;

/// `permute(x, (1, 0))` and `permute(x, 1, 0)`: what stands behind the block.
Value list_of(const Walker& walker, const Arguments& given, std::string_view what) {
  if (given.positional.size() == 2) return given.positional[1];
  for (std::size_t i = 1; i < given.positional.size(); ++i)
    walker.whole(given.positional[i], *given.node, what);
  return list({given.positional.begin() + 1, given.positional.end()});
}
std::vector<std::int64_t> listed(const Walker& walker, const Arguments& given,
                                 std::string_view what) {
  return walker.wholes(list_of(walker, given, what), *given.node, what);
}

/// Sums and peaks along an axis.
Value reduced(const Walker& walker, std::string_view name, const Arguments& given) {
  const Value& of = given.positional[0];
  Value made = unknown(of.axes);
  const Value* axis = given.find("axis", 1);
  if (name == "cumsum") return made;
  if (axis == nullptr || axis->type == Type::none) return unknown();
  std::int64_t along = walker.whole(*axis, *given.node, "an axis");
  if (along < 0) along += std::ssize(made.axes);
  if (along < 0 || along >= std::ssize(made.axes))
    walker.refuse(*given.node, "an axis of this kind");
  made.axes.erase(made.axes.begin() + along);
  made = with_term(std::move(made),
                   {.kind = Term::Kind::reduced,
                    .op = std::string(name),
                    .places = {static_cast<int>(along)},
                    .node = given.node},
                   of);
  const Value* keeps = given.find("keep_dims", kByName);
  return keeps != nullptr && keeps->base != 0 ? expanded(made, index(along)) : made;
}

Value permuted(const Walker& walker, const Arguments& given) {
  const Value& of = given.positional[0];
  std::vector<std::size_t> order;
  for (const std::int64_t axis : listed(walker, given, "an axis")) {
    const bool is_new = std::ranges::find(order, index(axis)) == order.end();
    if (axis < 0 || axis >= std::ssize(of.axes) || !is_new)
      walker.refuse(*given.node, "an axis of this kind");
    order.push_back(index(axis));
  }
  if (order.size() != of.axes.size()) walker.refuse(*given.node, "an axis of this kind");
  return transposed(of, order);
}

Value reshaped(const Walker& walker, const Arguments& given) {
  const Value& of = given.positional[0];
  const std::vector<Along> shape =
      shape_of(walker, list_of(walker, given, "an extent"), *given.node);
  std::int64_t before = 1, after = 1;
  for (const Along& one : of.axes) before *= one.count;
  for (const Along& one : shape) after *= one.count;
  if (before != after) walker.refuse(*given.node, "a block of another number of elements");
  return with_term(unknown(shape), {.kind = Term::Kind::reshaped, .node = given.node}, of);
}

/// Both halves of a last axis of two elements.
Value split(const Arguments& given) {
  const Value& of = given.positional[0];
  std::vector<Value> halves;
  for (const std::int64_t half : {0, 1})
    halves.push_back(with_term(unknown({of.axes.begin(), of.axes.end() - 1}),
                               {.kind = Term::Kind::part, .base = half, .node = given.node}, of));
  return list(std::move(halves));
}

/// Blocks whose axes are others than those of what they are made of.
std::optional<Value> shaped(const Walker& walker, std::string_view name, const Arguments& given) {
  const std::vector<Value>& values = given.positional;
  const auto is = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, name) != names.end();
  };
  if (values.empty()) return std::nullopt;
  if (is({"sum", "max", "min", "argmax", "argmin", "cumsum"})) return reduced(walker, name, given);
  if (name == "trans" && values.size() == 1 && values[0].axes.size() == 2)
    return transposed(values[0], {1, 0});
  if (name == "split" && !values[0].axes.empty() && values[0].axes.back().count == 2)
    return split(given);
  if (values.size() < 2) return std::nullopt;
  if (name == "expand_dims" && values.size() == 2) {
    const std::int64_t axis = walker.whole(values[1], *given.node, "an axis");
    if (axis < 0 || values[0].axes.size() >= kMostAxes)
      walker.refuse(*given.node, "an axis of this kind");
    return expanded(values[0], index(axis));
  }
  if (is({"permute", "trans"})) return permuted(walker, given);
  if (is({"reshape", "view"})) return reshaped(walker, given);
  if (name == "broadcast_to")
    return binary(
        "+", values[0],
        Value{.type = Type::number,
              .axes = shape_of(walker, list_of(walker, given, "an extent"), *given.node)});
  return std::nullopt;
}

}  // namespace

std::vector<Along> shape_of(const Walker& walker, const Value& value, const Node& node) {
  std::vector<Along> made;
  const std::vector<std::int64_t> extents = walker.wholes(value, node, "an extent");
  if (extents.size() > kMostAxes) walker.refuse(node, "a block of too many axes");
  for (const std::int64_t extent : extents) {
    if (extent < 1 || extent > kLongest)
      walker.refuse(node, fmt::format("a block with {} elements along an axis", extent));
    made.push_back({.count = extent});
  }
  return made;
}

static std::optional<Value> arithmetic(std::string_view name, const std::vector<Value>& of,
                                       const Node* node) {
  if (name == "cdiv" && of.size() == 2)
    return binary("-", number(0), binary("//", binary("-", number(0), of[0]), of[1]));
  if ((name == "minimum" || name == "maximum") && of.size() == 2)
    return binary(name == "minimum" ? "min" : "max", of[0], of[1], node);
  if (name == "where" && of.size() == 3) return where(of[0], of[1], of[2], node);
  if (name == "clamp" && of.size() >= 3)
    return binary("min", binary("max", of[0], of[1], node), of[2], node);
  if (name != "swizzle2d" || of.size() != 5) return std::nullopt;
  const auto [row, column] =
      swizzled(of, [](const char* op, const Value& a, const Value& b) { return binary(op, a, b); });
  return list({row, column});
}

Value advanced(const Walker& walker, const Value& pointer, const Value& by, const Node& node) {
  Compound made = *pointer.more;
  const std::vector<std::int64_t> at = walker.wholes(made.items.back(), node, "an offset");
  const std::vector<std::int64_t> steps = walker.wholes(by, node, "an offset");
  std::vector<Value> moved;
  for (std::size_t i = 0; i < at.size() && i < steps.size(); ++i)
    moved.push_back(number(plus(at[i], steps[i])));
  made.items.back() = list(std::move(moved));
  return {.type = Type::descriptor, .more = std::make_shared<const Compound>(std::move(made))};
}

std::optional<Value> block_function(const Walker& walker, std::string_view name,
                                    const Arguments& given) {
  const std::vector<Value>& values = given.positional;
  const Node& node = *given.node;
  const auto is = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, name) != names.end();
  };
  if (is({"static_assert", "device_assert", "assume", "device_print", "static_print"}))
    return Value{};
  if (name == "arange" && values.size() == 2) {
    const std::int64_t begin = walker.whole(values[0], node, "where a block begins");
    const std::int64_t end = walker.whole(values[1], node, "where a block ends");
    if (begin >= end || end - begin > kLongest)
      walker.refuse(node, fmt::format("a block of the numbers from {} to {}", begin, end));
    return range_of(begin, end - begin);
  }
  if (auto made = arithmetic(name, values, &node)) return made;
  if (is({"zeros", "full"})) {
    Value made{.type = Type::number};
    if (name == "full") {
      const Value& filled = need(walker, given, "value", 1);
      made.type = filled.is_number() ? Type::number : Type::data;
      made.base = filled.is_number() ? filled.base : 0;
      made.term = filled.term;
    }
    made.axes = shape_of(walker, need(walker, given, "shape", 0), node);
    return made;
  }
  if (is({"max_contiguous", "multiple_of", "max_constancy", "constexpr"}) && !values.empty())
    return values[0];
  if (name == "pointer_type") return readback::name("pointer");
  if (name == "inline_asm_elementwise") return unknown();
  if ((name == "fdiv" || name == "div_rn") && values.size() >= 2)
    return applied(name, {values[0], values[1]}, &node);
  if (name == "fma" && values.size() == 3) return applied(name, values, &node);
  if (auto made = shaped(walker, name, given)) return made;
  if (is_function_of_elements(name) && !values.empty()) {
    const std::size_t dot = name.find_last_of('.');
    return applied(dot == name.npos ? name : name.substr(dot + 1), {values[0]}, &node);
  }
  return std::nullopt;
}

BlockTouch touched_by(const Walker& walker, const std::vector<Value>& items, const Value& offsets,
                      const Value* checked, const Node& node) {
  const auto wholes = [&](const Value& of) { return walker.wholes(of, node, "an extent"); };
  const std::vector<std::int64_t> shape = wholes(items[1]), strides = wholes(items[2]),
                                  block = wholes(items[3]), at = wholes(offsets);
  if (at.size() != block.size() || shape.size() != block.size() || strides.size() != block.size())
    walker.refuse(node, "a descriptor whose shape, strides and block differ in their axes");
  BlockTouch made{.base = items[0].base, .touched = shape_of(walker, items[3], node)};
  made.inside = {.type = Type::mask, .base = 1, .axes = made.touched};
  made.first = made.base;
  std::vector<std::int64_t> cut;
  if (checked != nullptr)
    cut = checked->is_number() ? std::vector{checked->base} : wholes(*checked);
  for (std::size_t i = 0; i < block.size(); ++i) {
    made.touched[i].stride = strides[i];
    made.base = plus(made.base, times(at[i], strides[i]));
    const bool is_beyond = at[i] < 0 || at[i] + block[i] > shape[i];
    const bool is_cut =
        checked == nullptr || std::ranges::find(cut, static_cast<std::int64_t>(i)) != cut.end();
    if (is_beyond && !is_cut)
      walker.wrong(node, fmt::format("a block reaches to {} of axis {}, which has {}, and its ends "
                                     "are not checked (boundary_check)",
                                     at[i] + block[i], i, shape[i]));
    for (std::int64_t k = 0; is_beyond && k < block[i]; ++k)
      made.inside.axes[i].values.push_back(at[i] + k >= 0 && at[i] + k < shape[i] ? 1 : 0);
    const std::int64_t begin = std::max<std::int64_t>(at[i], 0);
    const std::int64_t end = std::min(at[i] + block[i], shape[i]);
    made.is_empty = made.is_empty || end <= begin;
    made.first = plus(made.first, times(begin, strides[i]));
    if (end - begin > 1 && strides[i] != 0) made.inner.emplace_back(end - begin, strides[i]);
  }
  return made;
}

Value as_type(const Value& of, const Value* type, const std::vector<Tensor>& tensors,
              const Node& node) {
  const std::string_view to = type == nullptr || type->type != Type::name
                                  ? std::string_view()
                                  : std::string_view(type->text).substr(type->text.rfind('.') + 1);
  if (!(to.starts_with("int") || to.starts_with("uint")) || of.type != Type::data ||
      of.term == nullptr)
    return of;
  const Term* term = of.term.get();
  while (!term->args.empty() &&
         (term->kind == Term::Kind::view || term->kind == Term::Kind::reshaped))
    term = term->args.front().get();
  if (term->kind == Term::Kind::load && term->memory >= 0 &&
      tensors[index(term->memory)].type <= DataType::int64)  // the first five are whole
    return of;
  return with_term(
      of, {.kind = Term::Kind::opaque, .op = "fractions as whole numbers", .node = &node}, of);
}

}  // namespace hemiola::compile::readback
