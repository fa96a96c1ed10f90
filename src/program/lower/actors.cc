// Items of actors as operations. An actor counts the items that somebody else waits for, on one
// semaphore in the memory of each rank that does: whoever waits there needs a number to be reached.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/index.h"
#include "program/lower/general.h"
#include "program/lower/launches.h"
#include "program/lower/parts.h"
#include "program/lower/symmetry.h"

namespace hemiola::program::general {
namespace {

constexpr int kThreads = 512;
constexpr int kBulkThreads = 128;     // four wavefronts
constexpr int kComputeThreads = 256;  // eight
constexpr std::int32_t kBulkGrain = 128;
/// Of a plan of elements smaller strips are not divided further.
constexpr std::int64_t kLeastShare = 4096;

using Item = Actor::Item;
/// Up to which item of another actor somebody waits; without a fence only for its loads.
struct ActorWait {
  std::int32_t item = -1;
  bool fenced = false;
};
using Waits = std::map<std::int32_t, ActorWait>;  ///< by actor

class ActorWriter {
 public:
  ActorWriter(Program& program, const plan::Plan& plan, const LowerOptions& options,
              const std::vector<Actor>& actors, std::int64_t unit, const Symmetry& symmetry)
      : program_(program),
        plan_(plan),
        options_(options),
        actors_(actors),
        unit_(unit),
        symmetry_(symmetry),
        ordinal_(actors.size()) {
    for (std::size_t a = 1; a < actors.size(); ++a)
      ordinal_[a] = actors[a].rank == actors[a - 1].rank ? ordinal_[a - 1] + 1 : 0;
  }

  void write() {
    collect_waits();
    make_semaphores();
    std::vector<std::vector<std::int32_t>> by_rank(index(symmetry_.period));
    for (std::size_t a = 0; a < actors_.size(); ++a)
      by_rank[index(actors_[a].rank)].push_back(static_cast<std::int32_t>(a));
    for (const auto& actors : by_rank) write_rank(actors);
    for (int rank = 0; rank < plan_.ranks; ++rank)
      program_.code_of.push_back(symmetry_.representative(rank));
  }

 private:
  // Actors of ranks beyond the period are images: number a + k * actors_.size().

  int image(std::int32_t actor) const { return actor / static_cast<std::int32_t>(actors_.size()); }
  std::int32_t original(std::int32_t actor) const {
    return actor % static_cast<std::int32_t>(actors_.size());
  }
  int rank_of(std::int32_t actor) const {
    return symmetry_.moved(actors_[index(original(actor))].rank, image(actor));
  }
  /// An actor and a rank where somebody waits for it, so many periods back that the actor is an
  /// original.
  using Pair = std::pair<std::int32_t, int>;
  Pair pair_of(std::int32_t actor, int rank) const {
    return {original(actor), symmetry_.moved(rank, -image(actor))};
  }

  // Who waits for whom, without what is known already.

  void collect_waits() {
    waits_.resize(actors_.size());
    std::map<Pair, std::set<std::int32_t>> counted, all_fenced;
    for (std::size_t a = 0; a < actors_.size(); ++a) {
      std::map<std::int32_t, std::int32_t> known, fenced;  // actor -> item
      const auto last = [](const auto& items, std::int32_t actor) {
        const auto found = items.find(actor);
        return found == items.end() ? -1 : found->second;
      };
      for (const Item& item : actors_[a].items) {
        Waits& news = waits_[a].emplace_back();
        for (const auto& [actor, at, loads_only] : item.after) {
          if (actor == static_cast<std::int32_t>(a)) continue;
          if (last(loads_only ? known : fenced, actor) >= at) continue;
          ActorWait& wait = news[actor];
          wait.item = std::max(wait.item, at);
          wait.fenced = wait.fenced || !loads_only;
        }
        for (const auto& [actor, wait] : news) {
          const Pair pair = pair_of(actor, actors_[a].rank);
          counted[pair].insert(wait.item);
          known[actor] = std::max(last(known, actor), wait.item);
          if (!wait.fenced) continue;
          fenced[actor] = wait.item;
          all_fenced[pair].insert(wait.item);
        }
      }
    }
    for (const auto& [pair, items] : counted) counted_[pair].assign(items.begin(), items.end());
    for (const auto& [pair, items] : all_fenced) fenced_[pair].assign(items.begin(), items.end());
  }

  static bool contains(const std::vector<std::int32_t>& items, std::int32_t item) {
    return std::binary_search(items.begin(), items.end(), item);
  }

