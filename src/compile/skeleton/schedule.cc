// Who runs when, calls one after the other, and what is said of programs that wait for ever.
#include <fmt/format.h>

#include <algorithm>

#include "compile/skeleton/blame.h"
#include "core/random.h"

namespace hemiola::compile::skeleton {
namespace {

constexpr int kMostTurnsOfSchedule = 60'000;
constexpr int kTrialSteps = 2'000;

}  // namespace

void World::begin(std::uint64_t seed) {
  random_ = splitmix64(seed);
  const std::size_t programs = static_cast<std::size_t>(scene_.world) * scene_.programs;
  const std::size_t threads = programs + static_cast<std::size_t>(scene_.world);
  runners_.assign(programs, {});
  for (std::size_t i = 0; i < programs; ++i) {
    Runner& one = runners_[i];
    one.process.index = static_cast<int>(i);
    one.clock.assign(threads, 0);
    one.pending.assign(threads, 0);
    one.fenced.assign(threads, 0);
    one.clock[i] = 1;
    // Every fourth order lets whole ranks run ahead of others.
    const std::uint64_t by = seed % 4 == 1 ? i / static_cast<std::size_t>(scene_.programs) : i;
    one.priority = splitmix64(random_ + by);
  }
  hosts_.assign(static_cast<std::size_t>(scene_.world), Clock(threads, 0));
  for (std::size_t rank = 0; rank < hosts_.size(); ++rank) hosts_[rank][programs + rank] = 1;
  calls_.assign(static_cast<std::size_t>(scene_.world), -1);
  next_program_ = running_ = std::vector<int>(static_cast<std::size_t>(scene_.world), 0);
}

Fault World::run(std::uint64_t seed, const Start& start) {
  start_ = &start;
  begin(seed);
  for (int rank = 0; rank < scene_.world; ++rank) start_call(rank);
  for (int turn = 0; turn < kMostTurnsOfSchedule; ++turn) {
    if (fault_.kind != Fault::Kind::none) return fault_;
    const int chosen = choose();
    if (chosen < 0) {
      const bool over = std::ranges::all_of(calls_, [&](int call) { return call >= scene_.calls; });
      return over ? Fault{} : Blame(*this).stuck();
    }
    Runner& runner = runners_[chosen];
    machine_.go(runner.process);
    if (fault_.kind != Fault::Kind::none) return fault_;
    if (runner.process.state == Process::State::failed) {
      not_run(runner.process.last_step, runner.process.why);
      return fault_;
    }
    if (runner.process.state == Process::State::ended) end_program(runner);
    wake();
  }
  not_run(0, "it takes more turns than a run is given");
  return fault_;
}

std::vector<std::pair<int, int>> World::stops(int call) const {
  std::vector<std::pair<int, int>> steps;
  for (const Runner& one : runners_) {
    const bool waits = one.is_active && one.call == call &&
                       one.process.state == Process::State::blocked && !one.process.watched.empty();
    steps.emplace_back(waits ? one.process.last_step : -1,
                       waits ? cells_[one.process.watched[0].first].array : -1);
  }
  return steps;
}

bool World::is_set_back(int array) const {
  return std::ranges::any_of(
      cells_, [&](const Cell& cell) { return cell.array == array && cell.reset_step >= 0; });
}

int World::choose() {
  random_ += kSplitMixStep;
  const std::uint64_t draw = splitmix64(random_);
  int best = -1, ready = 0;
  for (std::size_t i = 0; i < runners_.size(); ++i) {
    Runner& one = runners_[i];
    if (!one.is_active || one.process.state != Process::State::ready) continue;
    ++ready;
    if (best < 0 || one.priority > runners_[best].priority) best = static_cast<int>(i);
  }
  if (best < 0) return best;
  // Now and then the one that would go on falls behind all others.
  if (ready > 1 && draw % 16 == 0) {
    runners_[best].priority = draw >> 40U;
    return choose();
  }
  return best;
}

void World::wake() {
  for (Runner& one : runners_) {
    if (one.process.state != Process::State::blocked) continue;
    const bool changed = std::ranges::any_of(one.process.watched, [&](const auto& look) {
      return cells_[look.first].version != look.second;
    });
    if (changed) one.process.state = Process::State::ready;
  }
}

void World::start_call(int rank) {
  const int call = ++calls_[rank];
  if (call >= scene_.calls) return;
  const int thread = scene_.world * scene_.programs + rank;
  Clock& clock = hosts_[rank];
  const Point point{.thread = thread, .time = clock[thread], .step = -1, .call = call};
  for (const int array : scene_.from_host) {
    host_writes_[{array, rank}] = point;
    for (Cell& cell : cells_)
      if (cell.array == array && cell.rank == rank) write_data(cell, clock, point);
  }
  for (Cell& cell : cells_)
    if (cell.rank == rank &&
        (scene_.fresh.contains(cell.array) || scene_.zeroed.contains(cell.array)))
      cell.value = 0;
  ++clock[thread];
  next_program_[rank] = 0;
  running_[rank] = 0;
  admit(rank);
}

/// Programs begin in the order of their numbers, as many as there is room for.
void World::admit(int rank) {
  while (running_[rank] < scene_.residents && next_program_[rank] < scene_.programs) {
    const int program = next_program_[rank]++;
    Runner& one = runners_[rank * scene_.programs + program];
    one.call = calls_[rank];
    one.process = Process{.rank = rank, .program = program, .index = one.process.index};
    one.process.slots = (*start_)(rank, program, one.call);
    one.process.slots.resize(static_cast<std::size_t>(code_.slots));
    join(one.clock, hosts_[rank]);
    one.fenced = one.clock;  // what kernels before it stored is there for all
    one.is_active = true;
    ++running_[rank];
  }
}

void World::end_program(Runner& runner) {
  const int rank = runner.process.rank;
  steps_ += runner.process.steps;
  runner.left_step = runner.process.writes == 0 ? runner.process.left_step : -1;
  runner.is_active = false;
  join(runner.clock, runner.pending);
  join(hosts_[rank], runner.clock);
  ++runner.clock[runner.process.index];
  --running_[rank];
  admit(rank);
  if (running_[rank] == 0 && next_program_[rank] == scene_.programs) end_call(rank);
}

void World::end_call(int rank) {
  const int thread = scene_.world * scene_.programs + rank;
  const Point point{
      .thread = thread, .time = hosts_[rank][thread], .step = -1, .call = calls_[rank]};
  for (Cell& cell : cells_)
    if (cell.rank == rank && scene_.for_host.contains(cell.array))
      read_data(cell, hosts_[rank], point, false);
  if (!scene_.meets_between) return start_call(rank);
  if (++met_ < scene_.world) return;
  // The hosts of all ranks wait for each other and set the words back.
  met_ = 0;
  Clock all;
  for (const Clock& one : hosts_) join(all, one);
  for (Cell& cell : cells_)
    if (scene_.zeroes_all && scene_.flags.contains(cell.array)) {
      cell.value = 0;
      cell.for_all = cell.for_gpu = {};
      cell.history.clear();
    }
  for (Clock& one : hosts_) join(one, all);
  for (int rank = 0; rank < scene_.world; ++rank) start_call(rank);
}

/// Whether a wait would be over if the word had that value.
bool World::would_pass(const Runner& runner, std::size_t cell, std::int64_t value) {
  const std::vector<Cell> cells = cells_;
  const Fault fault = fault_;
  const Runner before = runner;
  Runner& trial = runners_[runner.process.index];
  is_trial_ = true;
  cells_[cell].value = value;
  trial.process.state = Process::State::ready;
  for (auto& loop : trial.process.loops) loop.before.clear();
  for (int i = 0; i < kTrialSteps && trial.process.state == Process::State::ready; ++i) {
    const std::int64_t writes = trial.process.writes;
    machine_.go(trial.process);
    if (trial.process.writes != writes) break;  // it went on
  }
  const bool stays = trial.process.state == Process::State::blocked &&
                     trial.process.watched.size() == before.process.watched.size() &&
                     std::equal(trial.process.watched.begin(), trial.process.watched.end(),
                                before.process.watched.begin(),
                                [](const auto& a, const auto& b) { return a.first == b.first; });
  is_trial_ = false;
  cells_ = cells;
  fault_ = fault;
  trial = before;
  return !stays;
}

}  // namespace hemiola::compile::skeleton
