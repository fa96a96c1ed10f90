// The page of `replay`.
#include "report/replay.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <utility>

#include "report/pages/run_blocks.h"
#include "report/values/result_tables.h"

namespace hemiola::report {
namespace {

/// A bar for each result: for how long its ranks waited for whom.
page::Bars peers_bars(const std::vector<sim::Result>& results) {
  page::Bars bars{.heading = "Who was waited for",
                  .note = "The reason 'peer', over all replayed ranks.",
                  .unit = "us"};
  for (const sim::Result& result : results) {
    std::map<int, Time> peers;
    for (const sim::PeerWait& wait : result.peer_waits) peers[wait.peer] += wait.time;
    page::Bars::Row row{.label = label_of(result, results)};
    for (const auto& [peer, time] : peers)
      if (time.fs > 0) row.parts.push_back({fmt::format("rank {}", peer), time.us()});
    bars.rows.push_back(std::move(row));
  }
  return bars;
}

}  // namespace

page::Page replay_page(const Replay& replay, const std::vector<sim::Result>& results) {
  const Run& run = replay.run;
  page::Page page{.title = "A replay of " + run.program + " on " + run.machine,
                  .subtitle = run.command,
                  .facts = {{"profile", fmt::format("{}, {} rows", replay.profile, replay.rows)},
                            {"simulated", fmt::format("rank {} of {}", fmt::join(replay.ranks, ","),
                                                      replay.of)}}};
  if (run.bound) page.facts.emplace_back("size", to_string(run.bound->size()));
  page.blocks.emplace_back(replays_table(results));
  for (page::Block& block : attribution_blocks(results)) page.blocks.push_back(std::move(block));
  page.blocks.emplace_back(peers_bars(results));
  for (const sim::Result& result : results) {
    if (result.peer_waits.empty()) continue;
    page::Table table = peer_waits_table(result);
    if (results.size() > 1) table.heading += ": " + label_of(result, results);
    page.blocks.emplace_back(std::move(table));
  }
  return page;
}

}  // namespace hemiola::report
