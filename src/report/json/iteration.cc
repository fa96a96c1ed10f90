// The object of --json and the lines of --csv of an iteration.
#include <fmt/format.h>

#include "report/iteration.h"
#include "report/values/evidence_json.h"
#include "report/values/json_text.h"
#include "report/values/numbers.h"

namespace hemiola::report {
namespace {

using workload::CallRow;
using workload::ClassTime;
using workload::IterationOutcome;
using workload::Workload;

JsonText class_object(const IterationOutcome& outcome, std::size_t c) {
  const Workload& workload = *outcome.workload;
  const ClassTime& times = outcome.result.classes[c];
  JsonObject object;
  object.add("name", workload.classes[c].name, "ranks", json_array(workload.classes[c].ranks),
             "end_fs", times.end, "compute_fs", times.compute, "exposed_fs", times.exposed(),
             "memory_fs", times.memory, "waiting_fs", times.waiting(), "host_fs", times.host,
             "idle_fs", times.idle, "hidden_fs", times.hidden, "slowed_fs", times.slowed);
  const bool has_memory = workload.facts && c < workload.facts->memory.size();
  object.on_new_line("         ")
      .add("memory_bytes",
           has_memory ? JsonText{json_of(workload.facts->memory[c])} : JsonText{"{}"});
  object.on_new_line("         ")
      .add("calls", json_rows(times.calls, "          ", [&](const auto& one) {
             const auto& [key, call] = one;
             return json_object("name", call_name(workload, key), "calls", call.calls, "bytes",
                                call.bytes, "under_way_fs", call.under_way, "exposed_fs",
                                call.exposed, "waiting_fs", call.waiting);
           }));
  return object.json();
}

JsonText launch_object(const IterationOutcome& outcome, const CallRow& row) {
  const Workload& workload = *outcome.workload;
  return json_object("name", call_name(workload, row.kind, row.work), "group_ranks", row.group,
                     "groups", row.groups, "calls", row.calls, "size_bytes",
                     call_of(workload, row.kind, row.work).bytes, "alone_fs", row.alone);
}

JsonText path_object(const IterationOutcome& outcome, const workload::PathStep& step) {
  const auto c = index(step.rank_class);
  const workload::Node& node = outcome.workload->classes[c].trace->nodes[step.node];
  const workload::NodeTimes& times = outcome.result.nodes[c][step.node];
  return json_object("class", outcome.workload->classes[c].name, "node", node.id, "name",
                     outcome.workload->names[node.name], "begin_fs", times.begin, "end_fs",
                     times.end);
}

JsonText operators_object(const Workload& workload) {
  if (!workload.operators) return {"null"};
  const workload::OperatorCounts& counts = *workload.operators;
  return json_object("kernels", counts.kernels, "aliases", counts.aliases, "covered",
                     counts.covered, "calls", counts.calls, "host", counts.host);
}

JsonText result_object(const IterationOutcome& outcome) {
  constexpr const char *kBlanks = "      ", *kOfRows = "        ";
  std::vector<std::size_t> classes(outcome.result.classes.size());
  for (std::size_t c = 0; c < classes.size(); ++c) classes[c] = c;
  const Workload& workload = *outcome.workload;
  JsonObject object;
  object.add("time", BothUnits{outcome.result.time}, "recorded_fs", outcome.recorded, "ranks",
             workload.ranks);
  object.on_new_line(kBlanks).add("tokens_per_s_per_gpu", outcome.tokens_per_second_and_gpu(),
                                  "mfu", outcome.model_flop_utilisation());
  const auto like = outcome.likeness();
  object.on_new_line(kBlanks).add(
      "evidence", like ? evidence_json(*like, outcome.result.time.us()) : JsonText{"null"});
  object.on_new_line(kBlanks).add(
      "recorded_on",
      workload.recorded_on ? std::optional(workload.recorded_on->name) : std::nullopt, "operators",
      operators_object(workload));
  object.on_new_line(kBlanks).add(
      "kernels",
      json_object("products_fs", outcome.sources.products, "roofline_fs", outcome.sources.roofline,
                  "recorded_fs", outcome.sources.recorded, "unknown", outcome.sources.unknown));
  object.on_new_line(kBlanks).add("simulations", outcome.simulations, "situations",
                                  outcome.result.situations);
  object.on_new_line(kBlanks).add("classes", json_rows(classes, kOfRows, [&](std::size_t c) {
                                    return class_object(outcome, c);
                                  }));
  object.on_new_line(kBlanks).add(
      "launches", json_rows(outcome.calls, kOfRows,
                            [&](const CallRow& row) { return launch_object(outcome, row); }));
  object.on_new_line(kBlanks).add(
      "critical_path", json_rows(outcome.path, kOfRows, [&](const workload::PathStep& step) {
        return path_object(outcome, step);
      }));
  return object.json();
}

}  // namespace

std::string iteration_json(const IterationRun& run, const IterationOutcome& outcome) {
  return json_file("schema", "hemiola/1", "command", run.command, "machine", outcome.machine->name,
                   "program", outcome.workload->name, "engine", run.engine, "launch",
                   name_of(outcome.launch), "results",
                   json_list(std::vector{result_object(outcome)}, "  "));
}

std::string iteration_csv(const IterationOutcome& outcome) {
  std::string text =
      "class,ranks,end_ns,compute_ns,exposed_ns,memory_ns,waiting_ns,host_ns,idle_ns,hidden_ns,"
      "slowed_ns\n";
  for (std::size_t c = 0; c < outcome.result.classes.size(); ++c) {
    const ClassTime& times = outcome.result.classes[c];
    text += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{}\n", csv_cell(outcome.workload->classes[c].name),
        outcome.workload->classes[c].ranks.size(), exact_ns(times.end), exact_ns(times.compute),
        exact_ns(times.exposed()), exact_ns(times.memory), exact_ns(times.waiting()),
        exact_ns(times.host), exact_ns(times.idle), exact_ns(times.hidden), exact_ns(times.slowed));
  }
  return text;
}

}  // namespace hemiola::report
