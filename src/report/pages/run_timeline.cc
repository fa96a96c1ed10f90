#include "report/run_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "report/values/link_history.h"
#include "report/values/node_names.h"
#include "report/values/numbers.h"
#include "sim/result/trace.h"

namespace hemiola::report {
namespace {

using page::Timelines;

/// By rank, then number, then name: the order on the page.
struct LaneKey {
  int rank = 0, number = 0;
  std::string name;
  auto operator<=>(const LaneKey&) const = default;
};

struct LaneSpan {
  Time begin{}, end{};
  std::uint32_t name = 0;
};
using LaneSpans = std::map<LaneKey, std::vector<LaneSpan>>;

/// All links from one node to another.
struct LinkPair {
  std::string name;
  double rate = 0;  ///< bytes per second, of all of them; 0: without a limit
};

std::size_t count_spans(const LaneSpans& lanes) {
  std::size_t count = 0;
  for (const auto& [key, spans] : lanes) count += spans.size();
  return count;
}

/// "put: move" is a move, "wait" a wait.
std::string kind_of_operation(const std::string& name) {
  const std::size_t colon = name.rfind(": ");
  return colon == std::string::npos ? name : name.substr(colon + 2);
}

/// Of a stream: what is neither the way to a kernel nor one of the other items is a kernel.
std::string kind_of_item(const std::string& name) {
  if (name == "launch" || name == "end") return "launch";
  using Item = program::StreamItem::Kind;
  for (const Item item : {Item::engine, Item::host, Item::event_record, Item::event_wait,
                          Item::until, Item::launch_begin, Item::launch_end})
    if (name == sim::name_of(item)) return name;
  return "kernel";
}

}  // namespace

struct RunTimeline::State {
  int ranks = 0;
  LaneSpans streams, engines, workgroups;
  std::map<int, int> stream_of;                               ///< of rank 0: workgroup to stream
  std::map<std::string, std::uint32_t, std::less<>> numbers;  ///< of names
  std::vector<std::string> names;
  std::vector<LinkPair> pairs;
  std::vector<std::size_t> pair_of;  ///< by link
  std::map<int, LinkHistory> histories;

