#include "study/tables/suite_runner.h"

#include <algorithm>
#include <map>

namespace hemiola::study {
namespace {

/// Times of one side at one size.
struct Times {
  std::vector<double> measured, simulated;
};
using Side = std::map<std::pair<int, Bytes>, Times>;  ///< by ranks and size

/// Nothing where an entry was not judged.
std::optional<Side> side_of(const std::vector<std::string>& names,
                            const std::vector<Judgement>& judgements) {
  Side side;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(judgements, name, &Judgement::name);
    if (found == judgements.end()) return std::nullopt;
    for (const RowResult& row : found->validation.rows) {
      if (!row.skipped.empty()) continue;
      Times& times = side[{row.ranks, row.measured.size}];
      times.measured.push_back(row.measured.time_us);
      times.simulated.push_back(row.simulated.us());
    }
  }
  return side;
}

/// The smallest size from which on all ratios are below 1; ratios are in order of size.
std::optional<Bytes> crossover(const std::vector<std::pair<Bytes, double>>& ratios) {
  std::size_t first = ratios.size();
  while (first > 0 && ratios[first - 1].second < 1) --first;
  if (first == 0 || first == ratios.size()) return std::nullopt;
  return ratios[first].first;
}

OrderResult compare(const std::string& name, const Side& first, const Side& second) {
  constexpr double kDecided = 1.1;
  OrderResult result{.name = name};
  // second / first, below 1 where the second is faster
  std::vector<std::pair<Bytes, double>> measured, simulated;
  for (const auto& [key, times] : first) {
    const auto other = second.find(key);
    if (other == second.end()) continue;
    const double as_measured = median_of(other->second.measured) / median_of(times.measured);
    const double as_simulated = median_of(other->second.simulated) / median_of(times.simulated);
    measured.emplace_back(key.second, as_measured);
    simulated.emplace_back(key.second, as_simulated);
    ++result.sizes;
    if (as_measured < kDecided && as_measured > 1 / kDecided) continue;
    ++result.decided;
    if ((as_measured > 1) == (as_simulated > 1)) ++result.right;
  }
  result.measured_crossover = crossover(measured);
  result.simulated_crossover = crossover(simulated);
  return result;
}

}  // namespace

std::vector<Judgement> SuiteRunner::judge(
    const std::vector<std::string>& names,
    const std::function<void(std::size_t, std::size_t)>& on_entry) {
  for (const std::string& name : names) {
    rows_of(suite_.entry(name));
    trivial_model(suite_.entry(name));
  }
  std::vector<Judgement> judgements;
  for (const std::string& name : names) {
    if (on_entry) on_entry(judgements.size(), names.size());
    const SuiteEntry& entry = suite_.entry(name);
    Judgement judgement{.name = entry.name,
                        .kind = entry.kind,
                        .table = "data/measured/" + entry.table,
                        .where = to_text(entry.where),
                        .machine = name_of_machine(entry.machine, entry.machine_options),
                        .program = entry.program,
                        .options = common_.options,
                        .validation = validate(entry),
                        .marks = suite_.marks(entry.launch)};
    judgement.options.launch = entry.launch;
    judgement.options.one_host = entry.one_host;
    const bool interrupted = judgement.validation.interrupted;
    if (interrupted && !any_simulated(judgement.validation.rows)) break;
    if (!interrupted) add_software_of(entry, judgement.validation);
    judgement.summaries = summarise_regimes(judgement.validation.rows);
    judgements.push_back(std::move(judgement));
    if (judgements.back().validation.interrupted) break;
  }
  return judgements;
}

Configuration SuiteRunner::configuration_of(const SuiteEntry& entry) {
  Configuration configuration = common_;
  configuration.machine =
      laboratory_.machine(choice_of(entry.machine, entry.machine_options, set_));
  configuration.program = entry.program;
  configuration.parameters = entry.parameters;
  configuration.type = entry.type;
  configuration.options.launch = entry.launch;
  configuration.options.one_host = entry.one_host;
  return configuration;
}

TrivialModel SuiteRunner::trivial_model(const SuiteEntry& entry) {
  const SuiteEntry& calibration = suite_.entry(entry.calibrate);
  return validator_.fit_trivial(rows_of(calibration), configuration_of(calibration),
                                calibration.name);
}

Validation SuiteRunner::validate(const SuiteEntry& entry) {
  return validator_.validate(rows_of(entry), configuration_of(entry), trivial_model(entry));
}

void SuiteRunner::add_software_of(const SuiteEntry& entry, Validation& validation) {
  if (entry.launch != sim::Launch::stream) return;
  const Validation calibration = validate(suite_.entry(entry.calibrate));
  validation.interrupted = calibration.interrupted;  // a constant of some of its rows is another
  if (calibration.interrupted) return;
  if (const auto software = fit_software(calibration.rows)) add_software(validation, *software);
}

std::vector<OrderResult> compare_orders(const Suite& suite,
                                        const std::vector<Judgement>& judgements) {
  std::vector<OrderResult> results;
  for (const Comparison& comparison : suite.comparisons) {
    const auto first = side_of(comparison.first, judgements);
    const auto second = side_of(comparison.second, judgements);
    if (first && second) results.push_back(compare(comparison.name, *first, *second));
  }
  return results;
}

}  // namespace hemiola::study
