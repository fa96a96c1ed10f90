#include "workload/traces/chakra/attributes.h"

#include <cmath>
#include <concepts>

#include "core/checked.h"

namespace hemiola::workload {
namespace {

using chakra::AttributeProto;

constexpr std::array<std::string_view, static_cast<std::size_t>(ChakraAttribute::count)>
    kChakraNames{"is_cpu_op",
                 "comm_type",
                 "comm_size",
                 "comm_src",
                 "comm_dst",
                 "comm_tag",
                 "pg_name",
                 "involved_dim",
                 "num_ops",
                 "tensor_size",
                 "hemiola.bytes",
                 "hemiola.type",
                 "hemiola.kind",
                 "hemiola.stream",
                 "hemiola.host_fs",
                 "hemiola.begin_fs",
                 "hemiola.duration_fs",
                 "hemiola.compute",
                 "hemiola.splits"};

std::optional<std::int64_t> whole_attribute(double value) {
  // 2^63 itself does not fit.
  constexpr double kEnd = 9223372036854775808.0;
  if (!(value >= -kEnd && value < kEnd) || value != std::floor(value)) return std::nullopt;
  return static_cast<std::int64_t>(value);
}
template <std::integral Number>
std::optional<std::int64_t> whole_attribute(Number value) {
  return std::in_range<std::int64_t>(value) ? std::optional(static_cast<std::int64_t>(value))
                                            : std::nullopt;
}
std::optional<std::int64_t> whole_attribute(bool value) {
  return value ? 1 : 0;
}
std::optional<std::int64_t> whole_attribute(float value) {
  return whole_attribute(static_cast<double>(value));
}
std::optional<std::int64_t> whole_attribute(const std::string& text) {
  return whole_number_in(text);
}

template <typename List>
std::optional<std::vector<std::int64_t>> all_whole(const List& list) {
  std::vector<std::int64_t> values;
  values.reserve(static_cast<std::size_t>(list.values().size()));
  for (const auto& value : list.values()) {
    const std::optional<std::int64_t> one = whole_attribute(value);
    if (!one) return std::nullopt;
    values.push_back(*one);
  }
  return values;
}

}  // namespace

std::optional<std::int64_t> integer_of(const AttributeProto& a) {
  switch (a.value_case()) {
    case AttributeProto::kDoubleVal:
      return whole_attribute(a.double_val());
    case AttributeProto::kFloatVal:
      return whole_attribute(a.float_val());
    case AttributeProto::kInt32Val:
      return whole_attribute(a.int32_val());
    case AttributeProto::kInt64Val:
      return whole_attribute(a.int64_val());
    case AttributeProto::kUint32Val:
      return whole_attribute(a.uint32_val());
    case AttributeProto::kUint64Val:
      return whole_attribute(a.uint64_val());
    case AttributeProto::kSint32Val:
      return whole_attribute(a.sint32_val());
    case AttributeProto::kSint64Val:
      return whole_attribute(a.sint64_val());
    case AttributeProto::kFixed32Val:
      return whole_attribute(a.fixed32_val());
    case AttributeProto::kFixed64Val:
      return whole_attribute(a.fixed64_val());
    case AttributeProto::kSfixed32Val:
      return whole_attribute(a.sfixed32_val());
    case AttributeProto::kSfixed64Val:
      return whole_attribute(a.sfixed64_val());
    case AttributeProto::kBoolVal:
      return whole_attribute(a.bool_val());
    case AttributeProto::kStringVal:
      return whole_attribute(a.string_val());
    case AttributeProto::kBytesVal:
      return whole_attribute(a.bytes_val());
    default:
      return std::nullopt;
  }
}

std::optional<std::vector<std::int64_t>> integers_of(const AttributeProto& a) {
  switch (a.value_case()) {
    case AttributeProto::kDoubleList:
      return all_whole(a.double_list());
    case AttributeProto::kFloatList:
      return all_whole(a.float_list());
    case AttributeProto::kInt32List:
      return all_whole(a.int32_list());
    case AttributeProto::kInt64List:
      return all_whole(a.int64_list());
    case AttributeProto::kUint32List:
      return all_whole(a.uint32_list());
    case AttributeProto::kUint64List:
      return all_whole(a.uint64_list());
    case AttributeProto::kSint32List:
      return all_whole(a.sint32_list());
    case AttributeProto::kSint64List:
      return all_whole(a.sint64_list());
    case AttributeProto::kFixed32List:
      return all_whole(a.fixed32_list());
    case AttributeProto::kFixed64List:
      return all_whole(a.fixed64_list());
    case AttributeProto::kSfixed32List:
      return all_whole(a.sfixed32_list());
    case AttributeProto::kSfixed64List:
      return all_whole(a.sfixed64_list());
    case AttributeProto::kBoolList:
      return all_whole(a.bool_list());
    case AttributeProto::kStringList:
      return all_whole(a.string_list());
    case AttributeProto::kBytesList:
      return all_whole(a.bytes_list());
    default:
      return std::nullopt;
  }
}

std::optional<std::string> text_of(const AttributeProto& a) {
  if (a.value_case() == AttributeProto::kStringVal) return a.string_val();
  if (a.value_case() == AttributeProto::kBytesVal) return a.bytes_val();
  const std::optional<std::int64_t> number = integer_of(a);
  if (!number) return std::nullopt;
  return std::to_string(*number);
}

std::string_view name_of(ChakraAttribute attribute) {
  return kChakraNames[static_cast<std::size_t>(attribute)];
}

ChakraAttributes::ChakraAttributes(const chakra::Node& node) {
  for (const AttributeProto& attribute : node.attr()) {
    const std::string_view name = attribute.name();
    for (std::size_t i = 0; i < kChakraNames.size(); ++i) {
      if (kChakraNames[i] != name) continue;
      known_[i] = &attribute;
      break;
    }
  }
}

}  // namespace hemiola::workload
