#include "plan/templates/ring_search.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>
#include <utility>

#include "core/index.h"
#include "machine/network_routing.h"
#include "plan/node_paths.h"
#include "plan/templates/ring_colouring.h"

namespace hemiola::plan {
namespace {

/// A ring by depth first search, to the neighbour with the fewest ways on first (Warnsdorff),
/// equals at random; gives up after a number of steps.
class RingSearch {
 public:
  RingSearch(Lanes lanes, std::mt19937& random)
      : lanes_(std::move(lanes)), random_(random), steps_(64 * lanes_.ranks() + 512) {
    seen_.assign(index(lanes_.ranks()), false);
  }

  std::optional<Ring> run() {
    ring_ = {0};
    seen_[0] = true;
    if (extend()) return ring_;
    return std::nullopt;
  }

 private:
  bool extend() {
    if (std::ssize(ring_) == lanes_.ranks()) return lanes_.left(ring_.back(), 0) > 0;
    if (--steps_ < 0) return false;
    struct Choice {
      int ways_on = 0;
      std::uint32_t chance = 0;
      int rank = 0;
    };
    std::vector<Choice> choices;
    for (const Lanes::Lane& lane : lanes_.from(ring_.back())) {
      if (lane.left <= 0 || seen_[index(lane.to)]) continue;
      int ways_on = 0;
      for (const Lanes::Lane& next : lanes_.from(lane.to))
        ways_on += next.left > 0 && !seen_[index(next.to)] ? 1 : 0;
      choices.push_back({ways_on, static_cast<std::uint32_t>(random_()), lane.to});
    }
    std::ranges::sort(choices, [](const Choice& a, const Choice& b) {
      return std::pair(a.ways_on, a.chance) < std::pair(b.ways_on, b.chance);
    });
    for (const Choice& choice : choices) {
      ring_.push_back(choice.rank);
      seen_[index(choice.rank)] = true;
      if (extend()) return true;
      seen_[index(choice.rank)] = false;
      ring_.pop_back();
    }
    return false;
  }

