#include "workload/hlo/module.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "core/lists.h"
#include "workload/hlo/attributes.h"

namespace hemiola::workload::hlo {
namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 60;

std::int64_t product_up_to_most(std::int64_t a, std::int64_t b) {
  return a == 0 || b <= kMostElements / a ? a * b : kMostElements;
}

constexpr std::array<std::pair<std::string_view, int>, 36> kBits{{
    {"pred", 8},       {"s1", 1},         {"u1", 1},     {"s2", 2},        {"u2", 2},
    {"s4", 4},         {"u4", 4},         {"s8", 8},     {"u8", 8},        {"s16", 16},
    {"u16", 16},       {"s32", 32},       {"u32", 32},   {"s64", 64},      {"u64", 64},
    {"f16", 16},       {"bf16", 16},      {"f32", 32},   {"f64", 64},      {"c64", 64},
    {"c128", 128},     {"f8e5m2", 8},     {"f8e4m3", 8}, {"f8e4m3fn", 8},  {"f8e4m3b11fnuz", 8},
    {"f8e5m2fnuz", 8}, {"f8e4m3fnuz", 8}, {"f8e3m4", 8}, {"f8e8m0fnu", 8}, {"f4e2m1fn", 4},
    {"f6e2m3fn", 8},   {"f6e3m2fn", 8},   {"token", 0},  {"opaque", 0},    {"key", 64},
    {"f8e4m3b11", 8},
}};

}  // namespace

int bits_of(std::string_view type) {
  for (const auto& [name, bits] : kBits)
    if (name == type) return bits;
  return 0;
}

std::int64_t elements_of(const Shape& shape) {
  if (shape.is_tuple()) {
    std::int64_t sum = 0;
    for (const Shape& one : shape.elements) sum = std::min(kMostElements, sum + elements_of(one));
    return sum;
  }
  std::int64_t elements = 1;
  for (const std::int64_t extent : shape.dimensions)
    elements = product_up_to_most(elements, extent);
  return elements;
}

std::int64_t bytes_of(const Shape& shape) {
  if (shape.is_tuple()) {
    std::int64_t sum = 0;
    for (const Shape& one : shape.elements) sum = std::min(kMostElements, sum + bytes_of(one));
    return sum;
  }
  constexpr int kByte = 8;
  return (product_up_to_most(elements_of(shape), bits_of(shape.type)) + kByte - 1) / kByte;
}

std::string text_of(const Shape& shape) {
  if (shape.is_tuple())
    return "(" + joined(shape.elements, [](const Shape& one) { return text_of(one); }) + ")";
  return fmt::format("{}[{}]", shape.type, fmt::join(shape.dimensions, ","));
}

std::string_view Module::attribute(const Instruction& instruction, std::string_view wanted) const {
  for (std::uint32_t i = 0; i < instruction.attributes; ++i) {
    const Attribute& one = attributes[instruction.first_attribute + i];
    if (one.name == wanted) return one.value;
  }
  return {};
}

std::string_view Module::header_attribute(std::string_view wanted) const {
  for (const Attribute& one : header)
    if (one.name == wanted) return one.value;
  return {};
}

const Computation& Module::called(const Instruction& instruction, std::string_view wanted) const {
  const std::vector<const Computation*> found = called_list(instruction, wanted);
  if (found.size() != 1)
    fail(instruction, fmt::format("'{}' of {} '{}' names {} computations, not one", wanted,
                                  instruction.opcode, instruction.name, found.size()));
  return *found.front();
}

std::vector<const Computation*> Module::called_list(const Instruction& instruction,
                                                    std::string_view wanted) const {
  const std::string_view value = attribute(instruction, wanted);
  if (value.empty())
    fail(instruction,
         fmt::format("{} '{}' has no '{}'", instruction.opcode, instruction.name, wanted));
  std::vector<const Computation*> found;
  for (const std::string_view one : items_of(value)) {
    const auto at = by_name.find(one.starts_with('%') ? one.substr(1) : one);
    if (at == by_name.end())
      fail(instruction, fmt::format("there is no computation '{}', which {} '{}' names as '{}'",
                                    one, instruction.opcode, instruction.name, wanted));
    found.push_back(&computations[at->second]);
  }
  return found;
}

std::string Module::origin(const Instruction& instruction) const {
  const std::string_view metadata = attribute(instruction, "metadata");
  const std::string_view file = unquoted(field_of(metadata, "source_file"));
  std::string text;
  if (!file.empty()) {
    text = fmt::format("{}:{}", file, field_of(metadata, "source_line"));
  } else if (const auto id = integer_of(field_of(metadata, "stack_frame_id"))) {
    const auto frame = frames.find(*id);
    if (frame != frames.end()) text = fmt::format("{}:{}", frame->second.file, frame->second.line);
  }
  const std::string_view name = unquoted(field_of(metadata, "op_name"));
  if (!name.empty()) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

SourceLocation Module::at(std::size_t offset) const {
  const auto behind = std::upper_bound(lines.begin(), lines.end(), offset);
  if (behind == lines.begin()) return {.file = file};
  return {.file = file,
          .line = static_cast<int>(behind - lines.begin()),
          .column = static_cast<int>(offset - *std::prev(behind)) + 1};
}

void Module::fail(const Instruction& instruction, const std::string& message,
                  const std::string& hint) const {
  throw Failure(message, at(instruction.offset), hint);
}

}  // namespace hemiola::workload::hlo
