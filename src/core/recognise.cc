// Which format a file has, by its first bytes and its outermost keys. Nothing here parses a file: a
// damaged one is still recognised, so that its own reader can say where the damage is.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/lists.h"
#include "core/text.h"

namespace hemiola {
namespace {

using Keys = std::vector<std::string_view>;

bool has(const Keys& keys, std::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}
bool has_any(const Keys& keys, std::initializer_list<std::string_view> wanted) {
  return std::any_of(wanted.begin(), wanted.end(), [&](auto key) { return has(keys, key); });
}

std::size_t skip_blanks(std::string_view text, std::size_t at) {
  while (at < text.size() &&
         (text[at] == ' ' || text[at] == '\t' || text[at] == '\n' || text[at] == '\r'))
    ++at;
  return at;
}

/// Control characters that no text file has.
bool is_binary(std::string_view content) {
  constexpr std::size_t kLooked = 4096;
  const std::string_view start = content.substr(0, kLooked);
  return std::any_of(start.begin(), start.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\f';
  });
}

// --- XML -----------------------------------------------------------------------------------------

/// The name of the root element; empty if none is found.
std::string_view xml_root(std::string_view text) {
  std::size_t at = 0;
  const auto skip_past = [&](std::string_view end) {
    const std::size_t found = text.find(end, at);
    at = found == std::string_view::npos ? text.size() : found + end.size();
  };
  while ((at = skip_blanks(text, at)) < text.size() && text[at] == '<') {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with("<?")) {
      skip_past("?>");
    } else if (rest.starts_with("<!--")) {
      skip_past("-->");
    } else if (rest.starts_with("<!")) {
      skip_past(">");
    } else {
      const std::size_t end = rest.find_first_of(" \t\r\n/>", 1);
      return rest.substr(1, end == std::string_view::npos ? rest.size() - 1 : end - 1);
    }
  }
  return {};
}

Format recognise_xml(std::string_view text) {
  const std::string_view root = xml_root(text);
  if (root == "algo") return Format::msccl_xml;
  if (root == "system") return Format::nccl_topology;
  if (root == "graphs") return Format::nccl_graph;
  return Format::xml;
}

// --- JSON ----------------------------------------------------------------------------------------

/// The end of the string literal that starts at `at`: the place of its closing quote.
std::size_t string_end(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at)
    if (text[at] == '\\') ++at;
  return std::min(at, text.size());
}

/// The keys of the outermost object, as written.
Keys json_keys(std::string_view text) {
  Keys keys;
  int depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (c != '"') continue;
    const std::size_t end = string_end(text, at);
    const std::size_t next = skip_blanks(text, end + 1);
    if (depth == 1 && next < text.size() && text[next] == ':')
      keys.push_back(text.substr(at + 1, end - at - 1));
    at = end;
  }
  return keys;
}

Format recognise_json(std::string_view text) {
  const Keys keys = json_keys(text);
  if (has(keys, "hemiola_plan")) return Format::hemiola_plan;
  if (has(keys, "gpus")) return Format::mscclpp_json;
  if (has_any(keys, {"traceEvents", "deviceProperties"})) return Format::kineto_trace;
  if (has(keys, "schema") && has(keys, "nodes")) return Format::chakra_et;
  if (has(keys, "workload_graph")) return Format::chakra_json;
  // Its jsonizer writes one object for each node.
  if (has(keys, "id") && has(keys, "name") && has(keys, "type") && has(keys, "attr"))
    return Format::chakra_json;
  if (has_any(keys, {"scheduling-policy", "endpoint-delay", "active-chunks-per-dimension",
                     "preferred-dataset-splits", "all-reduce-implementation",
                     "collective-optimization", "logical-dims", "memory-type"}))
    return Format::astra_system;
  if (has_any(keys, {"devices", "instances", "components", "edges", "infrastructure"}))
    return Format::infragraph;
  return Format::json;
}

// --- YAML ----------------------------------------------------------------------------------------