  std::uint32_t number_of(std::string_view name) {
    const auto found = numbers.find(name);
    if (found != numbers.end()) return found->second;
    const auto number = static_cast<std::uint32_t>(names.size());
    numbers.emplace(std::string(name), number);
    names.emplace_back(name);
    return number;
  }
  void add(LaneSpans& lanes, LaneKey key, std::string_view name, Time begin, Time end) {
    if (key.rank < 0 || key.rank >= kRanks || end <= begin) return;
    lanes[std::move(key)].push_back({begin, end, number_of(name)});
  }
  bool before(const LaneSpan& a, const LaneSpan& b) const {
    return std::tie(a.begin, a.end, names[a.name]) < std::tie(b.begin, b.end, names[b.name]);
  }
  /// The longest `room` spans of all lanes, each lane by time.
  LaneSpans longest(const LaneSpans& lanes, std::size_t room) const;
  std::vector<Timelines::Track> tracks(const LaneSpans& lanes, std::string_view word,
                                       std::string (*kind)(const std::string&)) const;
  std::vector<Timelines::Track> link_tracks(std::vector<std::string>& left_out) const;
  LaneSpans chosen_workgroups(std::size_t room) const;
};

LaneSpans RunTimeline::State::longest(const LaneSpans& lanes, std::size_t room) const {
  std::vector<std::pair<const LaneKey*, const LaneSpan*>> all;
  for (const auto& [key, spans] : lanes)
    for (const LaneSpan& span : spans) all.emplace_back(&key, &span);
  const std::size_t kept = std::min(room, all.size());
  std::ranges::sort(all, [&](const auto& a, const auto& b) {
    const Time x = a.second->end - a.second->begin, y = b.second->end - b.second->begin;
    if (x != y) return x > y;
    if (*a.first != *b.first) return *a.first < *b.first;
    return before(*a.second, *b.second);
  });
  LaneSpans chosen;
  for (std::size_t i = 0; i < kept; ++i) chosen[*all[i].first].push_back(*all[i].second);
  for (auto& [key, spans] : chosen) {
    std::ranges::sort(spans, [&](const LaneSpan& a, const LaneSpan& b) { return before(a, b); });
  }
  return chosen;
}

std::vector<Timelines::Track> RunTimeline::State::tracks(
    const LaneSpans& lanes, std::string_view word, std::string (*kind)(const std::string&)) const {
  std::vector<Timelines::Track> tracks;
  for (const auto& [key, spans] : lanes) {
    Timelines::Track& track = tracks.emplace_back();
    track.name = key.name.empty() ? fmt::format("rank {}: {} {}", key.rank, word, key.number)
                                  : fmt::format("rank {}: {}", key.rank, key.name);
    for (const LaneSpan& span : spans)
      track.spans.push_back({names[span.name], span.begin, span.end, kind(names[span.name])});
  }
  return tracks;
}

/// Bins of time, painted by how much of the rate was used; neighbours that look alike are one span.
std::vector<Timelines::Track> RunTimeline::State::link_tracks(
    std::vector<std::string>& left_out) const {
  constexpr std::size_t kMostBins = 96;
  Time last{}, width{};
  for (const auto& [link, history] : histories) {
    last = std::max(last, history.end());
    width = std::max(width, history.width());
  }
  while (width.fs * static_cast<std::int64_t>(kMostBins) < last.fs) width = 2 * width;
  std::vector<std::vector<std::int64_t>> bytes(pairs.size());  // by pair and bin
  std::vector<std::int64_t> sums(pairs.size());
  for (const auto& [link, history] : histories) {
    LinkHistory widened = history;
    widened.widen(width);
    const std::size_t pair = pair_of[index(link)];
    bytes[pair].resize(std::max(bytes[pair].size(), widened.bins().size()));
    for (std::size_t i = 0; i < widened.bins().size(); ++i) {
      bytes[pair][i] += widened.bins()[i].bytes;
      sums[pair] += widened.bins()[i].bytes;
    }
  }
  std::vector<std::size_t> order;
  for (std::size_t pair = 0; pair < pairs.size(); ++pair)
    if (sums[pair] > 0) order.push_back(pair);
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return sums[a] > sums[b]; });
  if (order.size() > kLinks) {
    left_out.push_back(fmt::format("Links: the {} of {} that carried most (equal ones by number).",
                                   kLinks, order.size()));
    order.resize(kLinks);
  }
  std::ranges::sort(order);
  std::vector<Timelines::Track> tracks;
  for (const std::size_t pair : order) {
    Timelines::Track& track = tracks.emplace_back();
    track.name = pairs[pair].name;
    // Neighbours that would look alike, to a twentieth of the rate, are one span.
    const auto use_of = [&](std::int64_t carried, Time length) {
      const double rate = static_cast<double>(carried) / (length.ns() * 1e-9);
      return pairs[pair].rate > 0 ? std::min(1.0, rate / pairs[pair].rate) : 1.0;
    };
    const auto level_of = [&](std::size_t bin) {
      return bytes[pair][bin] == 0 ? -1 : static_cast<int>(20 * use_of(bytes[pair][bin], width));
    };
    for (std::size_t i = 0; i < bytes[pair].size();) {
      std::size_t next = i + 1;
      std::int64_t carried = bytes[pair][i];
      for (; next < bytes[pair].size() && level_of(next) == level_of(i); ++next)
        carried += bytes[pair][next];
      const Time begin = width * static_cast<std::int64_t>(i);
      const Time end = std::min(last, width * static_cast<std::int64_t>(next));
      i = next;
      if (carried == 0 || end <= begin) continue;
      const double use = use_of(carried, end - begin);
      const double rate = static_cast<double>(carried) / (end - begin).ns();
      track.spans.push_back({fmt::format("{:.0f} % used", 100 * use), begin, end, "link use",
                             std::max(0.02, use),
                             fmt::format("{} GB/s on the wire", table_rate(rate))});
    }
  }
  return tracks;
}

/// Whole workgroups of each stream by turns, as long as there is room; one at least.
LaneSpans RunTimeline::State::chosen_workgroups(std::size_t room) const {
  std::map<int, std::vector<LaneSpans::const_iterator>> by_stream;
  for (auto lane = workgroups.begin(); lane != workgroups.end(); ++lane) {
    const auto stream = stream_of.find(lane->first.number);
    by_stream[stream == stream_of.end() ? 0 : stream->second].push_back(lane);
  }
  LaneSpans chosen;
  std::size_t used = 0, most = 0;
  for (const auto& [stream, lanes] : by_stream) most = std::max(most, lanes.size());
  for (std::size_t turn = 0; turn < most; ++turn) {
    for (const auto& [stream, lanes] : by_stream) {
      if (turn >= lanes.size() || chosen.size() == kWorkgroups) continue;
      used += lanes[turn]->second.size();
      if (used > room && !chosen.empty()) return chosen;
      LaneKey key = lanes[turn]->first;
      if (by_stream.size() > 1)
        key.name = fmt::format("stream {}, workgroup {}", stream, key.number);
      chosen.emplace(std::move(key), lanes[turn]->second);
    }
  }
  return chosen;
}

