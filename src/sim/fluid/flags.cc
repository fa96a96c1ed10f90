// Signals and waits.

#include "sim/fluid/flags.h"

#include <algorithm>
#include <utility>

namespace hemiola::sim::fluid {
namespace {

using program::Primitive;

/// A flag whose bytes take less than this part of its latency does not queue, nor make others.
constexpr std::int64_t kSmall = 100;

}  // namespace

Flags::Flags(Run& run, Streams& streams)
    : run_(run), streams_(streams), waits_(run.walkers.size()) {
  const Classes& fold = run.fold;
  semaphores_.resize(
      index(fold.semaphore_classes() + fold.rank_classes() * run.program.barriers()));
  for (std::int32_t c = 0; c < fold.rank_classes(); ++c)
    for (std::int32_t s = 0; s < run.barrier_base; ++s)
      semaphores_[index(semaphore_class({fold.first_rank(c), s}))].value =
          run.program.semaphores()[index(s)].initial;
}

std::int32_t Flags::semaphore_class(program::SemaphoreId id) const {
  if (id.index < run_.barrier_base) return run_.fold.semaphore_class(id);
  return run_.fold.semaphore_classes() + run_.fold.rank_class(id.rank) * run_.program.barriers() +
         id.index - run_.barrier_base;
}

std::int64_t Flags::semaphores_in(program::SemaphoreId id) const {
  return id.index < run_.barrier_base ? run_.fold.semaphores_in(run_.fold.semaphore_class(id))
                                      : run_.fold.ranks_in(run_.fold.rank_class(id.rank));
}

// --- Signals.

void Flags::send(std::int32_t agent, int from, program::SemaphoreId id, std::int64_t increment,
                 std::int64_t members, const Moment& at) {
  const std::int32_t number = signals_.take();
  Signal& signal = signals_[index(number)];
  signal.agent = agent;
  signal.from = from;
  signal.id = id;
  if (agent >= 0) streams_.part_begins(run_.walkers[index(agent)]);
  // Of the members of a class equally many signal each semaphore of its class.
  signal.increment = increment * std::max<std::int64_t>(1, members / semaphores_in(id));
  signal.members = members;
  signal.spent = at.spent;
  const std::int64_t issue =
      std::max<std::int64_t>(1, run_.machine.model(from).cu_issue_interval.fs);
  charge(signal.spent, Reason::issue, issue);
  run_.events.push(at.time + issue, EventKind::depart, number);
}

// A flag to another rank is a flow of one sector where that takes long; else it is not in the way.
void Flags::depart(std::int32_t number, std::int64_t now) {
  Signal& signal = signals_[index(number)];
  const int to = signal.id.rank;
  if (to == signal.from) {
    const Latency& way = run_.ways.store(to, to);
    charge(signal.spent, way);
    run_.events.push(now + way.fs, EventKind::arrive, number);
    return;
  }
  const Latency& way = run_.ways.store(signal.from, to);
  if (run_.ways.flag_time(signal.from, to) * kSmall < way.fs) {
    charge(signal.spent, way);
    run_.events.push(now + way.fs, EventKind::arrive, number);
    return;
  }
  const std::int64_t bytes = run_.machine.model(signal.from).sector_size.count;
  run_.demands.clear();
  run_.ways.over_links(signal.from, to, bytes, 1, 0, false, bytes, signal.members, run_.demands);
  run_.start_flow(FlowKind::flag, number, 0, bytes, 0, Reason::link, signal.spent);
}

void Flags::crossed(std::int32_t number, const Attribution& spent, std::int64_t now) {
  Signal& signal = signals_[index(number)];
  const Latency& way = run_.ways.store(signal.from, signal.id.rank);
  signal.spent = spent;
  charge(signal.spent, way);
  run_.events.push(now + way.fs, EventKind::arrive, number);
}

void Flags::write(program::SemaphoreId id, std::int64_t members, const Moment& at) {
  const std::int32_t number = signals_.take();
  Signal& signal = signals_[index(number)];
  signal.from = id.rank;
  signal.id = id;
  signal.increment = std::max<std::int64_t>(1, members / semaphores_in(id));
  signal.members = members;
  signal.spent = at.spent;
  charge(signal.spent, Reason::nic, 1);
  run_.events.push(at.time + 1, EventKind::arrive, number);
}

void Flags::arrive(std::int32_t number, std::int64_t now) {
  const Signal signal = signals_[index(number)];
  signals_.give_back(number);
  if (signal.agent >= 0) {
    Walker& walker = run_.walkers[index(signal.agent)];
    Moment back{now, signal.spent};
    back.add(run_.ways.acknowledgement(signal.from, signal.id.rank));
    walker.acknowledged.join(back);
    streams_.part_over(walker, back);
  }
  add_to(semaphore_class(signal.id), signal.increment, now, signal.spent);
}

void Flags::add_to(std::int32_t number, std::int64_t increment, std::int64_t now,
                   const Attribution& spent) {
  semaphores_[index(number)].value += increment;
  for (const auto& [agent, wait] : std::exchange(semaphores_[index(number)].waiting, {})) {
    Walker& walker = run_.walkers[index(agent)];
    if (walker.blocked != Blocked::flags || waits_[index(agent)].number != wait) continue;
    if (!look(walker, walker.place.present)) {
      semaphores_[index(number)].waiting.emplace_back(agent, wait);
      continue;
    }
    seen(walker, now, spent);
    const Primitive& primitive = walker.place.present;
    if (primitive.swap)
      for (const program::SemaphoreId id : primitive.semaphores)
        add_to(semaphore_class(id), 1, now, spent);
    run_.pass(walker);
    run_.wake(agent);
  }
}

// --- Waits.

/// Whether all flags are there; what is consumed is taken at once.
bool Flags::look(const Walker& walker, const Primitive& primitive) {
  std::vector<bool>& seen = waits_[index(walker.number)].seen;
  bool all = true;
  for (std::size_t s = 0; s < primitive.semaphores.size(); ++s) {
    if (seen[s]) continue;
    const program::SemaphoreId id = primitive.semaphores[s];
    SemaphoreState& state = semaphores_[index(semaphore_class(id))];
    const std::int64_t consumers =
        primitive.consume ? std::max<std::int64_t>(1, walker.members / semaphores_in(id)) : 1;
    if (state.value < primitive.values[s] * consumers) {
      all = false;
      continue;
    }
    seen[s] = true;
    if (primitive.consume) state.value -= primitive.values[s] * consumers;
  }
  return all;
}

bool Flags::wait(std::int32_t number) {
  Walker& walker = run_.walkers[index(number)];
  if (!run_.is_now(number)) return false;
  const Primitive& primitive = walker.place.present;
  Wait& wait = waits_[index(number)];
  wait.began = walker.at.time;
  ++wait.number;
  wait.seen.assign(primitive.semaphores.size(), false);
  if (!look(walker, primitive)) {
    for (std::size_t s = 0; s < primitive.semaphores.size(); ++s) {
      if (wait.seen[s]) continue;
      semaphores_[index(semaphore_class(primitive.semaphores[s]))].waiting.emplace_back(
          number, wait.number);
    }
    walker.blocked = Blocked::flags;
    return false;
  }
  if (walker.agent.kernel < 0) return true;
  const int owner =
      primitive.semaphores.empty() ? walker.agent.rank : primitive.semaphores.front().rank;
  if (primitive.swap)
    for (const program::SemaphoreId id : primitive.semaphores)
      add_to(semaphore_class(id), 1, run_.now, walker.at.spent);
  walker.at.add(run_.ways.load(walker.agent.rank, owner, Depth::l2));
  return true;
}

// The flag that came last is the reason for the wait, unless the first poll found it. Polls see a
// flag half a period after it is there, on average.
void Flags::seen(Walker& walker, std::int64_t now, const Attribution& cause) {
  const machine::GpuModel& model = run_.model(walker);
  const std::int64_t interval = std::max<std::int64_t>(1, model.sync_poll_interval.fs);
  if (walker.agent.kernel < 0) {
    walker.at = {now, cause};
    walker.at.add(Reason::poll, interval);
    return;
  }
  const int owner = walker.place.present.semaphores.front().rank;
  const Latency poll = run_.ways.load(walker.agent.rank, owner, Depth::l2);
  const std::int64_t there = run_.ways.store(walker.agent.rank, owner).fs;
  const std::int64_t began = waits_[index(walker.number)].began;
  if (now <= began + there) {
    charge(walker.at.spent, poll);
    walker.at.time = began + poll.fs;
    return;
  }
  walker.at = {now, cause};
  walker.at.add(Reason::poll, (poll.fs + interval) / 2);
  walker.at.add(run_.ways.acknowledgement(walker.agent.rank, owner));
}

std::string Flags::missing(const Walker& walker) const {
  std::string text;
  if (walker.blocked != Blocked::flags) return text;
  const Primitive& primitive = walker.place.present;
  for (std::size_t s = 0; s < primitive.semaphores.size(); ++s) {
    const program::SemaphoreId id = primitive.semaphores[s];
    if (waits_[index(walker.number)].seen[s]) continue;
    if (!text.empty()) text += ", ";
    text += id.index >= run_.barrier_base
                ? "barrier " + std::to_string(id.index - run_.barrier_base)
                : "semaphore '" + run_.program.semaphores()[index(id.index)].name + "'";
    text += " of rank " + std::to_string(id.rank) + " to reach " +
            std::to_string(primitive.values[s]) + ", it is " +
            std::to_string(semaphores_[index(semaphore_class(id))].value) +
            " and nobody will signal it";
  }
  return text;
}

}  // namespace hemiola::sim::fluid
