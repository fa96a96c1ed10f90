// What `explore --bench` writes: the schedules that a program for PyTorch times.
#include <fmt/format.h>

#include <utility>
#include <vector>

#include "core/embedded.h"
#include "explore/first_of_each.h"
#include "report/bench.h"
#include "report/exploration.h"
#include "report/values/exploration_fields.h"
#include "report/values/json_text.h"
#include "report/values/numbers.h"

namespace hemiola::report {

using explore::Division;
using explore::Exploration;

std::vector<const explore::Candidate*> bench_candidates(const Exploration& found, std::size_t top) {
  // Those that differ in more than who moves the data, which a program for PyTorch does not choose,
  // and need no kernel of their own.
  std::vector<const explore::Candidate*> chosen;
  const auto steps_of = [](const explore::Candidate& candidate) {
    return std::pair(candidate.schedule.family, candidate.schedule.degree);
  };
  for (const std::size_t i : explore::first_of_each(found.candidates, steps_of)) {
    const explore::Candidate& candidate = found.candidates[i];
    if (candidate.schedule.family.division != Division::kernel && chosen.size() < top)
      chosen.push_back(&candidate);
  }
  return chosen;
}

std::string bench_file(std::size_t number) {
  return fmt::format("schedule-{}.py", number + 1);
}

std::string bench_schedules(const Exploration& found,
                            const std::vector<const explore::Candidate*>& chosen) {
  std::size_t number = 0;
  return json_file("schema", "hemiola-bench/3", "operator", operator_object(found.op), "collective",
                   name_of(collective_of(found.op.kind)), "machine", found.machine, "schedules",
                   json_lines(chosen, "  ", [&](const explore::Candidate* one) {
                     return json_object("text", one->schedule.text(), "file", bench_file(number++),
                                        "simulated_us", one->time().us());
                   }));
}

std::string_view bench_program() {
  if (const EmbeddedFile* file = find_embedded("data/bench/bench.py")) return file->content;
  throw Failure("this build has no data/bench/bench.py", {}, "", ExitCode::internal);
}

}  // namespace hemiola::report
