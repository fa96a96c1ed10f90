// Measured against simulated times.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/data_type.h"
#include "core/diagnostics.h"
#include "core/time.h"
#include "study/laboratory/experiment.h"
#include "study/tables/measured.h"
#include "study/tables/statistics.h"

namespace hemiola::study {

/// A measured time is the mean of many repetitions, in a stream or in a graph; these many show the
/// period of the simulated ones, because a simulation has no noise (docs/fidelity.md).
constexpr int kWarmup = 1;
constexpr int kIterations = 2;

/// What the rows of one table were measured on, and what stands for it.
struct Configuration {
  machine::SharedMachine machine;  ///< rows without a number of GPUs take all its ranks
  std::string program;             ///< what program::load takes
  Settings parameters;
  DataType type = DataType::float32;  ///< of rows that name none
  sim::Options options{.warmup = kWarmup, .iterations = kIterations};
  bool check = true;
  Bytes max_size{MiB(16)};               ///< larger rows are listed, not simulated
  std::function<bool(Bytes)> in_sample;  ///< rows for which it is false too; empty: all are
  /// Told how many of how many rows are done; may be empty.
  std::function<void(std::size_t, std::size_t)> on_row;
};

struct RowResult {
  MeasuredRow measured;
  int ranks = 0;
  Collective collective = Collective::custom;
  DataType type = DataType::float32;
  std::string skipped;     ///< why the row was not simulated; empty: it was
  std::string program;     ///< its name, which `auto/...` chooses by size
  Bytes simulated_size{};  ///< the measured size, or the next one that the program can take
  Time simulated{};
  double trivial_us = 0;
  Errors errors;  ///< the simulated one is 0 for a row that was not simulated
};

struct Validation {
  std::vector<RowResult> rows;  ///< all rows of the table, in its order
  TrivialModel trivial;
  /// Of a launch that the machine does not model (add_software); added in Errors::with_software.
  std::optional<double> software_us;
  std::string checked;       ///< "full", "partial" or "skipped": the least of its programs
  Diagnostics warnings;      ///< of programs and their proofs
  bool interrupted = false;  ///< Options::monitor asked to stop: the rest is skipped as kNotReached
};
/// Why rows were not simulated that come after an interruption.
constexpr const char* kNotReached = "not reached";

/// The collective that a built-in's name says ("all-reduce/ring") or its parameter `collective`.
std::optional<Collective> collective_named(const std::string& program, const Settings& parameters,
                                           const parts::Registry* parts = nullptr);

using Summaries = std::array<Summary, kRegimes>;
/// The summary of each regime, over the rows that were simulated.
Summaries summarise_regimes(std::span<const RowResult> rows);

bool any_simulated(std::span<const RowResult> rows);

/// What the software of a launch costs beyond the model, fitted to simulated rows below 1 MB;
/// nothing where there are none.
std::optional<double> fit_software(std::span<const RowResult> calibration);
void add_software(Validation& validation, double software_us);

/// Simulates rows, each distinct configuration once, over any number of tables.
class Validator {
 public:
  /// The laboratory outlives it; `doing` is told what begins.
  explicit Validator(Laboratory& laboratory, std::function<void(const std::string&)> doing = {})
      : laboratory_(laboratory), doing_(std::move(doing)) {}

  /// Every program is loaded for the row's size, ranks, type and collective, bound, and proven at
  /// the first size it is simulated at (unless check is off). Failure, with the row's place where
  /// it is the row's fault: an unknown type, collective or launch, a collective that the program
  /// does not do, more GPUs than the machine has, and what load, bind and simulate refuse; exit
  /// codes 3 and 4 for a program that is wrong. What a table says wrong is found before anything is
  /// simulated. Rows that were done before an interruption are kept.
  Validation validate(const MeasuredTable& table, const Configuration& configuration,
                      TrivialModel trivial);
  /// Fitted to all rows of a table. Where it does not say them, collective and ranks are those of
  /// the configuration. Failure: an unknown collective.
  TrivialModel fit_trivial(const MeasuredTable& table, const Configuration& configuration,
                           std::string fitted_to);

 private:
  struct Case;
  struct Outcome {
    std::string program;
    Bytes size{};
    Time time{};
  };
  void understand(const MeasuredTable& table, const Configuration& configuration, RowResult& row,
                  Case& what);
  void simulate_row(const MeasuredTable& table, const Configuration& configuration,
                    const Case& what, RowResult& row, Validation& validation);
  /// What the program does: as its name says, else as it is loaded for this case.
  Collective collective_of(const Configuration& configuration, const Case& what);
  SharedProgram load(const Configuration& configuration, const Case& what);
  Outcome simulate(const Configuration& configuration, const Case& what, Validation& validation);
  void check(const program::Bound& program, const std::string& key, Monitor* monitor,
             Validation& validation);

  Laboratory& laboratory_;
  std::function<void(const std::string&)> doing_;
  std::map<std::string, Outcome> outcomes_;  ///< by everything that the time depends on
  std::map<std::string, std::string> checked_;
  std::map<std::string, Collective> collectives_;  ///< of programs, by name and parameters
};

}  // namespace hemiola::study
