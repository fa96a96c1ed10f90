// Rings by colouring the links between the GPUs of a machine: finds all that a torus has. Private
// to the layer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "core/index.h"
#include "plan/fabric.h"
#include "plan/templates/ring_search.h"

namespace hemiola::plan {

/// Lanes that are left between ranks, one direction each.
class Lanes {
 public:
  explicit Lanes(const Fabric& fabric) : lanes_(index(fabric.ranks())) {
    std::vector<int> rank_of(fabric.machine().nodes.size(), -1);
    for (int rank = 0; rank < fabric.ranks(); ++rank)
      rank_of[index(fabric.machine().gpus[index(rank)])] = rank;
    for (const Trunk& trunk : fabric.trunks()) {
      const int from = rank_of[index(trunk.from)], to = rank_of[index(trunk.to)];
      if (from >= 0 && to >= 0) take(from, to, -trunk.lanes);
    }
  }

  /// Those between the first ranks only.
  Lanes among_first(int ranks) const {
    Lanes some = *this;
    some.lanes_.resize(index(ranks));
    for (auto& row : some.lanes_)
      std::erase_if(row, [&](const Lane& lane) { return lane.to >= ranks; });
    return some;
  }

  /// One more rank, the last: a lane leads from it to each of `doors`, and back.
  Lanes with_outside(const std::vector<int>& doors) const {
    Lanes more = *this;
    more.lanes_.emplace_back();
    for (const int door : doors) {
      more.take(door, ranks(), -1);
      more.take(ranks(), door, -1);
    }
    return more;
  }

  int ranks() const { return static_cast<int>(lanes_.size()); }
  struct Lane {
    int to = 0;
    int left = 0;
  };
  const std::vector<Lane>& from(int rank) const { return lanes_[index(rank)]; }
  int left(int from, int to) const {
    const auto found = find(from, to);
    return found == lanes_[index(from)].end() ? 0 : found->left;
  }
  void take(int from, int to, int count = 1) {
    const auto found = find(from, to);
    if (found == lanes_[index(from)].end())
      lanes_[index(from)].push_back({to, -count});
    else
      lanes_[index(from)][index(found - lanes_[index(from)].begin())].left -= count;
  }
  bool has(const Ring& ring) const {
    for (std::size_t i = 0; i < ring.size(); ++i)
      if (left(ring[i], ring[(i + 1) % ring.size()]) <= 0) return false;
    return true;
  }
  void take(const Ring& ring) {
    for (std::size_t i = 0; i < ring.size(); ++i) take(ring[i], ring[(i + 1) % ring.size()]);
  }
  bool empty() const {
    return std::ranges::all_of(lanes_, [](const auto& row) { return row.empty(); });
  }
  /// No more rings than this.
  std::int64_t most_rings() const {
    std::int64_t most = std::numeric_limits<std::int64_t>::max();
    for (const auto& row : lanes_) {
      std::int64_t sum = 0;
      for (const Lane& lane : row) sum += lane.left;
      most = std::min(most, sum);
    }
    return most;
  }

 private:
  std::vector<Lane>::const_iterator find(int from, int to) const {
    return std::ranges::find(lanes_[index(from)], to, &Lane::to);
  }
  std::vector<std::vector<Lane>> lanes_;
};

/// Rings in pairs, one for each direction. None where a direction of a link has another number of
/// lanes than the other, or more than one.
std::vector<Ring> rings_by_colouring(const Lanes& lanes, std::mt19937& random);

}  // namespace hemiola::plan
