#include "study/tables/validate.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/monitor.h"
#include "program/program.h"
#include "study/laboratory/preparation.h"

namespace hemiola::study {
namespace {

int count_of(const MeasuredTable& table, const MeasuredRow& row, std::string_view column,
             int otherwise, std::int64_t least) {
  constexpr std::int64_t kMost = 1'000'000;
  const std::string& text = table.cell(row, column);
  if (text.empty()) return otherwise;
  const auto number = parse_count(text);
  if (!number || *number < least || *number > kMost)
    throw Failure(fmt::format("column '{}': '{}' is not a number of repetitions", column, text),
                  table.at(row), fmt::format("it is from {} to {}", least, kMost));
  return static_cast<int>(*number);
}

sim::Options options_of(const MeasuredTable& table, const MeasuredRow& row, sim::Options options) {
  const std::string& launch = table.cell(row, "launch");
  if (launch == "graph") options.launch = sim::Launch::graph;
  if (launch == "stream") options.launch = sim::Launch::stream;
  if (!launch.empty() && launch != "graph" && launch != "stream")
    throw Failure(fmt::format("column 'launch': '{}' is no way to start kernels", launch),
                  table.at(row), "it is graph or stream");
  options.iterations = count_of(table, row, "iterations", options.iterations, 1);
  options.warmup = count_of(table, row, "warmup", options.warmup, 0);
  return options;
}

/// In the column `op`, where there is one.
std::optional<Collective> collective_said(const MeasuredTable& table, const MeasuredRow& row) {
  const std::string& text = table.cell(row, "op");
  if (text.empty()) return std::nullopt;
  const auto collective = parse_collective(text);
  if (!collective)
    throw Failure(fmt::format("column 'op': '{}' is no known collective", text), table.at(row),
                  "for example all_reduce, all_gather, reduce_scatter, alltoall");
  return collective;
}

/// Failures that say no place are the row's.
[[noreturn]] void rethrow_at(const Failure& failure, const SourceLocation& row) {
  Diagnostics placed;
  for (const Diagnostic& item : failure.diagnostics().items()) {
    const bool nowhere = item.where.file.empty() || item.where.file == "<option>";
    if (item.severity == Severity::error)
      placed.error(item.message, nowhere ? row : item.where, item.hint);
  }
  throw Failure(std::move(placed), failure.code());
}

}  // namespace

/// A configuration to be simulated.
struct Validator::Case {
  Bytes size{};
  int ranks = 0;
  DataType type = DataType::float32;
  std::optional<Collective> collective;
  sim::Options options;

  Experiment experiment(const Configuration& configuration) const;
};

std::optional<Collective> collective_named(const std::string& program, const Settings& parameters,
                                           const parts::Registry* parts) {
  if (!program::is_built_in(program, parts)) return std::nullopt;
  for (const auto& [name, value] : parameters)
    if (name == "collective") return parse_collective(value);
  return parse_collective(program.substr(0, program.find('/')));
}

Summaries summarise_regimes(std::span<const RowResult> rows) {
  std::array<std::vector<Errors>, kRegimes> errors;
  for (const RowResult& row : rows)
    if (row.skipped.empty()) errors[index(regime_of(row.measured.size))].push_back(row.errors);
  Summaries summaries;
  for (std::size_t i = 0; i < kRegimes; ++i) summaries[i] = summarise(errors[i]);
  return summaries;
}

bool any_simulated(std::span<const RowResult> rows) {
  return std::ranges::any_of(rows, [](const RowResult& row) { return row.skipped.empty(); });
}

std::optional<double> fit_software(std::span<const RowResult> calibration) {
  std::vector<TimePair> times;
  for (const RowResult& row : calibration)
    if (row.skipped.empty() && regime_of(row.measured.size) == Regime::below_1MB)
      times.push_back({row.measured.time_us, row.simulated.us()});
  if (times.empty()) return std::nullopt;
  return fit_constant(times);
}

void add_software(Validation& validation, double software_us) {
  validation.software_us = software_us;
  for (RowResult& row : validation.rows)
    if (row.skipped.empty())
      row.errors.with_software = row.errors.simulated + software_us / row.measured.time_us;
}

Validation Validator::validate(const MeasuredTable& table, const Configuration& configuration,
                               TrivialModel trivial) {
  Validation validation{.trivial = std::move(trivial)};
  std::vector<Case> cases(table.rows.size());
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    RowResult row{.measured = table.rows[i]};
    understand(table, configuration, row, cases[i]);
    validation.rows.push_back(std::move(row));
  }
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    RowResult& row = validation.rows[i];
    if (row.measured.size > configuration.max_size)
      row.skipped = "larger than " + to_string(configuration.max_size);
    else if (configuration.in_sample && !configuration.in_sample(row.measured.size))
      row.skipped = "not in the sample";
    else if (validation.interrupted)
      row.skipped = kNotReached;
    if (!validation.interrupted && configuration.on_row) configuration.on_row(i, table.rows.size());
    if (row.skipped.empty()) simulate_row(table, configuration, cases[i], row, validation);
    const TrivialRow known{row.measured.size, row.collective, row.ranks, row.measured.time_us};
    row.trivial_us = validation.trivial.time_us(known);
    row.errors.trivial = row.trivial_us / row.measured.time_us - 1;
  }
  if (validation.checked.empty()) validation.checked = "skipped";
  return validation;
}

