#include "study/support/known_names.h"

#include <yaml-cpp/yaml.h>

#include <regex>
#include <vector>

#include "core/embedded.h"
#include "core/units.h"

namespace hemiola::study {
namespace {

struct KnownNames {
  std::vector<std::pair<std::regex, KnownDevice>> devices;
  std::vector<std::pair<std::regex, std::string>> calls;

  KnownNames() {
    const EmbeddedFile* file = find_embedded("data/traces.yaml");
    const YAML::Node table = YAML::Load(std::string(file->content));
    for (const YAML::Node& one : table["devices"]) {
      const auto memory =
          one["memory"] ? parse_bytes(one["memory"].as<std::string>()) : std::optional<Bytes>();
      devices.emplace_back(std::regex("\\b" + one["name"].as<std::string>() + "\\b",
                                      std::regex::ECMAScript | std::regex::icase),
                           KnownDevice{one["model"].as<std::string>(), memory ? memory->count : 0});
    }
    for (const YAML::Node& one : table["calls"])
      calls.emplace_back(
          std::regex(one["kernel"].as<std::string>(),
                     std::regex::ECMAScript | std::regex::icase | std::regex::optimize),
          one["name"].as<std::string>());
  }
};

/// Our own file, read once: a test reads it as well.
const KnownNames& names() {
  static const KnownNames known;
  return known;
}

}  // namespace

std::optional<KnownDevice> known_device(std::string_view name) {
  const std::string text(name);
  // Of several names in one text the first: what follows may only be compared with it.
  std::optional<KnownDevice> found;
  std::ptrdiff_t first = 0;
  for (const auto& [pattern, device] : names().devices) {
    std::smatch match;
    if (!std::regex_search(text, match, pattern)) continue;
    if (found && match.position() >= first) continue;
    found = device;
    first = match.position();
  }
  static const std::regex kVariant("\\bPCI|\\bNVL\\b", std::regex::ECMAScript | std::regex::icase);
  if (found) found->is_variant = std::regex_search(text, kVariant);
  return found;
}

std::optional<std::string> library_call(std::string_view kernel) {
  constexpr std::size_t kLongest = 256;  // behind it are arguments of templates
  const std::string text(kernel.substr(0, kLongest));
  for (const auto& [pattern, name] : names().calls)
    if (std::regex_search(text, pattern)) return name;
  return std::nullopt;
}

}  // namespace hemiola::study
