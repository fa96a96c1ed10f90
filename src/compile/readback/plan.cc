// The plan of a fused file: what it moves, after what, and which tiles read and write what. It says
// nothing of where tiles wait, which is the program's to prove, but what values have to be.
#include <fmt/format.h>

#include <algorithm>

#include "compile/readback/body.h"
#include "compile/readback/program.h"
#include "core/index.h"

namespace hemiola::compile::readback {
namespace {

class PlanMaker {
 public:
  explicit PlanMaker(const Reading& reading) : reading_(reading) {}

  std::shared_ptr<plan::Plan> make() {
    plan_.name = reading_.file;
    plan_.ranks = reading_.ranks;
    const RankRecord& first = reading_.records.front();
    for (std::size_t t = 0; t < first.tensors.size(); ++t) {
      const auto is_among = [&](const auto& list) {
        return std::ranges::any_of(list,
                                   [&](const auto& one) { return index(one.second.tensor) == t; });
      };
      plan::Role role = plan::Role::scratch;
      if (is_among(first.outputs)) role = plan::Role::output;
      if (is_among(first.inputs)) role = plan::Role::input;
      plan_.tensors.emplace_back(first.tensors[t].name, role, first.tensors[t].shape,
                                 first.tensors[t].type);
    }
    for (int rank = 0; rank < reading_.ranks; ++rank) number_streams(rank);
    for (int rank = 0; rank < reading_.ranks; ++rank) {
      plan_.codes.emplace_back();
      plan_.code_of.push_back(rank);
      make_rank(rank);
    }
    add_expectations(reading_, plan_);
    plan::validate(plan_, reading_.file);
    return std::make_shared<plan::Plan>(std::move(plan_));
  }

 private:
  [[noreturn]] void refuse(const Node& node, const std::string& what) const {
    reading_.walker.refuse(node, what);
  }

  const RankRecord& record(int rank) const { return reading_.records[index(rank)]; }

  /// Streams without a movement are none of the plan.
  void number_streams(int rank) {
    auto& numbers = numbers_.emplace_back();
    std::int32_t next = 0;
    for (const auto& stream : record(rank).streams)
      numbers.push_back(std::ranges::any_of(stream, is_transfer) ? next++ : -1);
    numbers.push_back(next);  // what programs of kernels move
  }

  /// What programs of a kernel move, in their order.
  void add_moves(int rank, const WorkObject& work) {
    plan::Stream stream{.name = "kernel", .items = {}};
    for (const WorkObject::Store& store : work.stores) {
      const Node& node = *work.kernel->function->node;
      plan::Dependency tiles{.rank = constant(rank)};
      tiles.computed = region_of(store.source, node);
      plan::Transfer made =
          transfer(rank, {.regions = {store.target, store.source}, .node = &node});
      made.after.push_back(std::move(tiles));
      stream.items.emplace_back(std::move(made));
    }
    for (const WorkObject::Move& move : work.moves) {
      plan::Transfer made = transfer(rank, move.op);
      for (const Need& need : move.after)
        append(made.after,
               told(rank, {.slot = need.slot, .step = need.step, .node = move.op.node}));
      stream.items.emplace_back(std::move(made));
    }
    if (!stream.items.empty()) plan_.codes.back().streams.push_back(std::move(stream));
  }

  void make_rank(int rank) {
    plan::Code& code = plan_.codes.back();
    code.resident.emplace();
    for (const auto& [name, region] : record(rank).inputs)
      code.resident->push_back(region_of(region, reading_.walker.module().source.root()));
    for (const auto& stream : record(rank).streams)
      for (const HostOp& op : stream)  // zeros for what other ranks are given
        if (op.kind == HostOp::Kind::zero &&
            plan_.tensors[index(op.regions[0].tensor)].role == plan::Role::input)
          code.resident->push_back(region_of(op.regions[0], *op.node));
    find_events(rank);
    std::int32_t launch = 0;
    for (std::size_t s = 0; s < record(rank).streams.size(); ++s) {
      plan::Stream stream{.name = fmt::format("stream {}", s), .items = {}};
      std::vector<plan::Dependency> after;
      for (const HostOp& op : record(rank).streams[s]) {
        if (op.kind == HostOp::Kind::wait_signal) append(after, told(rank, op));
        if (op.kind == HostOp::Kind::wait) append(after, events_.at(op.event));
        if (op.kind == HostOp::Kind::launch)
          code.computes.push_back(compute(rank, reading_.launches[index(rank)][index(launch++)]));
        // One after the other; a single kernel is no launch of its own.
        if (op.kind == HostOp::Kind::launch && launch > 1)
          code.computes.back().stream = code.computes.front().stream = "main";
        if (!is_transfer(op)) continue;
        plan::Transfer made = transfer(rank, op);
        made.after = std::exchange(after, {});
        stream.items.emplace_back(std::move(made));
      }
      if (numbers_[index(rank)][s] >= 0) code.streams.push_back(std::move(stream));
    }
    const auto& launches = reading_.launches[index(rank)];
    for (const LaunchFacts& facts : launches) {
      const WorkObject& work = *facts.op->work;
      if (!(work.moves.empty() && work.stores.empty()) && launches.size() > 1)
        refuse(*facts.op->node, "several launches, of which one moves data");
      add_moves(rank, work);
    }
  }

