// The host of a rank and its streams, in every engine: repetitions of the program, the items of a
// stream one after the other, events, and what passes between launches.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "program/walk/cursor.h"
#include "sim/model/streams.h"
#include "sim/result/latency_breakdown.h"
#include "sim/result/launches.h"

namespace hemiola::sim {

inline LatencyBreakdown charged(LatencyBreakdown spent, Reason reason, std::int64_t fs) {
  spent.charge(reason, fs);
  return spent;
}
inline Attribution charged(Attribution spent, Reason reason, std::int64_t fs) {
  spent[index(reason)] += fs;
  return spent;
}
inline Attribution attribution_of(const LatencyBreakdown& spent) {
  return spent.attribution();
}
inline const Attribution& attribution_of(const Attribution& spent) {
  return spent;
}

/// The host of an engine's ranks. `Spent`: where the time of a stream went. A repetition starts all
/// streams of a rank together, as a graph launch does. `rank` is a number in the engine's
/// `ranks_`: a rank, or a class of ranks that do the same, of which first_rank() is one. The engine
/// is a friend and has:
/// * ranks_ with a StreamPlace for each of `streams`, and events, launched, started, ...;
///   machine_, program_, options_, launches_, repetitions_, ranks_done_;
/// * first_rank(rank), show_stream(rank, stream, name, begin, end);
/// * start_work(rank, stream, now, spent) for kernels and copy engines, which lets come_to() know
///   when that is over, at once or by push_host();
/// * push_host(step, at, rank, stream, spent), which calls come_to() at that time.
template <class Engine, class Spent>
class HostStreams {
 public:
  /// `at_once`: an item that may start at once does so without an event.
  HostStreams(Engine& engine, bool at_once) : engine_(engine), at_once_(at_once) {}

  void come_to(HostStep step, int rank, std::int32_t stream, std::int64_t now, const Spent& spent) {
    switch (step) {
      case HostStep::repetition:
        return start_repetition(rank, now, spent);
      case HostStep::item:
        return start_item(rank, stream, now, spent);
      case HostStep::finished:
        return item_done(rank, stream, now, spent);
    }
  }

 private:
  void start_repetition(int rank, std::int64_t now, const Spent& spent) {
    auto& state = engine_.ranks_[index(rank)];
    state.started = now;
    state.streams_done = 0;
    if (state.streams.empty()) {
      state.streams_done = -1;
      return stream_done(rank, now, spent);
    }
    for (std::size_t s = 0; s < state.streams.size(); ++s) {
      state.streams[s].restart();
      engine_.show_stream(rank, static_cast<std::int32_t>(s), "launch", state.launched, now);
      start_item(rank, static_cast<std::int32_t>(s), now, spent);
    }
  }

  void start_item(int rank, std::int32_t number, std::int64_t now, const Spent& spent) {
    using Kind = program::StreamItem::Kind;
    Engine& self = engine_;
    auto& state = self.ranks_[index(rank)];
    StreamPlace& stream = state.streams[index(number)];
    const int first = self.first_rank(rank);
    const program::Stream& items = self.program_.code(first).streams[index(number)];
    if (stream.item == items.size()) return stream_done(rank, now, spent);
    const program::StreamItem& item = items[stream.item];
    stream.start(self.program_, item, now);
    switch (item.kind) {
      case Kind::kernel:
      case Kind::engine:
        return self.start_work(rank, number, now, spent);
      case Kind::host:
        return self.push_host(HostStep::finished, now + item.duration.fs, rank, number,
                              charged(spent, Reason::launch, item.duration.fs));
      case Kind::event_record:
        record(rank, item.index, now, spent);
        return item_done(rank, number, now, spent);
      case Kind::event_wait:
        stream.waits = !state.events.is_recorded(item.index, state.repetition);
        if (!stream.waits) item_done(rank, number, now, spent);
        return;
      case Kind::until: {
        const std::int64_t start = std::max(now, state.started + item.duration.fs);
        return self.push_host(HostStep::finished, start, rank, number,
                              charged(spent, Reason::skew, start - now));
      }
      case Kind::launch_begin:
        return item_done(rank, number, now,
                         Spent(self.launches_.begin(first, self.program_.frame(item.frame).launch,
                                                    now, attribution_of(spent))));
      case Kind::launch_end:
        self.launches_.end(first, self.program_.frame(item.frame).launch, now,
                           attribution_of(spent));
        return item_done(rank, number, now, spent);
    }
  }

