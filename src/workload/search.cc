#include "workload/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace hemiola::workload {

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
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    const Candidate& one = candidates[c];
    SearchRow row{.parallelism = one.parallelism, .memory = one.memory, .refused = one.refused};
    if (one.refused.empty()) {
      const Parallelism& p = one.parallelism;
      if (watch)
        watch(fmt::format("tp {} pp {} dp {} ep {}", p.tp, p.pp, p.dp, p.ep),
              static_cast<double>(c) / static_cast<double>(candidates.size()));
      MakeRequest make = request.make;
      make.parallelism = one.parallelism;
      try {
        const IterationOutcome run = run_iteration(
            laboratory, {.workload = std::make_shared<const Workload>(make_workload(make)),
                         .machine = {.given = machine},
                         .costs = request.costs,
                         .schedule = request.schedule});
        row.time = run.result.time;
        row.tokens_per_second_and_gpu = run.tokens_per_second_and_gpu();
        row.model_flop_utilisation = run.model_flop_utilisation();
      } catch (const Failure& failure) {
        row.refused = failure.diagnostics().items().front().message;
      }
    }
    outcome.rows.push_back(std::move(row));
  }
  std::stable_sort(outcome.rows.begin(), outcome.rows.end(),
                   [](const SearchRow& a, const SearchRow& b) {
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
