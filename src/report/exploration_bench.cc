// What `explore --bench` writes: the schedules that a program for PyTorch times.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/embedded.h"
#include "report/exploration.h"
#include "report/numbers.h"

namespace hemiola::report {
namespace {

using explore::Candidate;
using explore::Division;
using explore::Exploration;

}  // namespace

std::string bench_schedules(const Exploration& found, std::size_t top) {
  const explore::Operator& op = found.op;
  const machine::GemmShape local = explore::local_product(op);
  std::string text = fmt::format(
      "{{\n  \"schema\": 1,\n  \"operator\": {{\"kind\": {}, \"gather\": {}, \"m\": {}, \"n\": {}, "
      "\"k\": {}, \"dtype\": {}, \"ranks\": {}, \"local\": {{\"m\": {}, \"n\": {}, \"k\": {}}}, "
      "\"collective_size_bytes\": {}}},\n  \"collective\": {},\n  \"machine\": {},\n"
      "  \"schedules\": [\n",
      json_string(name_of(op.kind)), op.gathers_b ? "\"b\"" : "\"a\"", op.m, op.n, op.k,
      json_string(name_of(op.type)), op.ranks, local.m, local.n, local.k,
      explore::collective_size(op).count, json_string(name_of(collective_of(op.kind))),
      json_string(found.machine));
  // Those that differ in more than who moves the data, which a program for PyTorch does not choose.
  std::vector<const Candidate*> chosen;
  for (const Candidate& candidate : found.candidates) {
    const explore::Schedule& one = candidate.schedule;
    const bool is_new = std::none_of(chosen.begin(), chosen.end(), [&](const Candidate* other) {
      return other->schedule.family == one.family && other->schedule.degree == one.degree;
    });
    if (is_new && one.family.division != Division::kernel && chosen.size() < top)
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
  for (const EmbeddedFile& file : embedded_files()) {
    if (file.path == "data/bench/bench.py") return file.content;
  }
  throw Failure("this build has no data/bench/bench.py", {}, "", ExitCode::internal);
}

}  // namespace hemiola::report
