// What all results in a database belong to, as its table `meta` has it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "machine/machine.h"
#include "study/laboratory/experiment.h"
#include "study/laboratory/settings.h"

namespace hemiola::study {

namespace sqlite {
class Connection;
}

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

/// The table's definition, to be executed in a fresh file.
inline constexpr const char* kMetaTable =
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;";
/// `more`: keys of the caller's own.
void write_head(const sqlite::Connection& connection, const std::string& schema,
                const DatabaseHead& head, const Settings& more = {});
/// `others`: keys that are neither the head's nor an option. Failure for another schema.
DatabaseHead read_head(const sqlite::Connection& connection, const std::string& schema,
                       std::map<std::string, std::string>* others = nullptr);

/// What of a file is not as it is asked for: "version 0.1.0, not 0.2.0".
std::vector<std::string> differences(const DatabaseHead& is, const DatabaseHead& wanted);

}  // namespace hemiola::study
