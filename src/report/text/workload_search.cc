#include "report/workload_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ostream>

#include "report/iteration.h"
#include "report/values/columns.h"

namespace hemiola::report {
namespace {

using workload::SearchOutcome;
using workload::SearchRow;
using workload::Workload;

double giga(double value) {
  return value * 1e-9;
}

/// By kind and group, what a rank of each class calls in one iteration.
void print_volume(std::ostream& out, const Workload& workload) {
  std::map<workload::CallKey, std::pair<std::int64_t, double>> volume;
  for (const auto& one : workload.classes) {
    std::map<workload::CallKey, std::pair<std::int64_t, double>> own;
    for (const workload::Node& node : one.trace->nodes) {
      if (node.kind != workload::NodeKind::collective && node.kind != workload::NodeKind::send)
        continue;
      auto& [calls, bytes] = own[call_key(workload, node.kind, node.work)];
      ++calls;
      bytes += static_cast<double>(call_of(workload, node.kind, node.work).bytes);
    }
    for (const auto& [key, sum] : own) volume[key] = std::max(volume[key], sum);
  }
  if (volume.empty()) return;
  Columns table({kLeft, kRight, kRight, kRight});
  table.add_heading({"communication", "ranks", "calls", "GB per rank"});
  for (const auto& [key, sum] : volume) {
    const auto& groups = workload.families[index(key.family)].groups;
    table.add({call_name(workload, key), std::to_string(groups.front().size()),
               std::to_string(sum.first), fmt::format("{:.3f}", giga(sum.second))});
  }
  out << "#\n# of the ranks that call most, in one iteration\n";
  table.print(out, "  ");
}

}  // namespace

void print_workload(std::ostream& out, const Workload& workload) {
  out << fmt::format("# workload  {}: {} ranks\n", workload.name, workload.ranks);
  for (const auto& one : workload.classes)
    out << fmt::format("#           {}: {} ranks, {} nodes\n", one.name, one.ranks.size(),
                       one.trace->nodes.size());
  if (workload.facts) {
    out << fmt::format("# iteration {} tokens, {:.3f} Pflop of the model\n", workload.facts->tokens,
                       workload.facts->flop * 1e-15);
    out << memory_text(workload);
  }
  print_volume(out, workload);
  out << "#\n# --machine NAME runs it\n";
}

void print_search(std::ostream& out, const SearchOutcome& outcome, std::size_t top) {
  std::size_t run = 0;
  std::map<std::string, std::size_t> refused;
  for (const SearchRow& row : outcome.rows)
    if (row.refused.empty())
      ++run;
    else
      ++refused[row.refused];
  out << fmt::format("# model     {}\n# machine   {}: {} GPUs of {:.1f} GB\n", outcome.model,
                     outcome.machine, outcome.ranks, giga(static_cast<double>(outcome.memory)));
  out << fmt::format("# searched  {} parallelisms, {} fit and were run\n#\n", outcome.rows.size(),
                     run);
  Columns table(std::vector<Align>(9, kRight));
  table.add_heading(
      {"tp", "pp", "dp", "ep", "memory(GB)", "time(ms)", "tokens/s/GPU", "MFU(%)", "to the best"});
  for (std::size_t r = 0; r < std::min(top, run); ++r) {
    const SearchRow& row = outcome.rows[r];
    const auto& p = row.parallelism;
    table.add({std::to_string(p.tp), std::to_string(p.pp), std::to_string(p.dp),
               std::to_string(p.ep), fmt::format("{:.1f}", giga(static_cast<double>(row.memory))),
               table_ms(row.time), fmt::format("{:.1f}", row.tokens_per_second_and_gpu),
               fmt::format("{:.1f}", 100 * row.model_flop_utilisation),
               fmt::format("{:.3f}", row.tokens_per_second_and_gpu /
                                         outcome.rows.front().tokens_per_second_and_gpu)});
  }
  table.print(out, "  ");
  if (refused.empty()) return;
  out << "#\n# refused:\n";
  constexpr std::size_t kMost = 8;
  std::vector<std::pair<std::size_t, std::string>> sorted;
  for (const auto& [why, count] : refused) sorted.emplace_back(count, why);
  std::ranges::stable_sort(sorted, [](const auto& a, const auto& b) { return a.first > b.first; });
  for (std::size_t i = 0; i < std::min(kMost, sorted.size()); ++i)
    out << fmt::format("#   {:>3}  {}\n", sorted[i].first, sorted[i].second);
  if (sorted.size() > kMost)
    out << fmt::format("#        and for {} more reasons (--json has them all)\n",
                       sorted.size() - kMost);
}

}  // namespace hemiola::report
