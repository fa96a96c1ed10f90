#include "workload/traces/chakra/attributes.h"

#include <google/protobuf/message.h>

#include <cmath>
#include <concepts>

#include "core/checked.h"

namespace hemiola::workload {
namespace {

using chakra::AttributeProto;
using google::protobuf::FieldDescriptor;
using google::protobuf::Reflection;

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
std::optional<std::int64_t> whole_attribute(std::integral auto value) {
  return std::in_range<std::int64_t>(value) ? std::optional(static_cast<std::int64_t>(value))
                                            : std::nullopt;
}

/// The value of a field, or, of a repeated one, that at `place`; nothing where it is no whole
/// number.
std::optional<std::int64_t> whole_in(const google::protobuf::Message& message,
                                     const FieldDescriptor& field, int place) {
  const Reflection& in = *message.GetReflection();
  const auto get = [&](auto single, auto repeated) {
    return field.is_repeated() ? (in.*repeated)(message, &field, place)
                               : (in.*single)(message, &field);
  };
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return whole_attribute(get(&Reflection::GetInt32, &Reflection::GetRepeatedInt32));
    case FieldDescriptor::CPPTYPE_INT64:
      return whole_attribute(get(&Reflection::GetInt64, &Reflection::GetRepeatedInt64));
    case FieldDescriptor::CPPTYPE_UINT32:
      return whole_attribute(get(&Reflection::GetUInt32, &Reflection::GetRepeatedUInt32));
    case FieldDescriptor::CPPTYPE_UINT64:
      return whole_attribute(get(&Reflection::GetUInt64, &Reflection::GetRepeatedUInt64));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return whole_attribute(get(&Reflection::GetDouble, &Reflection::GetRepeatedDouble));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return whole_attribute(double{get(&Reflection::GetFloat, &Reflection::GetRepeatedFloat)});
    case FieldDescriptor::CPPTYPE_BOOL:
      return get(&Reflection::GetBool, &Reflection::GetRepeatedBool) ? 1 : 0;
    case FieldDescriptor::CPPTYPE_STRING:
      return whole_number_in(get(&Reflection::GetString, &Reflection::GetRepeatedString));
    default:
      return std::nullopt;
  }
}

/// The field of the value that is set; null: none is.
const FieldDescriptor* field_of(const AttributeProto& attribute) {
  static const google::protobuf::OneofDescriptor* const kValue =
      AttributeProto::descriptor()->FindOneofByName("value");
  return attribute.GetReflection()->GetOneofFieldDescriptor(attribute, kValue);
}

}  // namespace

std::optional<std::int64_t> integer_of(const AttributeProto& attribute) {
  const FieldDescriptor* field = field_of(attribute);
  return field == nullptr ? std::nullopt : whole_in(attribute, *field, 0);
}

std::optional<std::vector<std::int64_t>> integers_of(const AttributeProto& attribute) {
  const FieldDescriptor* field = field_of(attribute);
  if (field == nullptr || field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE)
    return std::nullopt;
  const google::protobuf::Message& list = attribute.GetReflection()->GetMessage(attribute, field);
  const FieldDescriptor& values = *field->message_type()->FindFieldByName("values");
  std::vector<std::int64_t> numbers;
  for (int i = 0; i < list.GetReflection()->FieldSize(list, &values); ++i) {
    const std::optional<std::int64_t> one = whole_in(list, values, i);
    if (!one) return std::nullopt;
    numbers.push_back(*one);
  }
  return numbers;
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