RunTimeline::RunTimeline(const machine::Machine& machine) : state_(std::make_unique<State>()) {
  state_->ranks = machine.ranks();
  std::vector<std::string> names;
  for (const machine::Node& node : machine.nodes) names.push_back(node.name);
  const std::size_t prefix = common_prefix(names);
  std::map<std::pair<machine::NodeId, machine::NodeId>, std::size_t> known;
  for (std::size_t link = 0; link < machine.links.size(); ++link) {
    const machine::Link& one = machine.links[link];
    const auto [found, is_new] = known.emplace(std::pair(one.from, one.to), state_->pairs.size());
    const auto name = [&](machine::NodeId node) { return names[index(node)].substr(prefix); };
    if (is_new) state_->pairs.push_back({name(one.from) + " \u2192 " + name(one.to), 0});
    const auto number = static_cast<machine::LinkId>(link);
    state_->pairs[found->second].rate +=
        static_cast<double>(machine.class_of(number).bandwidth.bytes_per_second);
    state_->pair_of.push_back(found->second);
  }
}

RunTimeline::~RunTimeline() = default;

void RunTimeline::stream(int rank, int stream, std::string_view name, Time begin, Time end) {
  state_->add(state_->streams, {rank, stream, ""}, name, begin, end);
}

void RunTimeline::workgroup(int rank, int stream, int workgroup, Time, Time) {
  if (rank == 0) state_->stream_of[workgroup] = stream;
}

void RunTimeline::operation(int rank, int workgroup, std::string_view name, Time begin, Time end,
                            const sim::FlowEnds&) {
  if (rank != 0) return;
  state_->add(state_->workgroups, {rank, workgroup, ""}, name, begin, end);
}

void RunTimeline::link(int link, std::int64_t wire_bytes, int queue, Time begin, Time end) {
  state_->histories[link].add(begin, end, wire_bytes, queue);
}

void RunTimeline::engine(int rank, std::string_view engine, std::string_view name, Time begin,
                         Time end, const sim::FlowEnds&) {
  state_->add(state_->engines, {rank, 0, std::string(engine)}, name, begin, end);
}

void RunTimeline::request(int, std::string_view, std::string_view, Time, Time) {}

bool RunTimeline::wants_requests(Time) const {
  return false;
}

RunTimeline::Panels RunTimeline::panels() const {
  Panels made;
  std::size_t room = kSpans;
  const auto keep = [&](const LaneSpans& lanes, std::size_t most, std::string_view what) {
    const std::size_t all = count_spans(lanes), kept = std::min({all, most, room});
    if (kept < all)
      made.left_out.push_back(fmt::format("{}: the {} longest of {} spans.", what, kept, all));
    room -= kept;
    return state_->longest(lanes, kept);
  };
  const auto add = [&](std::string name, std::vector<Timelines::Track> tracks) {
    if (!tracks.empty()) made.panels.push_back({std::move(name), std::move(tracks)});
  };
  if (state_->ranks > kRanks)
    made.left_out.push_back(fmt::format("Ranks: the first {} of {}.", kRanks, state_->ranks));
  const LaneSpans streams = keep(state_->streams, 1200, "Streams");
  const LaneSpans engines = keep(state_->engines, 2000, "Engines");
  add("streams", state_->tracks(streams, "stream", kind_of_item));
  add("engines", state_->tracks(engines, "engine", [](const std::string& name) { return name; }));
  const std::vector<Timelines::Track> links = state_->link_tracks(made.left_out);
  for (const Timelines::Track& track : links) room -= std::min(room, track.spans.size());

  const LaneSpans shown = state_->chosen_workgroups(room);
  const std::size_t groups = state_->workgroups.size();
  if (shown.size() < groups) {
    made.left_out.push_back(fmt::format(
        "Workgroups: {} of the {} of rank 0, the first of each stream.", shown.size(), groups));
  } else if (!shown.empty() && state_->ranks > 1) {
    made.left_out.push_back("Workgroups: those of rank 0.");
  }
  add("operations",
      state_->tracks(keep(shown, room, "Operations"), "workgroup", kind_of_operation));
  add("links (the stronger the colour, the more of the rate is used)", links);
  return made;
}

}  // namespace hemiola::report
