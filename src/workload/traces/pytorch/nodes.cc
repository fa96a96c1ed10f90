#include "workload/traces/pytorch/nodes.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "core/diagnostics.h"
#include "workload/traces/json.h"

namespace hemiola::workload {
namespace {

namespace torch_json = simdjson::ondemand;

std::string_view raw_list(torch_json::value value) {
  torch_json::array list;
  if (value.get_array().get(list) != simdjson::SUCCESS) return {};
  return list.raw_json().value();
}

std::string_view plain_text(torch_json::value value) {
  std::string_view out;
  return value.get_string().get(out) == simdjson::SUCCESS ? out : std::string_view();
}

class TorchParser {
 public:
  TorchParser(const std::string& file, std::string& content, std::vector<TorchNode>& nodes)
      : file_(file), content_(content), nodes_(nodes) {}

  void read(torch_json::parser& parser) {
    content_.reserve(content_.size() + simdjson::SIMDJSON_PADDING);
    torch_json::document document;
    bool is_open = false;
    try {
      document = parser.iterate(content_.data(), content_.size(), content_.capacity());
      is_open = true;
      bool found = false;
      for (auto field : document.get_object()) {
        const std::string_view key = field.unescaped_key();
        if (key == "schema") {
          schema_ = plain_text(field.value());
          if (schema_.empty()) schema_ = "that is no text";
        }
        if (key != "nodes") continue;
        found = true;
        for (auto node : field.value().get_array()) read_node(node.get_object());
      }
      if (!found) throw Failure("has no nodes", {.file = file_});
    } catch (const simdjson::simdjson_error&) {
      const char* at = nullptr;
      if (!is_open || document.current_location().get(at) != simdjson::SUCCESS) at = nullptr;
      fail_with_json(file_, content_, at);
    }
    std::ranges::stable_sort(nodes_, {}, &TorchNode::id);
  }

  const std::string& schema() const { return schema_; }

 private:
  std::uint64_t id_of(torch_json::value value, std::string_view what) const {
    std::uint64_t id = 0;
    if (value.get_uint64().get(id) != simdjson::SUCCESS)
      throw Failure(fmt::format("a node's {} is no number", what), {.file = file_});
    return id;
  }

  void read_node(torch_json::object object) {
    TorchNode node;
    bool has_id = false, has_parent = false;
    for (auto field : object) {
      const std::string_view key = field.unescaped_key();
      if (key == "id") {
        node.id = id_of(field.value(), "id");
        has_id = true;
      } else if (key == "name") {
        node.name = plain_text(field.value());
      } else if (key == "ctrl_deps" || key == "parent") {
        node.parent = id_of(field.value(), key);
        has_parent = true;
      } else if (key == "inputs" || key == "outputs") {
        read_values(field.value(), node, key == "inputs");
      } else if (key == "input_shapes") {
        node.shapes = raw_list(field.value());
      } else if (key == "input_types") {
        node.types = raw_list(field.value());
      } else if (key == "output_shapes") {
        node.output_shapes = raw_list(field.value());
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
    nodes_.push_back(std::move(node));
  }

  /// Lists by themselves, or in an object with their shapes and types.
  void read_values(torch_json::value value, TorchNode& node, bool of_inputs) {
    std::string_view& values = of_inputs ? node.values : node.output_values;
    std::string_view& shapes = of_inputs ? node.shapes : node.output_shapes;
    torch_json::json_type type = value.type();
    if (type == torch_json::json_type::array) {
      values = raw_list(value);
      return;
    }
    for (auto field : value.get_object()) {
      const std::string_view key = field.unescaped_key();
      if (key == "values") values = raw_list(field.value());
      if (key == "shapes") shapes = raw_list(field.value());
      if (key == "types" && of_inputs) node.types = raw_list(field.value());
    }
  }

  static void read_attribute(torch_json::object attribute, TorchNode& node) {
    std::string_view name, text, token;
    for (auto field : attribute) {
      const std::string_view key = field.unescaped_key();
      if (key == "name") name = plain_text(field.value());
      if (key != "value") continue;
      torch_json::value value = field.value();
      torch_json::json_type type = value.type();
      if (type == torch_json::json_type::string)
        text = plain_text(value);
      else
        token = value.raw_json_token();
    }
    const auto number = [&] { return integer_of_token(token.empty() ? text : token); };
    if (name == "kernel_backend") node.kernel_backend = text;
    if (name == "collective_name") node.collective = text;
    if (name == "dtype") node.type = text;
    if (name == "pg_name") node.group = text;
    if (name == "in_msg_nelems") node.sent = number();
    if (name == "out_msg_nelems") node.received = number();
    if (name == "global_rank_start") node.first = number();
    if (name == "global_rank_stride") node.stride = number();
    if (name == "pg_size") node.group_size = number();
  }

  /// What Chakra's linker adds.
  static void read_link(std::string_view key, torch_json::value value, TorchNode& node) {
    if (key == "cat") {
      node.is_on_gpu = !plain_text(value).empty();
    } else if (key == "ts") {
      node.begin = nanoseconds_of(value.raw_json_token()).value_or(-1);
    } else if (key == "exclusive_dur") {
      node.duration = nanoseconds_of(value.raw_json_token()).value_or(-1);
    } else if (key == "stream") {
      node.stream = integer_of_token(value.raw_json_token()).value_or(0);
    } else if (key == "inter_thread_dep") {
      std::uint64_t id = 0;
      if (value.get_uint64().get(id) == simdjson::SUCCESS) node.waits_for.push_back(id);
    } else if (key == "sync_dep") {
      torch_json::array list;
      if (value.get_array().get(list) != simdjson::SUCCESS) return;
      for (auto one : list) {
        std::uint64_t id = 0;
        if (one.get_uint64().get(id) == simdjson::SUCCESS) node.waits_for.push_back(id);
      }
    }
  }

  const std::string& file_;
  std::string& content_;
  std::vector<TorchNode>& nodes_;
  std::string schema_;
};

}  // namespace

struct TorchFile::Parsed {
  std::string content;
  torch_json::parser parser;  // owns the texts
  std::vector<TorchNode> nodes;
  std::string schema;
};

TorchFile::TorchFile(const std::string& file, std::string content)
    : parsed_(std::make_unique<Parsed>()) {
  parsed_->content = std::move(content);
  TorchParser parser(file, parsed_->content, parsed_->nodes);
  parser.read(parsed_->parser);
  parsed_->schema = parser.schema();
}
TorchFile::~TorchFile() = default;
const std::vector<TorchNode>& TorchFile::nodes() const {
  return parsed_->nodes;
}

const std::string& TorchFile::schema() const {
  return parsed_->schema;
}
bool TorchFile::has_known_schema() const {
  return schema().empty() || schema().starts_with("1.0.") || schema().starts_with("1.1.");
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
