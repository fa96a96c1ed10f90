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

namespace hemiola::report {
namespace {

using study::Difference;
using study::FigureChange;
using study::RankChange;
using study::ResultChange;

/// "-3.000 us link, +1.200 us poll"
std::string moved_text(const RankChange& change) {
  constexpr std::size_t kMost = 3;
  std::vector<std::string> parts;
  std::size_t more = 0;
  for (const FigureChange& reason : change.reasons) {
    if (reason.difference() == 0) continue;
    if (parts.size() < kMost)
      parts.push_back(fmt::format("{} us {}", signed_us(Time{reason.difference()}), reason.name));
    else
      ++more;
  }
  if (parts.empty()) return "nothing moved";
  if (more > 0) parts.push_back(fmt::format("{} more", more));
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// "rank 5", or "rank 3 of A, rank 5 of B"
std::string rank_text(const RankChange& change) {
  if (change.a_rank == change.b_rank) return fmt::format("rank {}", change.a_rank);
  return fmt::format("rank {} of A, rank {} of B", change.a_rank, change.b_rank);
}

std::string or_unknown(const std::string& text) {
  return text.empty() ? "not known" : text;
}

std::string where_text(const ResultChange& change) {
  if (!change.latest) return "no attribution to compare";
  return moved_text(*change.latest) + "; " + rank_text(*change.latest);
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

void print_table(std::ostream& out, const Difference& difference) {
  const bool settings = std::ranges::any_of(difference.results, [](const ResultChange& one) {
    return !one.a_settings.empty() || !one.b_settings.empty();
  });
  std::vector<Align> alignment{kRight, kRight, kRight, kRight, kRight};
  std::vector<std::string> names{"size", "A", "B", "B - A", ""};
  if (settings) {
    alignment.push_back(kLeft);
    names.emplace_back("settings");
  }
  alignment.push_back(kLeft);
  names.emplace_back("where it went");
  Columns columns(alignment);
  columns.add_heading(names);
  columns.add_heading({"(B)", "(us)", "(us)", "(us)", "(%)"});
  for (const ResultChange& change : difference.results) {
    std::vector<std::string> cells{std::to_string(change.size.count), table_us(change.a),
                                   table_us(change.b), signed_us(change.difference()),
                                   signed_percent(change.relative())};
    if (settings) cells.push_back(settings_text(change));
    cells.push_back(where_text(change));
    columns.add(std::move(cells));
  }
  columns.print(out, "  ");
}

void print_only(std::ostream& out, const char* name, const std::vector<study::Unmatched>& only) {
  for (const study::Unmatched& one : only)
    out << fmt::format("# only in {}: {}\n", name, to_text(one));
}

void print_latest(std::ostream& out, const ResultChange& change) {
  if (!change.latest) return;
  Columns columns({kLeft, kRight, kRight, kRight});
  columns.add({"reason", "A (ns)", "B (ns)", "B - A (ns)"});
  for (const FigureChange& reason : change.latest->reasons) {
    if (reason.a == 0 && reason.b == 0) continue;
    columns.add({reason.name, exact_ns(Time{reason.a}), exact_ns(Time{reason.b}),
                 signed_ns(Time{reason.difference()})});
  }
  columns.add({"sum", exact_ns(change.a), exact_ns(change.b), signed_ns(change.difference())});
  columns.print(out, "#   ");
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

void print_links(std::ostream& out, const ResultChange& change, std::size_t top) {
  if (change.links.empty() || top == 0) return;
  out << fmt::format("# of the {} links that moved, those that moved most:\n", change.links.size());
  Columns columns({kLeft, kLeft, kLeft, kRight, kRight, kRight, kRight});
  columns.add({"from", "to", "", "busy A (us)", "B (us)", "B - A (us)", "wire B - A (B)"});
  for (std::size_t i = 0; i < std::min(top, change.links.size()); ++i) {
    const study::LinkChange& link = change.links[i];
    columns.add({link.from, link.to, link.lane > 0 ? fmt::format("lane {}", link.lane) : "",
                 table_us(link.a_busy), table_us(link.b_busy), signed_us(link.b_busy - link.a_busy),
                 fmt::format("{:+}", link.b_wire_bytes - link.a_wire_bytes)});
  }
  columns.print(out, "#   ");
}

void print_counters(std::ostream& out, const ResultChange& change, std::size_t top) {
  if (change.counters.empty() || top == 0) return;
  out << fmt::format("# of the {} counters that moved, those that moved most:\n",
                     change.counters.size());
  Columns columns({kLeft, kRight, kRight, kRight});
  columns.add({"counter", "A", "B", "B - A"});
  for (std::size_t i = 0; i < std::min(top, change.counters.size()); ++i) {
    const FigureChange& counter = change.counters[i];
    columns.add({counter.name, std::to_string(counter.a), std::to_string(counter.b),
                 fmt::format("{:+}", counter.difference())});
  }
  columns.print(out, "#   ");
}

void print_details(std::ostream& out, const ResultChange& change, std::size_t top) {
  const std::string settings = settings_text(change);
  out << fmt::format("#\n# {}{}: {} ns", to_string(change.size),
                     settings.empty() ? "" : ", " + settings, signed_ns(change.difference()));
  if (change.latest) out << fmt::format("; {}, the latest", rank_text(*change.latest));
  out << '\n';
  if (change.a_checked != change.b_checked)
    out << fmt::format("# checked: {} in A, {} in B\n", or_unknown(change.a_checked),
                       or_unknown(change.b_checked));
  if (change.same()) {
    out << "# time, attribution, links and counters are the same\n";
    return;
  }
  print_latest(out, change);
  print_ranks(out, change, top);
  print_links(out, change, top);
  print_counters(out, change, top);
}

/// The one whose time moved most, as a share of its own; of equal ones the first that moved at all.
const ResultChange& moved_most(const std::vector<ResultChange>& results) {
  const auto key = [](const ResultChange& change) {
    return std::pair(std::abs(change.relative().value_or(0)), !change.same());
  };
  return *std::ranges::max_element(
      results, [&](const ResultChange& x, const ResultChange& y) { return key(x) < key(y); });
}

}  // namespace

void print_difference(std::ostream& out, const Difference& difference, const DifferenceView& view) {
  print_head(out, difference);
  print_table(out, difference);
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