  static void append(std::vector<plan::Dependency>& to, const std::vector<plan::Dependency>& from) {
    for (const plan::Dependency& one : from)
      if (std::ranges::find(to, one) == to.end()) to.push_back(one);
  }

  /// What is complete where a stream records an event.
  void find_events(int rank) {
    events_.clear();
    std::int64_t launch = 0;
    for (std::size_t s = 0; s < record(rank).streams.size(); ++s) {
      std::int64_t transfers = 0;
      std::vector<plan::Dependency> computes;
      for (const HostOp& op : record(rank).streams[s]) {
        if (op.kind == HostOp::Kind::launch)
          computes = {{.rank = constant(rank), .compute = constant(launch++)}};
        if (op.kind == HostOp::Kind::record) {
          events_[op.event] = computes;
          if (transfers > 0)
            events_[op.event].push_back({.rank = constant(rank),
                                         .stream = numbers_[index(rank)][s],
                                         .transfer = constant(transfers - 1)});
        }
        if (is_transfer(op)) ++transfers;
      }
    }
  }

  /// What a wait for a signal lets happen first.
  std::vector<plan::Dependency> told(int rank, const HostOp& op) const {
    const auto found = reading_.sends.find({rank, op.slot});
    if (found == reading_.sends.end()) return {};
    const auto& sends = found->second;
    const auto send =
        std::ranges::find_if(sends, [&](const Send& one) { return one.step >= op.step; });
    if (send == sends.end()) return {};
    if (send->stream >= 0) {
      if (send->transfers == 0) return {};
      return {{.rank = constant(send->rank),
               .stream = numbers_[index(send->rank)][index(send->stream)],
               .transfer = constant(send->transfers - 1)}};
    }
    if (send->part >= kFirstShares)
      return {{.rank = constant(send->rank),
               .stream = numbers_[index(send->rank)].back(),
               .transfer = constant(send->part - kFirstShares)}};
    const LaunchFacts& facts = reading_.launches[index(send->rank)][index(send->launch)];
    const auto counted = facts.counted.find(send->part);
    if (counted == facts.counted.end()) return {};
    std::map<std::int32_t, std::vector<plan::Rect>> made;
    for (const std::int64_t tile : counted->second)
      for (const auto& [tensor, rect] : facts.tiles.at(tile).writes) made[tensor].push_back(rect);
    std::vector<plan::Dependency> after;
    // Tiles that go to a peer are there once they are stored.
    for (const WorkObject::Wave& wave : facts.op->work->waves)
      if (wave.store >= 0 && std::distance(facts.op->work->parts.begin(),
                                           facts.op->work->parts.find(wave.part)) == send->part)
        after.push_back({.rank = constant(send->rank),
                         .stream = numbers_[index(send->rank)].back(),
                         .transfer = constant(wave.store)});
    for (const auto& [tensor, rects] : made) {
      plan::Dependency one{.rank = constant(send->rank)};
      one.computed = plan::Region{.tensor = tensor, .boxes = {}};
      for (const plan::Rect& rect : joined(rects)) one.computed->boxes.push_back(box_of(rect));
      after.push_back(std::move(one));
    }
    return after;
  }

