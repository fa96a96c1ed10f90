// The page of `diff`.
#include "report/difference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <vector>

#include "core/lists.h"
#include "report/values/columns.h"
#include "report/values/difference_text.h"
#include "report/values/numbers.h"
#include "report/values/result_tables.h"

namespace hemiola::report {
namespace {

using study::Difference;
using study::FigureChange;
using study::RankChange;
using study::ResultChange;

std::string or_unknown(const std::string& text) {
  return text.empty() ? "not known" : text;
}

void print_run(std::ostream& out, const char* name, const study::ResultFile& run) {
  out << fmt::format("# {}        {}", name, run.file);
  if (!run.command.empty()) out << ": " << run.command;
  out << '\n';
}

void print_head(std::ostream& out, const Difference& difference) {
  print_run(out, "A", difference.a);
  print_run(out, "B", difference.b);
  const auto line = [&](const char* name, const std::string& a, const std::string& b) {
    if (a == b && !a.empty())
      out << fmt::format("# {:<8} {}\n", name, a);
    else if (a != b)
      out << fmt::format("# {:<8} they differ: A {}, B {}\n", name, or_unknown(a), or_unknown(b));
  };
  const auto models = [](const study::ResultFile& run) {
    return run.models == 0 ? std::string() : std::to_string(run.models);
  };
  if (difference.a.models != difference.b.models)
    line("models", models(difference.a), models(difference.b));
  line("machine", difference.a.machine, difference.b.machine);
  line("program", difference.a.program, difference.b.program);
  line("engine", difference.a.engine, difference.b.engine);
  for (const ResultChange& change : difference.results) {
    if (!change.other_ranks()) continue;
    line("ranks", std::to_string(change.a_ranks), std::to_string(change.b_ranks));
    break;
  }
  out << "#\n";
}

void print_only(std::ostream& out, const char* name, const std::vector<study::Unmatched>& only) {
  for (const study::Unmatched& one : only)
    out << fmt::format("# only in {}: {}\n", name, to_text(one));
}

/// Ranks with exactly the same differences, as folded ones have.
struct AlikeRanks {
  const RankChange* first;
  std::vector<int> ranks;
};

/// In the order of their first ranks.
std::vector<AlikeRanks> alike(const std::vector<RankChange>& changes) {
  std::map<std::map<std::string, std::int64_t>, std::size_t> known;
  std::vector<AlikeRanks> groups;
  for (const RankChange& change : changes) {
    std::map<std::string, std::int64_t> moved;
    for (const FigureChange& reason : change.reasons)
      if (reason.difference() != 0) moved[reason.name] = reason.difference();
    const auto [found, is_new] = known.emplace(std::move(moved), groups.size());
    if (is_new) groups.push_back({&change, {}});
    groups[found->second].ranks.push_back(change.a_rank);
  }
  return groups;
}

/// "rank 5", "ranks 0-3, 7"
std::string numbers_text(const std::vector<int>& ranks) {
  std::vector<std::string> parts = runs_of(ranks);
  constexpr std::size_t kMost = 8;
  if (parts.size() > kMost) {
    parts.resize(kMost);
    parts.emplace_back("...");
  }
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(parts, ", "));
}

void print_ranks(std::ostream& out, const ResultChange& change, std::size_t top) {
  if (change.ranks.empty() || top == 0) return;
  out << fmt::format("# of the {} ranks whose time went elsewhere, those that moved most:\n",
                     change.ranks.size());
  const std::vector<AlikeRanks> groups = alike(change.ranks);
  Columns columns({kLeft, kLeft});
  for (std::size_t i = 0; i < std::min(top, groups.size()); ++i)
    columns.add({numbers_text(groups[i].ranks), moved_text(*groups[i].first)});
  columns.print(out, "#   ");
}

void print_top(std::ostream& out, const char* what, page::Table table, std::size_t top) {
  if (table.rows.empty() || top == 0) return;
  out << fmt::format("# of the {} {} that moved, those that moved most:\n", table.rows.size(),
                     what);
  table.rows.resize(std::min(top, table.rows.size()));
  printed(table, Units::beside).print(out, "#   ");
}

void print_details(std::ostream& out, const ResultChange& change, std::size_t top) {
  out << fmt::format("#\n# {}: {} ns", result_name(change), signed_ns(change.difference()));
  if (change.latest) out << fmt::format("; {}, the latest", rank_text(*change.latest));
  out << '\n';
  if (change.a_checked != change.b_checked)
    out << fmt::format("# checked: {} in A, {} in B\n", or_unknown(change.a_checked),
                       or_unknown(change.b_checked));
  if (change.same()) {
    out << "# time, attribution, links and counters are the same\n";
    return;
  }
  if (change.latest) printed(moved_reasons(change), Units::beside).print(out, "#   ");
  print_ranks(out, change, top);
  print_top(out, "links", moved_links(change), top);
  print_top(out, "counters", moved_counters(change), top);
}

}  // namespace

void print_difference(std::ostream& out, const Difference& difference, const DifferenceView& view) {
  print_head(out, difference);
  printed(difference_table(difference)).print(out, "  ");
  print_only(out, "A", difference.only_a);
  print_only(out, "B", difference.only_b);
  if (view.details == Details::most) print_details(out, moved_most(difference.results), view.top);
  if (view.details == Details::all)
    for (const ResultChange& change : difference.results) print_details(out, change, view.top);
  if (!view.limit) return;
  const std::string exceeded = exceeded_text(difference, *view.limit);
  out << "#\n# "
      << (exceeded.empty() ? fmt::format("none of {} results takes more than {} longer in B",
                                         difference.results.size(), view.limit->text)
                           : exceeded)
      << '\n';
}

}  // namespace hemiola::report
