// Transfers of a plan as movements between places.
#include <fmt/format.h>

#include <algorithm>

#include "core/index.h"
#include "program/lower/launches.h"

namespace hemiola::program::general {
namespace {

using plan::Transfer;
using plan::TransferKind;

class MovementMaker {
 public:
  MovementMaker(const plan::Plan& plan, const LowerOptions& options)
      : plan_(plan), options_(options) {}

  Movements make() {
    each_transfer(
        [&](const Transfer& transfer, const Indices& at, std::int32_t stream, std::int64_t number) {
          if (transfer.kind != TransferKind::collective) return;
          const int rank = static_cast<int>(at.rank);
          calls_[{transfer.group, rank}].push_back({&transfer, at, stream, number});
        });
    movements_.resize(index(plan_.ranks));
    marks_.resize(index(plan_.ranks));
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      movements_[index(rank)].resize(plan_.code(rank).streams.size());
      marks_[index(rank)].resize(plan_.code(rank).streams.size());
    }
    each_transfer([&](const Transfer& transfer, const Indices& at, std::int32_t stream,
                      std::int64_t number) { add(transfer, at, stream, number); });
    for (int rank = 0; rank < plan_.ranks; ++rank) add_gates(rank);
    for (const Link& link : links_) resolve(link);
    return std::move(movements_);
  }

 private:
  /// A collective that a rank takes part in.
  struct Call {
    const Transfer* transfer;
    Indices at;
    std::int32_t stream;
    std::int64_t number;
  };
  /// Movements of a transfer: the meeting at its begin, its last data, its end.
  struct Marks {
    std::int64_t begin = 0, data = 0, end = 0;
  };
  enum class Mark : std::uint8_t { begin, data, end };
  struct Link {
    MovementId of;
    MovementId to;  ///< by the number of its transfer
    Mark mark;
  };

  template <class Visit>
  void each_transfer(Visit&& visit) {
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      const auto& streams = plan_.code(rank).streams;
      for (std::size_t s = 0; s < streams.size(); ++s) {
        std::int64_t number = 0;
        plan::for_each_transfer(streams[s], rank, [&](const Transfer& transfer, const Indices& at) {
          visit(transfer, at, static_cast<std::int32_t>(s), number++);
        });
      }
    }
  }

  void resolve(const Link& link) {
    const Marks& marks = marks_[index(link.to.rank)][index(link.to.stream)][index(link.to.index)];
    const std::int64_t at = link.mark == Mark::begin  ? marks.begin
                            : link.mark == Mark::data ? marks.data
                                                      : marks.end;
    general::at(movements_, link.of).after.push_back({{link.to.rank, link.to.stream, at}});
  }

  Place place(int rank, const plan::Region& region, const Indices& at) const {
    Place made{rank, -1, plan::evaluate(region, at), {}};
    made.rows = rows_of(plan_.tensors[index(region.tensor)], made.area);
    return made;
  }

  static Place through_switch(Place place, std::int32_t group) {
    place.group = group;
    return place;
  }

  static Place moved_to(Place place, int rank) {
    place.rank = rank;
    return place;
  }

  Movement& append(const Indices& at, std::int32_t stream, std::int64_t number) {
    Movement movement;
    movement.rank = static_cast<int>(at.rank);
    movement.stream = stream;
    const std::string& name = plan_.stream(movement.rank, stream).name;
    movement.where = fmt::format("/{}/{}", name.empty() ? std::to_string(stream) : name, number);
    auto& list = movements_[index(at.rank)][index(stream)];
    list.push_back(std::move(movement));
    return list.back();
  }

  void link(const Indices& at, std::int32_t stream, int rank, std::int32_t of_stream,
            std::int64_t transfer, Mark mark) {
    const int own = static_cast<int>(at.rank);
    const std::int64_t last = std::ssize(movements_[index(own)][index(stream)]) - 1;
    links_.push_back({{own, stream, last}, {rank, of_stream, transfer}, mark});
  }

