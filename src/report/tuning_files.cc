// JSON, CSV and the page of `tune`, and what `tune --bench` writes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "report/exploration_fields.h"
#include "report/numbers.h"
#include "report/tuning.h"
#include "report/tuning_fields.h"

namespace hemiola::report {
namespace {

using tune::Bucket;
using tune::Candidate;
using tune::Tuning;

std::string configuration_object(const compile::Configuration& one) {
  study::Settings all(one.constants.begin(), one.constants.end());
  if (!one.warps.empty()) all.emplace_back("num_warps", one.warps);
  if (!one.stages.empty()) all.emplace_back("num_stages", one.stages);
  return settings_object(all);
}

/// By the engine that timed it last.
const sim::Attribution& attribution_of(const Candidate& one) {
  return one.sampled ? one.sampled->attribution : one.fluid->attribution;
}

std::string point_object(const Candidate& one) {
  return fmt::format(
      "      {{\"point\": {}, \"configuration\": {}, \"program\": {}, \"parameters\": {}, "
      "\"written\": {}, \"engine\": \"{}\", {}, \"fluid_fs\": {}, \"sampled_fs\": {}, "
      "\"sampled_error\": {}, {}, \"workgroups\": {}, \"buffers_bytes\": {}, "
      "\"extra_traffic_bytes\": {}, \"attribution\": {}}}",
      json_string(one.text), configuration_object(one.configuration), json_string(one.plan.name),
      settings_object(one.plan.parameters), one.is_written, one.sampled ? "sampled" : "fluid",
      time_fields("time", one.time()), one.fluid ? std::to_string(one.fluid->fluid.fs) : "null",
      one.sampled ? std::to_string(one.sampled->time.fs) : "null",
      one.sampled ? json_number(one.sampled->error) : "null", time_fields("bound", one.bound),
      one.workgroups, one.buffers.count, one.extra_traffic.count,
      attribution_object(attribution_of(one)));
}

std::string bucket_object(const Bucket& bucket) {
  std::string dropped = "{";
  for (const auto& [why, points] : bucket.dropped)
    dropped +=
        fmt::format("{}\"{}\": {{\"count\": {}, \"first\": {}}}", dropped.size() > 1 ? ", " : "",
                    name_of(why), points.count, json_string(points.first));
  const Candidate* winner = bucket.winner();
  std::string text = fmt::format(
      "    {{\"bucket\": {}, \"sizes\": {}, \"space\": {}, \"simulations\": {}, \"pruned\": {}, "
      "\"descents\": {}, \"dropped\": {}}},\n     \"winner\": {}, \"pareto\": [{}], "
      "\"results\": [\n",
      json_string(bucket.name), settings_object(bucket.sizes), bucket.space, bucket.simulations,
      bucket.pruned, bucket.descents, dropped,
      winner != nullptr ? std::to_string(winner - bucket.candidates.data()) : "null",
      fmt::join(bucket.pareto(), ", "));
  for (std::size_t i = 0; i < bucket.candidates.size(); ++i)
    text += point_object(bucket.candidates[i]) + (i + 1 < bucket.candidates.size() ? ",\n" : "\n");
  return text + "    ]}";
}

page::Table table_of(const Bucket& bucket) {
  page::Table table{.heading = bucket.name,
                    .note =
                        "All points that were simulated, the fastest first. Front: no other "
                        "one is as fast with as few workgroups and buffers.",
                    .columns = {{"point", false},
                                {"time (us)", true},
                                {"slower (%)", true},
                                {"workgroups", true},
                                {"buffers (MiB)", true},
                                {"engine", false},
                                {"front", false},
                                {"loses (us)", false}},
                    .rows = {}};
  const std::vector<std::size_t> front = bucket.pareto();
  for (std::size_t i = 0; i < bucket.candidates.size(); ++i) {
    const Candidate& one = bucket.candidates[i];
    const bool is_front = std::find(front.begin(), front.end(), i) != front.end();
    table.rows.push_back({one.text, table_us(one.time()), slower(bucket, one),
                          std::to_string(one.workgroups), mebibytes(one.buffers),
                          one.sampled ? "sampled" : "fluid", is_front ? "yes" : "",
                          loses(bucket, one)});
  }
  return table;
}

/// Where the time of the shown points goes.
page::Bars bars_of(const Bucket& bucket) {
  page::Bars bars{.heading = "Where the time goes, " + bucket.name,
                  .note = "Of the rank that ends last, by the engine that timed it last.",
                  .unit = "us"};
  for (const std::size_t i : shown_candidates(bucket)) {
    const Candidate& one = bucket.candidates[i];
    const sim::Attribution& attribution = attribution_of(one);
    page::Bars::Row row{.label = one.text, .parts = {}};
    for (const sim::Reason reason : by_share(attribution))
      add_loss(row, sim::name_of(reason), attribution[static_cast<std::size_t>(reason)]);
    bars.rows.push_back(std::move(row));
  }
  return bars;
}

}  // namespace

std::string tuning_json(const std::string& command, const Tuning& tuning) {
  std::string dimensions = "{";
  for (const tune::Dimension& one : tuning.dimensions) {
    std::vector<std::string> values;
    for (const std::string& value : one.values) values.push_back(json_string(value));
    dimensions += fmt::format("{}{}: [{}]", dimensions.size() > 1 ? ", " : "",
                              json_string(one.name), fmt::join(values, ", "));
  }
  std::string text = fmt::format(
      "{{\n  \"schema\": 1,\n  \"command\": {},\n  \"kernel\": {},\n  \"plan\": {},\n  "
      "\"machine\": {},\n  \"ranks\": {},\n  \"method\": \"{}\",\n  \"budget\": {},\n  "
      "\"dimensions\": {}}},\n  \"buckets\": [\n",
      json_string(command), json_string(tuning.kernel), json_string(tuning.plan),
      json_string(tuning.machine), tuning.ranks, name_of(tuning.method), tuning.budget, dimensions);
  for (std::size_t i = 0; i < tuning.buckets.size(); ++i)
    text += bucket_object(tuning.buckets[i]) + (i + 1 < tuning.buckets.size() ? ",\n" : "\n");
  return text + "  ]\n}\n";
}

std::string tuning_csv(const Tuning& tuning) {
  std::string text =
      "bucket,point,program,parameters,engine,time_ns,fluid_ns,sampled_ns,bound_ns,workgroups,"
      "buffers_bytes,extra_traffic_bytes,pareto,written\n";
  for (const Bucket& bucket : tuning.buckets) {
    const std::vector<std::size_t> front = bucket.pareto();
    for (std::size_t i = 0; i < bucket.candidates.size(); ++i) {
      const Candidate& one = bucket.candidates[i];
      const bool is_front = std::find(front.begin(), front.end(), i) != front.end();
      text += fmt::format(
          "{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", csv_cell(bucket.name), csv_cell(one.text),
          one.plan.name, csv_cell(study::to_text(one.plan.parameters)),
          one.sampled ? "sampled" : "fluid", exact_ns(one.time()),
          one.fluid ? exact_ns(one.fluid->fluid) : "",
          one.sampled ? exact_ns(one.sampled->time) : "", exact_ns(one.bound), one.workgroups,
          one.buffers.count, one.extra_traffic.count, is_front ? 1 : 0, one.is_written ? 1 : 0);
    }
  }
  return text;
}

page::Page tuning_page(const std::string& command, const Tuning& tuning,
                       const std::vector<RunTimeline::Panels>& timelines) {
  page::Page page{.title = fmt::format("{} in {}", tuning.plan, tuning.kernel),
                  .subtitle = command};
  page.facts = {{"machine", tuning.machine},
                {"ranks", std::to_string(tuning.ranks)},
                {"search", std::string(name_of(tuning.method))}};
  std::vector<std::string> words;
  for (const Bucket& bucket : tuning.buckets) {
    if (const Candidate* winner = bucket.winner()) {
      words.push_back(
          fmt::format("{}: {} us with {}.", bucket.name, table_us(winner->time()), winner->text));
      words.push_back(command_of(tuning, *winner));
    }
  }
  page.blocks.push_back(page::Text{"The fastest", std::move(words)});
  page::Timelines all{.heading = "What happens when",
                      .note = "The fastest of each size, as fluid simulated it.",
                      .panels = {}};
  for (std::size_t i = 0; i < tuning.buckets.size(); ++i) {
    page.blocks.push_back(bars_of(tuning.buckets[i]));
    page.blocks.push_back(table_of(tuning.buckets[i]));
    if (i >= timelines.size()) continue;
    for (page::Timelines::Panel panel : timelines[i].panels) {
      panel.name = tuning.buckets[i].name + ": " + panel.name;
      all.panels.push_back(std::move(panel));
    }
  }
  if (!all.panels.empty()) page.blocks.push_back(std::move(all));
  return page;
}

std::string bench_kernel_file(std::size_t number) {
  return fmt::format("kernel-{}.py", number + 1);
}

std::string bench_kernels(const Tuning& tuning, const std::vector<const Candidate*>& chosen) {
  std::string text = fmt::format(
      "{{\n  \"schema\": 2,\n  \"operator\": null,\n  \"ranks\": {},\n  \"machine\": {},\n  "
      "\"schedules\": [\n",
      tuning.ranks, json_string(tuning.machine));
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    std::string name = chosen[i]->text;
    for (const Bucket& bucket : tuning.buckets) {
      for (const Candidate& one : bucket.candidates)
        if (&one == chosen[i]) name = bench_name(tuning, bucket, one);
    }
    text += fmt::format("    {{\"text\": {}, \"kernel\": \"{}\", \"simulated_us\": {}}}{}\n",
                        json_string(name), bench_kernel_file(i),
                        json_number(chosen[i]->time().us()), i + 1 < chosen.size() ? "," : "");
  }
  return text + "  ]\n}\n";
}

}  // namespace hemiola::report