/// The keys at the left margin. `other` is set when a line there is neither a key, a list item, a
/// comment nor a document marker.
Keys yaml_keys(std::string_view text, bool& other) {
  Keys keys;
  other = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t newline = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, newline - at);
    at = newline + 1;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.empty() || std::string_view(" \t#-}]").find(line.front()) != std::string_view::npos)
      continue;
    if (line == "..." || line.front() == '%') continue;
    const std::size_t colon = line.find(':');
    const bool ends =
        colon != std::string_view::npos &&
        (colon + 1 == line.size() || line[colon + 1] == ' ' || line[colon + 1] == '\t');
    if (!ends) {
      other = true;
      continue;
    }
    std::string_view key = line.substr(0, colon);
    while (!key.empty() && key.back() == ' ') key.remove_suffix(1);
    if (key.size() >= 2 && (key.front() == '"' || key.front() == '\'') && key.back() == key.front())
      key = key.substr(1, key.size() - 2);
    keys.push_back(key);
  }
  return keys;
}

Format recognise_yaml(std::string_view text) {
  bool other = false;
  const Keys keys = yaml_keys(text, other);
  if (has(keys, "npus_count") || (has(keys, "topology") && has(keys, "bandwidth")))
    return Format::astra_network;
  if (has_any(keys, {"devices", "instances", "components", "edges", "infrastructure"}))
    return Format::infragraph;
  return keys.empty() || other ? Format::unknown : Format::yaml;
}

// --- HLO and MLIR --------------------------------------------------------------------------------

/// Behind blanks and lines of `//` comments.
std::string_view without_comments(std::string_view text) {
  for (std::size_t at = skip_blanks(text, 0); at < text.size(); at = skip_blanks(text, at)) {
    if (!text.substr(at).starts_with("//")) return text.substr(at);
    at = std::min(text.find('\n', at), text.size());
  }
  return {};
}

/// What opens a module; `unknown` for any other text.
Format recognise_module(std::string_view text) {
  const std::string_view start = without_comments(text);
  if (start.starts_with("HloModule ")) return Format::hlo;
  if (start.starts_with("module @") || start.starts_with("module {") ||
      start.starts_with("module attributes") || start.starts_with("#loc"))
    return Format::mlir;
  return Format::unknown;
}

// --- SimAI, AICB and ASTRA-sim 1 -----------------------------------------------------------------

/// "9 8 1 0 8 H100": nodes, GPUs of a server, two kinds of switches, links, the type of GPU.
/// Five numbers and a type of GPU: also with a word too many or too few, or numbers that are none
/// of nodes, which its reader says.
bool is_topology_head(const std::vector<std::string_view>& words) {
  constexpr std::size_t kNumbers = 5;
  const auto numbers =
      static_cast<std::size_t>(std::count_if(words.begin(), words.end(), [](std::string_view word) {
        return word.find_first_not_of("0123456789.-+eE") == std::string_view::npos &&
               word.find_first_of("0123456789") != std::string_view::npos;
      }));
  const bool is_plain = std::all_of(words.begin(), words.end(), [](std::string_view word) {
    return word.find_first_of(":,{}[]\"'<>=") == std::string_view::npos;
  });
  return is_plain && numbers < words.size() && numbers + 2 >= kNumbers &&
         words.size() + 1 >= kNumbers && words.size() <= kNumbers + 2 &&
         numbers + 2 >= words.size();
}

/// What SimAI's programs take, by the first line; `unknown` for any other text.
Format recognise_simai(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  const std::vector<std::string_view> words = words_of(line);
  if (words.empty()) return Format::unknown;
  if (line.starts_with("comm_type,") || starts_with_any(line, {"[rank", "[ pp_stage"}))
    return Format::aicb_csv;
  if (is_topology_head(words)) return Format::simai_topology;
  if (words[0].starts_with("HYBRID_") && words[0].find(':') == std::string_view::npos)
    return Format::astra_text;
  for (const std::string_view whole : {"DATA", "MODEL", "MICRO", "DISTRIBUTED_INFERENCE"})
    if (words[0] == whole && words.size() % 2 == 1) return Format::astra_text;
  const bool is_settings =
      text.starts_with("ENABLE_QCN ") || text.find("\nPACKET_PAYLOAD_SIZE ") != std::string::npos;
  if (line.starts_with("Size,1 Node") || text.find("\nallreduce,:") != std::string::npos ||
      is_settings)
    return Format::simai_configuration;
  return Format::unknown;
}