  void add_dependencies(const Transfer& transfer, const Indices& at, std::int32_t stream) {
    for (const plan::Dependency& dependency : transfer.after) {
      const auto rank = static_cast<int>(dependency.rank(at));
      if (dependency.compute) {
        movements_[index(at.rank)][index(stream)].back().launches.emplace_back(
            rank, static_cast<std::int32_t>((*dependency.compute)(at)));
      } else if (dependency.computed) {
        movements_[index(at.rank)][index(stream)].back().computed.emplace_back(
            rank, plan::evaluate(*dependency.computed, at));
      } else {
        link(at, stream, rank, dependency.stream, dependency.transfer(at), Mark::end);
      }
    }
  }

  /// Meeting points where launches wait for transfers.
  void add_gates(int rank) {
    const plan::Code& code = plan_.code(rank);
    const Indices at{.rank = rank};
    for (const auto& [compute, stream] : gates_of(code)) {
      Movement gate;
      gate.rank = rank;
      gate.stream = stream;
      gate.where = "/" + code.computes[index(compute)].name;
      movements_[index(rank)].push_back({std::move(gate)});
      for (const plan::Dependency& d : code.computes[index(compute)].after)
        if (d.on_transfer())
          link(at, stream, static_cast<int>(d.rank(at)), d.stream, d.transfer(at), Mark::end);
    }
  }

  void add(const Transfer& transfer, const Indices& at, std::int32_t stream, std::int64_t number) {
    auto& marks = marks_[index(at.rank)][index(stream)];
    const auto next = [&] {
      return static_cast<std::int64_t>(movements_[index(at.rank)][index(stream)].size());
    };
    Marks mark;
    mark.begin = next();
    Movement& movement = append(at, stream, number);
    if (transfer.kind == TransferKind::collective) {
      add_dependencies(transfer, at, stream);
      add_collective(transfer, at, stream, number);
      mark.data = next() - 2;
    } else {
      fill(movement, transfer, at);
      add_dependencies(transfer, at, stream);
      mark.data = next() - 1;
    }
    mark.end = next() - 1;
    marks.push_back(mark);
  }

  void fill(Movement& movement, const Transfer& transfer, const Indices& at) {
    const auto own = static_cast<int>(at.rank);
    const int peer = transfer.group >= 0 ? own : static_cast<int>(transfer.peer(at));
    const bool pulls = transfer.kind == TransferKind::pull;
    const bool pushes = transfer.kind == TransferKind::push;
    Place source = place(pulls ? peer : own, transfer.source, at);
    Place destination = place(pushes ? peer : own, transfer.destination, at);
    if (transfer.group >= 0) return fill_group(movement, transfer, source, destination);
    movement.sources.push_back(std::move(source));
    if (transfer.reduce != ReduceOp::none) {
      const Place operand = place(destination.rank, transfer.operand, at);
      movement.sources.insert(pulls ? movement.sources.begin() : movement.sources.end(), operand);
    }
    movement.destinations.push_back(std::move(destination));
  }

  void fill_group(Movement& movement, const Transfer& transfer, const Place& source,
                  const Place& destination) {
    const bool by_switch = options_.realization == Realization::multicast;
    const std::vector<int>& members = plan_.groups[index(transfer.group)];
    const bool pushes = transfer.kind == TransferKind::push;
    const Place& shared = pushes ? destination : source;
    std::vector<Place>& many = pushes ? movement.destinations : movement.sources;
    if (by_switch) {
      many.push_back(through_switch(shared, transfer.group));
    } else {
      many.push_back(shared);
      for (const int member : members)
        if (member != movement.rank) many.push_back(moved_to(shared, member));
      if (pushes && same(source, destination)) many.erase(many.begin());
    }
    (pushes ? movement.sources : movement.destinations).push_back(pushes ? source : destination);
  }

