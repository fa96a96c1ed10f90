// The object of --json and the lines of --csv of an iteration.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "report/iteration.h"
#include "report/values/json_lists.h"
#include "report/values/numbers.h"

namespace hemiola::report {
namespace {

using workload::CallRow;
using workload::ClassTime;
using workload::IterationOutcome;
using workload::Workload;

std::string time_field(const char* name, Time time) {
  return fmt::format("\"{}_fs\": {}", name, time.fs);
}

std::string class_object(const IterationOutcome& outcome, std::size_t c) {
  const Workload& workload = *outcome.workload;
  const ClassTime& times = outcome.result.classes[c];
  const std::string calls = joined(
      times.calls,
      [&](const auto& one) {
        const auto& [key, call] = one;
        return fmt::format("\n          {{\"name\": {}, \"calls\": {}, \"bytes\": {}, {}, {}, {}}}",
                           json_string(call_name(workload, key)), call.calls, call.bytes,
                           time_field("under_way", call.under_way),
                           time_field("exposed", call.exposed),
                           time_field("waiting", call.waiting));
      },
      ",");
  std::string memory = "{}";
  if (workload.facts && c < workload.facts->memory.size())
    memory = json_object(workload.facts->memory[c],
                         [](std::int64_t bytes) { return std::to_string(bytes); });
  return fmt::format(
      "        {{\"name\": {}, \"ranks\": [{}], {}, {}, {}, {}, {}, {}, {}, {}, {},\n"
      "         \"memory_bytes\": {},\n         \"calls\": [{}]}}",
      json_string(workload.classes[c].name), fmt::join(workload.classes[c].ranks, ", "),
      time_field("end", times.end), time_field("compute", times.compute),
      time_field("exposed", times.exposed()), time_field("memory", times.memory),
      time_field("waiting", times.waiting()), time_field("host", times.host),
      time_field("idle", times.idle), time_field("hidden", times.hidden),
      time_field("slowed", times.slowed), memory, calls);
}

std::string launch_object(const IterationOutcome& outcome, const CallRow& row) {
  const Workload& workload = *outcome.workload;
  return fmt::format(
      "        {{\"name\": {}, \"group_ranks\": {}, \"groups\": {}, \"calls\": {}, "
      "\"size_bytes\": {}, \"alone_fs\": {}}}",
      json_string(call_name(workload, row.kind, row.work)), row.group, row.groups, row.calls,
      call_of(workload, row.kind, row.work).bytes, row.alone.fs);
}

std::string path_object(const IterationOutcome& outcome, const workload::PathStep& step) {
  const auto c = index(step.rank_class);
  const workload::Node& node = outcome.workload->classes[c].trace->nodes[step.node];
  const workload::NodeTimes& times = outcome.result.nodes[c][step.node];
  return fmt::format(
      "        {{\"class\": {}, \"node\": {}, \"name\": {}, \"begin_fs\": {}, "
      "\"end_fs\": {}}}",
      json_string(outcome.workload->classes[c].name), node.id,
      json_string(outcome.workload->names[node.name]), times.begin.fs, times.end.fs);
}

std::string operators_object(const Workload& workload) {
  if (!workload.operators) return "null";
  const workload::OperatorCounts& counts = *workload.operators;
  return fmt::format(
      "{{\"kernels\": {}, \"aliases\": {}, \"covered\": {}, \"calls\": {}, \"host\": {}}}",
      counts.kernels, counts.aliases, counts.covered, counts.calls, counts.host);
}

template <class List, class Text>
std::string array(const List& list, const Text& text) {
  const std::string items = joined(list, text, ",\n");
  return items.empty() ? "[]" : "[\n" + items + "]";
}

}  // namespace

std::string iteration_json(const IterationRun& run, const IterationOutcome& outcome) {
  std::vector<std::size_t> classes(outcome.result.classes.size());
  for (std::size_t c = 0; c < classes.size(); ++c) classes[c] = c;
  const Workload& workload = *outcome.workload;
  return fmt::format(
      "{{\n  \"schema\": \"hemiola/1\",\n  \"command\": {},\n  \"machine\": {},\n  \"program\": "
      "{},\n  \"engine\": {},\n  \"launch\": {},\n  \"results\": [\n    {{\"time_fs\": {}, "
      "\"time_ns\": {}, "
      "\"recorded_fs\": {}, \"ranks\": {},\n      \"tokens_per_s_per_gpu\": {}, \"mfu\": {},\n"
      "      \"recorded_on\": {}, \"operators\": {},\n"
      "      \"kernels\": {{{}, {}, {}, \"unknown\": {}}},\n      \"simulations\": {}, "
      "\"situations\": {},\n      \"classes\": {},\n      \"launches\": {},\n"
      "      \"critical_path\": {}}}\n  ]\n}}\n",
      json_string(run.command), json_string(outcome.machine->name), json_string(workload.name),
      json_string(run.engine),
      json_string(outcome.launch == sim::Launch::graph ? "graph" : "stream"),
      outcome.result.time.fs, exact_ns(outcome.result.time), outcome.recorded.fs, workload.ranks,
      json_number(outcome.tokens_per_second_and_gpu()),
      json_number(outcome.model_flop_utilisation()),
      workload.recorded_on ? json_string(workload.recorded_on->name) : "null",
      operators_object(workload), time_field("products", outcome.sources.products),
      time_field("roofline", outcome.sources.roofline),
      time_field("recorded", outcome.sources.recorded), outcome.sources.unknown,
      outcome.simulations, outcome.result.situations,
      array(classes, [&](std::size_t c) { return class_object(outcome, c); }),
      array(outcome.calls, [&](const CallRow& row) { return launch_object(outcome, row); }),
      array(outcome.path,
            [&](const workload::PathStep& step) { return path_object(outcome, step); }));
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
