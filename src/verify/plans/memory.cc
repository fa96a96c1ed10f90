// Reads and writes of transfers and tiles: values, races, chunks in transit.
#include <algorithm>

#include "plan/launches.h"
#include "verify/plans/interpreter.h"

namespace hemiola::verify {

using plan::Transfer;
using plan::TransferKind;

namespace {

/// Whether what reads is a reduction into the same place.
bool adds_to(const Unrolled& unrolled, Event now, int rank, const plan::Area& area) {
  if (now.actor >= unrolled.streams()) return false;
  const TransferId id{now.actor, now.number};
  const Transfer& transfer = unrolled.transfer(id);
  if (transfer.reduce == ReduceOp::none || transfer.kind == TransferKind::collective) return false;
  const std::vector<Movement> movements = unrolled.movements(id);
  return std::ranges::any_of(movements, [&](const Movement& movement) {
    return movement.rank == rank && overlap(movement.destination, area);
  });
}

}  // namespace

/// The movement of a transfer between two ranks. Reuses the memory of `out`: this is done for every
/// transfer of large plans.
void PlanInterpreter::convert(TransferId id, AtomMovement& out) const {
  const Transfer& transfer = unrolled_.transfer(id);
  const Indices at = unrolled_.at(id);
  const int self = unrolled_.rank_of(id.stream);
  const int peer = static_cast<int>(transfer.peer(at));
  out.rank = transfer.kind == TransferKind::push ? peer : self;
  out.event = {id.stream, id.number};
  out.destination.clear();
  atoms_.append(transfer.destination, at, out.destination);
  out.sources.resize(transfer.reduce == ReduceOp::none ? 1 : 2);
  out.sources[0].first = transfer.kind == TransferKind::pull ? peer : self;
  out.sources[0].second.clear();
  atoms_.append(transfer.source, at, out.sources[0].second);
  if (transfer.reduce == ReduceOp::none) return;
  out.sources[1].first = out.rank;
  out.sources[1].second.clear();
  atoms_.append(transfer.operand, at, out.sources[1].second);
}

/// All reads come before all writes: a collective may work in place.
void PlanInterpreter::perform(std::vector<AtomMovement>& movements, std::size_t count) {
  for (std::size_t m = 0; m < count; ++m) {
    AtomMovement& movement = movements[m];
    movement.values.clear();
    check_overlap(movement);
    for (std::size_t i = 0; i < movement.destination.size() && !fault_; ++i) {
      Value value = kUndefined;
      for (const auto& [rank, atoms] : movement.sources) {
        check_read(rank, atoms[i], movement.event);
        if (fault_) return;
        read(rank, atoms[i], movement.event);
        value = values_.sum(value, cells_[cell_index(rank, atoms[i])].value);
      }
      movement.values.push_back(value);
    }
  }
  for (std::size_t m = 0; m < count; ++m) {
    const AtomMovement& movement = movements[m];
    for (std::size_t i = 0; i < movement.destination.size() && !fault_; ++i)
      write(movement.rank, movement.destination[i], movement.event, movement.values[i]);
  }
}

/// A transfer that overwrites what it has yet to read depends on the order in which it goes through
/// its elements.
void PlanInterpreter::check_overlap(const AtomMovement& movement) {
  for (const auto& [rank, atoms] : movement.sources) {
    if (rank != movement.rank || atoms == movement.destination || atoms.empty() ||
        atoms_.tensor(atoms.front()) != atoms_.tensor(movement.destination.front()))
      continue;
    if (unrolled_.transfer({movement.event.actor, movement.event.number}).kind ==
        TransferKind::collective)
      continue;
    std::vector<std::int32_t> a = atoms, b = movement.destination, both;
    std::ranges::sort(a);
    std::ranges::sort(b);
    std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
    if (both.empty()) continue;
    return fail("a transfer overwrites " + describe(rank, both.front()) + ", which it reads",
                {witness(movement.event, "reads and writes " + describe(rank, both.front()) +
                                             " as different elements")});
  }
}

void PlanInterpreter::expect_order(Event before, bool before_writes, Event now, bool now_writes,
                                   int rank, std::int32_t atom) {
  if (before.actor < 0 || fault_ || order_.happens_before(before, now)) return;
  const auto word = [](bool writes) { return std::string(writes ? "write" : "read"); };
  fail("data race on " + describe(rank, atom) + ": a " + word(before_writes) + " and a " +
           word(now_writes) + " that nothing orders",
       {witness(before, word(before_writes) + "s " + describe(rank, atom)),
        witness(now, word(now_writes) + "s " + describe(rank, atom) +
                         ", without being ordered after that")});
}

void PlanInterpreter::check_read(int rank, std::int32_t atom, Event now) {
  const std::size_t where = cell_index(rank, atom);
  if (cells_[where].value.defined()) return;
  const bool adds = adds_to(unrolled_, now, rank, atoms_.area(atom));
  std::vector<Witness> steps{witness(now, (adds ? "adds to " : "reads ") + describe(rank, atom))};
  for (std::int32_t s = 0; s < unrolled_.streams(); ++s) {
    if (s == now.actor) continue;  // what comes later there cannot come before
    for (TransferId id{s, streams_[index(s)].position}; id.number < unrolled_.transfers(s);
         ++id.number) {
      if (unrolled_.transfer(id).kind == TransferKind::collective) continue;
      for (const Movement& movement : unrolled_.movements(id)) {
        if (movement.rank != rank || !overlap(movement.destination, atoms_.area(atom))) continue;
        steps.push_back(witness({s, id.number}, "writes it, but may do so later"));
        return fail(
            "data race on " + describe(rank, atom) + ": it may be read before it has arrived",
            std::move(steps));
      }
    }
  }
  if (const auto found = tile_cells_.find(where); found != tile_cells_.end()) {
    const std::int32_t own =
        now.actor < unrolled_.streams() ? -1 : tiles_[index(now.actor - event_of(0).actor)].compute;
    for (const std::int32_t tile : found->second.writers) {
      const Tile& writer = tiles_[index(tile)];
      if (writer.done || writer.compute == own) continue;
      steps.push_back(witness(event_of(tile), "computes it, but may do so later"));
      return fail("data race on " + describe(rank, atom) + ": it may be read before it is computed",
                  std::move(steps));
    }
  }
  fail(adds ? "a reduction adds to " + describe(rank, atom) + ", which nothing has written"
            : describe(rank, atom) + " is read, and nothing has written it",
       std::move(steps));
}

void PlanInterpreter::read(int rank, std::int32_t atom, Event now) {
  const std::size_t where = cell_index(rank, atom);
  PlanCell& cell = cells_[where];
  if (in_transit_[index(atom)] != 0) forward(rank, atom, now);
  expect_order(cell.writer, true, now, false, rank, atom);
  if (!tile_cells_.empty()) {
    if (const auto found = tile_cells_.find(where); found != tile_cells_.end())
      for (const std::int32_t tile : found->second.wrote)
        expect_order(event_of(tile), true, now, false, rank, atom);
  }
  if (cell.reader.actor >= 0 && cell.reader.actor != now.actor) {
    if (cell.readers == nullptr) cell.readers = std::make_unique<std::vector<Event>>();
    std::erase_if(*cell.readers, [&](Event e) { return e.actor == cell.reader.actor; });
    cell.readers->push_back(cell.reader);
  }
  cell.reader = now;
}

/// A chunk in transit is read once, by the stream that it came for, in the order of arrival.
void PlanInterpreter::forward(int rank, std::int32_t atom, Event now) {
  const PlanCell& cell = cells_[cell_index(rank, atom)];
  if (cell.writer.actor < 0) return;
  const Witness arrival =
      witness(cell.writer, "sends " + describe(rank, atom) + ", which is in transit");
  const bool stream = now.actor < unrolled_.streams();
  if (!stream || unrolled_.rank_of(now.actor) != rank ||
      unrolled_.index_of(now.actor) != unrolled_.index_of(cell.writer.actor)) {
    return fail(
        describe(rank, atom) + " is in transit, and not forwarded by the stream it came for",
        {arrival, witness(now, "reads it")});
  }
  if (cell.reader == now) return;  // a multicast reads it once for all members
  if (cell.reader.actor >= 0) {
    return fail(describe(rank, atom) + " is in transit, and read more than once",
                {arrival, witness(cell.reader, "reads it"), witness(now, "reads it again")});
  }
  const std::uint64_t pair =
      static_cast<std::uint64_t>(now.actor) << 32 | static_cast<std::uint32_t>(cell.writer.actor);
  std::int32_t& last = forwarded_.try_emplace(pair, -1).first->second;
  if (cell.writer.number < last) {
    return fail(describe(rank, atom) + " is in transit, and overtaken by what was sent later",
                {arrival, witness({cell.writer.actor, last}, "sends what was forwarded before it"),
                 witness(now, "forwards it")});
  }
  last = cell.writer.number;
}

void PlanInterpreter::write(int rank, std::int32_t atom, Event now, Value value) {
  const std::size_t where = cell_index(rank, atom);
  PlanCell& cell = cells_[where];
  expect_order(cell.writer, true, now, true, rank, atom);
  expect_order(cell.reader, false, now, true, rank, atom);
  if (cell.readers != nullptr)
    for (const Event reader : *cell.readers) expect_order(reader, false, now, true, rank, atom);
  if (fault_) return;
  if (in_transit_[index(atom)] != 0 && cell.writer.actor >= 0 && cell.reader.actor < 0) {
    return fail(describe(rank, atom) + " is in transit, and overwritten before it was forwarded",
                {witness(cell.writer, "sends it"), witness(now, "overwrites it")});
  }
  if (cell.value.defined() && cell.value == value && repeated_++ == 0) {
    first_repeated_ = Finding{describe(rank, atom) + " arrives again, with the value it has",
                              {witness(now, "writes it")}};
  }
  if (!tile_cells_.empty()) {
    if (const auto found = tile_cells_.find(where); found != tile_cells_.end()) {
      for (const std::int32_t tile : found->second.wrote)
        expect_order(event_of(tile), true, now, true, rank, atom);
      found->second.wrote.clear();
      if (!found->second.readers.empty() && --found->second.arriving == 0) {
        for (const std::int32_t tile : found->second.readers)
          if (--tiles_[index(tile)].waiting == 0) ready_tiles_.push_back(tile);
      }
    }
  }
  cell.value = value;
  cell.writer = now;
  cell.reader = {};
  if (cell.readers != nullptr) cell.readers->clear();
}

/// What a tile adds to is there: something that it is ordered after, or its own launch has begun to
/// add.
void PlanInterpreter::check_sum(int rank, std::int32_t atom, std::int32_t tile) {
  if (!cells_[cell_index(rank, atom)].value.defined()) check_read(rank, atom, event_of(tile));
}

/// Tiles of one compute may sum up in any order; everything else needs one.
void PlanInterpreter::write_tile(int rank, std::int32_t atom, std::int32_t tile, plan::Use use) {
  const std::size_t where = cell_index(rank, atom);
  PlanCell& cell = cells_[where];
  TileCell& beside = tile_cells_.at(where);
  const Event now = event_of(tile);
  const Tile& self = tiles_[index(tile)];
  expect_order(cell.writer, true, now, true, rank, atom);
  expect_order(cell.reader, false, now, true, rank, atom);
  if (cell.readers != nullptr)
    for (const Event reader : *cell.readers) expect_order(reader, false, now, true, rank, atom);
  bool first = true, all_before = self.launch >= 0;
  for (const std::int32_t other : beside.wrote) {
    const bool together = sums(use) && tiles_[index(other)].compute == self.compute;
    if (!together) {
      expect_order(event_of(other), true, now, true, rank, atom);
      all_before = all_before && order_.happens_before(event_of(other), start_of(self.launch));
    }
    first = first && !together;
  }
  if (fault_) return;
  if (first) {
    const Value made = computed(atom, rank, self.compute, use == plan::Use::add);
    // What the persistent kernel accumulates in may be the caller's, and goes on there.
    const bool goes_on = use == plan::Use::add || (use == plan::Use::accumulate && self.launch < 0);
    cell.value = goes_on ? values_.sum(cell.value, made) : made;
    // Whoever comes after a tile of this launch comes after these.
    if (all_before) beside.wrote.clear();
  }
  beside.wrote.push_back(tile);
}

/// What a tile reads is right if it is what the rank expects there; else, if it is what some rank
/// held or computed of just these elements; of a tensor that the plan reduces, the sum of what all
/// of them did.
void PlanInterpreter::check_tile_input(int rank, std::int32_t atom, std::int32_t tile) {
  check_read(rank, atom, event_of(tile));
  if (fault_) return;
  const Value value = cells_[cell_index(rank, atom)].value;
  Meaning meaning{atom, reduced_tensors_[index(atoms_.tensor(atom))], -1};
  if (const auto found = meanings_.find(cell_index(rank, atom)); found != meanings_.end())
    meaning = found->second;
  if (!owners(meaning.source).defined()) {
    unknown_inputs_.insert(atoms_.tensor(atom));
    return;
  }
  if (is_right(value, meaning)) return;
  std::vector<Witness> steps;
  if (cells_[cell_index(rank, atom)].writer.actor >= 0)
    steps.push_back(witness(cells_[cell_index(rank, atom)].writer,
                            "is the last to write " + describe(rank, atom)));
  steps.push_back(witness(event_of(tile), "reads " + describe(rank, atom)));
  fail("a tile reads " + describe(value) + " where " + describe(rank, atom) + " belongs",
       std::move(steps));
}

std::optional<Finding> PlanInterpreter::left_in_transit() const {
  for (int rank = 0; rank < plan_.ranks; ++rank) {
    for (std::int32_t atom = 0; atom < atoms_.count(); ++atom) {
      if (in_transit_[index(atom)] == 0) continue;
      const PlanCell& cell = cells_[cell_index(rank, atom)];
      if (cell.writer.actor < 0 || cell.reader.actor >= 0) continue;
      return Finding{describe(rank, atom) + " is in transit, and never forwarded",
                     {witness(cell.writer, "sends it")}};
    }
  }
  return std::nullopt;
}

void PlanInterpreter::fail(std::string summary, std::vector<Witness> steps) {
  if (!fault_) fault_ = Finding{std::move(summary), std::move(steps)};
}

}  // namespace hemiola::verify
