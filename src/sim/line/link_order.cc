#include "sim/line/link_order.h"

#include <algorithm>
#include <utility>

#include "sim/support/index.h"

namespace hemiola::sim {
namespace {

constexpr int kFar = INT32_MAX;

class Orderer {
 public:
  explicit Orderer(const LinkOrderRequest& request)
      : request_(request),
        machine_(request.machine),
        from_(machine_.nodes.size()),
        into_(machine_.nodes.size()),
        distance_(machine_.nodes.size(), kFar),
        first_key_(machine_.nodes.size(), {kFar, 0}),
        level_of_(machine_.links.size()),
        end_(machine_.links.size()) {}

  LinkOrder order() {
    find_links();
    find_distances();
    find_levels();
    begin_all_at_once();
    place_links();
    find_arrivals();
    if (found_.window < 1) {  // links in circles: with one offset all take as long as they are
      begin_all_at_once();
      find_arrivals();
    }
    return std::move(found_);
  }

 private:
  using Key = std::pair<int, int>;  ///< of a turn
  std::int32_t links() const { return static_cast<std::int32_t>(machine_.links.size()); }
  const machine::Link& link(std::int32_t l) const { return machine_.links[index(l)]; }
  bool is_own(std::int32_t l) const { return request_.own[index(l)]; }

  /// No way leads through GPUs outside the job that do not forward, nor through NICs where nobody
  /// needs one: what is there or behind them does not count.
  void find_links() {
    used_ = machine_.forwarding_nodes();
    for (std::size_t n = 0; n < used_.size(); ++n)
      used_[n] = used_[n] || request_.fabric.rank_of(static_cast<machine::NodeId>(n)) >= 0 ||
                 (request_.nics && machine_.nodes[n].kind == machine::NodeKind::nic);
    for (std::int32_t l = 0; l < links(); ++l) {
      if (!counts(l)) continue;
      from_[index(link(l).from)].push_back(l);
      into_[index(link(l).to)].push_back(l);
    }
  }
  bool counts(std::int32_t l) const {
    return used_[index(link(l).from)] && used_[index(link(l).to)];
  }

  /// In links, from the nearest GPU.
  void find_distances() {
    std::vector<machine::NodeId> reached(machine_.gpus.begin(), machine_.gpus.end());
    for (const machine::NodeId gpu : reached) distance_[index(gpu)] = 0;
    for (std::size_t i = 0; i < reached.size(); ++i) {
      for (const std::int32_t l : from_[index(reached[i])]) {
        int& next = distance_[index(link(l).to)];
        if (next != kFar) continue;
        next = distance_[index(reached[i])] + 1;
        reached.push_back(link(l).to);
      }
    }
    for (std::size_t n = 0; n < used_.size(); ++n) used_[n] = used_[n] && distance_[n] != kFar;
  }

  /// The switch with finite queues that a link leaves, or -1. Its links are one stage, which comes
  /// where the first of them would.
  machine::NodeId finite_switch(std::int32_t l) const {
    const machine::NodeId node = link(l).from;
    return machine_.nodes[index(node)].switch_model.queue > 0 ? node : -1;
  }
  Key own_key(std::int32_t l) const {
    const int begin = distance_[index(link(l).from)];
    const bool away = distance_[index(link(l).to)] > begin;
    return {away ? 0 : 1, away ? begin : -begin};
  }
  Key key(std::int32_t l) const {
    const machine::NodeId node = finite_switch(l);
    return node < 0 ? own_key(l) : first_key_[index(node)];
  }

  void find_levels() {
    for (std::int32_t l = 0; l < links(); ++l) {
      if (!counts(l) || is_own(l)) continue;
      order_.push_back(l);
      const machine::NodeId node = finite_switch(l);
      if (node >= 0) first_key_[index(node)] = std::min(first_key_[index(node)], own_key(l));
    }
    std::ranges::stable_sort(order_, {}, [this](std::int32_t l) { return key(l); });
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (i == 0 || key(order_[i]) != key(order_[i - 1])) found_.levels.emplace_back();
      found_.levels.back().push_back(order_[i]);
      level_of_[index(order_[i])] = static_cast<int>(found_.levels.size());
    }
    found_.begins_at_gpus = !order_.empty() && key(order_.front()) == Key{0, 0};
  }