  void item_done(int rank, std::int32_t number, std::int64_t now, const Spent& spent) {
    Engine& self = engine_;
    StreamPlace& stream = self.ranks_[index(rank)].streams[index(number)];
    const int first = self.first_rank(rank);
    const program::Stream& items = self.program_.code(first).streams[index(number)];
    const program::StreamItem::Kind kind = items[stream.item].kind;
    if (kind != program::StreamItem::Kind::kernel)  // which are shown where they end
      self.show_stream(rank, number, name_of(kind), stream.started, now);
    const NextCall next =
        next_item(stream, items, self.machine_.model(first), self.program_, self.options_, now);
    self.show_stream(rank, number, "launch", now, next.start);
    const Spent later = called(spent, next, now);
    if (at_once_ && next.start == now)
      start_item(rank, number, now, later);
    else
      self.push_host(HostStep::item, next.start, rank, number, later);
  }

  Spent called(const Spent& spent, const NextCall& next, std::int64_t now) {
    return charged(charged(spent, Reason::launch, next.alone - now), Reason::software,
                   next.start - next.alone);
  }

  void record(int rank, std::int32_t event, std::int64_t now, const Spent& spent) {
    auto& state = engine_.ranks_[index(rank)];
    state.events.record(event, state.repetition);
    const auto& streams = engine_.program_.code(engine_.first_rank(rank)).streams;
    for (std::size_t s = 0; s < state.streams.size(); ++s) {
      StreamPlace& other = state.streams[s];
      if (!other.waits || streams[s][other.item].index != event) continue;
      other.waits = false;
      item_done(rank, static_cast<std::int32_t>(s), now, spent);
    }
  }

  void stream_done(int rank, std::int64_t now, const Spent& spent) {
    Engine& self = engine_;
    auto& state = self.ranks_[index(rank)];
    if (++state.streams_done < static_cast<std::int32_t>(state.streams.size())) return;
    ++state.repetition;
    state.launched = now;
    if (state.repetition == self.options_.warmup) state.warm_end = now;
    if (state.repetition == self.repetitions_) {
      state.end = now;
      state.spent = spent;
      ++self.ranks_done_;
      return;
    }
    const int first = self.first_rank(rank);
    const NextCall next =
        next_call(self.machine_, self.program_, self.options_, first, state.repetition, now,
                  state.started + launch_interval(self.machine_.model(first), self.options_));
    self.push_host(HostStep::repetition, next.start, rank, 0, called(spent, next, now));
  }

  Engine& engine_;
  bool at_once_;
};

/// A launch of a job goes on from the counts of those before it that share its semaphores, and
/// lasts as long as it is under way.
template <class RankState>
void begin_walk(std::unique_ptr<program::Cursor>& cursor, const program::Bound& program,
                const RankState& state, int rank, std::int32_t body, std::int32_t frame) {
  if (program.linked() == nullptr) {
    if (state.repetition > 0) cursor->repeat();
    return;
  }
  cursor = std::make_unique<program::Cursor>(program, rank, body, frame);
  cursor->restart(state.repetition, state.totals);
}
template <class RankState>
void end_walk(std::unique_ptr<program::Cursor>& cursor, const program::Bound& program,
              RankState& state) {
  if (program.linked() == nullptr) return;
  cursor->leave(state.totals);
  cursor.reset();
}

}  // namespace hemiola::sim
