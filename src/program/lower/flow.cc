#include "program/lower/flow.h"

#include <algorithm>

#include "core/index.h"
#include "program/lower/rows.h"

namespace hemiola::program::general {
namespace {

/// A destination of a movement, whose first unit would stand at `origin` if it were one piece.
struct Write {
  MovementId id{};
  std::size_t destination = 0;
  std::int64_t origin = 0;
};
using Memory = MemoryMap<Write, MovementId>;  // of one tensor on one rank

class Tracer {
 public:
  Tracer(const plan::Plan& plan, const Movements& movements)
      : plan_(plan), movements_(movements), distinct_(plan, movements) {}

  Flow trace() {
    for (const MovementId& id : in_order(movements_)) {
      const Movement& movement = at(movements_, id);
      for (std::size_t s = 0; s < movement.sources.size(); ++s) read(id, s, movement.sources[s]);
      for (std::size_t d = 0; d < movement.destinations.size(); ++d)
        write(id, d, movement.destinations[d]);
    }
    auto& conflicts = flow_.conflicts;
    std::ranges::sort(conflicts);
    conflicts.erase(std::unique(conflicts.begin(), conflicts.end()), conflicts.end());
    return std::move(flow_);
  }

 private:
  template <class Visit>
  void each_row(const Place& place, Visit&& visit) {
    if (place.packets) return;
    each_rank(plan_, place, [&](int rank) {
      Memory& memory = memory_[{rank, place.area.tensor}];
      std::int64_t done = 0;
      distinct_.each(place, [&](std::int64_t begin, std::int64_t end) {
        visit(memory, begin, end, done);
        done += end - begin;
      });
    });
  }

  void conflict(const MovementId& earlier, const MovementId& later, bool loads_first) {
    if (earlier.index >= 0 && earlier != later)
      flow_.conflicts.push_back({earlier, later, loads_first});
  }

  void read(const MovementId& id, std::size_t source, const Place& place) {
    each_row(place, [&](Memory& memory, std::int64_t begin, std::int64_t end, std::int64_t done) {
      memory.each(begin, end, [&](std::int64_t from, Memory::Cell& cell) {
        const Write& write = cell.writer;
        conflict(write.id, id, false);
        flow_.readings.push_back({id, source, done + from - begin, write.id, write.destination,
                                  from - write.origin, cell.end - from});
        cell.read_by(id);
      });
    });
  }

  void write(const MovementId& id, std::size_t destination, const Place& place) {
    each_row(place, [&](Memory& memory, std::int64_t begin, std::int64_t end, std::int64_t done) {
      memory.each(begin, end, [&](std::int64_t, Memory::Cell& cell) {
        conflict(cell.writer.id, id, false);
        for (const MovementId& reader : cell.readers) conflict(reader, id, true);
      });
      memory.write(begin, end, {id, destination, begin - done});
    });
  }

  const plan::Plan& plan_;
  const Movements& movements_;
  const DistinctRows distinct_;
  std::map<std::pair<int, std::int32_t>, Memory> memory_;
  Flow flow_;
};

}  // namespace

std::vector<MovementId> in_order(const Movements& movements) {
  std::vector<MovementId> ids;
  each_movement(movements, [&](const MovementId& id, const Movement&) { ids.push_back(id); });
  std::ranges::stable_sort(ids, [&](const MovementId& a, const MovementId& b) {
    return at(movements, a).level < at(movements, b).level;
  });
  return ids;
}

Flow flow_of(const plan::Plan& plan, const Movements& movements) {
  return Tracer(plan, movements).trace();
}

std::vector<bool> observed_tensors(const plan::Plan& plan) {
  std::vector<bool> observed;
  for (const plan::Tensor& tensor : plan.tensors)
    observed.push_back(tensor.role == plan::Role::input || tensor.role == plan::Role::output);
  for (const plan::Code& code : plan.codes)
    for (const plan::Expectation& expected : code.expected)
      observed[index(expected.region.tensor)] = true;
  return observed;
}

}  // namespace hemiola::program::general
