#include "report/astra.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ostream>

#include "report/columns.h"
#include "report/iteration.h"
#include "report/numbers.h"

namespace hemiola::report {
namespace {

using workload::AstraResult;
using workload::AstraWork;
using workload::IterationOutcome;
using workload::NodeKind;
using workload::Workload;

/// The rank that finishes last.
const workload::AstraRank& last_of(const AstraResult& result) {
  return *std::max_element(result.ranks.begin(), result.ranks.end(),
                           [](const auto& a, const auto& b) { return a.finish_ns < b.finish_ns; });
}

std::string share(double part, double whole) {
  return whole > 0 ? fmt::format("{:.1f}", 100 * part / whole) : "-";
}

std::vector<std::string> row_of(const std::string& name, const AstraResult& result) {
  const workload::AstraRank& rank = last_of(result);
  return {name, fmt::format("{}", result.time_ns), fmt::format("{}", rank.compute_ns),
          fmt::format("{}", rank.exposed_ns),
          share(static_cast<double>(rank.exposed_ns), static_cast<double>(rank.finish_ns))};
}

std::vector<std::string> row_of(const std::string& name, const IterationOutcome& ours) {
  const auto& classes = ours.result.classes;
  const auto last = std::max_element(classes.begin(), classes.end(),
                                     [](const auto& a, const auto& b) { return a.end < b.end; });
  const Time exposed = ours.result.time - last->compute;
  return {name, exact_ns(ours.result.time), exact_ns(last->compute), exact_ns(exposed),
          percent(exposed, ours.result.time)};
}

std::string work_name(const Workload& workload, NodeKind kind, std::int32_t work) {
  return call_name(workload, call_key(workload, kind, work));
}

/// Calls of rank 0's, and what one takes: in ASTRA-sim's networks, and alone in ours.
void print_works(std::ostream& out, const Workload& workload, const AstraComparison& comparison) {
  Columns table({kLeft, kRight, kRight, kRight, kRight, kRight});
  table.add_heading({"of rank 0", "calls", "bytes", "unaware(ns)", "aware(ns)", "ours alone(ns)"});
  const auto mean = [](const AstraWork& work) {
    return work.count > 0 ? std::to_string(work.time_ns / work.count) : "-";
  };
  for (const AstraWork& work : comparison.unaware.works) {
    if (work.rank != 0) continue;
    std::string aware = "-", ours = "-";
    if (comparison.aware) {
      for (const AstraWork& other : comparison.aware->works) {
        if (other.rank == 0 && other.kind == work.kind && other.work == work.work)
          aware = mean(other);
      }
    }
    if (comparison.ours) {
      for (const workload::CallRow& row : comparison.ours->calls) {
        const Workload& other = *comparison.ours->workload;
        if (row.kind == work.kind &&
            work_name(other, row.kind, row.work) == work_name(workload, work.kind, work.work) &&
            call_of(other, row.kind, row.work).bytes ==
                call_of(workload, work.kind, work.work).bytes)
          ours = exact_ns(row.alone);
      }
    }
    table.add({work_name(workload, work.kind, work.work), std::to_string(work.count),
               std::to_string(work.bytes), mean(work), aware, ours});
  }
  table.print(out, "  ");
}

std::string result_object(const char* engine, const AstraResult& result) {
  std::string ranks;
  for (std::size_t r = 0; r < result.ranks.size(); ++r) {
    const workload::AstraRank& rank = result.ranks[r];
    ranks += fmt::format(
        "{}\n        {{\"rank\": {}, \"finish_ns\": {}, \"compute_ns\": {}, "
        "\"host_ns\": {}, \"exposed_ns\": {}, \"communication_ns\": {}}}",
        r > 0 ? "," : "", r, rank.finish_ns, rank.compute_ns, rank.host_ns, rank.exposed_ns,
        rank.communication_ns);
  }
  return fmt::format(
      "    {{\"engine\": \"{}\", \"time_fs\": {}, \"time_ns\": {}, \"messages\": "
      "{}, \"ranks\": [{}]}}",
      engine, result.time_ns * 1'000'000, result.time_ns, result.messages, ranks);
}

}  // namespace

void print_astra(std::ostream& out, const Workload& workload, const AstraComparison& comparison) {
  out << fmt::format("# workload  {}: {} ranks\n", workload.name, workload.ranks);
  if (comparison.ours)
    out << fmt::format("# ours      {} by {}\n", comparison.ours->machine->name,
                       comparison.ours_engine);
  if (!comparison.not_ours.empty()) out << "# ours      " << comparison.not_ours << '\n';
  out << "#\n";
  Columns table({kLeft, kRight, kRight, kRight, kRight});
  table.add_heading({"model", "time(ns)", "compute(ns)", "exposed(ns)", "exposed(%)"});
  table.add(row_of("ASTRA-sim, unaware", comparison.unaware));
  if (comparison.aware) table.add(row_of("ASTRA-sim, aware", *comparison.aware));
  if (comparison.ours) table.add(row_of("ours", *comparison.ours));
  table.print(out, "  ");
  out << "#\n";
  print_works(out, workload, comparison);
}

std::string astra_json(const std::string& command, const Workload& workload,
                       const AstraComparison& comparison) {
  std::string results = result_object("astra-unaware", comparison.unaware);
  if (comparison.aware) results += ",\n" + result_object("astra-aware", *comparison.aware);
  if (comparison.ours)
    results += fmt::format(
        ",\n    {{\"engine\": {}, \"machine\": {}, \"time_fs\": {}, "
        "\"time_ns\": {}}}",
        json_string(comparison.ours_engine), json_string(comparison.ours->machine->name),
        comparison.ours->result.time.fs, exact_ns(comparison.ours->result.time));
  return fmt::format(
      "{{\n  \"schema\": \"hemiola/1\",\n  \"command\": {},\n  \"program\": {},\n"
      "  \"engine\": \"astra\",\n  \"results\": [\n{}\n  ]\n}}\n",
      json_string(command), json_string(workload.name), results);
}

}  // namespace hemiola::report
