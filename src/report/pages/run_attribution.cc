// Of a run's page: where the time goes, of results and of the launches of a job.
#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "core/names.h"
#include "plan/plan_json.h"
#include "report/pages/run_blocks.h"
#include "report/values/launch_text.h"
#include "report/values/numbers.h"

namespace hemiola::report {
namespace {

constexpr std::size_t kMostBars = 64;

/// What each reason covers, in the words of docs/results.md.
constexpr std::array<std::string_view, sim::kReasons> kMeanings{
    "the network on the chip",
    "the L2 cache",
    "the memory-side cache",
    "the memory",
    "between the network on the chip and the wire",
    "queueing, serialisation, propagation and credits of links",
    "switches, reductions in them included",
    "issue slots and the limit on outstanding requests of a CU",
    "network cards",
    "host call to kernel start, kernel end to stream release",
    "workgroups that wait for a CU, and their start",
    "reductions and matrix work",
    "barriers beyond their last arrival",
    "the L1 cache",
    "copy engines",
    "the host proxy and its FIFO",
    "a flag has arrived and is not seen yet",
    "the fixed cost of release fences",
    "of libraries, fitted to measurements",
    "what a replayed rank waits for",
    "a later start of a rank",
    "after the rank's last operation",
};

/// In the order of the enum, so that rows can be compared; what took no time is left out.
std::vector<page::Bars::Part> parts_of(const sim::Attribution& attribution) {
  std::vector<page::Bars::Part> parts;
  for (std::size_t r = 0; r < sim::kReasons; ++r) {
    if (attribution[r] <= 0) continue;
    parts.push_back(
        {std::string(sim::name_of(static_cast<sim::Reason>(r))), Time{attribution[r]}.us()});
  }
  return parts;
}

/// The reasons of one rank, the largest first.
page::Table reasons_table(const sim::Result& result, const std::string& of) {
  const std::size_t rank = latest_rank(result);
  page::Table table{"What the reasons are" + of,
                    fmt::format("Rank {}, the latest of {}. The parts sum to the time exactly.",
                                rank, result.attribution.size()),
                    {{"reason"}, {"time (ns)", true}, {"share (%)", true}, {"what it covers"}},
                    {}};
  for (const sim::Reason reason : by_share(result.attribution[rank])) {
    const Time time{result.attribution[rank][index(reason)]};
    table.rows.push_back({std::string(sim::name_of(reason)), exact_ns(time),
                          percent(time, result.time), std::string(name_in(kMeanings, reason))});
  }
  return table;
}

/// One result: its ranks, equal ones after each other as one bar.
page::Bars ranks_bars(const sim::Result& result) {
  page::Bars bars{"Where the time goes", "By rank; each bar sums to the time.", "us", false, {}};
  const std::vector<sim::Attribution>& all = result.attribution;
  for (std::size_t rank = 0; rank < all.size();) {
    std::size_t last = rank;
    while (last + 1 < all.size() && all[last + 1] == all[rank]) ++last;
    if (bars.rows.size() == kMostBars) {
      bars.note += fmt::format(" Ranks from {} on are left out.", rank);
      break;
    }
    bars.rows.push_back(
        {last > rank ? fmt::format("ranks {}-{}, alike", rank, last) : fmt::format("rank {}", rank),
         0, parts_of(all[rank])});
    rank = last + 1;
  }
  return bars;
}

}  // namespace

std::vector<page::Block> attribution_blocks(const std::vector<sim::Result>& results) {
  const sim::Result& last = results.back();
  if (last.attribution.empty()) return {};
  std::vector<page::Block> blocks;
  if (results.size() == 1) {
    blocks.emplace_back(ranks_bars(last));
    blocks.emplace_back(reasons_table(last, ""));
    return blocks;
  }
  page::Bars bars{"Where the time goes", "Of each result, the latest rank.", "us", true, {}};
  for (const sim::Result& result : results) {
    if (result.attribution.empty()) continue;
    if (bars.rows.size() == kMostBars) {
      bars.note += fmt::format(" The first {} results are shown.", kMostBars);
      break;
    }
    bars.rows.push_back(
        {label_of(result, results), 0, parts_of(result.attribution[latest_rank(result)])});
  }
  blocks.emplace_back(std::move(bars));
  blocks.emplace_back(reasons_table(last, ": " + label_of(last, results)));
  return blocks;
}

std::vector<page::Block> launch_blocks(const sim::Result& result) {
  constexpr std::size_t kMostLaunches = 200;
  page::Table table{"Launches",
                    "",
                    {{"launch"},
                     {"program"},
                     {"ranks"},
                     {"size (B)", true},
                     {"begin (us)", true},
                     {"end (us)", true},
                     {"time (us)", true},
                     {"alone (us)", true}},
                    {}};
  page::Timelines when{"Launches over time", "", {{"", {}}}};
  page::Bars bars{"Where the time of launches goes",
                  "Of each launch, its latest rank; below it what the launch takes alone, where "
                  "nothing else runs.",
                  "us",
                  false,
                  {}};
  page::Text slower{"What slows launches down", {}};
  for (const sim::LaunchResult& launch : result.launches) {
    const Time time = launch.end - launch.begin;
    const std::string alone = launch.alone.fs > 0 ? table_us(launch.alone) : "-";
    table.rows.push_back({launch.name, launch.program, plan::ranks_text(launch.ranks),
                          std::to_string(launch.size.count), table_us(launch.begin),
                          table_us(launch.end), table_us(time), alone});
    if (when.panels.front().tracks.size() < kMostLaunches) {
      when.panels.front().tracks.push_back(
          {launch.name,
           {{launch.name, launch.begin, launch.end, launch.program, 1,
             fmt::format("ranks {}; alone {} us", plan::ranks_text(launch.ranks), alone)}}});
    }
    if (bars.rows.size() < kMostBars) {
      bars.rows.push_back({launch.name, 0, parts_of(launch.attribution)});
      if (launch.alone.fs > 0)
        bars.rows.push_back({launch.name + ", alone", 0, parts_of(launch.alone_attribution)});
    }
    if (!launch.slowed_by.empty() && slower.paragraphs.size() < kMostBars)
      slower.paragraphs.push_back(slowdown_text(launch) + ".");
  }
  if (result.launches.size() > kMostLaunches)
    when.note = fmt::format("The first {} of {} launches.", kMostLaunches, result.launches.size());
  std::vector<page::Block> blocks{std::move(table), std::move(when)};
  if (!slower.paragraphs.empty()) blocks.emplace_back(std::move(slower));
  blocks.emplace_back(std::move(bars));
  return blocks;
}

}  // namespace hemiola::report
