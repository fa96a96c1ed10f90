#include "workload/iteration/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "core/json.h"

namespace hemiola::workload {
namespace {

std::string text_of(const Parallelism& by) {
  return fmt::format("tp {} pp {} dp {} ep {}", by.tp, by.pp, by.dp, by.ep);
}

/// A candidate that fits, run.
SearchRow run_candidate(study::Laboratory& laboratory, const SearchRequest& request,
                        const machine::SharedMachine& machine, const Candidate& one) {
  SearchRow row{.parallelism = one.parallelism, .memory = one.memory};
  MakeRequest make = request.make;
  make.parallelism = one.parallelism;
  try {
    const IterationOutcome run = run_iteration(
        laboratory, {.workload = std::make_shared<const Workload>(make_workload(make)),
                     .machine = {.given = machine},
                     .costs = request.costs,
                     .schedule = request.schedule,
                     .without = request.without});
    row.time = run.result.time;
    row.tokens_per_second_and_gpu = run.tokens_per_second_and_gpu();
    row.model_flop_utilisation = run.model_flop_utilisation();
  } catch (const Failure& failure) {
    row.refused = failure.diagnostics().items().front().message;
  }
  return row;
}

// What running a candidate says, for other processes.
std::string part_of(const SearchRow& row) {
  return nlohmann::json({{"time_fs", row.time.fs},
                         {"tokens", row.tokens_per_second_and_gpu},
                         {"mfu", row.model_flop_utilisation},
                         {"refused", row.refused}})
      .dump();
}
void take_part(const std::string& part, SearchRow& row) {
  try {
    const JsonText text(part, "--parts");
    const JsonValue said = text.root();
    row.time = {said.integer("time_fs", 0, INT64_MAX)};
    row.tokens_per_second_and_gpu = said.at("tokens").number();
    row.model_flop_utilisation = said.at("mfu").number();
    row.refused = said.at("refused").text();
  } catch (const Failure&) {
    throw Failure("a part is no run of a parallelism", {.file = "--parts"},
                  "remove this folder, or give another one");
  }
}

}  // namespace

SearchOutcome search(study::Laboratory& laboratory, const SearchRequest& request,
                     const std::function<void(const std::string&, double)>& watch) {
  const machine::SharedMachine machine = laboratory.machine(request.machine);
  if (machine == nullptr)
    throw Failure("a search runs on a machine", {.file = "--machine"}, "for example dgx-h100:8");
  SearchOutcome outcome{.model = request.make.model.name,
                        .machine = machine->name,
                        .ranks = machine->ranks(),
                        .memory = request.memory};
  if (outcome.memory == 0) outcome.memory = machine->model(0).hbm_size.count;
  const std::vector<Candidate> candidates =
      search_space(request.make, outcome.ranks, outcome.memory);
  std::vector<std::size_t> to_run;
  for (const Candidate& one : candidates) {
    if (one.refused.empty()) to_run.push_back(outcome.rows.size());
    outcome.rows.push_back(
        {.parallelism = one.parallelism, .memory = one.memory, .refused = one.refused});
  }
  std::size_t begun = 0;
  const auto run = [&](std::size_t c) {
    if (watch)
      watch(text_of(candidates[c].parallelism),
            static_cast<double>(begun++) / static_cast<double>(to_run.size()));
    return run_candidate(laboratory, request, machine, candidates[c]);
  };
  if (request.parts == nullptr) {
    for (const std::size_t c : to_run) outcome.rows[c] = run(c);
  } else {
    std::vector<std::string> tasks;
    for (const std::size_t c : to_run) {
      tasks.push_back(text_of(candidates[c].parallelism));
      std::erase(tasks.back(), ' ');
    }
    const Monitor* monitor = request.costs.monitor;
    study::make_together(
        *request.parts, 1, tasks, [&](std::size_t i) { return part_of(run(to_run[i])); },
        monitor == nullptr ? nullptr : monitor->stop);
    for (std::size_t i = 0; i < tasks.size(); ++i)
      take_part(request.parts->part_of_made(tasks[i]), outcome.rows[to_run[i]]);
  }
  std::ranges::stable_sort(outcome.rows, [](const SearchRow& a, const SearchRow& b) {
    if (a.refused.empty() != b.refused.empty()) return a.refused.empty();
    return a.tokens_per_second_and_gpu > b.tokens_per_second_and_gpu;
  });
  if (outcome.rows.empty() || !outcome.rows.front().refused.empty())
    throw Failure(
        fmt::format("no parallelism of {} on {} GPUs fits into {:.1f} GB each", outcome.model,
                    outcome.ranks, static_cast<double>(outcome.memory) * 1e-9),
        {.file = "--machine"},
        outcome.rows.empty() ? "" : "the nearest: " + outcome.rows.front().refused);
  return outcome;
}

}  // namespace hemiola::workload
