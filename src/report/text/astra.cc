#include "report/astra.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "report/iteration.h"
#include "report/values/columns.h"
#include "report/values/numbers.h"

namespace hemiola::report {
namespace {

using workload::AstraResult;
using workload::AstraWork;
using workload::IterationOutcome;
using workload::Workload;

/// The rank that finishes last.
const workload::AstraRank& last_of(const AstraResult& result) {
  return *std::ranges::max_element(result.ranks, {}, [](const auto& one) { return one.finish_ns; });
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
  const auto last = std::ranges::max_element(classes, {}, [](const auto& one) { return one.end; });
  const Time exposed = ours.result.time - last->compute;
  return {name, exact_ns(ours.result.time), exact_ns(last->compute), exact_ns(exposed),
          percent(exposed, ours.result.time)};
}

std::string work_name(const Workload& workload, workload::NodeKind kind, std::int32_t work) {
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
      for (const AstraWork& other : comparison.aware->works)
        if (other.rank == 0 && other.kind == work.kind && other.work == work.work)
          aware = mean(other);
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

}  // namespace hemiola::report