  Lanes lanes_;
  std::mt19937& random_;
  std::int64_t steps_;
  Ring ring_;
  std::vector<bool> seen_;
};

/// One ring after the other, with its reverse where the lanes allow (`in_pairs`), until none is
/// found.
std::vector<Ring> take_rings(Lanes lanes, std::mt19937& random, bool in_pairs) {
  std::vector<Ring> rings;
  while (auto ring = RingSearch(lanes, random).run()) {
    lanes.take(*ring);
    rings.push_back(*ring);
    std::reverse(ring->begin() + 1, ring->end());
    if (!in_pairs || !lanes.has(*ring)) continue;
    lanes.take(*ring);
    rings.push_back(std::move(*ring));
  }
  return rings;
}

constexpr int kUnreached = -2;

/// Adds what lanes of which at least `least` are left reach, up to `most` children per rank.
void grow(Lanes& lanes, int least, int most, Tree& tree, std::vector<int>& reached) {
  for (std::size_t i = 0; i < reached.size(); ++i) {
    const int rank = reached[i];
    auto children = std::ranges::count(tree, rank);
    for (const Lanes::Lane& lane : std::vector<Lanes::Lane>(lanes.from(rank))) {
      if (children >= most || lane.left < least || tree[index(lane.to)] != kUnreached) continue;
      tree[index(lane.to)] = rank;
      lanes.take(rank, lane.to);
      reached.push_back(lane.to);
      ++children;
    }
  }
}

/// Ranks per node where nodes are equally large and one after the other; 0: not so, or one node.
int node_size(const Fabric& fabric) {
  int size = 0;
  while (size < fabric.ranks() && fabric.island(size) == 0) ++size;
  if (size == fabric.ranks() || fabric.ranks() % size != 0) return 0;
  for (int rank = 0; rank < fabric.ranks(); ++rank)
    if (fabric.island(rank) != rank / size * size) return 0;
  return size;
}

/// Rings over lanes, as many as the search finds.
std::vector<Ring> rings_over(const Lanes& lanes) {
  const std::int64_t most = lanes.most_rings();
  std::vector<Ring> best;
  std::mt19937 random(1);
  if (most > 0) best = rings_by_colouring(lanes, random);
  const int attempts = most > 0 ? std::max(64, 4096 / lanes.ranks()) : 0;
  for (int i = 0; i < attempts && std::ssize(best) < most; ++i) {
    std::vector<Ring> rings = take_rings(lanes, random, i % 2 == 0);
    if (rings.size() > best.size()) best = std::move(rings);
  }
  return best;
}

/// Along a path through a node, and every second node backwards, so that a node is entered where
/// the one before was left.
Ring ring_over_nodes(int ranks, const std::vector<int>& path) {
  const auto inner = static_cast<int>(path.size());
  Ring ring;
  for (int place = 0; place < ranks; ++place) {
    const int node = place / inner, step = place % inner;
    ring.push_back(node * inner + path[index(node % 2 == 0 ? step : inner - 1 - step)]);
  }
  std::rotate(ring.begin(), std::ranges::find(ring, 0), ring.end());
  return ring;
}

}  // namespace

std::vector<Ring> find_rings(const Fabric& fabric) {
  Ring in_order(index(fabric.ranks()));
  std::iota(in_order.begin(), in_order.end(), 0);
  const Lanes lanes(fabric);
  std::vector<Ring> best = rings_over(lanes);
  if (!best.empty()) {
    // One that is in order comes first.
    const auto found = std::ranges::find(best, in_order);
    if (found != best.end()) std::rotate(best.begin(), found, found + 1);
    return best;
  }
  if (const int inner = node_size(fabric)) {
    // Through switches any rank can be the first; links between GPUs leave a choice for each NIC.
    std::vector<int> doors = machine::nic_owners(fabric.machine(), inner);
    if (lanes.among_first(inner).empty()) {
      doors.resize(index(inner));
      std::iota(doors.begin(), doors.end(), 0);
    }
    std::vector<Ring> rings;
    for (const std::vector<int>& path : node_paths(fabric, doors))
      rings.push_back(ring_over_nodes(fabric.ranks(), path));
    return rings;
  }
  return {in_order};
}

// A path through a node is a ring that also passes what is outside, which is one rank more. Doors
// have a lane to it each way.
std::vector<std::vector<int>> node_paths(const Fabric& fabric, std::vector<int> doors) {
  const bool one_node = node_size(fabric.machine()) == fabric.ranks();
  const int inner = one_node ? fabric.ranks() : node_size(fabric);
  if (inner == 0) return {};
  const Lanes lanes = Lanes(fabric).among_first(inner);
  if (doors.empty()) {
    doors.resize(lanes.empty() ? 1 : index(inner));
    std::iota(doors.begin(), doors.end(), 0);
  }
  std::vector<std::vector<int>> paths(doors.size());
  Ring order;
  if (!lanes.empty()) {
    for (Ring& ring : rings_over(lanes.with_outside(doors))) {
      std::rotate(ring.begin(), std::ranges::find(ring, inner), ring.end());
      ring.erase(ring.begin());
      const auto door = std::ranges::find(doors, ring.front()) - doors.begin();
      paths[index(door)] = std::move(ring);
    }
    std::mt19937 random(1);
    order = RingSearch(lanes, random).run().value_or(Ring{});
  }
  // What the search did not find, and all of them through switches: around one ring.
  for (std::size_t i = 0; i < doors.size(); ++i) {
    if (!paths[i].empty()) continue;
    paths[i].resize(index(inner));
    if (order.empty())
      std::iota(paths[i].begin(), paths[i].end(), 0);
    else
      paths[i] = order;
    std::rotate(paths[i].begin(), std::ranges::find(paths[i], doors[i]), paths[i].end());
  }
  return paths;
}

std::vector<Tree> find_trees(const Fabric& fabric, int root) {
  Lanes lanes(fabric);
  std::vector<Tree> trees;
  for (int number = 0; number < 2; ++number) {
    Tree tree(index(fabric.ranks()), kUnreached);
    std::vector<int> reached{root};
    tree[index(root)] = -1;
    // Breadth first over lanes that are left, two children each; then with more, then over used
    // ones.
    grow(lanes, 1, 2, tree, reached);
    grow(lanes, 1, fabric.ranks(), tree, reached);
    grow(lanes, -2, fabric.ranks(), tree, reached);
    if (std::ssize(reached) != fabric.ranks()) return {};
    trees.push_back(std::move(tree));
  }
  return trees;
}

Tree tree_over_nodes(const Fabric& fabric, int root) {
  const int inner = node_size(fabric);
  if (inner == 0) return {};
  const Tree across = shifted_tree(binary_tree(fabric.ranks() / inner), root / inner);
  const int head = root % inner;
  Tree tree;
  std::vector<int> before(index(inner), -1);  // on the path from the head
  std::vector<int> doors = machine::nic_owners(fabric.machine(), inner);
  const auto door = std::ranges::find(doors, head) - doors.begin();
  if (door == std::ssize(doors)) doors.push_back(head);
  const std::vector<int> path = node_paths(fabric, std::move(doors))[index(door)];
  for (std::size_t i = 1; i < path.size(); ++i) before[index(path[i])] = path[i - 1];
  for (int rank = 0; rank < fabric.ranks(); ++rank) {
    const int node = rank / inner, above = across[index(node)];
    if (rank % inner != head)
      tree.push_back(node * inner + before[index(rank % inner)]);
    else
      tree.push_back(above < 0 ? -1 : above * inner + head);
  }
  return tree;
}

}  // namespace hemiola::plan
