#include "verify/plans/interpreter.h"

#include <algorithm>

#include "plan/in_place.h"
#include "plan/tiles.h"

namespace hemiola::verify {

using plan::Transfer;
using plan::TransferKind;

namespace {

/// Transfers after which the monitor is asked.
constexpr std::int64_t kTransfersUntilAsked = 1024;

std::int32_t tiles_of(const plan::Plan& plan) {
  std::int64_t total = 0;
  for (int rank = 0; rank < plan.ranks; ++rank)
    for (const plan::Compute& compute : plan.code(rank).computes) total += count_tiles(compute);
  constexpr std::int64_t kMostTiles = 10'000'000;
  if (total > kMostTiles)
    throw Failure("plan '" + plan.name + "' computes " + std::to_string(total) + " tiles", {},
                  "at most 10 million are checked: larger tiles, or fewer ranks");
  return static_cast<std::int32_t>(total);
}

std::int32_t launches_of(const plan::Plan& plan) {
  std::int32_t total = 0;
  for (int rank = 0; rank < plan.ranks; ++rank)
    for (const plan::Compute& compute : plan.code(rank).computes) total += compute.is_launch();
  return total;
}

}  // namespace

PlanInterpreter::PlanInterpreter(const Unrolled& unrolled, const Atoms& atoms)
    : unrolled_(unrolled),
      plan_(unrolled.plan()),
      atoms_(atoms),
      order_(unrolled.streams(), tiles_of(unrolled.plan()) + 2 * launches_of(unrolled.plan())),
      cells_(index(plan_.ranks) * index(atoms.count())),
      reduced_tensors_(unrolled.reduced_tensors()),
      streams_(index(unrolled.streams())),
      arrived_(unrolled.meetings().size()) {
  for (std::int32_t atom = 0; atom < atoms.count(); ++atom)
    in_transit_.push_back(plan_.tensors[index(atoms.tensor(atom))].role == plan::Role::transit);
  create_launches();
  create_tiles();
  initialise();
}

void PlanInterpreter::initialise() {
  std::vector<std::int32_t> atoms;
  for (int rank = 0; rank < plan_.ranks; ++rank) {
    atoms.clear();
    for (const plan::Area& area : residents(plan_, rank)) atoms_.append(area, atoms);
    for (const std::int32_t atom : atoms)
      cells_[cell_index(rank, atom)].value = values_.input(rank, atom);
  }
  if (plan::states_result(plan_) || !tiles_.empty()) find_owners();
  if (!tiles_.empty()) find_meanings();
}

PlanInterpreter::End PlanInterpreter::run(const Monitor* monitor) {
  monitor_ = monitor;
  for (std::int32_t s = 0; s < unrolled_.streams(); ++s) ready_.push_back(s);
  for (std::int32_t l = 0; l < std::ssize(launches_); ++l) start_launch(l);
  while (!fault_ && (!ready_.empty() || !ready_tiles_.empty())) {
    if (monitor_ != nullptr) monitor_->leave_if_stopping();
    if (!ready_tiles_.empty()) {
      const std::int32_t tile = ready_tiles_.front();
      ready_tiles_.pop_front();
      start_tile(tile);
      continue;
    }
    const std::int32_t stream = ready_.front();
    ready_.pop_front();
    stream < unrolled_.streams() ? advance(stream) : start_launch(stream - unrolled_.streams());
  }
  if (fault_) return End::wrong;
  for (std::int32_t s = 0; s < unrolled_.streams(); ++s)
    if (streams_[index(s)].position < unrolled_.transfers(s)) return End::stuck;
  return std::ranges::all_of(tiles_, [](const Tile& tile) { return tile.done; }) ? End::finished
                                                                                 : End::stuck;
}

/// Runs a stream until it has to wait.
void PlanInterpreter::advance(std::int32_t stream) {
  StreamState& self = streams_[index(stream)];
  while (!fault_ && self.position < unrolled_.transfers(stream)) {
    const TransferId id{stream, self.position};
    if (self.arrived || !may_start(id)) return;
    if (++operations_ % kTransfersUntilAsked == 0 && monitor_ != nullptr)
      monitor_->leave_if_stopping();
    if (unrolled_.transfer(id).kind == TransferKind::collective) {
      self.arrived = true;
      meet(unrolled_.meeting_of(id));
      continue;
    }
    const Transfer& transfer = unrolled_.transfer(id);
    std::size_t count = 1;
    if (transfer.group < 0) {
      if (movements_.empty()) movements_.resize(1);
      convert(id, movements_.front());
    } else {
      count = 0;
      for (const Movement& movement : unrolled_.movements(id)) {
        if (movements_.size() == count) movements_.emplace_back();
        AtomMovement& out = movements_[count++];
        out = {movement.rank, {stream, id.number}, atoms_.of(movement.destination), {}, {}};
        for (const auto& [rank, area] : movement.sources)
          out.sources.emplace_back(rank, atoms_.of(area));
      }
    }
    perform(movements_, count);
    done(stream);
  }
}

/// Everything that the transfer names has happened, and is known to its stream; else the stream is
/// registered with the first that has not.
bool PlanInterpreter::may_start(TransferId id) {
  StreamState& self = streams_[index(id.stream)];
  const std::vector<plan::Dependency>& after = unrolled_.transfer(id).after;
  if (after.empty()) return true;
  self.transfer.stream = -1;
  self.cell = -1;
  self.launch = -1;
  const Indices at = unrolled_.at(id);
  for (const plan::Dependency& dependency : after) {
    if (dependency.computed) {
      if (!all_written(dependency, at, id)) return false;
      continue;
    }
    if (dependency.compute) {
      const std::int32_t launch =
          launch_of(static_cast<int>(dependency.rank(at)), (*dependency.compute)(at));
      if (!launch_done(launch, id.stream)) return false;
      order_.learn({id.stream, id.number}, end_of(launch));
      continue;
    }
    const TransferId target = unrolled_.target(dependency, at);
    StreamState& other = streams_[index(target.stream)];
    if (other.position <= target.number) {
      self.transfer = target;
      other.waiters.push_back({id.stream, target.number});
      other.next_wake = std::min(other.next_wake, target.number);
      return false;
    }
  }
  for (const plan::Dependency& dependency : after) {
    if (!dependency.on_transfer()) continue;
    const TransferId target = unrolled_.target(dependency, at);
    order_.learn({id.stream, id.number}, {target.stream, target.number});
  }
  return true;
}

bool PlanInterpreter::all_written(const plan::Dependency& dependency, const Indices& at,
                                  TransferId id) {
  StreamState& self = streams_[index(id.stream)];
  const int rank = static_cast<int>(dependency.rank(at));
  std::vector<TileCell*> cells;
  for (const std::int32_t atom : atoms_.of(evaluate(*dependency.computed, at))) {
    const auto found = tile_cells_.find(cell_index(rank, atom));
    if (found == tile_cells_.end()) continue;
    if (found->second.writing > 0) {
      found->second.blocked.push_back(id.stream);
      self.cell = static_cast<std::int64_t>(found->first);
      return false;
    }
    cells.push_back(&found->second);
  }
  for (const TileCell* cell : cells) {
    for (const std::int32_t tile : cell->writers) {
      const Tile& writer = tiles_[index(tile)];
      if (!waits_by_itself(writer) && !launch_done(writer.launch, id.stream)) return false;
    }
  }
  for (const TileCell* cell : cells) {
    for (const std::int32_t tile : cell->writers) {
      const Tile& writer = tiles_[index(tile)];
      order_.learn({id.stream, id.number},
                   waits_by_itself(writer) ? event_of(tile) : end_of(writer.launch));
    }
  }
  return true;
}

/// The last member to come performs the collective; all go on.
void PlanInterpreter::meet(std::int32_t number) {
  const Meeting& meeting = unrolled_.meetings()[index(number)];
  if (++arrived_[index(number)] < static_cast<std::int32_t>(meeting.members.size())) return;
  const auto event = [](TransferId id) { return Event{id.stream, id.number}; };
  if (const std::string wrong = unrolled_.disagreement(meeting); !wrong.empty()) {
    std::vector<Witness> steps;
    for (const TransferId id : meeting.members)
      steps.push_back(
          witness(event(id), "takes part in collective of group " + std::to_string(meeting.group)));
    return fail(wrong, std::move(steps));
  }
  // Through the first member everybody knows everybody.
  const Event first = event(meeting.members.front());
  for (const TransferId id : meeting.members) order_.learn(first, event(id));
  for (const TransferId id : meeting.members) order_.learn(event(id), first);
  std::vector<AtomMovement> movements;
  for (const Movement& movement : unrolled_.movements(meeting)) {
    AtomMovement& out = movements.emplace_back();
    out.rank = movement.rank;
    out.destination = atoms_.of(movement.destination);
    for (const auto& [rank, area] : movement.sources)
      out.sources.emplace_back(rank, atoms_.of(area));
    for (const TransferId id : meeting.members)
      if (unrolled_.rank_of(id.stream) == movement.rank) out.event = event(id);
  }
  perform(movements, movements.size());
  for (const TransferId id : meeting.members) {
    streams_[index(id.stream)].arrived = false;
    done(id.stream);
    ready_.push_back(id.stream);
  }
}

/// The stream's present transfer is complete.
void PlanInterpreter::done(std::int32_t stream) {
  StreamState& self = streams_[index(stream)];
  ++self.position;
  if (self.position <= self.next_wake) return;
  self.next_wake = INT32_MAX;
  std::erase_if(self.waiters, [&](const TransferId& waiter) {
    if (waiter.number < self.position) {
      ready_.push_back(waiter.stream);
      return true;
    }
    self.next_wake = std::min(self.next_wake, waiter.number);
    return false;
  });
}

void PlanInterpreter::start_tile(std::int32_t tile) {
  Tile& self = tiles_[index(tile)];
  ++operations_;
  const Event now = event_of(tile);
  if (self.launch >= 0) order_.learn(now, start_of(self.launch));
  for (const auto* atoms : {&self.reads, &self.adds}) {
    for (const std::int32_t atom : *atoms) {
      if (!waits_by_itself(self)) break;
      for (const TransferId arrival : tile_cells_.at(cell_index(self.rank, atom)).arrivals)
        order_.learn(now, {arrival.stream, arrival.number});
    }
  }
  for (const std::int32_t atom : self.reads) {
    check_tile_input(self.rank, atom, tile);
    if (fault_) return;
    read(self.rank, atom, now);
  }
  for (const std::int32_t atom : self.writes) write_tile(self.rank, atom, tile, plan::Use::write);
  for (const std::int32_t atom : self.accumulates)
    write_tile(self.rank, atom, tile, plan::Use::accumulate);
  for (const std::int32_t atom : self.adds) {
    check_sum(self.rank, atom, tile);
    if (fault_) return;
    write_tile(self.rank, atom, tile, plan::Use::add);
  }
  self.done = true;
  if (self.launch >= 0) tile_done(self.launch, tile);
  for (const auto* atoms : {&self.writes, &self.accumulates, &self.adds}) {
    for (const std::int32_t atom : *atoms) {
      TileCell& cell = tile_cells_.at(cell_index(self.rank, atom));
      if (--cell.writing > 0) continue;
      ready_.insert(ready_.end(), cell.blocked.begin(), cell.blocked.end());
      cell.blocked.clear();
    }
  }
}

}  // namespace hemiola::verify
