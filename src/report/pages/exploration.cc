// The page of `explore --report`.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "report/exploration.h"
#include "report/values/exploration_fields.h"
#include "report/values/numbers.h"

namespace hemiola::report {
namespace {

using explore::Exploration;

page::Bars speedups(const Exploration& found, const std::vector<const explore::Candidate*>& best) {
  page::Bars bars{.heading = "Speedup over serial",
                  .note = "The fastest schedule of each family.",
                  .unit = "x",
                  .reference = page::Bars::Reference{
                      static_cast<double>(found.serial.time.fs) /
                          static_cast<double>(std::max<std::int64_t>(1, found.ideal.time.fs)),
                      "ideal"}};
  bars.rows.push_back({.label = "serial", .value = 1});
  for (const explore::Candidate* candidate : best) {
    bars.rows.push_back(
        {.label = candidate->schedule.family.text(), .value = found.speedup(*candidate)});
  }
  return bars;
}

page::Bars losses(const std::vector<const explore::Candidate*>& best) {
  page::Bars bars{.heading = "What each loses against ideal",
                  .note =
                      "Microseconds beyond the longer of collective and product, by cause. A "
                      "cause that saves time in a schedule is left out of its bar.",
                  .unit = "us"};
  for (const explore::Candidate* candidate : best) {
    if (!candidate->losses) continue;
    page::Bars::Row row{.label = candidate->schedule.family.text()};
    for (std::size_t i = 0; i < explore::kLosses; ++i)
      add_loss(row, explore::name_of(static_cast<explore::Loss>(i)), candidate->losses->parts[i]);
    bars.rows.push_back(std::move(row));
  }
  return bars;
}

page::Table table(const Exploration& found) {
  page::Table table{.heading = "Schedules",
                    .note = "All that were simulated, the fastest first.",
                    .columns = page::columns_of(
                        {"schedule"},
                        {"time (us)", "speedup", "DIL product", "DIL communication", "CIL product",
                         "CIL communication", "extra traffic (MiB)", "buffers (MiB)"},
                        {"engine"})};
  for (const explore::Candidate& candidate : found.candidates) {
    const explore::Losses lost = candidate.losses.value_or(explore::Losses{});
    table.rows.push_back({candidate.schedule.text(), table_us(candidate.time()),
                          fmt::format("{:.3f}", found.speedup(candidate)),
                          ratio_cell(lost.dil_product), ratio_cell(lost.dil_communication),
                          ratio_cell(lost.cil_product), ratio_cell(lost.cil_communication),
                          mebibytes(candidate.extra_traffic), mebibytes(candidate.buffers),
                          candidate.confirmed ? "sampled" : "fluid"});
  }
  return table;
}

}  // namespace

page::Page exploration_page(const std::string& command, const Exploration& found,
                            const ExplorationTimelines& timelines) {
  const explore::Candidate* winner = found.winner();
  page::Page page{.title = explore::text_of(found.op), .subtitle = command};
  page.facts = {{"machine", found.machine},
                {"launch", std::string(name_of(found.launch))},
                {"serial", table_us(found.serial.time) + " us"},
                {"collective", table_us(found.serial.collective) + " us"},
                {"product", table_us(found.serial.product) + " us"},
                {"ideal", table_us(found.ideal.time) + " us"},
                {"best", winner != nullptr ? table_us(winner->time()) + " us" : "serial"},
                {"schedules", std::to_string(found.space)},
                {"simulated", std::to_string(found.candidates.size() + 1)}};
  std::vector<std::string> words = explore::who_holds_what(found.op);
  if (winner != nullptr) {
    words.push_back(fmt::format("The fastest is {}: {:.2f} times as fast as serial.",
                                winner->schedule.text(), found.speedup(*winner)));
    words.push_back(command_of(found, *winner));
  } else {
    words.push_back("Nothing that overlaps is faster than serial here.");
  }
  page.blocks.push_back(page::Text{"The operator", std::move(words)});
  std::vector<const explore::Candidate*> best;
  for (const std::size_t i : found.fastest_of_families()) best.push_back(&found.candidates[i]);
  page.blocks.push_back(speedups(found, best));
  page::Bars lost = losses(best);
  if (!lost.rows.empty()) page.blocks.push_back(std::move(lost));
  page.blocks.push_back(table(found));
  page::Timelines all{.heading = "What happens when",
                      .note = "The fastest schedule, then serial, as fluid simulated them."};
  add_panels(all, "best", timelines.winner);
  add_panels(all, "serial", timelines.serial);
  if (!all.panels.empty()) page.blocks.push_back(std::move(all));
  return page;
}

}  // namespace hemiola::report