  /// Part `block` of `blocks` of a place, as even as it goes.
  static Place block_of(const Place& whole, std::int64_t block, std::int64_t blocks) {
    const std::int64_t units = whole.units();
    const auto begin = [&](std::int64_t b) {
      return b * (units / blocks) + std::min(b, units % blocks);
    };
    Place part = whole;
    part.rows = part_of(whole.rows, begin(block), begin(block + 1) - begin(block));
    return part;
  }

  void move(const Indices& at, std::int32_t stream, std::int64_t number, std::vector<Place> sources,
            std::vector<Place> destinations) {
    if (sources.front().rows.empty()) return;
    if (sources.size() == 1 && destinations.size() == 1 && same(sources[0], destinations[0]))
      return;
    Movement& movement = append(at, stream, number);
    movement.sources = std::move(sources);
    movement.destinations = std::move(destinations);
  }

  void add_collective(const Transfer& transfer, const Indices& at, std::int32_t stream,
                      std::int64_t number) {
    const std::vector<int>& members = plan_.groups[index(transfer.group)];
    const auto own = static_cast<int>(at.rank);
    const auto size = static_cast<std::int64_t>(members.size());
    std::vector<Call> calls;
    const auto& mine = calls_[{transfer.group, own}];
    const auto turn =
        index(std::ranges::find_if(
                  mine, [&](const Call& c) { return c.stream == stream && c.number == number; }) -
              mine.begin());
    for (const int member : members) {
      const auto& theirs = calls_[{transfer.group, member}];
      if (turn >= theirs.size() || theirs[turn].transfer->collective != transfer.collective) {
        throw Failure(
            fmt::format("plan '{}': rank {} does not take part in collective {} of group "
                        "{} as rank {} does",
                        plan_.name, member, turn, transfer.group, own));
      }
      calls.push_back(theirs[turn]);
    }
    const auto me = std::ranges::find(members, own) - members.begin();
    const auto source = [&](std::int64_t m) {
      return place(members[index(m)], calls[index(m)].transfer->source, calls[index(m)].at);
    };
    const auto target = [&](std::int64_t m) {
      return place(members[index(m)], calls[index(m)].transfer->destination, calls[index(m)].at);
    };
    // A meeting: all are ready before data move, and done before anybody goes on.
    append(at, stream, number);
    for (const Call& call : calls) {
      const auto rank = static_cast<int>(call.at.rank);
      if (rank != own) link(at, stream, rank, call.stream, call.number, Mark::begin);
    }
    const auto by_switch = [&](const auto& place_of) {
      if (options_.realization != Realization::multicast) return false;
      for (std::int64_t m = 1; m < size; ++m)
        if (place_of(m).rows != place_of(0).rows) return false;
      return true;
    };
    const bool loads = by_switch(source), stores = by_switch(target);
    const auto reduce_block = [&](std::int64_t of, const Place& into) {
      std::vector<Place> sources;
      if (loads) {
        const Place part = through_switch(block_of(source(me), of, size), transfer.group);
        return move(at, stream, number, {part}, {into});
      }
      for (std::int64_t d = 0; d < size; ++d)
        sources.push_back(block_of(source((me + d) % size), of, size));
      move(at, stream, number, std::move(sources), {into});
    };
    switch (transfer.collective) {
      case Collective::all_gather:
        if (stores) {
          const Place block = block_of(target(me), me, size);
          move(at, stream, number, {source(me)}, {through_switch(block, transfer.group)});
          break;
        }
        for (std::int64_t d = 0; d < size; ++d) {
          const std::int64_t to = (me + d) % size;
          move(at, stream, number, {source(me)}, {block_of(target(to), me, size)});
        }
        break;
      case Collective::all_to_all:
        for (std::int64_t d = 0; d < size; ++d) {
          const std::int64_t to = (me + d) % size;
          move(at, stream, number, {block_of(source(me), to, size)},
               {block_of(target(to), me, size)});
        }
        break;
      case Collective::broadcast: {
        const bool root_inside = std::ranges::find(members, plan_.root) != members.end();
        if (own != (root_inside ? plan_.root : members.front())) break;
        if (stores) {
          move(at, stream, number, {source(me)}, {through_switch(target(me), transfer.group)});
          break;
        }
        for (std::int64_t d = 0; d < size; ++d)
          move(at, stream, number, {source(me)}, {target((me + d) % size)});
        break;
      }
      case Collective::reduce_scatter:
        reduce_block(me, target(me));
        break;
      case Collective::all_reduce: {
        const Place result = block_of(target(me), me, size);
        if (loads && stores) {
          reduce_block(me, through_switch(result, transfer.group));
          break;
        }
        reduce_block(me, result);
        for (std::int64_t d = 1; d < size; ++d)
          move(at, stream, number, {result}, {block_of(target((me + d) % size), me, size)});
        break;
      }
      default:
        break;  // validate() refuses others
    }
    append(at, stream, number);
    for (const Call& call : calls) {
      const auto rank = static_cast<int>(call.at.rank);
      if (rank != own) link(at, stream, rank, call.stream, call.number, Mark::data);
    }
  }