  /// The rectangle that they are together, if they are one.
  static std::vector<plan::Rect> joined(std::vector<plan::Rect> rects) {
    std::ranges::sort(rects);
    rects.erase(std::unique(rects.begin(), rects.end()), rects.end());
    plan::Rect hull = rects.front();
    std::int64_t elements = 0;
    for (const plan::Rect& rect : rects) {
      elements += rect.elements();
      for (std::size_t i = 0; i < rect.begin.size(); ++i) {
        hull.begin[i] = std::min(hull.begin[i], rect.begin[i]);
        hull.end[i] = std::max(hull.end[i], rect.end[i]);
      }
    }
    if (hull.elements() == elements) return {hull};
    return rects;
  }

  static plan::Box box_of(const plan::Rect& rect) {
    plan::Box box;
    for (std::size_t i = 0; i < rect.begin.size(); ++i)
      box.push_back({constant(rect.begin[i]), rect.end[i] - rect.begin[i]});
    return box;
  }

  plan::Region region_of(const Region& region, const Node& node) const {
    bool is_exact = false;
    const Tensor& tensor = record(0).tensors[index(region.tensor)];
    const plan::Rect rect = rect_of(tensor, region, &is_exact);
    if (!is_exact) refuse(node, "a view that is no rectangle of its tensor");
    return {.tensor = region.tensor, .boxes = {box_of(rect)}};
  }

  /// Of movements, whose elements pair up in order.
  plan::Region moved(const Region& region, const Node& node) const {
    std::int64_t last = INT64_MAX;
    for (const auto& [count, stride] : region.axes) {
      if (count <= 1) continue;
      if (stride >= last) refuse(node, "a movement of a view whose axes are turned");
      last = stride;
    }
    return region_of(region, node);
  }

  plan::Transfer collective(const HostOp& op) {
    plan::Transfer made{.kind = plan::TransferKind::collective};
    made.destination = moved(op.regions[0], *op.node);
    made.source = moved(op.regions[1], *op.node);
    made.collective = *collective_named(op.name);
    const bool adds =
        made.collective == Collective::all_reduce || made.collective == Collective::reduce_scatter;
    made.reduce = adds ? ReduceOp::sum : ReduceOp::none;
    made.group = group_of(op);
    return made;
  }

  std::int32_t group_of(const HostOp& op) {
    const auto known = std::ranges::find(plan_.groups, op.group);
    const auto group = static_cast<std::int32_t>(known - plan_.groups.begin());
    if (known == plan_.groups.end()) plan_.groups.push_back(op.group);
    return group;
  }

  plan::Transfer through_switch(int rank, const HostOp& op) {
    if (op.group.empty() || op.regions[0].rank != rank || op.regions[1].rank != rank)
      refuse(*op.node, "a movement through the switch of no group, or of a peer's view");
    const bool stores = op.kind == HostOp::Kind::to_all;
    plan::Transfer made{.kind = stores ? plan::TransferKind::push : plan::TransferKind::pull};
    made.destination = moved(op.regions[0], *op.node);
    made.source = moved(op.regions[1], *op.node);
    if (!stores) made.reduce = ReduceOp::sum;
    made.group = group_of(op);
    return made;
  }

  plan::Transfer transfer(int rank, const HostOp& op) {
    if (op.kind == HostOp::Kind::collective) return collective(op);
    if (op.kind == HostOp::Kind::to_all || op.kind == HostOp::Kind::sum_of_all)
      return through_switch(rank, op);
    plan::Transfer made;
    const Region& target = op.regions[0];
    Region source = op.regions[1];
    if (op.kind == HostOp::Kind::reduce) {
      Region operand = op.regions[2];
      if (operand.rank != target.rank) std::swap(source, operand);
      if (operand.rank != target.rank)
        refuse(*op.node, "a sum neither of whose parts is where it belongs");
      made.reduce = ReduceOp::sum;
      made.operand = moved(operand, *op.node);
    }
    made.kind = target.rank != rank   ? plan::TransferKind::push
                : source.rank != rank ? plan::TransferKind::pull
                                      : plan::TransferKind::copy;
    made.peer = constant(target.rank != rank ? target.rank : source.rank);
    if (made.kind == plan::TransferKind::copy) made.peer = own_rank();
    if (made.kind == plan::TransferKind::push && source.rank != rank)
      refuse(*op.node, "a movement from one peer to another");
    made.source = moved(source, *op.node);
    made.destination = moved(target, *op.node);
    return made;
  }

  // Computes.

