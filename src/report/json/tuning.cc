// JSON and CSV of `tune`, and what `tune --bench` writes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "report/tuning.h"
#include "report/values/exploration_fields.h"
#include "report/values/json_lists.h"
#include "report/values/numbers.h"
#include "report/values/tuning_fields.h"

namespace hemiola::report {
namespace {

using tune::Bucket;
using tune::Tuning;

std::string configuration_object(const compile::Configuration& one) {
  study::Settings all(one.constants.begin(), one.constants.end());
  if (!one.warps.empty()) all.emplace_back("num_warps", one.warps);
  if (!one.stages.empty()) all.emplace_back("num_stages", one.stages);
  return settings_object(all);
}

std::string point_object(const tune::Candidate& one) {
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
  const std::string dropped = joined(bucket.dropped, [](const auto& one) {
    return fmt::format("\"{}\": {{\"count\": {}, \"first\": {}}}", name_of(one.first),
                       one.second.count, json_string(one.second.first));
  });
  const std::string beside = joined(bucket.beside, [](const tune::Beside& one) {
    return fmt::format("{{\"name\": \"{}\", \"plan\": \"{}\", {}}}", one.name, one.plan,
                       time_fields("time", one.time));
  });
  const tune::Candidate* winner = bucket.winner();
  std::string text = fmt::format(
      "    {{\"bucket\": {}, \"sizes\": {}, \"space\": {}, \"simulations\": {}, \"pruned\": {}, "
      "\"descents\": {}, \"dropped\": {{{}}},\n     \"beside\": [{}],\n     \"winner\": {}, "
      "\"pareto\": [{}], \"results\": [\n",
      json_string(bucket.name), settings_object(bucket.sizes), bucket.space, bucket.simulations,
      bucket.pruned, bucket.descents, dropped, beside,
      winner != nullptr ? std::to_string(winner - bucket.candidates.data()) : "null",
      fmt::join(bucket.pareto(), ", "));
  return text + json_lines(bucket.candidates, point_object) + "    ]}";
}

}  // namespace

std::string tuning_json(const std::string& command, const Tuning& tuning) {
  const std::string dimensions = joined(tuning.dimensions, [](const tune::Dimension& one) {
    return fmt::format("{}: [{}]", json_string(one.name), joined(one.values, json_string));
  });
  std::string text = fmt::format(
      "{{\n  \"schema\": 1,\n  \"command\": {},\n  \"kernel\": {},\n  \"plan\": {},\n  "
      "\"machine\": {},\n  \"ranks\": {},\n  \"method\": \"{}\",\n  \"budget\": {},\n  "
      "\"dimensions\": {{{}}},\n  \"buckets\": [\n",
      json_string(command), json_string(tuning.kernel), json_string(tuning.plan),
      json_string(tuning.machine), tuning.ranks, name_of(tuning.method), tuning.budget, dimensions);
  return text + json_lines(tuning.buckets, bucket_object) + "  ]\n}\n";
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

std::string bench_kernel_file(std::size_t number) {
  return fmt::format("kernel-{}.py", number + 1);
}

std::string bench_kernels(const Tuning& tuning, const std::vector<const tune::Candidate*>& chosen) {
  std::string text = fmt::format(
      "{{\n  \"schema\": 2,\n  \"operator\": null,\n  \"ranks\": {},\n  \"machine\": {},\n  "
      "\"schedules\": [\n",
      tuning.ranks, json_string(tuning.machine));
  std::size_t number = 0;
  text += json_lines(chosen, [&](const tune::Candidate* point) {
    std::string name = point->text;
    for (const Bucket& bucket : tuning.buckets) {
      for (const tune::Candidate& one : bucket.candidates)
        if (&one == point) name = bench_name(tuning, bucket, one);
    }
    return fmt::format("    {{\"text\": {}, \"kernel\": \"{}\", \"simulated_us\": {}}}",
                       json_string(name), bench_kernel_file(number++),
                       json_number(point->time().us()));
  });
  return text + "  ]\n}\n";
}

}  // namespace hemiola::report
