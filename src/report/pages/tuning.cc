// The page of `tune`.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "report/tuning.h"
#include "report/values/exploration_fields.h"
#include "report/values/numbers.h"
#include "report/values/tuning_fields.h"

namespace hemiola::report {
namespace {

using tune::Bucket;
using tune::Tuning;

page::Table table_of(const Bucket& bucket) {
  page::Table table{.heading = bucket.name,
                    .note =
                        "All points that were simulated, the fastest first. Front: no other "
                        "one is as fast with as few workgroups and buffers.",
                    .columns = page::columns_of(
                        {"point"}, {"time (us)", "slower (%)", "workgroups", "buffers (MiB)"},
                        {"engine", "front", "loses (us)"})};
  const std::vector<std::size_t> front = bucket.pareto();
  for (std::size_t i = 0; i < bucket.candidates.size(); ++i) {
    const tune::Candidate& one = bucket.candidates[i];
    const bool is_front = std::ranges::find(front, i) != front.end();
    table.rows.push_back({one.text, table_us(one.time()), slower(bucket, one),
                          std::to_string(one.workgroups), mebibytes(one.buffers),
                          one.sampled ? "sampled" : "fluid", is_front ? "yes" : "",
                          loses(bucket, one)});
  }
  for (const tune::Beside& one : bucket.beside)
    table.rows.push_back({one.name + ": " + one.plan, table_us(one.time), slower(bucket, one.time),
                          "", "", bucket.candidates.front().sampled ? "sampled" : "fluid", "", ""});
  return table;
}

/// Where the time of the shown points goes.
page::Bars bars_of(const Bucket& bucket) {
  page::Bars bars{.heading = "Where the time goes, " + bucket.name,
                  .note = "Of the rank that ends last, by the engine that timed it last.",
                  .unit = "us"};
  for (const std::size_t i : shown_candidates(bucket)) {
    const tune::Candidate& one = bucket.candidates[i];
    const sim::Attribution& attribution = attribution_of(one);
    page::Bars::Row row{.label = one.text};
    for (const sim::Reason reason : by_share(attribution))
      add_loss(row, sim::name_of(reason), attribution[index(reason)]);
    bars.rows.push_back(std::move(row));
  }
  return bars;
}

}  // namespace

page::Page tuning_page(const std::string& command, const Tuning& tuning,
                       const std::vector<RunTimeline::Panels>& timelines) {
  page::Page page{.title = fmt::format("{} in {}", tuning.plan, tuning.kernel),
                  .subtitle = command};
  page.facts = {{"machine", tuning.machine},
                {"ranks", std::to_string(tuning.ranks)},
                {"search", std::string(name_of(tuning.method))}};
  std::vector<std::string> words;
  for (const Bucket& bucket : tuning.buckets) {
    if (const tune::Candidate* winner = bucket.winner()) {
      words.push_back(
          fmt::format("{}: {} us with {}.", bucket.name, table_us(winner->time()), winner->text));
      words.push_back(command_of(tuning, bucket, *winner));
    }
  }
  page.blocks.push_back(page::Text{"The fastest", std::move(words)});
  page::Timelines all{.heading = "What happens when",
                      .note = "The fastest of each size, as fluid simulates its plan."};
  for (std::size_t i = 0; i < tuning.buckets.size(); ++i) {
    page.blocks.push_back(bars_of(tuning.buckets[i]));
    page.blocks.push_back(table_of(tuning.buckets[i]));
    if (i >= timelines.size()) continue;
    add_panels(all, tuning.buckets[i].name, timelines[i]);
  }
  if (!all.panels.empty()) page.blocks.push_back(std::move(all));
  return page;
}

}  // namespace hemiola::report
