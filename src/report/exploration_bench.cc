// What `explore --bench` writes: the schedules that a program for PyTorch times.
#include <fmt/format.h>

#include <utility>
#include <vector>

#include "core/embedded.h"
#include "explore/first_of_each.h"
#include "report/exploration.h"
#include "report/exploration_fields.h"
#include "report/numbers.h"

namespace hemiola::report {
namespace {

using explore::Candidate;
using explore::Division;
using explore::Exploration;

}  // namespace

std::string bench_schedules(const Exploration& found, std::size_t top) {
  std::string text = fmt::format(
      "{{\n  \"schema\": 1,\n  \"operator\": {},\n  \"collective\": {},\n  \"machine\": {},\n"
      "  \"schedules\": [\n",
      operator_object(found.op), json_string(name_of(collective_of(found.op.kind))),
      json_string(found.machine));
  // Those that differ in more than who moves the data, which a program for PyTorch does not choose.
  std::vector<const Candidate*> chosen;
  const auto steps_of = [](const Candidate& candidate) {
    return std::pair(candidate.schedule.family, candidate.schedule.degree);
  };
  for (const std::size_t i : explore::first_of_each(found.candidates, steps_of)) {
    const Candidate& candidate = found.candidates[i];
    if (candidate.schedule.family.division != Division::kernel && chosen.size() < top)
      chosen.push_back(&candidate);
  }
  for (const Candidate* candidate : chosen) {
    const explore::Schedule& schedule = candidate->schedule;
    text += fmt::format(
        "    {{\"text\": {}, \"function\": \"{}\", \"division\": \"{}\", \"degree\": {}, "
        "\"hetero\": {}, \"fused\": {}, \"streams\": {}, \"simulated_us\": {}}}{}\n",
        json_string(schedule.text()),
        schedule.family.division == Division::shards ? "shards" : "steps",
        schedule.family.division == Division::columns ? "2D" : "1D", schedule.degree,
        schedule.family.hetero, schedule.family.fused, schedule.streams,
        json_number(candidate->time().us()), candidate != chosen.back() ? "," : "");
  }
  return text + "  ]\n}\n";
}

std::string_view bench_program() {
  if (const EmbeddedFile* file = find_embedded("data/bench/bench.py")) return file->content;
  throw Failure("this build has no data/bench/bench.py", {}, "", ExitCode::internal);
}

}  // namespace hemiola::report
