// What one access does to memory and clocks. Who runs when is in schedule.cc.
#include "compile/skeleton/blame.h"

#include <fmt/format.h>

#include <algorithm>

namespace hemiola::compile::skeleton {
namespace {

using EK = Element::Kind;

bool releases(const std::string& sem) {
  return sem == "release" || sem == "acq_rel" || sem == "?";
}
bool acquires(const std::string& sem) {
  return sem == "acquire" || sem == "acq_rel" || sem == "?";
}

bool holds(std::string_view comparison, std::int64_t a, std::int64_t b) {
  if (comparison == "ne") return a != b;
  if (comparison == "ge") return a >= b;
  if (comparison == "gt") return a > b;
  if (comparison == "le") return a <= b;
  if (comparison == "lt") return a < b;
  return a == b;
}

template <typename Point>
bool is_before(const Point& point, const Clock& clock) {
  return point.thread < 0 || point.time <= clock[point.thread];
}

std::string what_of(bool both_store, bool reuse, bool by_host) {
  if (both_store) return " is stored by two that nothing orders";
  if (reuse && by_host)
    return " is read when its owner may have begun the next call, which stores new data there: no "
           "word says that it was read";
  if (reuse)
    return " is overwritten when others may not have read it: no word of theirs is awaited before";
  return " is read when its data may not be there: nothing that was awaited orders the store "
         "before "
         "it";
}

std::int64_t made_of(std::string_view op, std::int64_t old, std::int64_t by) {
  if (op == "add") return old + by;
  if (op == "sub") return old - by;
  if (op == "and") return old & by;
  if (op == "or") return old | by;
  if (op == "xor") return old ^ by;
  if (op == "max") return std::max(old, by);
  if (op == "min") return std::min(old, by);
  return by;
}

}  // namespace

World::World(const Code& code, Arrays& arrays, const Scene& scene)
    : code_(code), arrays_(arrays), scene_(scene), machine_(code, arrays, *this) {
  machine_.programs = scene.grid;
}

Element World::resolved(const Element& where) const {
  Element there = where;
  if (const auto known = scene_.aliases.find(there.array); known != scene_.aliases.end())
    there.array = known->second;
  return there;
}

std::size_t World::cell_of(const Element& where) {
  const auto [found, is_new] =
      index_.try_emplace({where.array, where.rank, where.number}, cells_.size());
  if (is_new) {
    Cell cell{.array = where.array, .rank = where.rank, .number = where.number};
    if (const auto host = host_writes_.find({where.array, where.rank}); host != host_writes_.end())
      cell.write = host->second;
    if (scene_.filled.contains(where.array)) cell.write.turn = 1;
    if (scene_.flags.contains(where.array)) cell.value = 0;
    cells_.push_back(std::move(cell));
  }
  return found->second;
}

int World::rank_of(int thread) const {
  const int programs = scene_.world * scene_.programs;
  return thread >= programs ? thread - programs : thread / scene_.programs;
}

void World::not_run(int step, std::string why) {
  if (fault_.kind == Fault::Kind::none)
    fault_ = {.kind = Fault::Kind::not_run, .step = step, .what = std::move(why)};
}

void World::found(int step, const char* rule, std::string what, const Runner& by) {
  if (fault_.kind == Fault::Kind::none && !is_trial_)
    fault_ = {.kind = Fault::Kind::race,
              .step = step,
              .rule = rule,
              .what = std::move(what),
              .who = {named(by.process.index, by.call)}};
}

bool World::matters(int begin, int end) const {
  const auto next = scene_.steps_that_matter.lower_bound(begin);
  if (next != scene_.steps_that_matter.end() && *next < end) return true;
  for (int i = begin; i < end; ++i)
    if (code_.steps[i].op == Op::leave && code_.steps[i].a >= end &&
        scene_.steps_that_matter.lower_bound(end) != scene_.steps_that_matter.end() &&
        *scene_.steps_that_matter.lower_bound(end) < code_.steps[i].a)
      return true;
  return false;
}

void World::skip(Process&, const Access& access) {
  const Element where = resolved(access.place);
  const bool tells = access.kind == Access::Kind::atomic && scene_.flags.contains(where.array) &&
                     where.kind == EK::address && !where.is_vague;
  if (tells && where.rank >= 0 && where.rank < scene_.world) masked_[cell_of(where)] = access.step;
}

Element World::access(Process& who, const Access& access) {
  reached_.insert(access.step);
  const Element where = resolved(access.place);
  const bool matters = scene_.steps_that_matter.contains(access.step);
  if (where.kind != EK::address || where.is_vague || where.rank < 0) {
    if (matters) not_run(access.step, "the address of a word depends on data");
    return {};
  }
  Runner& runner = runners_[who.index];
  Element seen = where;
  seen.kind = EK::loaded;
  if (where.rank >= scene_.world) {
    found(access.step, "peer", fmt::format("it goes to rank {} of {}", where.rank, scene_.world),
          runner);
    return {};
  }
  if (arrays_[where.array].kind !=
      0) {  // a table of more than ranks, or a number that is not known
    if (matters) not_run(access.step, "which memory of a table this is depends on a number");
    return seen;
  }
  if (scene_.outside.contains(where.array)) {
    // Whoever tells it has ordered what it is about.
    for (const Runner& other : runners_)
      if ((access.kind == Access::Kind::atomic || !scene_.is_strict) &&
          rank_of(other.process.index) != where.rank)
        join(runner.clock, other.clock);
    return {};
  }
  if (scene_.flags.contains(where.array)) return flag_or_data(runner, access, where);
  if (!scene_.tracked.contains(where.array)) return seen;
  const Element result = data(runner, access, cell_of(where));
  return result.is_number() ? result : seen;
}

/// In an array of words, between which there may be data.
Element World::flag_or_data(Runner& runner, const Access& access, const Element& where) {
  const std::size_t index = cell_of(where);
  Cell& cell = cells_[index];
  const bool is_atomic = access.kind == Access::Kind::atomic;
  cell.is_word = cell.is_word || is_atomic;
  if (is_atomic || !scene_.mixed.contains(where.array)) return word(runner, access, index);
  if (!cell.is_word) return data(runner, access, index);
  if (access.kind == Access::Kind::store)
    found(access.step, "overlap",
          named(cell) + " is a word that is waited for, and data are stored there", runner);
  return {};
}

/// Notes who has seen what was told last, and whether that was of an earlier call.
void World::see(Runner& runner, Cell& cell, int step) {
  if (cell.history.empty()) return;
  Written& last = cell.history.back();
  last.seen_by.insert(runner.process.index);
  runner.seen = {.array = cell.array,
                 .of = rank_of(last.thread),
                 .step = last.step,
                 .is_zero = last.value == 0};
  const bool is_stale = last.call < runner.call && last.value != 0;
  runner.stale_step = is_stale ? step : -1;
  runner.reset_step = is_stale ? cell.reset_step : -1;
}

Element World::word(Runner& runner, const Access& access, std::size_t index) {
  Cell& cell = cells_[index];
  const std::int64_t old = cell.value.value_or(0);
  if (access.kind == Access::Kind::load || access.op == "load") {
    runner.process.looks.emplace_back(index, cell.version);
    see(runner, cell, access.step);
    take_over(runner, cell, access);
    return number_element(old);
  }
  if (!access.value.is_number() || (access.op == "cas" && !access.compare.is_number())) {
    not_run(access.step, "the value that is told depends on data");
    return {};
  }
  std::int64_t made = made_of(access.op, old, access.value.number);
  const bool fails = access.op == "cas" && old != access.compare.number;
  if (fails) made = old;
  if (made > UINT32_MAX) made &= UINT32_MAX;  // no count comes near it; bits that flip go past it
  if (access.kind == Access::Kind::atomic) {
    runner.process.looks.emplace_back(index, cell.version);
    if (access.op != "xchg") see(runner, cell, access.step);
    take_over(runner, cell, access);
  }
  if (made == 0 && access.op == "xchg") cell.reset_step = access.step;
  const bool is_mute = made != 0 && scene_.mute_from >= 0 && runner.call >= scene_.mute_from;
  const bool is_same = made == old && (access.only_looks() || access.op == "or");
  if (!fails && !is_mute && !is_same) tell(runner, cell, access, made);
  return number_element(old);
}

void World::tell(Runner& runner, Cell& cell, const Access& access, std::int64_t made) {
  give(runner, cell, access);
  if (made != cell.value.value_or(0)) {
    ++cell.version;
    ++runner.process.writes;
  }
  cell.value = made;
  cell.history.push_back({.value = made,
                          .thread = runner.process.index,
                          .step = access.step,
                          .call = runner.call,
                          .replaces = access.kind == Access::Kind::store || access.op == "xchg",
                          .seen_by = {}});
}

void World::take_over(Runner& runner, const Cell& cell, const Access& access) {
  const bool strict = scene_.is_strict;
  const bool near = strict && (access.scope == "gpu" || access.scope == "cta");
  const bool same = rank_of(runner.process.index) == cell.rank;
  Clock& into = !strict || acquires(access.sem) ? runner.clock : runner.pending;
  if (!near || !strict) join(into, cell.for_all);
  if (same || !strict) join(into, cell.for_gpu);
}

void World::give(Runner& runner, Cell& cell, const Access& access) {
  const bool strict = scene_.is_strict;
  const bool keeps = access.kind == Access::Kind::atomic;  // goes on the sequence of a release
  const int thread = runner.process.index;
  if (!keeps) cell.for_all = cell.for_gpu = {};
  const Clock* clock = !strict || releases(access.sem) ? &runner.clock : &runner.fenced;
  const bool near = strict && (access.scope == "gpu" || access.scope == "cta");
  if (rank_of(thread) == cell.rank) join(cell.for_gpu, *clock);
  if (!near) join(cell.for_all, *clock);
  ++runner.clock[thread];
}

Element World::data(Runner& runner, const Access& access, std::size_t index) {
  Cell& cell = cells_[index];
  const int thread = runner.process.index;
  const Point point{.thread = thread,
                    .time = runner.clock[thread],
                    .step = access.step,
                    .call = runner.call,
                    .is_atomic = access.kind == Access::Kind::atomic,
                    .seen = runner.seen};
  if (access.kind == Access::Kind::load) {
    read_data(cell, runner.clock, point, true);
    return cell.value ? number_element(*cell.value) : Element{};
  }
  write_data(cell, runner.clock, point);
  ++runner.process.writes;
  if (scene_.for_host.contains(cell.array) && calls_[cell.rank] > runner.call)
    found(access.step, "arrival",
          fmt::format("{} is stored when rank {} has ended the call: nothing there waits for it",
                      named(cell), cell.rank),
          runner);
  if (access.kind == Access::Kind::store && access.value.is_number())
    cell.value = access.value.number;
  else
    cell.value = {};
  return {};
}

/// Which programs of a GPU write the same place depends on sizes, which are assumed.
bool World::is_left_out(const Point& earlier, const Point& later, bool both_write) const {
  const bool same_rank = rank_of(earlier.thread) == rank_of(later.thread);
  if (fault_.kind != Fault::Kind::none || is_trial_ || scene_.mute_from >= 0) return true;
  if (!same_rank && scene_.only_near) return true;
  return both_write && (same_rank || (earlier.is_atomic && later.is_atomic));
}

void World::race(const Point& earlier, bool earlier_writes, const Point& later, bool later_writes,
                 const Cell& cell) {
  const bool both = earlier_writes && later_writes;
  if (is_left_out(earlier, later, both)) return;
  const Point &write = earlier_writes ? earlier : later, &other = earlier_writes ? later : earlier;
  // Something is overwritten that is still read: it was written more often than it was read.
  const bool reuse = !both && (other.turn < write.turn || write.call > other.call);
  const std::string place = named(cell);
  const bool by_host = write.step < 0;
  fault_ = {.kind = Fault::Kind::race, .rule = reuse ? "reuse" : "order"};
  // A store is wrong where it comes too early, a load where it does; the host is never at fault.
  const bool at_write = other.step < 0 || (reuse && !by_host);
  fault_.step = at_write ? write.step : other.step;
  fault_.other_step = at_write ? other.step : write.step;
  fault_.what = place + what_of(both, reuse, by_host);
  fault_.who = {named(earlier.thread, earlier.call), named(later.thread, later.call)};
  if (other.step < 0 && !reuse) {
    fault_.rule = "arrival";
    fault_.what =
        place + " is stored when its rank may have ended the call: nothing there waits for it";
  }
  if (!both) Blame(*this).stale_word(fault_, other, place);
  if (!by_host && fault_.rule == "reuse") Blame(*this).word_back(fault_, write, other);
}

void World::write_data(Cell& cell, const Clock& clock, const Point& point) {
  Point now = point;
  now.turn = cell.write.turn + 1;
  if (!is_before(cell.write, clock)) race(cell.write, true, now, true, cell);
  for (const Point& read : cell.reads)
    if (!is_before(read, clock)) race(read, false, now, true, cell);
  const bool is_new = cell.is_read || cell.write.thread != point.thread ||
                      cell.write.call != point.call || cell.write.time != point.time ||
                      cell.write.turn == 0;
  const int turn = cell.write.turn + (is_new ? 1 : 0);
  cell.write = point;
  cell.write.turn = turn;
  cell.is_read = false;
  cell.reads.clear();
}

void World::read_data(Cell& cell, const Clock& clock, const Point& point, bool is_kept) {
  const bool is_later = !is_kept && cell.write.call > point.call;  // of whoever reads after a call
  Point now = point;
  Point& before = cell.latest[point.thread];
  const bool is_new = before.turn == 0 || before.call != point.call || !cell.is_read;
  now.turn = before.turn + (is_new ? 1 : 0);
  if (!is_before(cell.write, clock) && !is_later) race(cell.write, true, now, false, cell);
  if (!is_kept) return;
  before = now;
  cell.is_read = true;
  std::erase_if(cell.reads, [&](const Point& one) { return one.thread == point.thread; });
  cell.reads.push_back(now);
}

bool World::try_wait(Process& who, const Access& access, std::string_view comparison) {
  reached_.insert(access.step);
  const Element where = resolved(access.place);
  if (where.kind != EK::address || where.is_vague || where.rank < 0 || where.rank >= scene_.world ||
      !access.compare.is_number()) {
    not_run(access.step, "what is awaited depends on data");
    return true;
  }
  Runner& runner = runners_[who.index];
  if (scene_.outside.contains(where.array)) {
    this->access(who, access);
    return true;
  }
  const std::size_t index = cell_of(where);
  if (!holds(comparison, cells_[index].value.value_or(0), access.compare.number)) {
    who.watched.emplace_back(index, cells_[index].version);
    return false;
  }
  word(runner, access, index);
  return true;
}

bool World::barrier_of(Process& who, bool of_ranks, bool releases, bool acquires, int step) {
  reached_.insert(step);
  Runner& runner = runners_[who.index];
  // The same program of all ranks, or all programs of a rank.
  int& passed = runner.gatherings[of_ranks ? 0 : 1];
  const int group = of_ranks ? who.program : scene_.programs + who.rank;
  Gathering& gathering = gatherings_[{group, passed}];
  const int all = of_ranks ? scene_.world : scene_.programs;
  const std::size_t index = cell_of({.kind = EK::address, .array = -2 - group});
  if (!runner.arrived) {
    runner.arrived = true;
    join(gathering.clock, releases || !scene_.is_strict ? runner.clock : runner.fenced);
    ++runner.clock[who.index];
    ++gathering.arrived;
    ++cells_[index].version;
  }
  if (gathering.arrived < all) {
    who.watched = {{index, cells_[index].version}};
    return false;
  }
  join(acquires || !scene_.is_strict ? runner.clock : runner.pending, gathering.clock);
  runner.arrived = false;
  ++passed;
  return true;
}

void World::mark(Process& who, Access::Kind kind, int, std::string_view) {
  Runner& runner = runners_[who.index];
  if (kind != Access::Kind::fence) return;
  join(runner.clock, runner.pending);
  runner.fenced = runner.clock;
}

std::string World::named(const Cell& cell) const {
  if (cell.array < 0) return "a barrier of ranks or programs";
  return fmt::format("{}[{}] of rank {}", arrays_[cell.array].name, cell.number, cell.rank);
}

std::string World::named(int thread, int call) const {
  const int programs = scene_.world * scene_.programs;
  if (thread >= programs)
    return fmt::format("the host of rank {}, call {}", thread - programs, call + 1);
  return fmt::format("rank {}, program {}, call {}", thread / scene_.programs,
                     thread % scene_.programs, call + 1);
}

}  // namespace hemiola::compile::skeleton