  /// Who waits for items of the present actor, by distance from its rank.
  void find_listeners() {
    const int rank = actors_[index(actor_)].rank;
    listeners_.clear();
    for (auto at = counted_.lower_bound({actor_, 0});
         at != counted_.end() && at->first.first == actor_; ++at) {
      const auto fenced = fenced_.find(at->first);
      listeners_.push_back(
          {at->first.second, &at->second, fenced == fenced_.end() ? nullptr : &fenced->second});
    }
    const auto distance = [&](const Listener& l) {
      return (l.rank - rank + plan_.ranks) % plan_.ranks;
    };
    std::ranges::sort(listeners_, [&](const Listener& a, const Listener& b) {
      return distance(a) < distance(b);
    });
  }

  std::int64_t distance(std::int32_t from, int to) const {
    return (rank_of(from) - to + plan_.ranks) % plan_.ranks;
  }

  void make_semaphores() {
    for (const auto& [pair, items] : counted_) {
      const std::pair key{distance(pair.first, pair.second), ordinal_[index(pair.first)]};
      const auto [at, added] =
          semaphores_.try_emplace(key, static_cast<std::int32_t>(program_.semaphores.size()));
      if (!added) continue;
      program_.semaphores.push_back(
          {.name = key.first == 0 ? fmt::format("progress of workgroup {}", key.second)
                                  : fmt::format("progress of workgroup {} of the rank {} behind",
                                                key.second, plan_.ranks - key.first),
           .local = key.first == 0});
    }
  }

  std::int32_t semaphore(std::int32_t from, int to) const {
    return semaphores_.at({distance(from, to), ordinal_[index(original(from))]});
  }

  // Kernels and streams of a rank.

  void write_rank(const std::vector<std::int32_t>& actors) {
    RankCode code;
    Kernel communication{.name = plan_.name};
    Kernel computation{.name = plan_.name + " compute"};
    set_threads(communication, computation);
    std::map<std::int32_t, LaunchBodies> launches;
    for (const std::int32_t a : actors) {
      const auto body = static_cast<std::int32_t>(program_.bodies.size());
      program_.bodies.push_back(write_body(a));
      const Actor& actor = actors_[index(a)];
      if (actor.launch >= 0) {
        LaunchBodies& launch = launches[actor.launch];
        if (actor.kind == Actor::Kind::computation) {
          launch.workgroups.push_back(body);
        } else {
          const bool rings = actor.items.front().kind == Item::Kind::done;
          (rings ? launch.bell : launch.gate) = body;
        }
        continue;
      }
      switch (actors_[index(a)].kind) {
        case Actor::Kind::communication:
          communication.bodies.push_back(body);
          break;
        case Actor::Kind::computation:
          computation.bodies.push_back(body);
          break;
        case Actor::Kind::engine:
          code.streams.push_back({{.kind = StreamItem::Kind::engine,
                                   .index = body,
                                   .prelaunched = options_.copies.prelaunch}});
          break;
      }
    }
    const Kernel launched = computation;
    for (Kernel* kernel : {&communication, &computation}) {
      if (kernel->bodies.empty()) continue;
      code.streams.push_back({{.kind = StreamItem::Kind::kernel,
                               .index = static_cast<std::int32_t>(program_.kernels.size())}});
      program_.kernels.push_back(std::move(*kernel));
    }
    if (!launches.empty()) {
      const plan::Code& computes = plan_.code(actors_[index(actors.front())].rank);
      for (Stream& stream : streams_of_launches(program_, computes, launches, launched))
        code.streams.push_back(std::move(stream));
    }
    program_.codes.push_back(std::move(code));
  }

  void set_threads(Kernel& communication, Kernel& computation) const {
    const bool bulk = options_.realization == Realization::bulk;
    const bool co_located = options_.realization == Realization::co_located;
    communication.threads = options_.threads > 0 ? options_.threads
                            : bulk               ? kBulkThreads
                            : co_located         ? kComputeThreads
                                                 : kThreads;
    if (bulk || co_located) communication.grain = kBulkGrain;
    computation.threads = kComputeThreads;
    computation.grain = kBulkGrain;
    communication.stages = computation.stages = options_.stages;
  }

  // One body.

  Body write_body(std::int32_t actor) {
    actor_ = actor;
    body_.ops.clear();
    dirty_ = false;
    since_sync_.clear();
    unflushed_.clear();
    unloaded_.clear();
    find_listeners();
    const Actor& self = actors_[index(actor)];
    for (std::size_t i = 0; i < self.items.size(); ++i) {
      const Item& item = self.items[i];
      where_ = item.movement != nullptr ? item.movement->where
               : item.group != nullptr  ? item.group->where
                                        : std::string{};
      wait(waits_[index(actor)][i]);
      if (item.joins) join(self);
      if (item.movement != nullptr) move(*item.movement, self);
      if (item.group != nullptr) {
        auto op = std::ssize(body_.ops);
        operands().add_tiles(*item.group, item.tiles, body_.ops);
        for (; op < std::ssize(body_.ops); ++op) body_.ops[index(op)].where = where_;
        dirty_ = true;  // loads and the compute go on, or stores do
      }
      signal(static_cast<std::int32_t>(i));
    }
    if (self.kind == Actor::Kind::engine) batch_copies(body_, options_.copies.batch);
    // In memory of its own size; what the next one is written to stays.
    return {{std::move_iterator(body_.ops.begin()), std::move_iterator(body_.ops.end())}};
  }

