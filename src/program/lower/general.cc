// Any plan: movements are shared by the workgroups of their stream, tiles are dealt to those of the
// compute kernel, and every dependency becomes one between items of these.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "core/index.h"
#include "machine/machine.h"
#include "program/lower/flow.h"
#include "program/lower/launches.h"
#include "program/lower/parts.h"
#include "program/lower/symmetry.h"

namespace hemiola::program {
namespace {
using namespace general;

// Beside a kernel that computes, few; else what fills the links of a GPU: 32 KiB that a workgroup
// has in flight, times this, over a round trip of 2 us are 1 TB/s.
constexpr int kWorkgroupsBeside = 16;
constexpr int kWorkgroups = 64;
/// Compute units of an H100: what communication leaves is for computing.
constexpr int kComputeUnits = 132;

/// Assigns movements and tiles of the ranks below the period to actors and finds out who waits for
/// whom. Actors name movements and tiles of it.
class Assigner {
 public:
  Assigner(const plan::Plan& plan, const LowerOptions& options, Movements movements,
           const Symmetry& symmetry)
      : plan_(plan),
        options_(options),
        symmetry_(symmetry),
        movements_(std::move(movements)),
        tiles_(tiles_of(plan, movements_, symmetry)),
        alike_(is_cut_alike(plan, movements_)),
        has_sums_(has_sums()) {}

  std::vector<Actor> assign() {
    first_.resize(index(symmetry_.period));
    each_movement(movements_, [&](const MovementId&, const Movement& movement) {
      for (const auto& [rank, launch] : awaited_launches(plan_, movement))
        awaited_.emplace(symmetry_.representative(rank), launch);
    });
    for (int rank = 0; rank < symmetry_.period; ++rank) add_rank(rank);
    for (Actor& actor : actors_)
      for (Actor::Item& item : actor.items) connect(actor, item);
    const Ends ends = ends_of(plan_, movements_);
    if (options_.barrier.value_or(true)) connect_starts(ends);
    connect_ends(ends);
    return std::move(actors_);
  }

  std::int64_t unit() const { return unit_of(plan_, movements_, tiles_, symmetry_); }

 private:
  using Item = Actor::Item;

  /// Whether streams that only add up in own memory have half of the workgroups to themselves,
  /// because they load as much as all others store, or all, beside copy engines, which cannot add.
  bool has_sums() const {
    if (options_.realization == Realization::co_located) return false;
    if (options_.realization != Realization::copy_engine && !computes(plan_)) return false;
    return std::ranges::any_of(movements_, [](const auto& streams) {
      return std::ranges::any_of(streams, adds_up_locally);
    });
  }

  std::int32_t new_actor(Actor::Kind kind, int rank, std::int32_t stream, std::int32_t slice,
                         std::int32_t slices) {
    actors_.push_back({.kind = kind,
                       .rank = rank,
                       .stream = stream,
                       .slice = slice,
                       .slices = slices,
                       .items = {}});
    return static_cast<std::int32_t>(actors_.size()) - 1;
  }

  void append(std::int32_t actor, Item item) {
    std::vector<Item>& items = actors_[index(actor)].items;
    const auto at = std::pair(actor, static_cast<std::int32_t>(items.size()));
    if (item.movement != nullptr) done_by_[item.movement].push_back(at);
    items.push_back(std::move(item));
  }

  /// Behind tiles of the same group it is one item with them.
  void append(std::int32_t actor, int rank, TileRef tile) {
    const TileGroup* group = &tiles_[index(rank)].groups[index(tile.group)];
    std::vector<Item>& items = actors_[index(actor)].items;
    if (items.empty() || items.back().group != group) {
      done_by_[group].emplace_back(actor, static_cast<std::int32_t>(items.size()));
      items.push_back({.kind = Item::Kind::tiles, .group = group});
    }
    items.back().tiles.push_back(tile.tile);
  }

