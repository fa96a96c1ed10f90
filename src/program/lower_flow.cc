#include "program/lower_flow.h"

#include <algorithm>

namespace hemiola::program::general {
namespace {

std::size_t index(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

/// Memory of one tensor on one rank: who wrote each unit last, and who has read it since.
class Memory {
 public:
  struct Cell {
    std::int64_t end = 0;
    MovementId writer{};
    std::size_t destination = 0;
    std::int64_t offset = 0;  ///< of its first unit, in the writer's place
    std::vector<MovementId> readers{};
  };

  /// Visits the cells of [begin, end) as `visit(begin, cell)`, cut there.
  template <class Visit>
  void each(std::int64_t begin, std::int64_t end, Visit&& visit) {
    cut(begin);
    cut(end);
    for (std::int64_t at = begin; at < end;) {
      auto cell = cells_.lower_bound(at);
      if (cell == cells_.end() || cell->first > at) {  // nobody has been here
        const std::int64_t until = cell == cells_.end() ? end : std::min(end, cell->first);
        cell = cells_.emplace(at, Cell{.end = until}).first;
      }
      visit(at, cell->second);
      at = cell->second.end;
    }
  }

  void write(std::int64_t begin, std::int64_t end, const MovementId& writer,
             std::size_t destination, std::int64_t offset) {
    cells_.erase(cells_.lower_bound(begin), cells_.lower_bound(end));
    cells_[begin] = {end, writer, destination, offset, {}};
  }

 private:
  void cut(std::int64_t at) {
    auto cell = cells_.upper_bound(at);
    if (cell == cells_.begin()) return;
    --cell;
    if (cell->first >= at || cell->second.end <= at) return;
    Cell rest = cell->second;
    rest.offset += at - cell->first;
    cell->second.end = at;
    cells_.emplace(at, std::move(rest));
  }
  std::map<std::int64_t, Cell> cells_;  // by begin; disjoint
};

class Tracer {
 public:
  Tracer(const plan::Plan& plan, const Movements& movements) : plan_(plan), movements_(movements) {}

  Flow trace() {
    for (const MovementId& id : in_order(movements_)) {
      const Movement& movement = at(movements_, id);
      for (std::size_t s = 0; s < movement.sources.size(); ++s) read(id, s, movement.sources[s]);
      for (std::size_t d = 0; d < movement.destinations.size(); ++d)
        write(id, d, movement.destinations[d]);
    }
    auto& conflicts = flow_.conflicts;
    std::sort(conflicts.begin(), conflicts.end());
    conflicts.erase(std::unique(conflicts.begin(), conflicts.end()), conflicts.end());
    return std::move(flow_);
  }

 private:
  template <class Visit>
  void each_segment(const Place& place, Visit&& visit) {
    if (place.packets) return;
    const std::vector<int> one{place.rank};
    for (const int rank : place.group < 0 ? one : plan_.groups[index(place.group)]) {
      Memory& memory = memory_[{rank, place.area.tensor}];
      std::int64_t done = 0;
      for (const plan::Segment& segment : place.segments) {
        visit(memory, segment.offset, segment.offset + segment.count, done);
        done += segment.count;
      }
    }
  }

  void conflict(const MovementId& earlier, const MovementId& later, bool loads_first) {
    if (earlier.index >= 0 && earlier != later)
      flow_.conflicts.push_back({earlier, later, loads_first});
  }

  void read(const MovementId& id, std::size_t source, const Place& place) {
    each_segment(place,
                 [&](Memory& memory, std::int64_t begin, std::int64_t end, std::int64_t done) {
                   memory.each(begin, end, [&](std::int64_t from, Memory::Cell& cell) {
                     conflict(cell.writer, id, false);
                     flow_.readings.push_back({id, source, done + from - begin, cell.writer,
                                               cell.destination, cell.offset, cell.end - from});
                     if (cell.readers.empty() || cell.readers.back() != id)
                       cell.readers.push_back(id);
                   });
                 });
  }

  void write(const MovementId& id, std::size_t destination, const Place& place) {
    each_segment(place,
                 [&](Memory& memory, std::int64_t begin, std::int64_t end, std::int64_t done) {
                   memory.each(begin, end, [&](std::int64_t, Memory::Cell& cell) {
                     conflict(cell.writer, id, false);
                     for (const MovementId& reader : cell.readers) conflict(reader, id, true);
                   });
                   memory.write(begin, end, id, destination, done);
                 });
  }

  const plan::Plan& plan_;
  const Movements& movements_;
  std::map<std::pair<int, std::int32_t>, Memory> memory_;
  Flow flow_;
};

}  // namespace

std::vector<MovementId> in_order(const Movements& movements) {
  std::vector<MovementId> ids;
  for (std::size_t rank = 0; rank < movements.size(); ++rank) {
    for (std::size_t stream = 0; stream < movements[rank].size(); ++stream) {
      for (std::size_t i = 0; i < movements[rank][stream].size(); ++i)
        ids.push_back({static_cast<int>(rank), static_cast<std::int32_t>(stream),
                       static_cast<std::int64_t>(i)});
    }
  }
  std::stable_sort(ids.begin(), ids.end(), [&](const MovementId& a, const MovementId& b) {
    return at(movements, a).level < at(movements, b).level;
  });
  return ids;
}

Flow flow_of(const plan::Plan& plan, const Movements& movements) {
  return Tracer(plan, movements).trace();
}

void raise(Known& known, const Stream& stream, std::int64_t last) {
  const auto [found, fresh] = known.try_emplace(stream, last);
  if (!fresh) found->second = std::max(found->second, last);
}

void join(Known& into, const Known& other) {
  for (const auto& [stream, last] : other) raise(into, stream, last);
}

bool knows(const Known& known, const Stream& stream, std::int64_t last) {
  const auto found = known.find(stream);
  return found != known.end() && found->second >= last;
}

std::vector<bool> observed_tensors(const plan::Plan& plan) {
  std::vector<bool> observed;
  for (const plan::Tensor& tensor : plan.tensors)
    observed.push_back(tensor.role == plan::Role::input || tensor.role == plan::Role::output);
  for (const plan::Code& code : plan.codes) {
    for (const plan::Expectation& expected : code.expected)
      observed[index(expected.region.tensor)] = true;
  }
  return observed;
}

}  // namespace hemiola::program::general
