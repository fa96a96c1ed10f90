// The suite that is shipped: which tables of data/measured stand for which program on which machine
// (data/measured/suite.yaml, whose head says what its keys mean).
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/units.h"
#include "machine/machine.h"
#include "sim/simulate.h"
#include "study/laboratory/experiment.h"
#include "study/tables/measured.h"
#include "study/tables/statistics.h"

namespace hemiola::study {

/// What may be fitted to (calibrate), and what is only looked at (check).
enum class Kind { calibrate, check };
std::string_view name_of(Kind kind);

/// The errors to stay within; nothing: there is no mark.
struct Mark {
  std::optional<double> median, worst;
  bool met_by(const Summary& summary) const;
};
using Marks = std::array<Mark, kRegimes>;

struct SuiteEntry {
  std::string name;
  Kind kind = Kind::check;
  std::string table;  ///< file below data/measured
  std::vector<Filter> where;
  ColumnNames columns;
  Bytes from{}, to{INT64_MAX};  ///< sizes that are part of the entry
  std::string machine;
  machine::LoadOptions machine_options;  ///< `gpu` and `set`, as --gpu and --set
  std::string program;
  std::vector<std::pair<std::string, std::string>> parameters;
  DataType type = DataType::float32;  ///< of rows that name none
  int ranks = 0;                      ///< of a table that does not say; 0: all of the machine
  sim::Launch launch = sim::Launch::stream;
  bool one_host = false;  ///< one host thread launches all GPUs (sim::Options)
  std::string calibrate;  ///< the entry whose rows the trivial model is fitted to: a calibrate one
  int line = 0;
};

/// A program that measures what a row of calibrate/micro.csv says: its time, or the time of what it
/// does beyond `base`, by operation (ns, us) or as a rate (GB/s), as the unit of the row asks.
struct MicroEntry {
  std::string name;              ///< no other entry of the suite has it
  std::string hardware, metric;  ///< the row
  std::string machine;
  machine::LoadOptions machine_options;  ///< `set`, as --set
  int ranks = 2;
  std::string program;
  std::vector<std::pair<std::string, std::string>> parameters;
  std::optional<Bytes> size;                              ///< nothing: 1 MiB
  std::vector<std::pair<std::string, std::string>> base;  ///< parameters that differ in the run
  std::optional<Bytes> base_size;                         ///< ... whose time does not count
  std::int64_t operations = 1;
  Bytes bytes{};  ///< of a rate: that are moved beyond `base`
  sim::Options options;
  SourceLocation where;
};

/// Two ways to do the same, each one or more entries: which is faster at which size?
struct Comparison {
  std::string name;
  std::vector<std::string> first, second;
};

struct Suite {
  std::string file;
  Marks graph_marks, stream_marks;
  std::vector<SuiteEntry> entries;
  std::vector<Comparison> comparisons;
  std::vector<MicroEntry> micro;

  const Marks& marks(sim::Launch launch) const {
    return launch == sim::Launch::graph ? graph_marks : stream_marks;
  }
  const SuiteEntry& entry(std::string_view name) const;  ///< must exist
};

/// A file below data/measured, as it is built into the library. Failure: there is none.
std::string_view shipped_table(const std::string& name);

/// Failure with line: unknown or missing keys, malformed values, two entries of one name, a
/// `calibrate` that names no entry or one of kind check, a comparison of entries that are not
/// there.
Suite parse_suite(std::string_view yaml, const std::string& file);
/// The shipped one.
Suite shipped_suite();

/// The rows of an entry, from the files that are built into the library. Failure as
/// read_measured() and select(), and for a table that is not shipped.
MeasuredTable rows_of(const SuiteEntry& entry);
/// An entry's machine with what it changes, as text; and as a choice, `more` set after that.
std::string name_of_machine(const std::string& machine, const machine::LoadOptions& options);
MachineChoice choice_of(const std::string& machine, const machine::LoadOptions& options,
                        const Settings& more);

/// Powers of 4 from 1 KiB to 4 MiB: what the suite runs by default.
bool in_default_sample(Bytes size);

}  // namespace hemiola::study
