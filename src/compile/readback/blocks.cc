// Functions of triton.language that make blocks of others, or of numbers.
#include "compile/readback/blocks.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/index.h"

namespace hemiola::compile::readback {
namespace {

/// Elements of a block along an axis. Triton has no larger ones.
constexpr std::int64_t kLongest = std::int64_t{1} << 20;

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

std::optional<Value> block_function(const Walker& walker, std::string_view name,
                                    const Arguments& given) {
  const std::vector<Value>& values = given.positional;
  const Node& node = *given.node;
  const auto need = [&](const char* what, std::size_t position) -> const Value& {
    const Value* value = given.find(what, position);
    if (value == nullptr) walker.refuse(node, fmt::format("'{}' is not given", what));
    return *value;
  };
  const auto is = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
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
  if (name == "cdiv" && values.size() == 2)
    return binary("-", number(0), binary("//", binary("-", number(0), values[0]), values[1]));
  if (is({"minimum", "maximum"}) && values.size() == 2)
    return binary(name == "minimum" ? "min" : "max", values[0], values[1]);
  if (name == "where" && values.size() == 3) return where(values[0], values[1], values[2]);
  if (is({"zeros", "full"})) {
    Value made{.type = Type::number};
    if (name == "full") {
      const Value& filled = need("value", 1);
      made.type = filled.is_number() ? Type::number : Type::data;
      made.base = filled.is_number() ? filled.base : 0;
    }
    made.axes = shape_of(walker, need("shape", 0), node);
    return made;
  }
  if (is({"max_contiguous", "multiple_of", "max_constancy", "constexpr", "cast"}) &&
      !values.empty())
    return values[0];
  if (name == "pointer_type") return readback::name("pointer");
  if (name == "inline_asm_elementwise") return unknown();
  if (is({"sum", "max", "min", "argmax", "argmin", "cumsum"}) && !values.empty()) {
    Value made = unknown(values[0].axes);
    const Value* axis = given.find("axis", 1);
    if (name == "cumsum") return made;
    if (axis == nullptr || axis->type == Type::none) return unknown();
    const std::int64_t along = walker.whole(*axis, node, "an axis");
    if (along < 0 || along >= std::ssize(made.axes)) walker.refuse(node, "an axis of this kind");
    const Value* keeps = given.find("keep_dims", kByName);
    if (keeps != nullptr && keeps->base != 0)
      made.axes[index(along)].count = 1;
    else
      made.axes.erase(made.axes.begin() + along);
    return made;
  }
  if (name == "trans" && values.size() == 1 && values[0].axes.size() == 2)
    return transposed(values[0], {1, 0});
  if (name == "expand_dims" && values.size() == 2) {
    const std::int64_t axis = walker.whole(values[1], node, "an axis");
    if (axis < 0 || values[0].axes.size() >= kMostAxes) walker.refuse(node, "an axis of this kind");
    return expanded(values[0], index(axis));
  }
  if (is({"broadcast_to", "reshape", "view"}) && values.size() == 2) {
    Value made = name == "broadcast_to" && values[0].type == Type::number ? values[0] : unknown();
    const std::vector<Along> shape = shape_of(walker, values[1], node);
    if (made.type == Type::number)
      return binary("+", made, Value{.type = Type::number, .axes = shape});
    return unknown(shape);
  }
  if (is_function_of_elements(name) && !values.empty()) return unknown(values[0].axes);
  return std::nullopt;
}

}  // namespace hemiola::compile::readback