  void begin_all_at_once() {
    found_.offset.assign(machine_.links.size(), request_.out);
    for (std::int32_t l = 0; l < links(); ++l) end_[index(l)] = end_of(l);
  }
  /// When the earliest request can be at its far end.
  std::int64_t end_of(std::int32_t l) const {
    const machine::Node& to = machine_.nodes[index(link(l).to)];
    const std::int64_t node = to.kind == machine::NodeKind::xpu   ? 0
                              : to.kind == machine::NodeKind::nic ? to.nic_model.latency.fs
                                                                  : to.switch_model.latency.fs;
    return found_.offset[index(l)] + 1 + machine_.class_of(l).latency.fs + node;
  }

  void place_links() {
    placed_ = request_.own;
    for (const std::int32_t l : order_) {
      if (placed_[index(l)]) continue;
      const machine::NodeId node = finite_switch(l);
      const std::vector<std::int32_t> stage = node < 0 ? std::vector{l} : from_[index(node)];
      const std::int64_t first = first_arrival(l, stage);
      for (const std::int32_t of_stage : stage) {
        found_.offset[index(of_stage)] = first;
        end_[index(of_stage)] = end_of(of_stage);
        placed_[index(of_stage)] = true;
      }
    }
  }
  std::int64_t first_arrival(std::int32_t l, const std::vector<std::int32_t>& stage) const {
    std::int64_t first = INT64_MAX;
    if (request_.fabric.rank_of(link(l).from) >= 0) first = request_.out;
    for (const std::int32_t upstream : into_[index(link(l).from)])
      if (placed_[index(upstream)]) first = std::min(first, end_[index(upstream)]);
    if (first == INT64_MAX) first = request_.out;
    for (const std::int32_t of_stage : stage) {
      const std::int32_t behind = credits_from(of_stage);
      if (behind >= 0 && placed_[index(behind)])
        first = std::min(first, found_.offset[index(behind)] + latency(of_stage));
    }
    return first;
  }
  /// Credits of a link come back from the links behind it, if their queues are finite; else it
  /// knows by itself when they do (-1).
  std::int32_t credits_from(std::int32_t l) const {
    const std::vector<std::int32_t>& behind = from_[index(link(l).to)];
    const bool from_others =
        machine_.class_of(l).credits > 0 && !behind.empty() && finite_switch(behind.front()) >= 0;
    return from_others ? behind.front() : -1;
  }
  std::int64_t latency(std::int32_t l) const { return machine_.class_of(l).latency.fs; }

  void find_arrivals() {
    found_.window = found_.at_gpu = INT64_MAX / 4;
    for (std::int32_t l = 0; l < links(); ++l) {
      if (!counts(l)) continue;
      const std::int32_t behind = credits_from(l);
      if (behind >= 0 && level_of_[index(l)] <= level_of_[index(behind)])
        at_most(latency(l) + found_.offset[index(behind)] - found_.offset[index(l)]);
      const int at = request_.fabric.rank_of(link(l).to);
      if (at >= 0) found_.at_gpu = std::min(found_.at_gpu, end_[index(l)]);
      if (at < 0 || machine_.model(at).forwards || request_.answers) find_next(l);
    }
  }
  /// What comes from the link goes on at once, or in a later round.
  void find_next(std::int32_t l) {
    for (const std::int32_t next : from_[index(link(l).to)]) {
      const int here = level_of_[index(l)], there = level_of_[index(next)];
      if (there > 0 && here >= there) at_most(end_[index(l)] - found_.offset[index(next)]);
    }
  }
  void at_most(std::int64_t window) { found_.window = std::min(found_.window, window); }

  const LinkOrderRequest& request_;
  const machine::Machine& machine_;
  std::vector<bool> used_;                              ///< by node
  std::vector<std::vector<std::int32_t>> from_, into_;  ///< by node: links that count
  std::vector<int> distance_;                           ///< by node
  std::vector<Key> first_key_;                          ///< by node: of a switch's first link
  std::vector<std::int32_t> order_;
  std::vector<int> level_of_;      ///< by link, from 1 on; 0: none
  std::vector<std::int64_t> end_;  ///< by link
  std::vector<bool> placed_;       ///< by link
  LinkOrder found_;
};

}  // namespace

LinkOrder order_links(const LinkOrderRequest& request) {
  return Orderer(request).order();
}

}  // namespace hemiola::sim
