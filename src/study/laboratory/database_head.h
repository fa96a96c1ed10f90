// What all results in a database belong to, as its table `meta` has it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "machine/machine.h"
#include "study/laboratory/experiment.h"
#include "study/laboratory/settings.h"
#include "study/support/results.h"

namespace hemiola::study {

/// Two databases of equal heads hold results of the same simulations.
struct DatabaseHead {
  std::string version;         ///< results_version()
  std::string machine;         ///< "mi300x-8", and what is set of it
  std::string machine_digest;  ///< of all its figures
  Settings options;            ///< that results depend on, in any order

  bool operator==(const DatabaseHead&) const = default;
};

/// What a file of results carries: the version of Hemiola, and that of its models, which times
/// change with (sim/models_version.h).
std::string results_version(const std::string& hemiola);

/// results_version() of Hemiola's `version` and the machine; options are the caller's.
DatabaseHead head_of_machine(const MachineChoice& choice, const machine::Machine& machine,
                             const std::string& version);

/// The definition of a table of keys and values, which every database has.
inline constexpr const char* kMetaTable =
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;";
using Meta = std::map<std::string, std::string>;
void write_meta(const sqlite::Connection& connection, const std::string& schema,
                const Meta& values);
/// Failure for another schema.
Meta read_meta(const sqlite::Connection& connection, const std::string& schema);

/// What a database of a kind is made of.
struct DatabaseKind {
  sqlite::Words words;
  std::string schema;
  const char* definitions;          ///< of its tables
  std::vector<std::string> tables;  ///< their names
};
/// Opens the file and creates it where there is none. `more`: keys of the caller's own, which say
/// what `other` is if they are others. Failure for a file that holds something else: one message
/// says all that differs.
std::unique_ptr<sqlite::Connection> open_database(const std::string& file, const DatabaseKind& kind,
                                                  const DatabaseHead& head, const Meta& more = {},
                                                  const std::string& other = {});

}  // namespace hemiola::study