  const plan::Plan& plan_;
  const LowerOptions& options_;
  Movements movements_;
  std::vector<std::vector<std::vector<Marks>>> marks_;  // by rank, stream, transfer
  std::map<std::pair<std::int32_t, int>, std::vector<Call>> calls_;
  std::vector<Link> links_;
};

}  // namespace

std::vector<const Place*> Movement::places() const {
  std::vector<const Place*> all;
  for (const std::vector<Place>* some : {&sources, &destinations})
    for (const Place& place : *some) all.push_back(&place);
  return all;
}

std::set<MovementId> awaited_by_others(const Movements& movements) {
  std::set<MovementId> awaited;
  each_movement(movements, [&](const MovementId&, const Movement& movement) {
    awaited.insert(movement.after.begin(), movement.after.end());
  });
  return awaited;
}

void rearrange(Movements& movements, const Gone& gone,
               const std::function<std::int32_t(const MovementId&)>& stream_of,
               const std::vector<std::size_t>& streams) {
  if (gone.empty() && !stream_of) return;
  Movements arranged(movements.size());
  std::vector<std::vector<std::vector<MovementId>>> now(movements.size());
  for (std::size_t rank = 0; rank < arranged.size(); ++rank) {
    arranged[rank].resize(streams.empty() ? movements[rank].size() : streams[rank]);
    now[rank].resize(movements[rank].size());
  }
  each_movement(movements, [&](const MovementId& id, Movement& movement) {
    MovementId& there = now[index(id.rank)][index(id.stream)].emplace_back();
    if (gone.contains(id)) return;
    there = {id.rank, stream_of ? stream_of(id) : id.stream};
    auto& list = arranged[index(id.rank)][index(there.stream)];
    there.index = std::ssize(list);
    list.push_back(std::move(movement));
    list.back().stream = there.stream;
  });
  movements = std::move(arranged);
  each_movement(movements, [&](const MovementId& id, Movement& movement) {
    for (MovementId& after : movement.after) {
      for (auto other = gone.find(after); other != gone.end(); other = gone.find(after))
        after = other->second;
      after = now[index(after.rank)][index(after.stream)][index(after.index)];
    }
    std::erase_if(movement.after, [&](const MovementId& after) { return after == id; });
  });
}

bool conflict(const Movement& a, const Movement& b) {
  const auto any = [](const std::vector<Place>& x, const std::vector<Place>& y) {
    return std::ranges::any_of(x, [&](const Place& p) {
      return std::ranges::any_of(y, [&](const Place& q) {
        const bool same_memory = p.group >= 0 || q.group >= 0 || p.rank == q.rank;
        return same_memory && plan::overlap(p.area, q.area);
      });
    });
  };
  return any(a.destinations, b.destinations) || any(a.destinations, b.sources) ||
         any(a.sources, b.destinations);
}

Movements movements_of(const plan::Plan& plan, const LowerOptions& options) {
  return MovementMaker(plan, options).make();
}

}  // namespace hemiola::program::general
