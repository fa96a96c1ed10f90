// JSON and CSV of `tune`, and what `tune --bench` writes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "report/bench.h"
#include "report/tuning.h"
#include "report/values/exploration_fields.h"
#include "report/values/json_text.h"
#include "report/values/numbers.h"
#include "report/values/tuning_fields.h"

namespace hemiola::report {
namespace {

using tune::Bucket;
using tune::Tuning;

study::Settings settings_of(const compile::Configuration& one) {
  study::Settings all(one.constants.begin(), one.constants.end());
  if (!one.warps.empty()) all.emplace_back("num_warps", one.warps);
  if (!one.stages.empty()) all.emplace_back("num_stages", one.stages);
  return all;
}

JsonText point_object(const tune::Candidate& one) {
  JsonObject object;
  object.add("point", one.text, "configuration", settings_of(one.configuration), "program",
             one.plan.name, "parameters", one.plan.parameters, "written", one.is_written, "engine",
             one.sampled ? "sampled" : "fluid", "time", BothUnits{one.time()}, "fluid_fs",
             one.fluid ? std::optional(one.fluid->fluid) : std::nullopt, "sampled_fs",
             one.sampled ? std::optional(one.sampled->time) : std::nullopt, "sampled_error",
             one.sampled ? std::optional(one.sampled->error) : std::nullopt, "bound",
             BothUnits{one.bound}, "workgroups", one.workgroups, "buffers_bytes", one.buffers,
             "extra_traffic_bytes", one.extra_traffic, "attribution",
             attribution_object(attribution_of(one)));
  return object.json();
}

JsonText bucket_object(const Bucket& bucket) {
  const JsonText dropped = json_object_of(bucket.dropped, [](JsonObject& object, const auto& one) {
    object.add(name_of(one.first),
               json_object("count", one.second.count, "first", one.second.first));
  });
  const JsonText beside = json_array(bucket.beside, [](const tune::Beside& one) {
    return json_object("name", one.name, "plan", one.plan, "time", BothUnits{one.time});
  });
  const tune::Candidate* winner = bucket.winner();
  JsonObject object;
  object.add("bucket", bucket.name, "sizes", bucket.sizes, "space", bucket.space, "simulations",
             bucket.simulations, "pruned", bucket.pruned, "descents", bucket.descents, "dropped",
             dropped);
  object.on_new_line("     ").add("beside", beside);
  object.on_new_line("     ").add(
      "winner", winner != nullptr ? std::optional(winner - bucket.candidates.data()) : std::nullopt,
      "pareto", json_array(bucket.pareto()), "results",
      json_lines(bucket.candidates, "    ", point_object));
  return object.json();
}

}  // namespace

std::string tuning_json(const std::string& command, const Tuning& tuning) {
  const JsonText dimensions =
      json_object_of(tuning.dimensions, [](JsonObject& object, const tune::Dimension& one) {
        object.add(one.name, json_array(one.values));
      });
  return json_file("schema", "hemiola/1", "command", command, "kernel", tuning.kernel, "plan",
                   tuning.plan, "machine", tuning.machine, "ranks", tuning.ranks, "method",
                   name_of(tuning.method), "budget", tuning.budget, "dimensions", dimensions,
                   "buckets", json_lines(tuning.buckets, "  ", bucket_object));
}

std::string tuning_csv(const Tuning& tuning) {
  std::string text =
      "bucket,point,program,parameters,engine,time_ns,fluid_ns,sampled_ns,bound_ns,workgroups,"
      "buffers_bytes,extra_traffic_bytes,pareto,written\n";
  for (const Bucket& bucket : tuning.buckets) {
    const std::vector<std::size_t> front = bucket.pareto();
    for (std::size_t i = 0; i < bucket.candidates.size(); ++i) {
      const tune::Candidate& one = bucket.candidates[i];
      const bool is_front = std::ranges::find(front, i) != front.end();
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

std::string bench_kernels(const Tuning& tuning, const std::vector<const tune::Candidate*>& chosen) {
  std::size_t number = 0;
  const auto schedule_of = [&](const tune::Candidate* point) {
    std::string name = point->text;
    for (const Bucket& bucket : tuning.buckets) {
      for (const tune::Candidate& one : bucket.candidates)
        if (&one == point) name = bench_name(tuning, bucket, one);
    }
    return json_object("text", name, "file", bench_file(number++), "simulated_us",
                       point->time().us());
  };
  return json_file("schema", "hemiola-bench/3", "operator", JsonText{"null"}, "ranks", tuning.ranks,
                   "machine", tuning.machine, "schedules", json_lines(chosen, "  ", schedule_of));
}

}  // namespace hemiola::report
