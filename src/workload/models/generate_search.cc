#include <fmt/format.h>

#include <algorithm>

#include "core/units.h"
#include "workload/models/generate.h"
#include "workload/models/memory.h"

namespace hemiola::workload {
namespace {

std::string in_gib(std::int64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30));
}

/// The fullest stage; `worst` is what takes most of it.
std::int64_t fullest_stage(const MakeRequest& request, std::string& worst) {
  std::int64_t most = 0;
  for (const auto& stage : memory_of(request)) {
    const std::int64_t sum = sum_of(stage);
    if (sum <= most) continue;
    most = sum;
    worst = std::ranges::max_element(stage, {}, [](const auto& one) { return one.second; })->first;
  }
  return most;
}

Candidate judge_candidate(MakeRequest request, const Parallelism& parallelism,
                          std::int64_t memory) {
  request.parallelism = parallelism;
  Candidate candidate{.parallelism = parallelism};
  try {
    std::string worst;
    candidate.memory = fullest_stage(request, worst);
    if (candidate.memory > memory)
      candidate.refused = fmt::format("needs {} of {}, most of it for {}", in_gib(candidate.memory),
                                      in_gib(memory), worst);
  } catch (const Failure& failure) {
    const Diagnostic& problem = failure.diagnostics().items().front();
    candidate.refused = problem.message;
  }
  return candidate;
}

}  // namespace

std::vector<Candidate> search_space(const MakeRequest& request, int ranks, std::int64_t memory) {
  // What is wrong with the model itself is not the reason of any parallelism.
  MakeRequest completed = request;
  completed.model = complete(request.model);
  std::vector<Candidate> candidates;
  Parallelism by = request.parallelism;
  if (ranks < 1 || by.cp < 1 || ranks % by.cp != 0)
    throw Failure(fmt::format("{} GPUs cannot be divided by cp {}", ranks, by.cp),
                  SourceLocation{.file = "--gpus"}, fmt::format("a multiple of {}", by.cp));
  for (by.tp = 1; by.tp <= ranks / by.cp; ++by.tp) {
    if (ranks / by.cp % by.tp != 0) continue;
    const int left = ranks / by.cp / by.tp;
    for (by.pp = 1; by.pp <= left; ++by.pp) {
      if (left % by.pp != 0) continue;
      by.dp = left / by.pp;
      const int most = completed.model.is_mixture() ? by.dp * by.cp : 1;
      for (by.ep = 1; by.ep <= most; ++by.ep)
        if (by.dp * by.cp % by.ep == 0)
          candidates.push_back(judge_candidate(completed, by, memory));
    }
  }
  return candidates;
}

}  // namespace hemiola::workload
