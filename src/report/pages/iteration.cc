// The page of an iteration.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/iteration.h"
#include "report/values/numbers.h"

namespace hemiola::report {
namespace {

using workload::ClassTime;
using workload::IterationOutcome;
using workload::Workload;

constexpr std::size_t kSpansOfPage = 5000;
constexpr std::size_t kClassesOfPage = 8;

double ms(Time time) {
  return static_cast<double>(time.fs) * 1e-12;
}

std::string kind_of(const workload::Node& node) {
  return node.kind == workload::NodeKind::compute ? "compute" : std::string(name_of(node.kind));
}

/// Of each class, where its time goes.
page::Bars where_time_goes(const IterationOutcome& outcome) {
  page::Bars bars{.heading = "Where the time goes", .unit = "ms"};
  bars.note =
      "Communication is exposed while nothing is computed. Waiting: a peer has not come to a call. "
      "Idle: nothing is ready, a bubble.";
  for (std::size_t c = 0; c < outcome.result.classes.size(); ++c) {
    const ClassTime& times = outcome.result.classes[c];
    page::Bars::Row row{.label = outcome.workload->classes[c].name};
    row.parts.push_back({"compute", ms(times.compute)});
    for (const auto& [key, call] : times.calls)
      if (call.exposed.fs > 0)
        row.parts.push_back({"exposed: " + call_name(*outcome.workload, key), ms(call.exposed)});
    row.parts.push_back({"copies", ms(times.memory)});
    row.parts.push_back({"waiting", ms(times.waiting())});
    row.parts.push_back({"host", ms(times.host)});
    row.parts.push_back({"idle", ms(times.idle)});
    bars.rows.push_back(std::move(row));
  }
  return bars;
}

page::Bars path_bars(const IterationOutcome& outcome) {
  const std::vector<workload::PathName> names = outcome.path_by_name();
  page::Bars bars{.heading = "The critical path, by node", .unit = "ms"};
  bars.note = "Each node of the path began when the one before it ended.";
  for (std::size_t i = 0; i < std::min<std::size_t>(16, names.size()); ++i)
    bars.rows.push_back({.label = names[i].name, .value = ms(names[i].time)});
  return bars;
}

page::Table calls_table(const IterationOutcome& outcome) {
  const Workload& workload = *outcome.workload;
  page::Table table{.heading = "Communication"};
  table.columns = page::columns_of(
      {"call"}, {"ranks", "groups", "calls", "size (B)", "alone (us)", "in all (ms)"});
  for (const workload::CallRow& row : outcome.calls) {
    table.rows.push_back({call_name(workload, row.kind, row.work), std::to_string(row.group),
                          std::to_string(row.groups), std::to_string(row.calls),
                          std::to_string(call_of(workload, row.kind, row.work).bytes),
                          table_us(row.alone),
                          fmt::format("{:.3f}", ms(row.alone) * static_cast<double>(row.calls) /
                                                    std::max(1, row.groups))});
  }
  return table;
}

/// A track for each stream of a class; of more spans than there is room for the longest stay.
page::Timelines timelines(const IterationOutcome& outcome) {
  const Workload& workload = *outcome.workload;
  page::Timelines block{.heading = "Ranks over time"};
  const std::size_t classes = std::min(kClassesOfPage, workload.classes.size());
  std::size_t left_out = 0;
  for (std::size_t c = 0; c < classes; ++c) {
    const auto& nodes = workload.classes[c].trace->nodes;
    const auto& times = outcome.result.nodes[c];
    std::vector<std::size_t> shown;
    for (std::size_t n = 0; n < nodes.size(); ++n)
      if (times[n].end > times[n].begin) shown.push_back(n);
    const std::size_t room = kSpansOfPage / classes;
    if (shown.size() > room) {
      left_out += shown.size() - room;
      std::ranges::stable_sort(shown, [&](std::size_t a, std::size_t b) {
        return times[a].end - times[a].begin > times[b].end - times[b].begin;
      });
      shown.resize(room);
      std::ranges::sort(shown);
    }
    std::map<std::uint16_t, page::Timelines::Track> tracks;
    for (const std::size_t n : shown) {
      auto& track = tracks[nodes[n].stream];
      track.name = workload.streams[nodes[n].stream].name;
      track.spans.push_back({.name = workload.names[nodes[n].name],
                             .begin = times[n].begin,
                             .end = times[n].end,
                             .kind = kind_of(nodes[n])});
    }
    page::Timelines::Panel panel{.name = workload.classes[c].name};
    for (auto& [stream, track] : tracks) panel.tracks.push_back(std::move(track));
    block.panels.push_back(std::move(panel));
  }
  if (left_out > 0)
    block.note =
        fmt::format("The longest {} spans; {} shorter ones are left out. ", kSpansOfPage, left_out);
  if (classes < workload.classes.size())
    block.note +=
        fmt::format("The first {} of {} classes of ranks.", classes, workload.classes.size());
  return block;
}

/// Rows are classes of links by class of ranks, columns the time.
page::HeatMap link_map(const IterationOutcome& outcome) {
  page::HeatMap map{.heading = "How busy the links are",
                    .note =
                        "Share of the rate of a GPU's links of a class that is used: the mean "
                        "over the ranks of a class and both directions, over each piece of "
                        "time. Links of the network count as those of all GPUs, evenly.",
                    .row_title = "",
                    .column_title = "ms",
                    .unit = "%"};
  const double bin = ms(outcome.result.time) / static_cast<double>(workload::kLinkBins);
  for (std::size_t b = 0; b < workload::kLinkBins; ++b)
    map.columns.push_back(fmt::format("{:.{}f}", static_cast<double>(b) * bin, bin < 0.01 ? 4 : 2));
  for (const workload::LinkShares& row : outcome.links) {
    if (index(row.rank_class) >= kClassesOfPage) break;
    const std::string& name = outcome.workload->classes[index(row.rank_class)].name;
    map.rows.push_back(fmt::format("{}: {}", name, row.link_class));
    std::vector<std::optional<double>>& values = map.values.emplace_back();
    for (const double share : row.shares) values.emplace_back(100 * share);
  }
  if (kClassesOfPage < outcome.workload->classes.size())
    map.note += fmt::format(" The first {} of {} classes of ranks.", kClassesOfPage,
                            outcome.workload->classes.size());
  return map;
}

}  // namespace

page::Page iteration_page(const IterationRun& run, const IterationOutcome& outcome) {
  page::Page page{.title = outcome.workload->name, .subtitle = run.command};
  page.facts = {{"machine", outcome.machine->name},
                {"ranks", std::to_string(outcome.workload->ranks)},
                {"time", table_ms(outcome.result.time) + " ms"},
                {"calls by", run.engine}};
  if (outcome.recorded.fs > 0)
    page.facts.push_back({"recorded", table_ms(outcome.recorded) + " ms"});
  if (outcome.workload->recorded_on)
    page.facts.push_back({"recorded on", outcome.workload->recorded_on->name});
  if (outcome.workload->facts) {
    page.facts.push_back(
        {"tokens/s per GPU", fmt::format("{:.1f}", outcome.tokens_per_second_and_gpu())});
    page.facts.push_back({"MFU", fmt::format("{:.1f} %", 100 * outcome.model_flop_utilisation())});
  }
  page.blocks.push_back(where_time_goes(outcome));
  page.blocks.push_back(timelines(outcome));
  if (!outcome.links.empty()) page.blocks.push_back(link_map(outcome));
  page.blocks.push_back(path_bars(outcome));
  if (!outcome.calls.empty()) page.blocks.push_back(calls_table(outcome));
  return page;
}

}  // namespace hemiola::report
