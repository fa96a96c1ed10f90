#include "workload/traces/chakra/extension.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "core/json.h"

namespace hemiola::workload {
namespace {

using ExtensionJson = nlohmann::json;
using Attribute = ChakraAttribute;

constexpr std::int64_t kMostNumber = std::numeric_limits<std::int64_t>::max();
constexpr std::string_view kClassAttribute = "hemiola.class";
constexpr std::string_view kWorkloadAttribute = "hemiola.workload";

ExtensionJson json_of(const ModelFacts& facts) {
  return {{"model", facts.model}, {"phase", facts.phase},        {"tokens", facts.tokens},
          {"flop", facts.flop},   {"type", name_of(facts.type)}, {"memory", facts.memory}};
}

ModelFacts facts_of(const JsonValue& json) {
  ModelFacts facts;
  facts.model = json.at("model").text();
  facts.phase = json.at("phase").text();
  facts.tokens = json.integer("tokens", 0, kMostNumber);
  facts.flop = json.at("flop").number();
  if (facts.flop < 0) json.at("flop").fail("a number of at least 0 is needed here");
  facts.type = parse_data_type(json.at("type").text()).value_or(facts.type);
  for (const JsonValue& of_class : json.at("memory").items()) {
    auto& sizes = facts.memory.emplace_back();
    for (const std::string& name : of_class.keys())
      sizes[name] = of_class.integer(name, 0, kMostNumber);
  }
  return facts;
}

std::vector<std::string> texts_of(const JsonValue& list) {
  std::vector<std::string> texts;
  for (const JsonValue& one : list.items()) texts.push_back(one.text());
  return texts;
}

void take_workload(const std::string& text, TraceAssembly& assembly, ProcessGroups& groups,
                   const std::string& file) {
  try {
    const JsonText source(text, file);
    const JsonValue json = source.root();
    Workload& workload = assembly.builder().workload();
    workload.name = json.at("name").text();
    for (const JsonValue& each : json.at("streams").items()) {
      const std::vector<JsonValue> stream = each.items();
      if (stream.size() != 2) each.fail("a stream has a name and whether it computes");
      const std::uint16_t number = assembly.builder().stream(stream[0].text(), stream[1].boolean());
      assembly.written_streams.push_back(number);
    }
    for (const JsonValue& each : json.at("families").items()) {
      const std::vector<JsonValue> family = each.items();
      if (family.size() != 2) each.fail("a family has a name and groups");
      groups.define_family(family[0].text(), texts_of(family[1]));
    }
    assembly.written_classes = texts_of(json.at("classes"));
    if (const auto facts = json.find("facts")) workload.facts = facts_of(*facts);
    for (const JsonValue& each : json.items("splits")) {
      Splits& splits = workload.splits.emplace_back();
      for (const JsonValue& bytes : each.items()) splits.push_back(bytes.integer(0, kMostNumber));
    }
    if (const auto device = json.find("recorded_on"))
      workload.recorded_on = {device->at("name").text(), device->integer("units", 0, kMostNumber),
                              device->integer("memory", 0, kMostNumber)};
  } catch (const Failure& failure) {
    const Diagnostic& first = failure.diagnostics().items().front();
    throw Failure(fmt::format("its {} is damaged: {}", kWorkloadAttribute, first.message),
                  {.file = file, .pointer = first.where.pointer});
  }
}

std::optional<std::int64_t> number_in_range(const ChakraAttributes& attributes, Attribute name,
                                            std::int64_t least, std::int64_t most,
                                            const NodeOfFile& at) {
  const chakra::AttributeProto* attribute = attributes.find(name);
  if (attribute == nullptr) return std::nullopt;
  const std::optional<std::int64_t> value = integer_of(*attribute);
  if (!value || *value < least || *value > most)
    at.fail(fmt::format(" has a {} that is out of range", name_of(name)));
  return value;
}

constexpr std::int64_t kMostSplits = 1 << 30;
constexpr auto kLastType = static_cast<std::int64_t>(DataType::fp8_e5m2);
constexpr auto kLastKind = static_cast<std::int64_t>(Compute::Kind::other);

/// The numbers of a Compute in the order of files, each with its bounds.
template <typename AnyCompute, typename Visit>
void each_number(AnyCompute& c, const Visit& visit) {
  auto& p = c.product;
  visit(c.kind, 0, kLastKind);
  for (auto* size : {&p.m, &p.n, &p.k, &p.batch}) visit(*size, 0, kMostNumber);
  visit(p.type, 0, kLastType);
  visit(p.output, -1, kLastType);
  visit(p.accumulate, 0, 1);
  for (auto* size : {&c.batch, &c.heads, &c.kv_heads, &c.queries, &c.keys, &c.head_dim})
    visit(*size, 0, kMostNumber);
  visit(c.causal, 0, 1);
  visit(c.backward, 0, 1);
  visit(c.type, 0, kLastType);
  for (auto* amount : {&c.flop, &c.read, &c.written}) visit(*amount, 0, kMostNumber);
  visit(c.concluded, 0, 1);
}

}  // namespace

std::optional<ChakraExtension> read_extension(const chakra::GlobalMetadata& metadata,
                                              TraceAssembly& assembly, ProcessGroups& groups,
                                              const std::string& file) {
  std::optional<ChakraExtension> extension;
  for (const chakra::AttributeProto& attribute : metadata.attr()) {
    if (attribute.name() == kClassAttribute) extension = {attribute.string_val()};
    if (attribute.name() == kWorkloadAttribute)
      take_workload(attribute.string_val(), assembly, groups, file);
  }
  return extension;
}

void write_extension(chakra::GlobalMetadata& metadata, const Workload& workload,
                     const std::string& class_name, bool is_first) {
  const auto add = [&](std::string_view name, const std::string& text) {
    chakra::AttributeProto* attribute = metadata.add_attr();
    attribute->set_name(std::string(name));
    attribute->set_string_val(text);
  };
  add(kClassAttribute, class_name);
  if (!is_first) return;
  ExtensionJson streams = ExtensionJson::array(), families = ExtensionJson::array();
  for (const Stream& stream : workload.streams) streams.push_back({stream.name, stream.in_order});
  const auto names = group_names(workload);
  for (std::size_t f = 0; f < workload.families.size(); ++f)
    families.push_back({workload.families[f].name, names[f]});
  ExtensionJson classes = ExtensionJson::array();
  for (const RankClass& one : workload.classes) classes.push_back(one.name);
  ExtensionJson json{
      {"name", workload.name}, {"streams", streams}, {"families", families}, {"classes", classes}};
  if (workload.facts) json["facts"] = json_of(*workload.facts);
  if (!workload.splits.empty()) json["splits"] = workload.splits;
  if (const auto& device = workload.recorded_on)
    json["recorded_on"] = {
        {"name", device->name}, {"units", device->compute_units}, {"memory", device->memory}};
  add(kWorkloadAttribute, json.dump(-1, ' ', false, ExtensionJson::error_handler_t::replace));
}

void extend_node(Node& node, const chakra::Node& message, const ChakraAttributes& attributes,
                 TraceAssembly& assembly, const NodeOfFile& at) {
  constexpr std::int64_t kLeast = 0;
  if (const auto fs = number_in_range(attributes, Attribute::host, kLeast, kMostNumber, at))
    node.host = {*fs};
  if (const auto fs = number_in_range(attributes, Attribute::duration, kLeast, kMostNumber, at))
    node.recorded = {*fs};
  if (const auto fs = number_in_range(attributes, Attribute::begin, kLeast, kMostNumber, at))
    node.recorded_begin = {*fs};
  else if (message.start_time_micros() <= kMostNumber / 1'000'000'000)
    node.recorded_begin = Time::from_us(static_cast<std::int64_t>(message.start_time_micros()));
  if (const chakra::AttributeProto* kind = attributes.find(Attribute::kind)) {
    const std::string text = text_of(*kind).value_or("");
    const std::string recorded = fmt::format("{} ", name_of(NodeKind::recorded_call));
    if (text.starts_with(recorded)) {
      node.kind = NodeKind::recorded_call;
      node.work = static_cast<std::int32_t>(assembly.name(text.substr(recorded.size())));
      return;
    }
    if (text != name_of(NodeKind::nothing))
      at.fail(fmt::format(" has a {} that is not known", name_of(Attribute::kind)));
    node.kind = NodeKind::nothing;
    node.work = -1;
  }
}

void extend_call(CollectiveCall& call, const ChakraAttributes& attributes, const NodeOfFile& at) {
  if (const auto bytes = number_in_range(attributes, Attribute::bytes, 1, kMostNumber, at))
    call.bytes = *bytes;
  if (const auto splits = number_in_range(attributes, Attribute::splits, 0, kMostSplits, at))
    call.splits = static_cast<std::int32_t>(*splits);
  if (const chakra::AttributeProto* attribute = attributes.find(Attribute::type)) {
    const auto type = parse_data_type(text_of(*attribute).value_or(""));
    if (!type) at.fail(fmt::format(" has a {} that is not known", name_of(Attribute::type)));
    call.type = *type;
  }
}

std::vector<std::int64_t> numbers_of(const Compute& compute) {
  std::vector<std::int64_t> numbers;
  each_number(compute, [&](const auto& value, std::int64_t, std::int64_t) {
    if constexpr (std::is_same_v<decltype(value), const std::optional<DataType>&>)
      numbers.push_back(value ? static_cast<std::int64_t>(*value) : -1);
    else
      numbers.push_back(static_cast<std::int64_t>(value));
  });
  return numbers;
}

std::optional<Compute> extended_compute(const ChakraAttributes& attributes, const NodeOfFile& at) {
  const chakra::AttributeProto* attribute = attributes.find(Attribute::compute);
  if (attribute == nullptr) return std::nullopt;
  auto numbers = integers_of(*attribute);
  Compute compute;
  const std::size_t count = numbers_of(compute).size();
  // Files of before do not have the last one.
  if (numbers && numbers->size() == count - 1) numbers->push_back(0);
  if (!numbers || numbers->size() != count)
    at.fail(fmt::format(" has a {} that is damaged", name_of(Attribute::compute)));
  auto next = numbers->begin();
  each_number(compute, [&](auto& value, std::int64_t least, std::int64_t most) {
    const std::int64_t number = *next++;
    if (number < least || number > most)
      at.fail(fmt::format(" has a {} that is out of range", name_of(Attribute::compute)));
    if constexpr (std::is_same_v<decltype(value), std::optional<DataType>&>)
      value = number < 0 ? std::nullopt : std::optional(static_cast<DataType>(number));
    else
      value = static_cast<std::remove_reference_t<decltype(value)>>(number);
  });
  return compute;
}

std::vector<std::vector<std::string>> group_names(const Workload& workload) {
  std::vector<std::vector<std::string>> names;
  int next = 1;  // "0" is all ranks
  for (const GroupFamily& family : workload.families) {
    std::vector<std::string>& own = names.emplace_back();
    for (std::size_t g = 0; g < family.groups.size(); ++g) own.push_back(std::to_string(next++));
  }
  return names;
}

}  // namespace hemiola::workload
