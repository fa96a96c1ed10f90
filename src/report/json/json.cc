// The object of --json. Written as text and not through a JSON library, because times are exact
// decimals that no double holds.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "report/report.h"
#include "report/values/json_lists.h"
#include "report/values/numbers.h"
#include "sim/models_version.h"

namespace hemiola::report {
namespace {

const std::string kIndent = "      ";  // of a result's fields

std::string counters(const sim::Result& result) {
  return json_list(
      result.counters, kIndent,
      [](const auto& one) { return fmt::format("{}: {}", json_string(one.first), one.second); },
      "{}");
}

std::string links(const sim::Result& result) {
  return json_list(result.links, kIndent, [](const sim::LinkUse& link) {
    return fmt::format(
        "{{\"from\": {}, \"to\": {}, \"payload_bytes\": {}, \"wire_bytes\": {}, "
        "\"busy_fs\": {}, \"max_queue\": {}}}",
        json_string(link.from), json_string(link.to), link.payload_bytes, link.wire_bytes,
        link.busy.fs, link.max_queue);
  });
}

std::string one_attribution(const sim::Attribution& spent) {
  std::size_t reason = 0;
  return "{" +
         joined(spent,
                [&](std::int64_t fs) {
                  return fmt::format("\"{}\": {}", sim::name_of(static_cast<sim::Reason>(reason++)),
                                     fs);
                }) +
         "}";
}

std::string attribution(const sim::Result& result) {
  std::size_t rank = 0;
  return json_list(result.attribution, kIndent, [&](const sim::Attribution& spent) {
    return fmt::format("{{\"rank\": {}, \"fs\": {}}}", rank++, one_attribution(spent));
  });
}

std::string slowed_by(const sim::LaunchResult& launch) {
  return joined(launch.slowed_by, [](const auto& cause) {
    return fmt::format("{{\"launch\": {}, \"overlap_fs\": {}, \"fs\": {}}}",
                       json_string(cause.launch), cause.overlap.fs, cause.share.fs);
  });
}

/// Of jobs.
std::string launches(const sim::Result& result) {
  return json_list(result.launches, kIndent, [](const sim::LaunchResult& launch) {
    std::string text = fmt::format(
        "{{\"name\": {}, \"program\": {}, \"ranks\": [{}], \"size_bytes\": {}, "
        "\"begin_fs\": {}, \"end_fs\": {}, \"time_ns\": {}, \"latest_rank\": {},\n         "
        "\"attribution\": {}",
        json_string(launch.name), json_string(launch.program), fmt::join(launch.ranks, ", "),
        launch.size.count, launch.begin.fs, launch.end.fs, exact_ns(launch.end - launch.begin),
        launch.latest, one_attribution(launch.attribution));
    if (launch.alone.fs > 0)
      text += fmt::format(
          ",\n         \"alone_fs\": {}, \"alone_attribution\": {}, \"slowed_by\": [{}]",
          launch.alone.fs, one_attribution(launch.alone_attribution), slowed_by(launch));
    return text + "}";
  });
}

/// Of replays: what the reason `peer` is made of.
std::string peer_waits(const sim::Result& result) {
  return json_list(result.peer_waits, kIndent, [](const sim::PeerWait& wait) {
    std::string text = fmt::format(
        "{{\"rank\": {}, \"peer\": {}, \"kind\": {}, \"fs\": {}, \"waits\": {}", wait.rank,
        wait.peer, json_string(sim::name_of(wait.kind)), wait.time.fs, wait.waits);
    if (!wait.buffer.empty()) text += fmt::format(", \"buffer\": {}", json_string(wait.buffer));
    if (wait.offset >= 0) text += fmt::format(", \"offset\": {}", wait.offset);
    if (!wait.name.empty()) text += fmt::format(", \"name\": {}", json_string(wait.name));
    return text + "}";
  });
}

std::string result_object(const sim::Result& result, bool volatile_fields) {
  std::string text = "{";
  const auto field = [&](std::string_view key, const std::string& value) {
    text += fmt::format("{}\n      \"{}\": {}", text.back() == '{' ? "" : ",", key, value);
  };
  field("size_bytes", std::to_string(result.size.count));
  if (!result.settings.empty()) field("settings", json_object(result.settings, json_string));
  field("time_fs", std::to_string(result.time.fs));
  field("time_ns", exact_ns(result.time));
  field("algbw_GBps", json_number(result.algbw_GBps));
  field("busbw_GBps", json_number(result.busbw_GBps));
  field("bound_ns", fmt::format("{{\"bandwidth\": {}, \"latency\": {}}}",
                                exact_ns(result.bound.bandwidth), exact_ns(result.bound.latency)));
  field("ideal_ns", exact_ns(result.ideal));
  field("checked", json_string(result.checked));
  if (result.sampled.windows > 0)
    field("sampled", fmt::format("{{\"share\": {}, \"windows\": {}, \"error\": {}}}",
                                 json_number(result.sampled.share), result.sampled.windows,
                                 json_number(result.sampled.error)));
  field("line_hops", std::to_string(result.line_hops));
  if (volatile_fields) {
    field("visited_hops", std::to_string(result.visited_hops));
    field("simulated_ranks", std::to_string(result.simulated_ranks));
    field("wall_s", json_number(result.wall_s));
    field("peak_rss_bytes", std::to_string(result.peak_rss_bytes));
  }
  field("counters", counters(result));
  field("links", links(result));
  field("attribution", attribution(result));
  if (!result.launches.empty()) field("launches", launches(result));
  if (result.answers.empty()) return text + "\n    }";
  field("answers", json_string(result.answers));
  if (!result.live_because.empty()) field("live_because", json_string(result.live_because));
  field("peer_waits", peer_waits(result));
  return text + "\n    }";
}

}  // namespace

std::string to_json(const Run& run, const std::vector<sim::Result>& results, bool volatile_fields) {
  std::string executor;  // a job has one for each launch
  if (run.bound && run.bound->linked() == nullptr)
    executor =
        fmt::format(",\n  \"executor\": {}", json_string(run.bound->program().executed_by.name));
  return fmt::format(
      "{{\n  \"schema\": \"hemiola/1\",\n  \"models\": {},\n  \"command\": {},\n"
      "  \"machine\": {},\n  \"program\": {}{},\n  \"engine\": {},\n  \"results\": {}\n}}\n",
      sim::kModelsVersion, json_string(run.command), json_string(run.machine),
      json_string(run.program), executor, json_string(run.engine),
      json_list(results, "  ",
                [&](const sim::Result& result) { return result_object(result, volatile_fields); }));
}

}  // namespace hemiola::report