  void add_rank(int rank) {
    const auto& streams = movements_[index(rank)];
    const auto first = static_cast<std::int32_t>(actors_.size());
    first_[index(rank)] = first;
    if (options_.realization == Realization::co_located) {
      add_co_located(rank);
    } else {
      const bool engines = options_.realization == Realization::copy_engine;
      const std::size_t own = plan_.code(rank).streams.size();  // then those for NICs
      const auto is_sum = [&](std::size_t s) {
        return has_sums_ && s < own && adds_up_locally(streams[s]);
      };
      int sums = 0;
      for (std::size_t s = 0; s < own; ++s) sums += is_sum(s) ? 1 : 0;
      const int moving = static_cast<int>(own) - sums;
      const int adding = sums == 0 ? 0 : engines || moving == 0 ? workgroups() : workgroups() / 2;
      const int each = engines ? 1 : std::max(1, (workgroups() - adding) / std::max(1, moving));
      check_slices(each);
      const std::size_t gates = gates_of(plan_.code(rank)).size();
      const auto slices = [&](std::size_t s) {
        if (s >= own && s < own + gates) return 0;  // of launches
        if (is_sum(s)) return std::max(1, adding / sums);
        return s < own || s == 0 ? each : streams[s].empty() ? 0 : s == own + gates ? 1 : each;
      };
      for (std::size_t s = 0; s < std::max<std::size_t>(1, streams.size()); ++s) {
        const bool copies = engines && !is_sum(s);
        for (std::int32_t w = 0; w < slices(s); ++w)
          new_actor(copies ? Actor::Kind::engine : Actor::Kind::communication, rank,
                    static_cast<std::int32_t>(s), w, slices(s));
      }
      append(first, {.kind = Item::Kind::start});
      std::int32_t next = first;
      for (std::size_t s = 0; s < streams.size(); next += slices(s), ++s)
        add_stream(streams[s], next, slices(s));
      add_tiles(rank);
      add_launches(rank);
    }
    append(first, {.kind = Item::Kind::end});
  }

  /// A packet, or an LL128 line, is not shared by two workgroups.
  void check_slices(int each) const {
    const bool divided = options_.protocol == Protocol::ll128 ||
                         (options_.protocol == Protocol::ll && options_.alignment % 8 != 0);
    if (each == 1 || !divided) return;
    throw Failure(
        fmt::format("plan '{}' would have {} workgroups share the {} of a stream", plan_.name, each,
                    options_.protocol == Protocol::ll128 ? "LL128 lines" : "packets"),
        kOption,
        options_.protocol == Protocol::ll128
            ? "choose protocol=ll, or workgroups=1 for one of each stream"
            : "choose an alignment of 8 or workgroups=1");
  }

  int workgroups() const {
    if (options_.workgroups > 0) return options_.workgroups;
    return computes(plan_) ? kWorkgroupsBeside : kWorkgroups;
  }

  int compute_workgroups() const {
    if (options_.compute_workgroups > 0) return options_.compute_workgroups;
    const bool beside = options_.realization != Realization::copy_engine &&
                        options_.realization != Realization::co_located;
    return beside || has_sums_ ? std::max(1, kComputeUnits - workgroups()) : kComputeUnits;
  }

  /// Where movements are not cut alike, those that touch the same bytes are kept apart by a
  /// barrier.
  std::vector<bool> joins(const std::vector<const Movement*>& list, std::int32_t slices) const {
    std::vector<bool> result(list.size(), false);
    std::size_t open = 0;
    for (std::size_t i = 0; i < list.size() && !alike_ && slices > 1; ++i) {
      for (std::size_t j = open; j < i && !result[i]; ++j) result[i] = conflict(*list[j], *list[i]);
      if (result[i]) open = i;
    }
    return result;
  }

  void add_stream(const std::vector<Movement>& stream, std::int32_t first, std::int32_t slices) {
    std::vector<const Movement*> list;
    for (const Movement& movement : stream) list.push_back(&movement);
    const std::vector<bool> join = joins(list, slices);
    for (std::size_t i = 0; i < list.size(); ++i)
      for (std::int32_t w = 0; w < slices; ++w)
        append(first + w, {.movement = list[i], .joins = join[i]});
  }

  /// -1: those of the persistent kernel.
  std::vector<TileRef> tiles_of_launch(int rank, std::int32_t launch) const {
    const auto& [groups, order] = tiles_[index(rank)];
    const auto& computes = plan_.code(rank).computes;
    std::vector<TileRef> tiles;
    for (const TileRef& tile : order) {
      const std::int32_t compute = groups[index(tile.group)].compute;
      if (launch < 0 ? !computes[index(compute)].is_launch() : compute == launch)
        tiles.push_back(tile);
    }
    return tiles;
  }

