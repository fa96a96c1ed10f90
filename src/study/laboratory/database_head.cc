#include "study/laboratory/database_head.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "machine/devices/parameters.h"
#include "sim/models_version.h"
#include "study/laboratory/identity.h"
#include "study/support/digest.h"
#include "study/support/sqlite.h"

namespace hemiola::study {
namespace {

constexpr std::string_view kOption = "option.";  ///< what keys of options begin with

/// Of everything that a result may ask of a machine: making_facts(), and all parameters of its
/// GPUs.
std::string digest_of_figures(const machine::Machine& machine) {
  std::string facts = fmt::format("{}", fmt::join(making_facts(&machine), " "));
  for (int rank = 0; rank < machine.ranks(); ++rank) {
    const machine::GpuModel& model = machine.model(rank);
    if (rank > 0 && &model == &machine.model(rank - 1)) continue;
    for (const machine::Parameter& parameter : machine::gpu_parameters())
      facts += fmt::format("\n{}={}", parameter.name, parameter.get(model));
  }
  return digest(facts);
}

std::string machine_text(const MachineChoice& choice, const machine::Machine& machine) {
  std::string text = choice.given == nullptr ? choice.name : machine.name;
  if (!choice.gpu.empty()) text += " gpu=" + choice.gpu;
  if (!choice.settings.empty()) text += " " + to_text(choice.settings);
  return text;
}

}  // namespace

std::string results_version(const std::string& hemiola) {
  return fmt::format("{} (models {})", hemiola, sim::kModelsVersion);
}

DatabaseHead head_of_machine(const MachineChoice& choice, const machine::Machine& machine,
                             const std::string& version) {
  return {.version = results_version(version),
          .machine = machine_text(choice, machine),
          .machine_digest = digest_of_figures(machine)};
}

void write_head(const sqlite::Connection& connection, const std::string& schema,
                const DatabaseHead& head, const Settings& more) {
  sqlite::Statement insert(connection, "INSERT INTO meta VALUES (?, ?)");
  const auto add = [&](const std::string& key, const std::string& value) {
    insert.bind(key).bind(value).step();
    insert.reset();
  };
  add("schema", schema);
  add("version", head.version);
  add("machine", head.machine);
  add("machine_digest", head.machine_digest);
  for (const auto& [key, value] : more) add(key, value);
  for (const auto& [name, value] : head.options) add(std::string(kOption) + name, value);
}

DatabaseHead read_head(const sqlite::Connection& connection, const std::string& schema,
                       std::map<std::string, std::string>* others) {
  std::map<std::string, std::string> meta;
  DatabaseHead head;
  for (sqlite::Statement select(connection, "SELECT key, value FROM meta ORDER BY key");
       select.step();) {
    const std::string key = select.text();
    std::string value = select.text();
    if (key.starts_with(kOption))
      head.options.emplace_back(key.substr(kOption.size()), std::move(value));
    else
      meta[key] = std::move(value);
  }
  if (meta["schema"] != schema)
    throw Failure(fmt::format("has the schema '{}', not {}", meta["schema"], schema),
                  {.file = connection.file()}, "another version of Hemiola wrote it");
  head.version = meta["version"];
  head.machine = meta["machine"];
  head.machine_digest = meta["machine_digest"];
  if (others != nullptr) *others = std::move(meta);
  return head;
}

std::vector<std::string> differences(const DatabaseHead& is, const DatabaseHead& wanted) {
  std::vector<std::string> all;
  const auto compare = [&](const std::string& what, const std::string& a, const std::string& b) {
    if (a != b) all.push_back(fmt::format("{} {}, not {}", what, a, b));
  };
  compare("version", is.version, wanted.version);
  compare("machine", is.machine, wanted.machine);
  if (is.machine == wanted.machine && is.machine_digest != wanted.machine_digest)
    all.push_back("a machine " + is.machine + " with other figures");
  std::map<std::string, std::string> others(wanted.options.begin(), wanted.options.end());
  for (const auto& [name, value] : is.options) compare("option " + name, value, others[name]);
  return all;
}

}  // namespace hemiola::study
