#include "sim/alike/fold.h"

#include <algorithm>
#include <numeric>

#include "machine/network_routing.h"
#include "sim/model/engines.h"
#include "sim/result/host_calls.h"

namespace hemiola::sim {
namespace {

using machine::LinkId;

/// More pairs are not compared: their ways would fill the memory that folding saves.
constexpr std::int64_t kMostPairs = 1 << 18;

/// The map of links that a rotation by `period` ranks makes.
class Images {
 public:
  Images(Fabric& fabric, int period)
      : fabric_(fabric),
        ranks_(fabric.machine.ranks()),
        period_(period),
        image_(fabric.machine.links.size(), -1),
        origin_(image_.size(), -1) {}

  /// Whether the ways from rank to rank + offset, and those a period further, are alike.
  bool alike(int rank, std::int32_t offset) {
    const auto add = [&](int a, std::int32_t b) { return (a + b) % ranks_; };
    const int other = add(rank, period_);
    const Fabric::Paths here = fabric_.paths(rank, add(rank, offset));
    const Fabric::Paths there = fabric_.paths(other, add(other, offset));
    if (here.count != there.count) return false;
    for (std::int32_t i = 0; i < here.count; ++i) {
      const Path& a = fabric_.path(here.first + i);
      const Path& b = fabric_.path(there.first + i);
      if (a.source_port != b.source_port || a.destination_port != b.destination_port ||
          !alike(a.forward, b.forward) || !alike(a.reverse, b.reverse))
        return false;
    }
    return true;
  }

  /// By link, the one of its orbit with the smallest number. Empty if some orbit has fewer links
  /// than there are copies of a rank: several of them would share it.
  std::vector<LinkId> orbits() const {
    std::vector<LinkId> link_of(image_.size());
    std::iota(link_of.begin(), link_of.end(), 0);
    std::vector<bool> seen(image_.size(), false);
    for (std::size_t l = 0; l < image_.size(); ++l) {
      if (image_[l] < 0 || seen[l]) continue;
      int length = 0;
      for (auto at = static_cast<LinkId>(l); !seen[index(at)]; at = image_[index(at)]) {
        if (image_[index(at)] < 0) return {};
        seen[index(at)] = true;
        link_of[index(at)] = static_cast<LinkId>(l);
        ++length;
      }
      if (length != ranks_ / period_) return {};
    }
    return link_of;
  }

  /// Whether links that meet at a switch with finite queues, where they hold each other up, do so
  /// where those are that stand for them.
  bool meet(const std::vector<LinkId>& link_of) const {
    const machine::Machine& machine = fabric_.machine;
    std::vector<machine::NodeId> stands_for(machine.nodes.size(), -1);
    const auto is_there = [&](machine::NodeId node, machine::NodeId there) {
      if (machine.nodes[index(node)].switch_model.queue == 0) return true;
      machine::NodeId& known = stands_for[index(node)];
      if (known < 0) known = there;
      return known == there;
    };
    for (std::size_t l = 0; l < link_of.size(); ++l) {
      if (image_[l] < 0) continue;
      const machine::Link& link = machine.links[l];
      const machine::Link& there = machine.links[index(link_of[l])];
      if (!is_there(link.from, there.from) || !is_there(link.to, there.to)) return false;
    }
    return true;
  }

 private:
  bool alike(const Leg& a, const Leg& b) {
    if (a.count != b.count) return false;
    for (std::int32_t h = 0; h < a.count; ++h) {
      const Hop& x = a.hops[h];
      const Hop& y = b.hops[h];
      if (x.tag != y.tag || x.latency != y.latency || x.node_latency != y.node_latency ||
          x.node_reason != y.node_reason ||
          !map(x.server - fabric_.link_base, y.server - fabric_.link_base))
        return false;
    }
    return true;
  }

  bool map(LinkId from, LinkId to) {
    const machine::Machine& machine = fabric_.machine;
    const auto queue = [&](LinkId l) {
      return machine.nodes[index(machine.links[index(l)].from)].switch_model.queue;
    };
    if (image_[index(from)] < 0 && origin_[index(to)] < 0) {
      if (machine.links[index(from)].link_class != machine.links[index(to)].link_class ||
          queue(from) != queue(to))
        return false;
      image_[index(from)] = to;
      origin_[index(to)] = from;
    }
    return image_[index(from)] == to && origin_[index(to)] == from;
  }