  OperandWriter operands() const {
    return {plan_, options_.protocol, unit_, symmetry_, actors_[index(actor_)].rank};
  }

  void add(Op op) {
    op.where = where_;
    body_.ops.push_back(std::move(op));
  }

  void sync() {
    add({.kind = OpKind::sync});
    dirty_ = false;
    since_sync_.clear();
  }

  void join(const Actor& self) {
    Op op{.kind = OpKind::barrier};
    op.barrier_id = self.stream;
    op.workgroups = self.slices;
    program_.barriers = std::max(program_.barriers, self.stream + 1);
    add(std::move(op));
    dirty_ = false;
    since_sync_.clear();
  }

  std::size_t threads() const {
    const Actor& self = actors_[index(actor_)];
    Kernel communication, computation;
    set_threads(communication, computation);
    if (self.kind == Actor::Kind::engine) return 1;
    return index(self.kind == Actor::Kind::computation ? computation.threads
                                                       : communication.threads);
  }

  /// Semaphores in operations of at most one for each thread.
  void add_split(const Op& op) {
    split_semaphores(op, threads(), [&](Op part) { add(std::move(part)); });
  }

  void wait(const Waits& waits) {
    if (waits.empty()) return;
    const int rank = actors_[index(actor_)].rank;
    Op op{.kind = OpKind::dep_wait};
    // By distance, so that ranks that do the same, but for a rotation, have the same list.
    std::vector<std::pair<std::int32_t, ActorWait>> list(waits.begin(), waits.end());
    std::ranges::stable_sort(list, [&](const auto& a, const auto& b) {
      return distance(a.first, rank) < distance(b.first, rank);
    });
    for (const auto& [from, wait] : list) {
      const std::vector<std::int32_t>& items = counted_.at(pair_of(from, rank));
      const auto target = std::upper_bound(items.begin(), items.end(), wait.item) - items.begin();
      if (rank_of(from) != rank) op.channel = Channel::any;
      op.targets.emplace_back(target, std::ssize(items));
      op.semaphores.push_back({own_rank(), semaphore(from, rank)});
    }
    add_split(op);
    sync();
  }

  /// Tells every rank where somebody waits for this item. Those who only wait for its loads learn
  /// of it first: they need no fence.
  void signal(std::int32_t item) {
    const int rank = actors_[index(actor_)].rank;
    std::map<std::pair<bool, bool>, Op> ops;  // fenced, remote
    bool flush = false;
    for (const auto& [to, counted, fenced] : listeners_) {
      if (!contains(*counted, item)) continue;
      const bool fence = fenced != nullptr && contains(*fenced, item);
      Op& op = ops[{fence, to != rank}];
      op.kind = OpKind::dep_signal;
      op.channel = to != rank ? Channel::any : Channel::none;
      op.relaxed = !fence;
      op.semaphores.push_back({symmetry_.rank_seen_from(rank, to), semaphore(actor_, to)});
      // A flag stays behind what goes to the same rank, and must not overtake the rest; one that
      // only tells of loads, what the proxy has still to load.
      const std::set<int>& under_way = fence ? unflushed_ : unloaded_;
      flush =
          flush || std::ranges::any_of(under_way, [&](int pushed_to) { return pushed_to != to; });
    }
    if (ops.empty()) return;
    if (flush) {
      add({.kind = OpKind::flush, .channel = Channel::any});
      unflushed_.clear();
      unloaded_.clear();
    }
    if (dirty_ || flush) sync();
    for (const auto& [key, op] : ops) add_split(op);
  }

  /// This actor's share of strip number `number`: a slice of how many; none: {0, 0}.
  std::pair<std::int32_t, std::int32_t> share(const Actor& self, const Strip& strip,
                                              std::size_t number) const {
    if (!plan_.of_elements()) return {self.slice, self.slices};
    const auto slices = static_cast<std::int32_t>(
        std::clamp<std::int64_t>(strip.units() / kLeastShare, 1, self.slices));
    const auto shift = static_cast<std::int32_t>(number % index(self.slices));
    const std::int32_t slice = (self.slice - shift + self.slices) % self.slices;
    return slice < slices ? std::pair{slice, slices} : std::pair{0, 0};
  }