  /// Deals tiles in order; those of one output stay together. `give(workgroup, tile)`.
  template <class Give>
  void deal(int rank, const std::vector<TileRef>& tiles, std::int32_t workgroups,
            Give&& give) const {
    const auto& groups = tiles_[index(rank)].groups;
    std::unordered_map<std::int32_t, std::vector<std::int32_t>> owners;  // by outputs, tile
    std::int32_t next = 0;
    const TileGroup* group = nullptr;
    std::vector<std::int32_t>* owner = nullptr;
    for (const TileRef& tile : tiles) {
      if (group != &groups[index(tile.group)]) {
        group = &groups[index(tile.group)];
        owner = &owners[group->outputs];
        if (owner->empty()) owner->assign(index(group->tiles()), -1);
      }
      std::int32_t& by = (*owner)[index(tile.tile)];
      if (by < 0) {
        by = next;
        next = (next + 1) % workgroups;
      }
      give(by, tile);
    }
  }

  void add_tiles(int rank) {
    const auto tiles = tiles_of_launch(rank, -1);
    if (!tiles.empty()) add_tiles(rank, tiles, compute_workgroups());
  }

  void add_tiles(int rank, const std::vector<TileRef>& tiles, std::int32_t count,
                 std::int32_t launch = -1) {
    const auto first = static_cast<std::int32_t>(actors_.size());
    for (std::int32_t w = 0; w < count; ++w)
      actors_[index(new_actor(Actor::Kind::computation, rank, 0, w, count))].launch = launch;
    deal(rank, tiles, count,
         [&](std::int32_t w, const TileRef& tile) { append(first + w, rank, tile); });
  }

  /// Each with as many workgroups as it has results, and the device places for.
  void add_launches(int rank) {
    const plan::Code& code = plan_.code(rank);
    const auto gates = gates_of(code);
    for (std::size_t c = 0; c < code.computes.size(); ++c) {
      if (!code.computes[c].is_launch()) continue;
      const auto launch = static_cast<std::int32_t>(c);
      const auto gate = gates.find(launch);
      if (gate != gates.end()) {
        const std::int32_t actor = new_actor(Actor::Kind::engine, rank, 0, 0, 1);
        actors_[index(actor)].launch = launch;
        append(actor, {.movement = &movements_[index(rank)][index(gate->second)].front()});
      }
      std::map<std::int32_t, std::int32_t> results;
      for (const TileGroup& group : tiles_[index(rank)].groups)
        if (group.compute == launch) results.emplace(group.outputs, group.tiles());
      int count = 0;
      for (const auto& [outputs, tiles] : results) count += tiles;
      add_tiles(rank, tiles_of_launch(rank, launch), std::min(count, places_of_launch(rank)),
                launch);
      if (!awaited_.contains({rank, launch})) continue;
      const std::int32_t bell = new_actor(Actor::Kind::engine, rank, 0, 0, 1);
      actors_[index(bell)].launch = launch;
      bell_of_[{rank, launch}] = bell;
      append(bell, {.kind = Item::Kind::done});
    }
  }

  int places_of_launch(int rank) const {
    const bool known = options_.machine != nullptr && rank < options_.machine->ranks();
    if (options_.compute_workgroups > 0 || !known) return compute_workgroups();
    const auto units = static_cast<int>(options_.machine->model(rank).cu_count);
    return std::max(1, compute_workgroups() + units - kComputeUnits);
  }

