#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ostream>

#include "report/iteration.h"
#include "report/values/columns.h"
#include "report/values/numbers.h"
#include "workload/models/memory.h"

namespace hemiola::report {
namespace {

using workload::CallKey;
using workload::CallRow;
using workload::ClassTime;
using workload::IterationOutcome;
using workload::Workload;

std::vector<Align> one_name_then_numbers(std::size_t columns) {
  std::vector<Align> alignment(columns, kRight);
  alignment.front() = kLeft;
  return alignment;
}

std::string gigabytes(std::int64_t bytes) {
  return fmt::format("{:.2f} GB", static_cast<double>(bytes) * 1e-9);
}

void print_head(std::ostream& out, const IterationRun& run, const IterationOutcome& outcome) {
  const Workload& workload = *outcome.workload;
  std::size_t most = 0;
  for (const auto& one : workload.classes) most = std::max(most, one.trace->nodes.size());
  out << fmt::format("# workload  {}: {} {} in {} {}, up to {} {} each\n", workload.name,
                     workload.ranks, workload.ranks == 1 ? "rank" : "ranks",
                     workload.classes.size(), workload.classes.size() == 1 ? "class" : "classes",
                     most, most == 1 ? "node" : "nodes");
  out << fmt::format("# machine   {}\n", outcome.machine->name);
  if (workload.recorded_on) out << fmt::format("# recorded  on {}\n", workload.recorded_on->name);
  if (const auto& operators = workload.operators)
    out << fmt::format(
        "# operators {} with kernels of their own, {} aliases, {} covered by what they call, {} "
        "calls, {} of the host\n",
        operators->kernels, operators->aliases, operators->covered, operators->calls,
        operators->host);
  const Time all = outcome.sources.products + outcome.sources.roofline + outcome.sources.recorded;
  out << fmt::format(
      "# kernels   {} % of their time by the models of products and attention, {} % by bytes and "
      "flop, {} % as recorded\n",
      percent(outcome.sources.products, all), percent(outcome.sources.roofline, all),
      percent(outcome.sources.recorded, all));
  if (outcome.sources.unknown > 0)
    out << fmt::format(
        "#           {} kernels say neither shape, bytes, flop nor time: they take none{}\n",
        outcome.sources.unknown,
        outcome.sources.unknown_recorded.fs > 0
            ? fmt::format(", and took {} % of the kernels' time in the trace",
                          percent(outcome.sources.unknown_recorded, outcome.sources.all_recorded))
            : "");
  if (outcome.calls_recorded)
    out << "# calls     as recorded, with what ranks waited for each other\n";
  out << fmt::format("# {}     by {}{}; {} simulations, {} situations of launches beside others\n",
                     outcome.calls_recorded ? "alone" : "calls", run.engine,
                     outcome.launch == sim::Launch::graph ? ", in a graph" : "",
                     outcome.simulations, outcome.result.situations);
  out << "#\n";
  out << fmt::format("# time      {} ms\n", table_ms(outcome.result.time));
  if (outcome.recorded.fs > 0)
    out << fmt::format("# recorded  {} ms, simulated {:+.1f} %\n", table_ms(outcome.recorded),
                       100 * (static_cast<double>(outcome.result.time.fs) /
                                  static_cast<double>(outcome.recorded.fs) -
                              1));
  if (!workload.facts) return;
  const double tokens = outcome.tokens_per_second_and_gpu();
  out << fmt::format("#           {:.1f} tokens/s per GPU, {:.1f} in all", tokens,
                     tokens * workload.ranks);
  if (workload.facts->phase == "decode") out << ", time per token as above";
  if (workload.facts->phase == "prefill") out << ", time to the first token as above";
  out << fmt::format("; {:.1f} % of peak flop (MFU)\n", 100 * outcome.model_flop_utilisation());
}

void print_classes(std::ostream& out, const IterationOutcome& outcome) {
  Columns table(one_name_then_numbers(11));
  table.add_heading({"class", "ranks", "end(ms)", "compute", "exposed", "copies", "waiting", "host",
                     "idle", "hidden(ms)", "slowed(ms)"});
  const Time whole = outcome.result.time;
  for (std::size_t c = 0; c < outcome.result.classes.size(); ++c) {
    const ClassTime& times = outcome.result.classes[c];
    const auto& one = outcome.workload->classes[c];
    table.add({one.name, std::to_string(one.ranks.size()), table_ms(times.end),
               percent(times.compute, whole), percent(times.exposed(), whole),
               percent(times.memory, whole), percent(times.waiting(), whole),
               percent(times.host, whole), percent(times.idle, whole), table_ms(times.hidden),
               table_ms(times.slowed)});
  }
  out << "#\n# where the time goes, in % of the whole, by ranks that do the same\n";
  table.print(out, "  ");
}

void print_calls(std::ostream& out, const IterationOutcome& outcome) {
  const Workload& workload = *outcome.workload;
  if (outcome.calls.empty()) return;
  // Exposed and waiting: of the class that has most of it.
  std::map<CallKey, std::pair<Time, Time>> worst;
  for (const ClassTime& times : outcome.result.classes) {
    for (const auto& [key, call] : times.calls) {
      auto& [exposed, waiting] = worst[key];
      exposed = std::max(exposed, call.exposed);
      waiting = std::max(waiting, call.waiting);
    }
  }
  // A column only where a trace says it.
  const bool has_recorded =
      std::ranges::any_of(outcome.calls, [](const CallRow& row) { return row.recorded.fs > 0; });
  std::vector<std::string> heading{"communication", "ranks",     "groups",     "calls",
                                   "size",          "alone(us)", "busbw(GB/s)"};
  if (has_recorded) heading.emplace_back("recorded(us)");
  Columns table(one_name_then_numbers(heading.size()));
  table.add_heading(heading);
  constexpr std::size_t kMost = 24;
  for (std::size_t r = 0; r < std::min(kMost, outcome.calls.size()); ++r) {
    const CallRow& row = outcome.calls[r];
    const workload::Call call = call_of(workload, row.kind, row.work);
    const double rate = static_cast<double>(call.bytes) /
                        (static_cast<double>(row.alone.fs) * 1e-15) * 1e-9 *
                        bus_factor(call.kind, row.group);
    const bool is_fused = has_product(workload, row.kind, row.work);
    std::vector<std::string> cells{call_name(workload, row.kind, row.work),
                                   std::to_string(row.group),
                                   std::to_string(row.groups),
                                   std::to_string(row.calls),
                                   to_string(Bytes{call.bytes}),
                                   table_us(row.alone),
                                   is_fused ? "-" : table_rate(rate)};
    if (has_recorded) cells.push_back(row.recorded.fs > 0 ? table_us(row.recorded) : "-");
    table.add(cells);
  }
  out << "#\n# communication: what each distinct call takes alone\n";
  table.print(out, "  ");
  if (outcome.calls.size() > kMost)
    out << fmt::format("# and {} more, which take less in all\n", outcome.calls.size() - kMost);
  Columns exposed(one_name_then_numbers(3));
  exposed.add_heading({"communication", "exposed(ms)", "waiting(ms)"});
  for (const auto& [key, times] : worst)
    exposed.add({call_name(workload, key), table_ms(times.first), table_ms(times.second)});
  out << "#\n# exposed: nothing is computed meanwhile; waiting: a peer has not come; of the ranks "
         "that have most\n";
  exposed.print(out, "  ");
}

void print_path(std::ostream& out, const IterationOutcome& outcome) {
  const std::vector<workload::PathName> names = outcome.path_by_name();
  Time all{};
  for (const workload::PathName& one : names) all = all + one.time;
  out << fmt::format("#\n# critical path: {} nodes, {} % of the time; the rest is the CPU's\n",
                     outcome.path.size(), percent(all, outcome.result.time));
  constexpr std::size_t kMost = 12;
  for (std::size_t i = 0; i < std::min(kMost, names.size()); ++i)
    out << fmt::format("#   {:>5} %  {:>6} x {:>10} us  {}\n",
                       percent(names[i].time, outcome.result.time), names[i].nodes,
                       table_us({names[i].time.fs / names[i].nodes}), names[i].name);
}

}  // namespace

std::string call_name(const Workload& workload, const CallKey& key) {
  if (key.kind == workload::NodeKind::recorded_call) return workload.names[index(key.family)];
  const std::string& family = workload.families[index(key.family)].name;
  if (key.kind == workload::NodeKind::collective)
    return fmt::format("{} {}", name_of(key.collective), family);
  return fmt::format("{} {}", name_of(key.kind), family);
}

std::string call_name(const Workload& workload, workload::NodeKind kind, std::int32_t work) {
  return call_name(workload, call_key(workload, kind, work)) +
         (has_product(workload, kind, work) ? " + product" : "");
}

std::string memory_text(const Workload& workload) {
  if (!workload.facts) return {};
  std::string text;
  for (std::size_t c = 0; c < workload.facts->memory.size(); ++c) {
    const auto& memory = workload.facts->memory[c];
    std::string parts;
    for (const auto& [name, bytes] : memory)
      parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", name, gigabytes(bytes));
    text += fmt::format("# memory    {}: {} ({})\n", workload.classes[c].name,
                        gigabytes(workload::sum_of(memory)), parts);
  }
  return text;
}

std::string table_ms(Time time) {
  return fmt::format("{:.3f}", static_cast<double>(time.fs) * 1e-12);
}

void print_iteration(std::ostream& out, const IterationRun& run, const IterationOutcome& outcome) {
  print_head(out, run, outcome);
  print_classes(out, outcome);
  print_calls(out, outcome);
  print_path(out, outcome);
  const std::string memory = memory_text(*outcome.workload);
  if (!memory.empty()) out << "#\n" << memory;
  if (const auto like = outcome.likeness())
    out << "# "
        << study::evidence_line(*like, study::evidence_of(*like, study::EvidenceRows::shipped()))
        << '\n';
}

}  // namespace hemiola::report