void Validator::simulate_row(const MeasuredTable& table, const Configuration& configuration,
                             const Case& what, RowResult& row, Validation& validation) {
  try {
    const Outcome outcome = simulate(configuration, what, validation);
    row.program = outcome.program;
    row.simulated_size = outcome.size;
    row.simulated = outcome.time;
    row.errors.simulated = outcome.time.us() / row.measured.time_us - 1;
    row.errors.with_software = row.errors.simulated;
  } catch (const Failure& failure) {
    rethrow_at(failure, table.at(row.measured));
  } catch (const Interrupted&) {
    validation.interrupted = true;
    row.skipped = kNotReached;
  }
}

TrivialModel Validator::fit_trivial(const MeasuredTable& table, const Configuration& configuration,
                                    std::string fitted_to) {
  std::vector<TrivialRow> rows;
  for (const MeasuredRow& measured : table.rows) {
    const int ranks = measured.ranks > 0 ? measured.ranks : configuration.machine->ranks();
    const std::optional<Collective> said = collective_said(table, measured);
    const Case what{.size = measured.size, .ranks = ranks, .type = configuration.type};
    rows.push_back({measured.size, said ? *said : collective_of(configuration, what), ranks,
                    measured.time_us});
  }
  return fit(rows, std::move(fitted_to));
}

Collective Validator::collective_of(const Configuration& configuration, const Case& what) {
  if (const auto named =
          collective_named(configuration.program, configuration.parameters, laboratory_.parts()))
    return *named;
  const std::string key = configuration.program + ' ' + to_text(configuration.parameters);
  auto found = collectives_.find(key);
  if (found == collectives_.end())
    found = collectives_.emplace(key, load(configuration, what)->collective).first;
  return found->second;
}

void Validator::understand(const MeasuredTable& table, const Configuration& configuration,
                           RowResult& row, Case& what) {
  const MeasuredRow& measured = row.measured;
  what.size = measured.size;
  what.type = configuration.type;
  if (const std::string& text = table.cell(measured, "dtype"); !text.empty()) {
    const auto type = parse_data_type(text);
    if (!type)
      throw Failure(fmt::format("column 'dtype': '{}' is no known data type", text),
                    table.at(measured), "for example float, half, bfloat16, int8");
    what.type = *type;
  }
  what.collective = collective_said(table, measured);
  const int gpus = configuration.machine->ranks();
  what.ranks = measured.ranks > 0 ? measured.ranks : gpus;
  if (what.ranks > gpus)
    throw Failure(fmt::format("this row was measured on {} GPUs, but machine '{}' has {}",
                              what.ranks, configuration.machine->name, gpus),
                  table.at(measured), fmt::format("--where num_gpus=... chooses others"));
  what.options = options_of(table, measured, configuration.options);
  row.ranks = what.ranks;
  row.type = what.type;
  try {
    row.collective = what.collective ? *what.collective : collective_of(configuration, what);
  } catch (const Failure& failure) {
    rethrow_at(failure, table.at(measured));
  }
}