  Fabric& fabric_;
  const int ranks_;
  const std::int32_t period_;
  std::vector<LinkId> image_, origin_;
};

std::string hindrance(const machine::Machine& machine, const program::Bound& program,
                      const Options& options) {
  if (!options.fold) return "not asked for";
  if (options.trace != nullptr) return "a trace shows every rank";
  if (options.record != nullptr) return "what one rank sees is recorded";
  if (options.replay != nullptr) return "one rank is replayed";
  if (!program.groups().empty()) return "multicast groups";
  if (program.ranks() != machine.ranks()) return "some GPUs of the machine take no part";
  const auto late = [&](Time skew) { return skew != options.skew.front(); };
  if (!options.skew.empty() &&
      (index(program.ranks()) > options.skew.size() || std::ranges::any_of(options.skew, late)))
    return "ranks start at different times";
  if (options.one_host && has_queues(program)) return "one host thread gives copies to all ranks";
  if (call_time(machine, program, options, program.ranks() - 1, 0) > 0)
    return "one host thread launches rank after rank";
  return {};
}

/// Whether a message between two ranks takes the way of the one between those a period further.
bool messages_turn(const machine::Machine& machine, int rank, int peer, int period) {
  const machine::Routes& routes = machine.routes(rank, peer);
  const int further = (rank + period) % machine.ranks(), other = (peer + period) % machine.ranks();
  return routes.count == 1 ||
         machine::path_of_messages(machine, routes, rank, peer) ==
             machine::path_of_messages(machine, machine.routes(further, other), further, other);
}

/// Empty: they are alike.
std::string differing_ways(Fabric& fabric, const program::Rotation& rotation, int period,
                           std::vector<LinkId>& link_of) {
  const int ranks = fabric.machine.ranks();
  std::vector<std::vector<std::int32_t>> offsets = rotation.offsets;
  if (rotation.all_offsets) {
    offsets.assign(1, std::vector<std::int32_t>(index(ranks) - 1));
    std::iota(offsets.front().begin(), offsets.front().end(), 1);
  }
  std::int64_t pairs = 0;  // of every rank of a period
  for (const auto& of_rank : offsets) pairs += std::ssize(of_rank);
  if (pairs * (ranks / std::ssize(offsets)) > kMostPairs)
    return "too many pairs of ranks to compare";
  Images images(fabric, period);
  for (int rank = 0; rank < ranks; ++rank) {
    for (const std::int32_t offset : offsets[index(rank) % offsets.size()]) {
      const int peer = (rank + offset) % ranks;
      if (!messages_turn(fabric.machine, rank, peer, period))
        return "messages choose their ways by the numbers of ranks";
      if (!images.alike(rank, offset)) return "ways between ranks differ";
    }
  }
  link_of = images.orbits();
  if (link_of.empty()) return "ranks share links";
  return images.meet(link_of) ? "" : "links meet at different switches with finite queues";
}

}  // namespace

bool same_models(const machine::Machine& machine, int period, int ranks) {
  for (int rank = period; rank < ranks; ++rank)
    if (machine.gpu_models[index(rank)] != machine.gpu_models[index(rank - period)]) return false;
  return true;
}

Fold alike_ranks(Fabric& fabric, const program::Bound& program, const program::Rotation& rotation) {
  const machine::Machine& machine = fabric.machine;
  Fold none{.period = program.ranks(), .reason = "ranks run different programs", .link_of = {}};
  for (int period = rotation.period; period < program.ranks(); period += rotation.period) {
    if (program.ranks() % period != 0) continue;
    if (!same_models(machine, period, machine.ranks())) {
      none.reason = "GPUs differ";
      continue;
    }
    Fold fold{.period = period, .reason = {}, .link_of = {}};
    none.reason = differing_ways(fabric, rotation, period, fold.link_of);
    if (none.reason.empty()) return fold;
  }
  return none;
}

Fold fold_of(Fabric& fabric, const program::Bound& program, const program::Rotation& rotation,
             const Options& options) {
  std::string reason = hindrance(fabric.machine, program, options);
  if (reason.empty()) return alike_ranks(fabric, program, rotation);
  return {.period = program.ranks(), .reason = std::move(reason), .link_of = {}};
}

}  // namespace hemiola::sim
