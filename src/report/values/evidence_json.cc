#include "report/values/evidence_json.h"

#include <fmt/format.h>

#include <ostream>
#include <set>
#include <vector>

#include "report/values/columns.h"

namespace hemiola::report {
namespace {

JsonText pair_of(double low, double high) {
  return {'[' + json_of(low) + ", " + json_of(high) + ']'};
}

std::optional<study::Likeness> likeness_of(const Run& run, const sim::Result& result) {
  return run.bound
             ? study::likeness_of(
                   *run.bound, study::launch_kind(run.launch == "graph", run.one_host), result.size)
             : std::nullopt;
}

}  // namespace

std::string evidence_text(const Run& run, const std::vector<sim::Result>& results) {
  std::vector<study::Likeness> likes;
  for (const sim::Result& result : results)
    if (const auto like = likeness_of(run, result)) likes.push_back(*like);
  if (likes.empty()) return {};
  return study::evidence_line(likes.front(),
                              study::evidence_of(likes, study::EvidenceRows::shipped()));
}

std::optional<study::Evidence> evidence_of_result(const Run& run, const sim::Result& result) {
  const auto like = likeness_of(run, result);
  return like ? study::evidence_of(*like, study::EvidenceRows::shipped()) : std::nullopt;
}

void print_evidence(std::ostream& out, const Run& run, const std::vector<sim::Result>& results) {
  const study::EvidenceRows& rows = study::EvidenceRows::shipped();
  std::set<std::size_t> of;
  for (const sim::Result& result : results)
    if (const auto found = evidence_of_result(run, result))
      of.insert(found->of.begin(), found->of.end());
  if (of.empty()) return;
  Columns columns({Align::left, Align::left, Align::left, Align::right, Align::right, Align::right,
                   Align::right, Align::right, Align::left});
  columns.add_heading(
      {"device", "operation", "launch", "ranks", "size", "measured", "simulated", "error", "row"});
  columns.add_heading({"", "", "", "", "(B)", "(us)", "(us)", "(%)", ""});
  for (const std::size_t i : of) {
    const study::EvidenceRow& row = rows.rows[i];
    columns.add({row.like.device, row.like.library + ' ' + row.like.op, row.like.launch,
                 std::to_string(row.like.ranks), fmt::format("{:.0f}", row.like.amount),
                 fmt::format("{:.2f}", row.measured_us), fmt::format("{:.2f}", row.simulated_us),
                 fmt::format("{:+.1f}", 100 * (row.simulated_us / row.measured_us - 1)),
                 fmt::format("{}:{}", row.table, row.line)});
  }
  out << "#\n# measured rows (simulated at " << rows.stamp << "):\n";
  columns.print(out, "#   ");
}

JsonText evidence_json(const study::Likeness& like, std::optional<double> simulated_us) {
  const auto found = study::evidence_of(like, study::EvidenceRows::shipped());
  return found ? evidence_json(*found, simulated_us) : JsonText{"null"};
}

JsonText evidence_json(const Run& run, const sim::Result& result) {
  const auto found = evidence_of_result(run, result);
  return found ? evidence_json(*found, result.time.us()) : JsonText{"null"};
}

JsonText evidence_json(const study::Evidence& evidence, std::optional<double> simulated_us) {
  JsonObject object;
  object.add("rows", evidence.rows, "median", evidence.median, "p90",
             pair_of(evidence.low, evidence.high));
  if (simulated_us)
    object.add("interval_us",
               pair_of(*simulated_us * (1 + evidence.low), *simulated_us * (1 + evidence.high)));
  object.add("kind", evidence.kind, "distance", evidence.distance, "nearest", evidence.like);
  return object.json();
}

}  // namespace hemiola::report