/// On the first GPUs of the machine: programs follow one of as many ranks as they have.
Experiment Validator::Case::experiment(const Configuration& configuration) const {
  MachineChoice machine{.given = configuration.machine};
  if (ranks != configuration.machine->ranks()) machine.ranks = std::to_string(ranks);
  return {.machine = std::move(machine),
          .subject = configuration.program,
          .parameters = configuration.parameters,
          .size = size,
          .type = type,
          .collective = collective.value_or(Collective::custom),
          .options = options};
}

/// Loaded for this row; Failure where it is a program for other rows.
SharedProgram Validator::load(const Configuration& configuration, const Case& what) {
  const Experiment experiment = what.experiment(configuration);
  SharedProgram program = laboratory_.program(experiment, laboratory_.machine(experiment.machine),
                                              {.monitor = what.options.monitor});
  if (what.collective && program->collective != *what.collective)
    throw Failure(fmt::format("this row is {}, but program '{}' is {}", name_of(*what.collective),
                              configuration.program, name_of(program->collective)),
                  {}, "--where op=... chooses others");
  if (program->ranks != what.ranks)
    throw Failure(fmt::format("this row was measured on {} GPUs, but program '{}' is for {}",
                              what.ranks, configuration.program, program->ranks),
                  {}, "--where num_gpus=... chooses others");
  return program;
}

Validator::Outcome Validator::simulate(const Configuration& configuration, const Case& what,
                                       Validation& validation) {
  const SharedProgram program = load(configuration, what);
  const Bytes size = program->next_legal_size(what.size, what.type);
  // By the measured size: `auto/...` chooses by it, not by the legal one.
  std::string of =
      fmt::format("{} {} {} {}", static_cast<const void*>(configuration.machine.get()),
                  configuration.program, name_of(program->collective), name_of(what.type));
  for (const auto& [name, value] : configuration.parameters) of += ' ' + name + '=' + value;
  of += fmt::format(" on {}", what.ranks);
  const std::string key = fmt::format(
      "{} at {} {}{} {}+{}", of, what.size.count, static_cast<int>(what.options.launch),
      what.options.one_host ? " one host" : "", what.options.warmup, what.options.iterations);
  auto found = outcomes_.find(key);
  // What was proven has the name of the bound program, which may depend on the size.
  const auto proven_as = [&](const std::string& name) { return of + ' ' + name; };
  if (found == outcomes_.end() ||
      (configuration.check && !checked_.contains(proven_as(found->second.program)))) {
    Experiment experiment = what.experiment(configuration);
    experiment.size = size;
    const program::Bound bound =
        laboratory_.bind(experiment, program, laboratory_.machine(experiment.machine));
    const auto say = [&](std::string_view activity) {
      if (doing_) {
        doing_(fmt::format("{} {} on {} GPUs of {} at {}", activity, bound.name(), what.ranks,
                           bound.machine()->name, to_string(size)));
      }
    };
    const bool unchecked = configuration.check && !checked_.contains(proven_as(bound.name()));
    if (unchecked || found == outcomes_.end()) validation.warnings.append(bound.warnings());
    if (unchecked) {
      say("checking");
      check(bound, proven_as(bound.name()), what.options.monitor, validation);
    }
    if (found == outcomes_.end()) {
      say("simulating");
      const sim::Result result =
          laboratory_.simulate(bound, what.options, {.monitor = what.options.monitor});
      found = outcomes_.emplace(key, Outcome{bound.name(), size, result.time}).first;
    }
  }
  validation.checked =
      weaker(validation.checked,
             configuration.check ? checked_.at(proven_as(found->second.program)) : "skipped");
  return found->second;
}

void Validator::check(const program::Bound& program, const std::string& key, Monitor* monitor,
                      Validation& validation) {
  const Laboratory::Verdict verdict = laboratory_.verdict(program, {.monitor = monitor});
  checked_[key] = verdict.checked();
  validation.warnings.append(verdict.proof->warnings);
}

}  // namespace hemiola::study
