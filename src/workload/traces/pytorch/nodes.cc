#include "workload/traces/pytorch/nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "core/diagnostics.h"
#include "workload/traces/json.h"

namespace hemiola::workload {
namespace {

class TorchParser {
 public:
  explicit TorchParser(const std::string& file) : file_(file) {}

  TorchNodes read(std::string content) {
    const auto json = std::make_shared<JsonStream>(std::move(content));
    bool found = false;
    json->each_field(file_, [&](std::string_view key, TraceJson value) {
      if (key == "schema") {
        read_.schema = json_text(value);
        if (read_.schema.empty()) read_.schema = "that is no text";
      } else if (key == "nodes") {
        found = true;
        for (auto node : value.get_array()) read_node(node.get_object());
      }
    });
    if (!found) throw Failure("has no nodes", {.file = file_});
    std::ranges::stable_sort(read_.nodes, {}, &TorchNode::id);
    read_.texts = json;
    return std::move(read_);
  }

 private:
  std::uint64_t id_of(TraceJson value, std::string_view what) const {
    std::uint64_t id = 0;
    if (value.get_uint64().get(id) != simdjson::SUCCESS)
      throw Failure(fmt::format("a node's {} is no number", what), {.file = file_});
    return id;
  }

  void read_node(simdjson::ondemand::object object) {
    TorchNode node;
    bool has_id = false, has_parent = false;
    for (auto field : object) {
      const std::string_view key = field.unescaped_key();
      if (key == "id") {
        node.id = id_of(field.value(), "id");
        has_id = true;
      } else if (key == "name") {
        node.name = json_text(field.value());
      } else if (key == "ctrl_deps" || key == "parent") {
        node.parent = id_of(field.value(), key);
        has_parent = true;
      } else if (key == "inputs" || key == "outputs") {
        read_values(field.value(), node, key == "inputs");
      } else if (key == "input_shapes") {
        node.shapes = json_list(field.value());
      } else if (key == "input_types") {
        node.types = json_list(field.value());
      } else if (key == "output_shapes") {
        node.output_shapes = json_list(field.value());
      } else if (key == "attrs") {
        for (auto attribute : field.value().get_array())
          read_attribute(attribute.get_object(), node);
      } else {
        read_link(key, field.value(), node);
      }
    }
    if (!has_id || !has_parent)
      throw Failure(fmt::format("node '{}' has no {}", node.name, has_id ? "ctrl_deps" : "id"),
                    {.file = file_});
    if (node.name.empty())
      throw Failure(fmt::format("node {} has no name", node.id), {.file = file_});
    read_.nodes.push_back(std::move(node));
  }

  /// Lists by themselves, or in an object with their shapes and types.
  void read_values(TraceJson value, TorchNode& node, bool of_inputs) {
    std::string_view& values = of_inputs ? node.values : node.output_values;
    std::string_view& shapes = of_inputs ? node.shapes : node.output_shapes;
    if (value.type() == simdjson::ondemand::json_type::array) {
      values = json_list(value);
      return;
    }
    for (auto field : value.get_object()) {
      const std::string_view key = field.unescaped_key();
      if (key == "values") values = json_list(field.value());
      if (key == "shapes") shapes = json_list(field.value());
      if (key == "types" && of_inputs) node.types = json_list(field.value());
    }
  }

  static void read_attribute(simdjson::ondemand::object attribute, TorchNode& node) {
    std::string_view name, text, token;
    for (auto field : attribute) {
      const std::string_view key = field.unescaped_key();
      if (key == "name") name = json_text(field.value());
      if (key != "value") continue;
      TraceJson value = field.value();
      if (value.type() == simdjson::ondemand::json_type::string)
        text = json_text(value);
      else
        token = value.raw_json_token();
    }
    const auto number = [&] { return integer_of_token(token.empty() ? text : token); };
    if (name == "kernel_backend") node.kernel_backend = text;
    if (name == "collective_name") node.said.collective = text;
    if (name == "dtype") node.said.type = text;
    if (name == "pg_name") node.said.group = text;
    if (name == "in_msg_nelems") node.said.sent = number();
    if (name == "out_msg_nelems") node.said.received = number();
    if (name == "global_rank_start") node.said.first = number();
    if (name == "global_rank_stride") node.said.stride = number();
    if (name == "pg_size") node.said.group_size = number();
  }

  /// What Chakra's linker adds.
  static void read_link(std::string_view key, TraceJson value, TorchNode& node) {
    if (key == "cat") {
      node.is_on_gpu = !json_text(value).empty();
    } else if (key == "ts") {
      node.begin = nanoseconds_of(value.raw_json_token()).value_or(-1);
    } else if (key == "exclusive_dur") {
      node.duration = nanoseconds_of(value.raw_json_token()).value_or(-1);
    } else if (key == "stream") {
      node.stream = json_integer(value).value_or(0);
    } else if (key == "inter_thread_dep") {
      std::uint64_t id = 0;
      if (value.get_uint64().get(id) == simdjson::SUCCESS) node.waits_for.push_back(id);
    } else if (key == "sync_dep") {
      simdjson::ondemand::array list;
      if (value.get_array().get(list) != simdjson::SUCCESS) return;
      for (auto one : list) {
        std::uint64_t id = 0;
        if (one.get_uint64().get(id) == simdjson::SUCCESS) node.waits_for.push_back(id);
      }
    }
  }

  const std::string& file_;
  TorchNodes read_;
};

}  // namespace

TorchNodes parse_pytorch(const std::string& file, std::string content) {
  return TorchParser(file).read(std::move(content));
}

bool TorchNodes::has_known_schema() const {
  return schema.empty() || schema.starts_with("1.0.") || schema.starts_with("1.1.");
}

std::int64_t TorchTensor::bytes() const {
  if (elements <= 0 || element_bytes <= 0) return 0;
  if (elements > std::numeric_limits<std::int64_t>::max() / 4 / element_bytes) return 0;
  return elements * element_bytes;
}

std::vector<TorchTensor> tensors_of(std::string_view values) {
  std::vector<TorchTensor> tensors;
  // The innermost lists of five numbers and a text.
  std::size_t open = std::string_view::npos;
  for (std::size_t at = 0; at < values.size(); ++at) {
    if (values[at] == '[') open = at;
    if (values[at] == '"' || values[at] == '\'') {
      const char quote = values[at];
      for (++at; at < values.size() && values[at] != quote; ++at)
        if (values[at] == '\\') ++at;
      continue;
    }
    if (values[at] != ']' || open == std::string_view::npos) continue;
    const std::string_view list = values.substr(open + 1, at - open - 1);
    open = std::string_view::npos;
    std::int64_t numbers[5];
    std::size_t next = 0;
    int count = 0;
    while (count < 5) {
      next = list.find_first_not_of(", \n", next);
      if (next == std::string_view::npos) break;
      const auto number = integer_of_token(list.substr(next));
      if (!number || list[next] == '"') break;
      numbers[count++] = *number;
      next = list.find(',', next);
      if (next == std::string_view::npos) break;
    }
    if (count < 5 || next == std::string_view::npos) continue;
    const std::size_t device = list.find_first_of("\"'", next);
    if (device == std::string_view::npos) continue;
    const std::string_view name = list.substr(device + 1);
    tensors.push_back(
        {numbers[0], numbers[1], numbers[3], numbers[4],
         name.starts_with("cuda") || name.starts_with("hip") || name.starts_with("xpu"),
         integer_of_token(name.substr(std::min(name.size(), name.find(':') + 1))).value_or(0)});
  }
  return tensors;
}

}  // namespace hemiola::workload