// --- Chakra: protobuf messages, each after its length --------------------------------------------

/// Takes a base-128 varint; false at the end of the text or beyond 64 bits.
bool take_varint(std::string_view& text, std::uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && !text.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(text.front());
    text.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

bool take_bytes(std::string_view& text, std::uint64_t count) {
  if (count > text.size()) return false;
  text.remove_prefix(static_cast<std::size_t>(count));
  return true;
}

/// Whether `text` is a sequence of protobuf fields with small numbers, as Chakra's messages have.
bool is_message(std::string_view text) {
  constexpr std::uint64_t kMaxField = 64;
  while (!text.empty()) {
    std::uint64_t tag = 0, value = 0;
    if (!take_varint(text, tag) || tag >> 3 == 0 || tag >> 3 > kMaxField) return false;
    bool taken = false;
    switch (tag & 7) {
      case 0:
        taken = take_varint(text, value);
        break;
      case 1:
        taken = take_bytes(text, 8);
        break;
      case 2:
        taken = take_varint(text, value) && take_bytes(text, value);
        break;
      case 5:
        taken = take_bytes(text, 4);
        break;
      default:
        break;
    }
    if (!taken) return false;
  }
  return true;
}

/// GlobalMetadata (may be empty), then at least one node; the last message may be cut short.
bool is_chakra(std::string_view content) {
  constexpr int kEnough = 8;
  int messages = 0;
  bool filled = false;
  while (!content.empty() && messages < kEnough) {
    std::uint64_t size = 0;
    if (!take_varint(content, size) || size > content.size()) break;
    const std::string_view message = content.substr(0, static_cast<std::size_t>(size));
    if (!is_message(message)) return false;
    filled = filled || !message.empty();
    content.remove_prefix(message.size());
    ++messages;
  }
  return messages >= 2 && filled;
}

}  // namespace

Format recognise(std::string_view content) {
  if (content.starts_with("\xef\xbb\xbf")) content.remove_prefix(3);
  if (is_binary(content)) return is_chakra(content) ? Format::chakra_et : Format::binary;
  const std::size_t start = skip_blanks(content, 0);
  if (start == content.size()) return Format::unknown;
  const Format simai = recognise_simai(content.substr(start));
  if (simai != Format::unknown) return simai;
  switch (content[start]) {
    case '<':
      return recognise_xml(content);
    case '{':
    case '[':
      return recognise_json(content);
    default: {
      const Format module = recognise_module(content);
      return module != Format::unknown ? module : recognise_yaml(content);
    }
  }
}

std::string_view describe(Format format) {
  static constexpr std::pair<Format, std::string_view> kNames[] = {
      {Format::hemiola_plan, "a chunk plan"},
      {Format::mscclpp_json, "an MSCCL++ execution plan"},
      {Format::msccl_xml, "an MSCCL algorithm"},
      {Format::nccl_topology, "an NCCL topology"},
      {Format::nccl_graph, "an NCCL graph"},
      {Format::infragraph, "an InfraGraph description"},
      {Format::chakra_et, "a Chakra execution trace"},
      {Format::chakra_json, "a Chakra execution trace"},
      {Format::astra_network, "an ASTRA-sim network configuration"},
      {Format::astra_system, "an ASTRA-sim system configuration"},
      {Format::kineto_trace, "a Kineto trace"},
      {Format::hlo, "an HLO module"},
      {Format::mlir, "a StableHLO or other MLIR module"},
      {Format::astra_text, "a workload text of ASTRA-sim 1 or SimAI"},
      {Format::aicb_csv, "an AICB workload"},
      {Format::simai_topology, "a SimAI topology"},
      {Format::simai_configuration,
       "a configuration of SimAI's own models (bus bandwidths, their ratios, or settings of its "
       "network)"},
      {Format::json, "a JSON file of no known kind"},
      {Format::yaml, "a YAML file of no known kind"},
      {Format::xml, "an XML file of no known kind"},
      {Format::binary, "a binary file of no known kind"},
  };
  for (const auto& [known, name] : kNames)
    if (known == format) return name;
  return "a file of no known kind";
}

}  // namespace hemiola
