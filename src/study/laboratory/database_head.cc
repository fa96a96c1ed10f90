#include "study/laboratory/database_head.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
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

Meta meta_of(const DatabaseHead& head) {
  Meta meta{{"version", head.version},
            {"machine", head.machine},
            {"machine_digest", head.machine_digest}};
  for (const auto& [name, value] : head.options) meta[std::string(kOption) + name] = value;
  return meta;
}

/// "version 0.1.0, not 0.2.0"
void add_differences(Meta& is, Meta wanted, std::vector<std::string>& all) {
  const auto compare = [&](const std::string& what, const std::string& key) {
    if (is[key] != wanted[key])
      all.push_back(fmt::format("{} {}, not {}", what, is[key], wanted[key]));
  };
  compare("version", "version");
  compare("machine", "machine");
  if (is["machine"] == wanted["machine"] && is["machine_digest"] != wanted["machine_digest"])
    all.push_back("a machine " + is["machine"] + " with other figures");
  for (const auto& [key, value] : is)
    if (key.starts_with(kOption)) compare("option " + key.substr(kOption.size()), key);
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

void write_meta(const sqlite::Connection& connection, const std::string& schema,
                const Meta& values) {
  sqlite::Statement insert(connection, sqlite::insert_into("meta", 2));
  insert.bind("schema").bind(schema).step();
  for (const auto& [key, value] : values) {
    insert.reset();
    insert.bind(key).bind(value).step();
  }
}

Meta read_meta(const sqlite::Connection& connection, const std::string& schema) {
  Meta meta;
  for (sqlite::Statement select(connection, "SELECT key, value FROM meta"); select.step();) {
    const std::string key = select.text();
    meta[key] = select.text();
  }
  if (meta["schema"] != schema)
    throw Failure(fmt::format("has the schema '{}', not {}", meta["schema"], schema),
                  {.file = connection.file()}, "another version of Hemiola wrote it");
  return meta;
}

std::unique_ptr<sqlite::Connection> open_database(const std::string& file, const DatabaseKind& kind,
                                                  const DatabaseHead& head, const Meta& more,
                                                  const std::string& other) {
  auto connection =
      std::make_unique<sqlite::Connection>(file, sqlite::Connection::Open::or_new, kind.words);
  sqlite::Transaction transaction(*connection);
  if (connection->fresh()) {
    connection->execute(kMetaTable);
    connection->execute(kind.definitions);
    Meta values = meta_of(head);
    values.insert(more.begin(), more.end());
    write_meta(*connection, kind.schema, values);
    transaction.commit();
    return connection;
  }
  std::vector<std::string> tables{"meta"};
  tables.insert(tables.end(), kind.tables.begin(), kind.tables.end());
  connection->require_tables(tables);
  Meta is = read_meta(*connection, kind.schema);
  transaction.commit();
  std::vector<std::string> differences;
  if (std::ranges::any_of(more, [&](const auto& one) { return is[one.first] != one.second; }))
    differences.push_back(other);
  add_differences(is, meta_of(head), differences);
  if (!differences.empty())
    throw Failure(fmt::format("holds other results: {}", fmt::join(differences, "; ")),
                  {.file = file}, "give another --database, or remove this file");
  return connection;
}

}  // namespace hemiola::study