  void move(const Movement& movement, const Actor& self) {
    if (movement.strips.empty()) return;
    const bool conflicts = std::ranges::any_of(
        since_sync_, [&](const Movement* earlier) { return conflict(*earlier, movement); });
    if (conflicts || (dirty_ && since_sync_.empty())) sync();  // or stores of a tile
    for (std::size_t i = 0; i < movement.strips.size(); ++i) {
      const auto [slice, slices] = share(self, movement.strips[i], i);
      if (slices == 0) continue;
      Op op;
      op.slice = slice;
      op.slices = slices;
      add_strip(std::move(op), movement, movement.strips[i]);
    }
    dirty_ = true;
    since_sync_.push_back(&movement);
    for (const Place& place : movement.destinations) {
      if (place.group >= 0 || place.rank == movement.rank) continue;
      unflushed_.insert(place.rank);
      const Place& first = movement.destinations.front();
      if (first.group >= 0 || first.rank != movement.rank) unloaded_.insert(place.rank);
    }
  }

  void add_strip(Op op, const Movement& movement, const Strip& strip) {
    for (std::size_t s = 0; s < movement.sources.size(); ++s)
      op.src.push_back(operands().operand(movement.sources[s], strip, s));
    for (std::size_t d = 0; d < movement.destinations.size(); ++d)
      op.dst.push_back(
          operands().operand(movement.destinations[d], strip, movement.sources.size() + d));
    const auto remote = [&](const Place& place) { return place.rank != movement.rank; };
    const auto packed = [](const Place& place) { return place.packets; };
    const Does does{.reduces = movement.reduces(),
                    .pulls = std::ranges::any_of(movement.sources, remote),
                    .pushes = std::ranges::any_of(movement.destinations, remote),
                    .arrives = std::ranges::any_of(movement.sources, packed),
                    .leaves = std::ranges::any_of(movement.destinations, packed),
                    .group_loads = movement.sources.front().group >= 0,
                    .group_stores = movement.destinations.front().group >= 0};
    op.kind = movement.swaps ? OpKind::swap : kind_of(does);
    if (does.group_loads || does.group_stores) {
      op.channel = Channel::switch_;
      return add(std::move(op));
    }
    op.channel = does.pulls || does.pushes ? Channel::any : Channel::none;
    op.staged = movement.staged;
    if (does.arrives) {  // as packet operations have them
      std::stable_partition(op.src.begin(), op.src.end(),
                            [](const Operand& source) { return !is_packet(source.access); });
    }
    if (movement.swaps || does.reduces) return add(std::move(op));
    const bool one_by_one = actors_[index(actor_)].kind == Actor::Kind::engine;
    const bool broadcasts = options_.copies.command == CopyCommand::broadcast;
    if (movement.destinations.size() == 1 || !one_by_one ||
        (broadcasts && movement.destinations.size() == 2)) {
      if (movement.destinations.size() > 1 && !(does.arrives && does.leaves))
        op.kind = OpKind::copy;
      return add(std::move(op));
    }
    const std::vector<Operand> destinations = std::exchange(op.dst, {});
    for (std::size_t d = 0; d < destinations.size(); ++d) {
      op.kind = remote(movement.destinations[d]) ? OpKind::put
                : does.pulls                     ? OpKind::get
                                                 : OpKind::copy;
      op.dst = {destinations[d]};
      add(op);
    }
  }

  Program& program_;
  const plan::Plan& plan_;
  const LowerOptions& options_;
  const std::vector<Actor>& actors_;
  std::int64_t unit_;
  const Symmetry& symmetry_;
  std::vector<std::int32_t> ordinal_;      // of an actor in its rank
  std::vector<std::vector<Waits>> waits_;  // by actor, item
  // Items of an actor that somebody on a rank waits for, and for more than their loads; sorted.
  std::map<Pair, std::vector<std::int32_t>> counted_, fenced_;
  struct Listener {
    int rank = 0;
    const std::vector<std::int32_t>* counted = nullptr;
    const std::vector<std::int32_t>* fenced = nullptr;  ///< null: nobody
  };
  std::vector<Listener> listeners_;  // of the present actor
  std::map<std::pair<std::int64_t, std::int32_t>, std::int32_t> semaphores_;

  std::int32_t actor_ = 0;
  Body body_;
  std::string where_;
  bool dirty_ = false;  // something moved since the last sync
  std::vector<const Movement*> since_sync_;
  std::set<int> unflushed_;  // ranks to which something may be under way through a NIC
  std::set<int> unloaded_;   // of these: straight from what a movement reads
};

}  // namespace

void write_actors(Program& program, const plan::Plan& plan, const LowerOptions& options,
                  const std::vector<Actor>& actors, std::int64_t unit, const Symmetry& symmetry) {
  ActorWriter(program, plan, options, actors, unit, symmetry).write();
}

}  // namespace hemiola::program::general
