#include "workload/traces/chakra/json.h"

#include <fmt/format.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/checked.h"
#include "core/diagnostics.h"
#include "core/text.h"
#include "workload/traces/chakra/messages.h"
#include "workload/traces/groups.h"

namespace hemiola::workload {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using ProtoMessage = google::protobuf::Message;
using google::protobuf::Reflection;
using nlohmann::json;

/// Where the value that begins at `at` ends: behind the bracket that closes it.
std::size_t end_of_value(std::string_view text, std::size_t at) {
  int depth = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') {
      for (++at; at < text.size() && text[at] != '"'; ++at)
        if (text[at] == '\\') ++at;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth <= 0) {
      return at + 1;
    }
  }
  return text.size();
}

/// Whole numbers up to 64 bits; protobuf writes those of 64 bits as texts.
template <class Integer>
std::optional<Integer> json_whole(const json& value) {
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    Integer number = 0;
    const char* end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, number);
    return error == std::errc{} && at == end ? std::optional(number) : std::nullopt;
  }
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number <= static_cast<std::uint64_t>(std::numeric_limits<Integer>::max()))
      return static_cast<Integer>(number);
    return std::nullopt;
  }
  if (value.is_number_integer()) {
    const auto number = value.get<std::int64_t>();
    const bool fits = std::is_signed_v<Integer>
                          ? number >= static_cast<std::int64_t>(std::numeric_limits<Integer>::min())
                          : number >= 0;
    return fits ? std::optional(static_cast<Integer>(number)) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<double> json_real(const json& value) {
  if (value.is_number()) return value.get<double>();
  if (value == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (value == "Infinity") return std::numeric_limits<double>::infinity();
  if (value == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

/// Protobuf's JSON into one of our messages.
class MessageFiller {
 public:
  explicit MessageFiller(const std::string& file) : file_(file) {}

  /// `where`: of which node, for messages.
  void fill(ProtoMessage& message, const json& object, const std::string& where) const {
    const Descriptor& type = *message.GetDescriptor();
    for (const auto& [key, value] : object.items()) {
      const FieldDescriptor* field = type.FindFieldByCamelcaseName(key);
      if (field == nullptr) field = type.FindFieldByName(key);
      if (field == nullptr || value.is_null()) continue;
      if (!field->is_repeated()) {
        set(message, *field, value, where);
        continue;
      }
      if (!value.is_array()) fail(*field, where);
      for (const json& one : value) set(message, *field, one, where);
    }
  }

 private:
  [[noreturn]] void fail(const FieldDescriptor& field, const std::string& where) const {
    throw Failure(fmt::format("{}: '{}' has another kind of value", where, field.json_name()),
                  {.file = file_});
  }

  template <class Value>
  Value needed(const std::optional<Value>& value, const FieldDescriptor& field,
               const std::string& where) const {
    if (!value) fail(field, where);
    return *value;
  }

  void set(ProtoMessage& message, const FieldDescriptor& field, const json& value,
           const std::string& where) const {
    const Reflection& in = *message.GetReflection();
    const bool adds = field.is_repeated();
    const auto put = [&](auto add, auto set, auto content) {
      (in.*(adds ? add : set))(&message, &field, std::move(content));
    };
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return put(&Reflection::AddInt32, &Reflection::SetInt32,
                   needed(json_whole<std::int32_t>(value), field, where));
      case FieldDescriptor::CPPTYPE_INT64:
        return put(&Reflection::AddInt64, &Reflection::SetInt64,
                   needed(json_whole<std::int64_t>(value), field, where));
      case FieldDescriptor::CPPTYPE_UINT32:
        return put(&Reflection::AddUInt32, &Reflection::SetUInt32,
                   needed(json_whole<std::uint32_t>(value), field, where));
      case FieldDescriptor::CPPTYPE_UINT64:
        return put(&Reflection::AddUInt64, &Reflection::SetUInt64,
                   needed(json_whole<std::uint64_t>(value), field, where));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return put(&Reflection::AddDouble, &Reflection::SetDouble,
                   needed(json_real(value), field, where));
      case FieldDescriptor::CPPTYPE_FLOAT:
        return put(&Reflection::AddFloat, &Reflection::SetFloat,
                   static_cast<float>(needed(json_real(value), field, where)));
      case FieldDescriptor::CPPTYPE_BOOL:
        if (!value.is_boolean()) fail(field, where);
        return put(&Reflection::AddBool, &Reflection::SetBool, value.get<bool>());
      case FieldDescriptor::CPPTYPE_ENUM: {
        if (!value.is_string())
          return in.SetEnumValue(&message, &field,
                                 needed(json_whole<std::int32_t>(value), field, where));
        const auto* known = field.enum_type()->FindValueByName(value.get<std::string>());
        if (known == nullptr) fail(field, where);
        return in.SetEnum(&message, &field, known);
      }
      case FieldDescriptor::CPPTYPE_STRING:
        if (!value.is_string()) fail(field, where);
        return put(&Reflection::AddString, &Reflection::SetString, value.get<std::string>());
      case FieldDescriptor::CPPTYPE_MESSAGE:
        if (!value.is_object()) fail(field, where);
        return fill(adds ? *in.AddMessage(&message, &field) : *in.MutableMessage(&message, &field),
                    value, where);
    }
  }

  const std::string& file_;
};

class JsonTrace {
 public:
  JsonTrace(const std::string& file, std::string_view content)
      : file_(file), content_(content), filler_(file) {}

  std::string read() {
    std::size_t at = skip(0);
    bool is_first = true;
    while (at < content_.size()) {
      const std::size_t end = end_of_value(content_, at);
      const json object = parse(at, end);
      if (is_first && object.contains("workload_graph"))
        read_graph(object["workload_graph"]);
      else
        add(object, is_first);
      is_first = false;
      at = skip(end);
    }
    return std::move(out_);
  }

 private:
  std::size_t skip(std::size_t at) const {
    return std::min(content_.find_first_not_of(" \t\r\n", at), content_.size());
  }

  json parse(std::size_t at, std::size_t end) const {
    try {
      json value = json::parse(content_.begin() + static_cast<std::ptrdiff_t>(at),
                               content_.begin() + static_cast<std::ptrdiff_t>(end));
      if (value.is_object()) return value;
      throw Failure("is no Chakra trace: an object was expected here", locate(file_, content_, at));
    } catch (const json::exception&) {
      throw json_failure(file_, content_, at, end)
          .value_or(Failure("the JSON text cannot be read", locate(file_, content_, at)));
    }
  }

  /// What protobuf's JSON of metadata and nodes says.
  void add(const json& object, bool is_first) {
    const bool is_node = object.contains("id") || object.contains("name");
    if (is_first) {
      chakra::GlobalMetadata metadata;
      if (!is_node) filler_.fill(metadata, object, "the metadata");
      append(metadata);
      if (!is_node) return;
    }
    chakra::Node node;
    filler_.fill(node, object, fmt::format("node {}", of_node(object, "id")));
    append(node);
  }

  /// The text of a number or text; for messages.
  static std::string of_node(const json& object, const char* key) {
    const auto found = object.find(key);
    if (found == object.end()) return "0";
    return shorten(found->is_string() ? found->get<std::string>() : found->dump());
  }

  // --- What Chakra's feeder reads.

  void read_graph(const json& nodes) {
    if (!nodes.is_array()) throw Failure("'workload_graph' is no list of nodes", {.file = file_});
    append(chakra::GlobalMetadata());
    for (const json& one : nodes) {
      if (!one.is_object()) throw Failure("'workload_graph' has what is no node", {.file = file_});
      chakra::Node node;
      const std::string where = fmt::format("node {}", of_node(one, "Id"));
      filler_.fill(node, as_protobuf(one), where);
      append(node);
    }
  }

  static json as_protobuf(const json& node) {
    constexpr std::array<std::pair<const char*, const char*>, 9> kFields{{
        {"Id", "id"},
        {"Name", "name"},
        {"NodeType", "type"},
        {"runtime", "durationMicros"},
        {"data_deps", "dataDeps"},
        {"ctrl_deps", "ctrlDeps"},
        {"start_time_micros", "startTimeMicros"},
        {"inputs", "inputs"},
        {"outputs", "outputs"},
    }};
    json out = json::object();
    json attributes = json::array();
    for (const auto& [key, value] : node.items()) {
      const auto* field =
          std::ranges::find_if(kFields, [&key = key](const auto& one) { return key == one.first; });
      if (field != kFields.end()) {
        out[field->second] = value;
      } else if (const char* kind = attribute_kind(value); kind != nullptr) {
        json content = value;
        if (value.is_array()) content = json{{"values", value}};
        attributes.push_back({{"name", key}, {kind, std::move(content)}});
      }
    }
    out["attr"] = std::move(attributes);
    return out;
  }

  /// Null: nothing that an attribute can be.
  static const char* attribute_kind(const json& value) {
    const auto all = [&](auto is) { return std::ranges::all_of(value, is); };
    if (value.is_boolean()) return "boolVal";
    if (value.is_number_unsigned()) return "uint64Val";
    if (value.is_number_integer()) return "int64Val";
    if (value.is_number_float()) return "doubleVal";
    if (value.is_string()) return "stringVal";
    if (!value.is_array()) return nullptr;
    if (all([](const json& one) { return one.is_boolean(); })) return "boolList";
    if (all([](const json& one) { return one.is_number_integer(); })) return "int64List";
    return nullptr;
  }

  void append(const ProtoMessage& message) {
    append_length(out_, message.ByteSizeLong());
    message.AppendToString(&out_);
  }

  const std::string& file_;
  std::string_view content_;
  MessageFiller filler_;
  std::string out_;
};

}  // namespace

std::string chakra_from_json(const std::string& file, std::string_view content) {
  return JsonTrace(file, content).read();
}

}  // namespace hemiola::workload
