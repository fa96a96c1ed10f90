// The object of --json.
#include "report/report.h"
#include "report/values/evidence_json.h"
#include "report/values/json_text.h"
#include "report/values/numbers.h"
#include "sim/models_version.h"

namespace hemiola::report {
namespace {

const std::string kIndent = "      ";  // of a result's fields

JsonText link_use_object(const sim::LinkUse& link) {
  return json_object("from", link.from, "to", link.to, "payload_bytes", link.payload_bytes,
                     "wire_bytes", link.wire_bytes, "busy_fs", link.busy, "max_queue",
                     link.max_queue);
}

/// Reasons in the order of the enum.
JsonText reasons_object(const sim::Attribution& spent) {
  JsonObject object;
  for (std::size_t reason = 0; reason < spent.size(); ++reason)
    object.add(sim::name_of(static_cast<sim::Reason>(reason)), spent[reason]);
  return object.json();
}

/// Of jobs.
JsonText launch_result_object(const sim::LaunchResult& launch) {
  JsonObject object;
  object.add("name", launch.name, "program", launch.program, "ranks", json_array(launch.ranks),
             "size_bytes", launch.size, "begin_fs", launch.begin, "end_fs", launch.end, "time_ns",
             JsonText{exact_ns(launch.end - launch.begin)}, "latest_rank", launch.latest);
  object.on_new_line("         ").add("attribution", reasons_object(launch.attribution));
  if (launch.alone.fs > 0)
    object.on_new_line("         ")
        .add("alone_fs", launch.alone, "alone_attribution",
             reasons_object(launch.alone_attribution), "slowed_by",
             json_array(launch.slowed_by, [](const auto& cause) {
               return json_object("launch", cause.launch, "overlap_fs", cause.overlap, "fs",
                                  cause.share);
             }));
  return object.json();
}

/// Of replays: what the reason `peer` is made of.
JsonText peer_wait_object(const sim::PeerWait& wait) {
  JsonObject object;
  object.add("rank", wait.rank, "peer", wait.peer, "kind", sim::name_of(wait.kind), "fs", wait.time,
             "waits", wait.waits);
  if (!wait.buffer.empty()) object.add("buffer", wait.buffer);
  if (wait.offset >= 0) object.add("offset", wait.offset);
  if (!wait.name.empty()) object.add("name", wait.name);
  return object.json();
}

JsonText result_object(const Run& run, const sim::Result& result, bool volatile_fields) {
  JsonObject object(kIndent), counters(kIndent + "  ");
  object.add("size_bytes", result.size);
  if (!result.settings.empty()) object.add("settings", result.settings);
  object.add("time_fs", result.time, "time_ns", JsonText{exact_ns(result.time)}, "algbw_GBps",
             result.algbw_GBps, "busbw_GBps", result.busbw_GBps, "bound_ns",
             json_object("bandwidth", JsonText{exact_ns(result.bound.bandwidth)}, "latency",
                         JsonText{exact_ns(result.bound.latency)}),
             "ideal_ns", JsonText{exact_ns(result.ideal)}, "checked", result.checked, "evidence",
             evidence_json(run, result));
  if (result.sampled.windows > 0)
    object.add("sampled", json_object("share", result.sampled.share, "windows",
                                      result.sampled.windows, "error", result.sampled.error));
  object.add("line_hops", result.line_hops);
  if (volatile_fields)
    object.add("visited_hops", result.visited_hops, "simulated_ranks", result.simulated_ranks,
               "wall_s", result.wall_s, "peak_rss_bytes", result.peak_rss_bytes);
  for (const auto& [name, count] : result.counters) counters.add(name, count);
  std::size_t rank = 0;
  object.add("counters", counters.json(), "links",
             json_list(result.links, kIndent, link_use_object), "attribution",
             json_list(result.attribution, kIndent, [&](const auto& spent) {
               return json_object("rank", rank++, "fs", reasons_object(spent));
             }));
  if (!result.launches.empty())
    object.add("launches", json_list(result.launches, kIndent, launch_result_object));
  if (result.answers.empty()) return object.json();
  object.add("answers", result.answers);
  if (!result.live_because.empty()) object.add("live_because", result.live_because);
  object.add("peer_waits", json_list(result.peer_waits, kIndent, peer_wait_object));
  return object.json();
}

}  // namespace

std::string to_json(const Run& run, const std::vector<sim::Result>& results, bool volatile_fields) {
  JsonObject object("  ");
  object.add("schema", "hemiola/1", "models", sim::kModelsVersion, "command", run.command,
             "machine", run.machine, "program", run.program);
  if (run.bound && run.bound->linked() == nullptr)  // a job has one for each launch
    object.add("executor", run.bound->program().executed_by.name);
  object.add("engine", run.engine, "results", json_list(results, "  ", [&](const auto& result) {
               return result_object(run, result, volatile_fields);
             }));
  return object.json().text + "\n";
}

}  // namespace hemiola::report