  /// One list of movements by level, the same on all workgroups, and among them each one's tiles:
  /// nobody waits for what stands later in the list.
  void add_co_located(int rank) {
    const std::int32_t count = compute_workgroups();
    const auto first = static_cast<std::int32_t>(actors_.size());
    for (std::int32_t w = 0; w < count; ++w)
      new_actor(Actor::Kind::communication, rank, 0, w, count);
    append(first, {.kind = Item::Kind::start});
    std::vector<const Movement*> list;
    for (const auto& stream : movements_[index(rank)])
      for (const Movement& movement : stream) list.push_back(&movement);
    std::ranges::stable_sort(
        list, [](const Movement* a, const Movement* b) { return a->level < b->level; });
    const std::vector<bool> join = joins(list, count);
    const auto& groups = tiles_[index(rank)].groups;
    const auto level = [&](const TileRef& tile) { return groups[index(tile.group)].level; };
    std::vector<std::vector<TileRef>> tiles(index(count));
    deal(rank, tiles_of_launch(rank, -1), count,
         [&](std::int32_t w, const TileRef& tile) { tiles[index(w)].push_back(tile); });
    for (std::int32_t w = 0; w < count; ++w) {
      auto& own = tiles[index(w)];
      std::ranges::stable_sort(
          own, [&](const TileRef& a, const TileRef& b) { return level(a) < level(b); });
      std::size_t next = 0;
      for (std::size_t i = 0; i < list.size(); ++i) {
        for (; next < own.size() && level(own[next]) < list[i]->level; ++next)
          append(first + w, rank, own[next]);
        append(first + w, {.movement = list[i], .joins = join[i]});
      }
      for (; next < own.size(); ++next) append(first + w, rank, own[next]);
    }
  }

  /// The image of an actor on a rank so many periods further.
  std::int32_t image_of(std::int32_t actor, int images) const {
    return actor + images * static_cast<std::int32_t>(actors_.size());
  }

  /// What a rank does is its representative's; `image`: of all actors that do it.
  struct Done {
    const std::vector<std::pair<std::int32_t, std::int32_t>>* by;
    int image;
  };
  Done done(const MovementId& id) const {
    const MovementId first{symmetry_.representative(id.rank), id.stream, id.index};
    return {&done_by_.at(&at(movements_, first)), symmetry_.image(id.rank)};
  }

  void wait_for_all(Item& item, const Done& done, bool loads_only = false) const {
    for (const auto& [actor, at] : *done.by)
      item.after.push_back({image_of(actor, done.image), at, loads_only});
  }

  void connect(const Actor& actor, Item& item) {
    if (item.group != nullptr) {
      for (const Movement* movement : item.group->after) wait_for_all(item, done(id_of(*movement)));
      for (const std::int32_t other : item.group->after_groups)
        wait_for_all(item, {&done_by_.at(&tiles_[index(actor.rank)].groups[index(other)]), 0});
    }
    if (item.movement == nullptr) return;
    for (const Movement::After& after : item.movement->after) {
      const Movement& other = at(movements_, after);
      const Done by = done(after);
      const bool same_share = alike_ && !item.movement->strips.empty() && !other.strips.empty() &&
                              static_cast<std::int32_t>(by.by->size()) == actor.slices;
      if (same_share) {
        const auto& [with, at] = (*by.by)[index(actor.slice)];
        item.after.push_back({image_of(with, by.image), at, after.loads_only});
      } else {
        wait_for_all(item, by, after.loads_only);
      }
    }
    for (const auto& [rank, launch] : awaited_launches(plan_, *item.movement)) {
      const std::int32_t bell = bell_of_.at({symmetry_.representative(rank), launch});
      item.after.push_back({image_of(bell, symmetry_.image(rank)), 0});
    }
    for (const auto& [rank, area] : item.movement->computed) {
      const int image = symmetry_.image(rank);
      const plan::Area wanted = symmetry_.turned(area, -image);
      const int first = symmetry_.representative(rank);
      for (const TileGroup& group : tiles_[index(first)].groups) {
        if (is_whole(plan_, first, group.compute)) continue;  // its bell
        const bool makes = std::ranges::any_of(
            group.made, [&](const plan::Area& a) { return overlap(a, wanted); });
        if (makes) wait_for_all(item, {&done_by_.at(&group), image});
      }
    }
  }

  MovementId id_of(const Movement& movement) const {
    const auto& stream = movements_[index(movement.rank)][index(movement.stream)];
    return {movement.rank, movement.stream, &movement - stream.data()};
  }

  void connect_starts(const Ends& ends) {
    for (Actor& actor : actors_) {
      for (Item& item : actor.items) {
        const auto starts = ends.starts.find(item.movement);
        if (starts == ends.starts.end()) continue;
        for (const Ends::Start& start : starts->second) {
          const std::int32_t first = first_[index(symmetry_.representative(start.rank))];
          item.after.push_back({image_of(first, symmetry_.image(start.rank)), 0, start.loads_only});
        }
      }
    }
  }