  plan::Compute compute(int rank, const LaunchFacts& facts) const {
    const WorkObject& work = *facts.op->work;
    plan::Compute made{.name = work.kernel->function->name, .kernel = "fused"};
    for (std::size_t i = 0; i < work.extents.size(); ++i)
      made.axes.push_back({.name = work.extents[i].first,
                           .extent = work.extents[i].second,
                           .tile = work.blocks[i]});
    std::set<std::int32_t> reads, writes;
    for (const auto& [tile, touched] : facts.tiles) {
      for (const auto& [tensor, rect] : touched.reads) reads.insert(tensor);
      for (const auto& [tensor, rect] : touched.writes) writes.insert(tensor);
    }
    std::set<std::int32_t> followed;
    for (const std::int32_t tensor : writes) {
      made.operands.push_back(operand(rank, facts, tensor, true));
      for (const std::int32_t axis : made.operands.back().axes) followed.insert(axis);
    }
    for (std::size_t i = 0; i < made.axes.size(); ++i)
      made.axes[i].reduced = !followed.contains(static_cast<std::int32_t>(i));
    const bool adds_up = std::ranges::any_of(
        made.axes, [](const auto& axis) { return axis.reduced && axis.extent > axis.tile; });
    for (plan::ComputeOperand& one : made.operands)
      one.use =
          adds_up || facts.added.contains(one.tensor) ? plan::Use::accumulate : plan::Use::write;
    for (const std::int32_t tensor : reads)
      if (!writes.contains(tensor)) made.operands.push_back(operand(rank, facts, tensor, false));
    made.by_arrival = false;
    return made;
  }

  /// Which axis of the tiles each axis of a tensor follows.
  plan::ComputeOperand operand(int rank, const LaunchFacts& facts, std::int32_t tensor,
                               bool writes) const {
    const WorkObject& work = *facts.op->work;
    const Tensor& of = record(rank).tensors[index(tensor)];
    plan::ComputeOperand made{.tensor = tensor, .use = plan::Use::read, .axes = {}, .begin = {}};
    std::vector<std::pair<std::int64_t, const plan::Rect*>> tiles;
    for (const auto& [tile, touched] : facts.tiles) {
      const auto& list = writes ? touched.writes : touched.reads;
      if (const auto found = list.find(tensor); found != list.end())
        tiles.emplace_back(tile, &found->second);
    }
    for (std::size_t i = 0; i < of.shape.size(); ++i) {
      const bool is_whole = std::ranges::all_of(tiles, [&](const auto& one) {
        return one.second->begin[i] == 0 && one.second->end[i] == of.shape[i];
      });
      std::int32_t axis = -1;
      std::int64_t begin = 0;
      for (std::size_t a = 0; !is_whole && axis < 0 && a < work.blocks.size(); ++a) {
        const std::int64_t block = work.blocks[a], extent = work.extents[a].second;
        const auto place = [&](std::int64_t tile) {
          return work.coordinates[index(tile)][a] * block;
        };
        const std::int64_t moved = tiles.front().second->begin[i] - place(tiles.front().first);
        const bool follows = std::ranges::all_of(tiles, [&](const auto& one) {
          const std::int64_t at = place(one.first);
          return one.second->begin[i] == at + moved &&
                 one.second->end[i] == std::min(at + block, extent) + moved;
        });
        if (!follows) continue;
        axis = static_cast<std::int32_t>(a);
        begin = moved;
      }
      if (axis < 0 && !is_whole && writes)
        reading_.walker.wrong(
            *work.kernel->function->node,
            fmt::format("tiles do not store to the parts of '{}' where they lie (tile {} stores "
                        "{}:{} along axis {})",
                        of.name, tiles.front().first, tiles.front().second->begin[i],
                        tiles.front().second->end[i], i),
            "coordinates() says where each tile lies");
      made.axes.push_back(axis);
      made.begin.push_back(constant(begin));
    }
    return made;
  }

  const Reading& reading_;
  plan::Plan plan_;
  std::vector<std::vector<std::int32_t>> numbers_;  // by rank and stream
  std::map<std::int32_t, std::vector<plan::Dependency>> events_;
};

}  // namespace

std::shared_ptr<plan::Plan> plan_of(const Reading& reading) {
  return PlanMaker(reading).make();
}

}  // namespace hemiola::compile::readback
