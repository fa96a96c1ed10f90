// The page of `explore --block --report`.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "report/block_exploration.h"
#include "report/values/exploration_fields.h"
#include "report/values/numbers.h"

namespace hemiola::report {
namespace {

using explore::BlockCandidate;
using explore::BlockExploration;
using explore::BlockJob;

double over(Time a, Time b) {
  return static_cast<double>(a.fs) / static_cast<double>(std::max<std::int64_t>(1, b.fs));
}

page::Bars speedups(const BlockExploration& found) {
  page::Bars bars{
      .heading = "Speedup over serial",
      .note =
          "Serial, the best schedule of each operator one behind the other, and "
          "the fastest chains.",
      .unit = "x",
      .reference = page::Bars::Reference{over(found.serial.time, found.ideal), "ideal"}};
  bars.rows.push_back({.label = "serial", .value = 1});
  bars.rows.push_back({.label = "apart", .value = over(found.serial.time, found.apart.time)});
  for (const std::size_t i : found.shown()) {
    const BlockCandidate& one = found.candidates[i];
    bars.rows.push_back({.label = one.schedule.text(), .value = found.speedup(one)});
  }
  return bars;
}

page::Bars operators(const BlockExploration& found) {
  page::Bars bars{.heading = "Operators, each alone",
                  .note = "Microseconds of what serial and apart run one behind the other.",
                  .unit = "us"};
  for (const auto& [name, job] :
       {std::pair("serial", &found.serial), std::pair("apart", &found.apart)}) {
    page::Bars::Row row{.label = name};
    for (const BlockJob::Part& part : job->parts) row.parts.push_back({part.name, part.alone.us()});
    bars.rows.push_back(std::move(row));
  }
  return bars;
}

page::Bars losses(const BlockExploration& found) {
  page::Bars bars{.heading = "What each chain loses against ideal",
                  .note = "Microseconds beyond the longer of compute and communication.",
                  .unit = "us"};
  for (const std::size_t i : found.shown()) {
    const BlockCandidate& one = found.candidates[i];
    if (!one.losses) continue;
    page::Bars::Row row{.label = one.schedule.text()};
    for (const auto& [name, part] : one.losses->parts()) add_loss(row, name, part);
    bars.rows.push_back(std::move(row));
  }
  return bars;
}

page::Table table(const BlockExploration& found) {
  page::Table table{
      .heading = "Chains",
      .note = "All that were simulated, the fastest first.",
      .columns = page::columns_of({"schedule"},
                                  {"time (us)", "speedup", "DIL compute", "DIL communication",
                                   "CIL compute", "buffers (MiB)"},
                                  {"engine"})};
  for (const BlockCandidate& one : found.candidates) {
    std::vector<std::string> row{one.schedule.text(), table_us(one.time()),
                                 fmt::format("{:.3f}", found.speedup(one))};
    if (one.losses)
      row.insert(row.end(),
                 {ratio_cell(one.losses->dil_compute), ratio_cell(one.losses->dil_communication),
                  ratio_cell(one.losses->cil_compute)});
    else
      row.insert(row.end(), 3, "-");
    row.push_back(mebibytes(one.buffers));
    row.emplace_back(one.confirmed ? "sampled" : "fluid");
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

page::Page block_exploration_page(const std::string& command, const BlockExploration& found,
                                  const ExplorationTimelines& timelines) {
  const BlockCandidate* winner = found.winner();
  page::Page page{.title = explore::text_of(found.block), .subtitle = command};
  page.facts = {{"machine", found.machine},
                {"launch", std::string(name_of(found.launch))},
                {"serial", table_us(found.serial.time) + " us"},
                {"apart", table_us(found.apart.time) + " us"},
                {"compute", table_us(found.compute()) + " us"},
                {"communication", table_us(found.communication()) + " us"},
                {"ideal", table_us(found.ideal) + " us"},
                {"best", winner != nullptr ? table_us(winner->time()) + " us" : "no chain"},
                {"chains", std::to_string(found.space)},
                {"simulated", std::to_string(found.candidates.size())}};
  std::vector<std::string> words = explore::who_holds_what(found.block);
  words.push_back("Apart, first: " + found.apart_first + "; last: " + found.apart_last + ".");
  if (winner != nullptr) {
    words.push_back(fmt::format("The fastest is {}: {:.2f} times as fast as serial.",
                                winner->schedule.text(), found.speedup(*winner)));
    words.push_back(command_of(found, *winner));
  } else {
    words.emplace_back("No chain is the fastest here.");
  }
  page.blocks.push_back(page::Text{"The block", std::move(words)});
  page.blocks.push_back(speedups(found));
  page.blocks.push_back(operators(found));
  page::Bars lost = losses(found);
  if (!lost.rows.empty()) page.blocks.push_back(std::move(lost));
  page.blocks.push_back(table(found));
  add_timelines(page, "chain", timelines);
  return page;
}

}  // namespace hemiola::report