  /// A rank ends when the others are through with its memory. Whoever stores to several ranks tells
  /// them all after the last of it: one fence, and nobody ends later than all would.
  void connect_ends(const Ends& ends) {
    KnownMoves last;
    for (const auto& list : ends.last) {
      for (const Movement::After& after : list)
        if (!after.loads_only) last.learn({after.rank, after.stream}, after.index);
    }
    for (std::size_t rank = 0; rank < first_.size(); ++rank) {
      Item& end = actors_[index(first_[rank])].items.back();
      for (const Movement::After& after : ends.last[rank]) {
        const std::int64_t which =
            after.loads_only ? after.index : last.at({after.rank, after.stream});
        wait_for_all(end, done({after.rank, after.stream, which}), after.loads_only);
      }
    }
  }

  const plan::Plan& plan_;
  const LowerOptions& options_;
  const Symmetry& symmetry_;
  Movements movements_;
  Tiles tiles_;
  bool alike_, has_sums_;
  std::vector<Actor> actors_;
  std::vector<std::int32_t> first_;  // actor of each rank below the period
  // Of ranks below the period: launches that movements wait for, and the actors of their bells.
  std::set<std::pair<int, std::int32_t>> awaited_;
  std::map<std::pair<int, std::int32_t>, std::int32_t> bell_of_;
  std::unordered_map<const void*, std::vector<std::pair<std::int32_t, std::int32_t>>> done_by_;
};

bool uses_groups(const Movements& movements) {
  bool any = false;
  each_movement(movements, [&](const MovementId&, const Movement& movement) {
    any = any || movement.by_switch();
  });
  return any;
}

/// The movements as they will be done, and units of packets by rank; empty without any. What
/// crosses NICs adds a tensor to the plan.
Movements prepare(plan::Plan& plan, const Program& program, const LowerOptions& options,
                  std::vector<std::int64_t>& packets) {
  Movements movements = movements_of(plan, options);
  arrange_copies(plan, program, options, movements);
  const auto find_levels = [&] {
    cut_into_strips(movements);
    tiles_of(plan, movements, symmetry_of(plan, movements));
  };
  const bool computing = computes(plan);
  if (computing || options.realization == Realization::copy_engine) join_sums(movements);
  const bool placed = options.machine != nullptr && plan.ranks <= options.machine->ranks();
  if (!computing || placed) find_levels();
  if (!computing && options.realization != Realization::copy_engine) {
    fuse(plan, options, movements);
    find_levels();
  }
  if (placed && through_network(plan, movements, *options.machine)) find_levels();
  if (!computing) {
    Packed packed;
    if (options.protocol != Protocol::simple) packed = pack(plan, options, movements);
    prune(plan, packed, movements);
    packets = std::move(packed.units);
  }
  cut_into_strips(movements);
  return movements;
}

}  // namespace

Program lower_general(const plan::Plan& original, const LowerOptions& options, Program program) {
  check_general(original, options);
  plan::Plan plan = original;
  std::vector<std::int64_t> packets;
  Movements movements = prepare(plan, program, options, packets);
  if (plan.tensors.size() > program.buffers.size())
    program.buffers.push_back({.name = plan.tensors.back().name});
  const Symmetry symmetry = symmetry_of(plan, movements);
  const bool by_switch = uses_groups(movements);
  Assigner assigner(plan, options, std::move(movements), symmetry);
  const std::int64_t unit = assigner.unit();
  for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
    const plan::Tensor& tensor = plan.tensors[t];
    program.buffers[t].chunks = {tensor.span() * (tensor.type ? size_of(*tensor.type) : 1) / unit};
  }
  if (plan.of_elements()) fix_size(plan, program, unit);
  if (options.alignment > 0) program.alignment = {options.alignment};
  // What nobody moves through a switch shall not keep ranks that do the same from being one.
  if (by_switch) program.groups = plan.groups;
  if (!packets.empty())
    program.buffers.push_back(
        {.name = "packets", .chunks = packets, .packets = true, .rotation = 2});
  if (!options.barrier.value_or(true)) {
    for (Buffer& buffer : program.buffers)
      if (buffer.kind == BufferKind::scratch) buffer.rotation = 2;
  }
  write_actors(program, plan, options, assigner.assign(), unit, symmetry);
  return program;
}

}  // namespace hemiola::program
