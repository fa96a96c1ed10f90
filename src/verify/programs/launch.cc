// Streams of ranks, and places of workgroups on compute units.
#include <algorithm>
#include <utility>

#include "machine/machine.h"
#include "verify/programs/interpreter.h"

namespace hemiola::verify {

using program::StreamItem;

void Interpreter::create_workgroups() {
  ranks_.resize(index(fold_.period()));
  for (int rank = 0; rank < fold_.period(); ++rank) {
    Rank& state = ranks_[index(rank)];
    if (program_.machine() != nullptr && rank < program_.machine()->ranks())
      state.compute_units.resize(
          index(std::clamp<std::int64_t>(program_.machine()->model(rank).cu_count, 1, 1 << 20)));
    const auto code = index(program_.code_of().at(index(rank)));
    int number = 0;
    for (const program::Stream& items : program_.codes().at(code).streams) {
      Stream& stream = state.streams.emplace_back();
      for (const StreamItem& item : items) {
        std::vector<Actor>& launched = stream.launches.emplace_back();
        if (item.kind == StreamItem::Kind::engine) {  // one thread, on no compute unit
          launched.push_back(static_cast<Actor>(workgroups_.size()));
          Workgroup& queue = workgroups_.emplace_back(program_, rank, item.index);
          queue.number = number++;
          queue.copies = true;
          queue.stream = static_cast<std::int32_t>(state.streams.size() - 1);
        }
        if (item.kind != StreamItem::Kind::kernel) continue;
        const program::Kernel& kernel = program_.kernels().at(index(item.index));
        for (std::size_t w = 0; w < kernel.bodies.size(); ++w) {
          launched.push_back(static_cast<Actor>(workgroups_.size()));
          Workgroup& workgroup = workgroups_.emplace_back(program_, rank, kernel.bodies[w]);
          workgroup.number = number++;
          workgroup.threads = std::max(kernel.threads_in(w), 1);
          if (!state.compute_units.empty())
            workgroup.occupancy = program::occupancy_of(kernel, w, program_.machine()->model(rank));
          workgroup.parts = static_cast<std::int32_t>(kernel.parts_from(w));
          workgroup.grain = std::max(kernel.grain, 1);
          workgroup.stream = static_cast<std::int32_t>(state.streams.size() - 1);
        }
      }
    }
  }
}

/// Workgroups that send through FIFOs learn from those of their number on other ranks; elsewhere
/// workgroups of a rank often know the same. What is known together shall stand in few nodes of a
/// clock.
void Interpreter::number_in_clocks() {
  std::vector<Workgroup*> in_order;
  for (Workgroup& workgroup : workgroups_) in_order.push_back(&workgroup);
  if (program_.program().inbound > 0)
    std::ranges::stable_sort(
        in_order, [](const Workgroup* a, const Workgroup* b) { return a->number < b->number; });
  for (std::size_t i = 0; i < in_order.size(); ++i) in_order[i]->in_clocks = static_cast<Actor>(i);
}

void Interpreter::start_repetition() {
  ++repetition_;
  for (Workgroup& workgroup : workgroups_) {
    if (repetition_ > 0) workgroup.cursor.repeat();
    workgroup.state = Workgroup::State::unborn;
  }
  for (int rank = 0; rank < fold_.period(); ++rank) {
    const Clock start = end_of(rank);
    Rank& state = ranks_[index(rank)];
    state.events.clear();
    for (Stream& stream : state.streams) {
      stream.clock = start;
      stream.position = 0;
    }
    for (std::size_t s = 0; s < state.streams.size(); ++s)
      advance(rank, static_cast<std::int32_t>(s));
  }
}

/// Starts items of a stream until one has to wait.
void Interpreter::advance(int rank, std::int32_t number) {
  Rank& state = ranks_[index(rank)];
  Stream& stream = state.streams[index(number)];
  const auto code = index(program_.code_of()[index(rank)]);
  const program::Stream& items = program_.codes()[code].streams[index(number)];
  stream.waits_for_event = false;
  while (stream.position < items.size() && step(rank, stream, items[stream.position]))
    ++stream.position;
}

/// One item; false if the stream has to wait for it.
bool Interpreter::step(int rank, Stream& stream, const StreamItem& item) {
  Rank& state = ranks_[index(rank)];
  switch (item.kind) {
    case StreamItem::Kind::kernel:
    case StreamItem::Kind::engine:
      launch(rank, stream);
      return stream.running == 0;
    case StreamItem::Kind::event_record:
      state.events[item.index] = stream.clock;
      for (std::size_t s = 0; s < state.streams.size(); ++s)
        if (state.streams[s].waits_for_event) advance(rank, static_cast<std::int32_t>(s));
      return true;
    case StreamItem::Kind::event_wait: {
      const auto event = state.events.find(item.index);
      stream.waits_for_event = event == state.events.end();
      if (!stream.waits_for_event) stream.clock.join(event->second);
      return !stream.waits_for_event;
    }
    case StreamItem::Kind::host:
    case StreamItem::Kind::until:
    case StreamItem::Kind::launch_begin:
    case StreamItem::Kind::launch_end:
      return true;
  }
  return true;
}

void Interpreter::launch(int rank, Stream& stream) {
  const std::vector<Actor>& actors = stream.launches[stream.position];
  stream.running = static_cast<std::int32_t>(actors.size());
  stream.kernel_end = stream.clock;
  Rank& state = ranks_[index(rank)];
  for (Actor actor : actors) {
    Workgroup& workgroup = workgroups_[index(actor)];
    workgroup.clock.join(stream.clock);
    workgroup.with_own_of = -1;
    workgroup.fenced = {workgroup.clock, workgroup.in_clocks, workgroup.segment, 0, fold_.images()};
    if (!workgroup.copies) {
      state.unborn.push_back(actor);
      continue;
    }
    workgroup.state = Workgroup::State::ready;
    ready_.push_back(actor);
  }
  dispatch(rank);
}

/// Blocks start in order, all parts of one together; one that finds no place keeps those behind it
/// waiting.
void Interpreter::dispatch(int rank) {
  std::deque<Actor>& unborn = ranks_[index(rank)].unborn;
  while (!unborn.empty()) {
    const auto parts = workgroups_[index(unborn.front())].parts;
    const std::span<Workgroup> block =
        std::span(workgroups_).subspan(index(unborn.front()), index(parts));
    if (!place(rank, block)) return;
    for (Workgroup& workgroup : block) {
      workgroup.state = Workgroup::State::ready;
      ready_.push_back(unborn.front());
      unborn.pop_front();
    }
  }
}

/// Takes the compute unit with the fewest threads; without a machine there is always room, and so
/// there is where workgroups that wait leave their places (SyncMon).
bool Interpreter::place(int rank, std::span<Workgroup> block) {
  std::vector<ComputeUnit>& units = ranks_[index(rank)].compute_units;
  if (units.empty()) return true;
  const machine::GpuModel& model = program_.machine()->model(rank);
  if (model.sync_wait == machine::WaitPolicy::syncmon) return true;
  program::Occupancy all;
  for (const Workgroup& workgroup : block) all += workgroup.occupancy;
  const auto used = [&](std::int32_t unit) -> const program::Occupancy& {
    return units[index(unit)].used;
  };
  const std::int32_t unit =
      program::find_unit(0, static_cast<std::int32_t>(units.size()), 0, used, all, model);
  if (unit < 0) return false;
  units[index(unit)].used += all;
  for (Workgroup& workgroup : block) workgroup.compute_unit = unit;
  return true;
}

void Interpreter::end(Actor actor) {
  Workgroup& self = workgroups_[index(actor)];
  self.state = Workgroup::State::ended;
  pass_barrier(self);
  self.clock.join(std::exchange(self.after_fence, {}));
  Rank& state = ranks_[index(self.rank)];
  if (self.compute_unit >= 0) {
    state.compute_units[index(self.compute_unit)].used -= self.occupancy;
    self.compute_unit = -1;
  }
  Stream& stream = state.streams[index(self.stream)];
  Snapshot{self.clock, self.in_clocks, self.segment, 0, fold_.images()}.join_into(
      stream.kernel_end);
  dispatch(self.rank);
  if (--stream.running > 0) return;
  stream.clock = stream.kernel_end;
  ++stream.position;
  advance(self.rank, self.stream);
}

bool Interpreter::all_streams_done() const {
  for (const Workgroup& workgroup : workgroups_)
    if (workgroup.state != Workgroup::State::ended) return false;
  for (const Rank& rank : ranks_) {
    for (const Stream& stream : rank.streams)
      if (stream.position < stream.launches.size()) return false;
  }
  return true;
}

bool Interpreter::waits_for_place(const Workgroup& workgroup) const {
  const auto actor = static_cast<Actor>(&workgroup - workgroups_.data());
  const std::deque<Actor>& unborn = ranks_[index(workgroup.rank)].unborn;
  return std::ranges::find(unborn, actor) != unborn.end();
}

Clock Interpreter::end_of(int rank) const {
  Clock clock;
  for (const Stream& stream : ranks_[index(rank)].streams) clock.join(stream.clock);
  return clock;
}

Clock Interpreter::end_of_all() const {
  Clock clock;
  for (int rank = 0; rank < fold_.period(); ++rank) clock.join(end_of(rank));
  return clock.of_all_images();
}

}  // namespace hemiola::verify
