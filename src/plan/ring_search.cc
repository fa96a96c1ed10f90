#include "plan/ring_search.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>

namespace hemiola::plan {
namespace {

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

/// Lanes that are left between ranks, one direction each.
class Lanes {
 public:
  explicit Lanes(const Fabric& fabric) : lanes_(at(fabric.ranks())) {
    std::vector<int> rank_of(fabric.machine().nodes.size(), -1);
    for (int rank = 0; rank < fabric.ranks(); ++rank)
      rank_of[at(fabric.machine().gpus[at(rank)])] = rank;
    for (const Trunk& trunk : fabric.trunks()) {
      const int from = rank_of[at(trunk.from)], to = rank_of[at(trunk.to)];
      if (from >= 0 && to >= 0) take(from, to, -trunk.lanes);
    }
  }

  int ranks() const { return static_cast<int>(lanes_.size()); }
  struct Lane {
    int to = 0;
    int left = 0;
  };
  const std::vector<Lane>& from(int rank) const { return lanes_[at(rank)]; }
  int left(int from, int to) const {
    const auto found = find(from, to);
    return found == lanes_[at(from)].end() ? 0 : found->left;
  }
  void take(int from, int to, int count = 1) {
    const auto found = find(from, to);
    if (found == lanes_[at(from)].end())
      lanes_[at(from)].push_back({to, -count});
    else
      lanes_[at(from)][at(found - lanes_[at(from)].begin())].left -= count;
  }
  bool has(const Ring& ring) const {
    for (std::size_t i = 0; i < ring.size(); ++i) {
      if (left(ring[i], ring[(i + 1) % ring.size()]) <= 0) return false;
    }
    return true;
  }
  void take(const Ring& ring) {
    for (std::size_t i = 0; i < ring.size(); ++i) take(ring[i], ring[(i + 1) % ring.size()]);
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
    return std::find_if(lanes_[at(from)].begin(), lanes_[at(from)].end(),
                        [&](const Lane& lane) { return lane.to == to; });
  }
  std::vector<std::vector<Lane>> lanes_;
};

/// A ring by depth first search, to the neighbour with the fewest ways on first (Warnsdorff),
/// equals at random; gives up after a number of steps.
class RingSearch {
 public:
  RingSearch(const Lanes& lanes, std::mt19937& random)
      : lanes_(lanes), random_(random), steps_(64 * lanes.ranks() + 512) {
    seen_.assign(at(lanes.ranks()), false);
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
      if (lane.left <= 0 || seen_[at(lane.to)]) continue;
      int ways_on = 0;
      for (const Lanes::Lane& next : lanes_.from(lane.to))
        ways_on += next.left > 0 && !seen_[at(next.to)] ? 1 : 0;
      choices.push_back({ways_on, static_cast<std::uint32_t>(random_()), lane.to});
    }
    std::sort(choices.begin(), choices.end(), [](const Choice& a, const Choice& b) {
      return std::pair(a.ways_on, a.chance) < std::pair(b.ways_on, b.chance);
    });
    for (const Choice& choice : choices) {
      ring_.push_back(choice.rank);
      seen_[at(choice.rank)] = true;
      if (extend()) return true;
      seen_[at(choice.rank)] = false;
      ring_.pop_back();
    }
    return false;
  }

  const Lanes& lanes_;
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

/// A torus: its edges, as unordered pairs, in two colours; every rank has two of each. A square
/// whose sides alternate can exchange its colours, which joins rings, or parts them. Squares are
/// exchanged at random, unless that leaves more rings than before, until each colour is one ring.
class Colouring {
 public:
  /// Nothing unless every rank has four neighbours, by equally many lanes in both directions.
  static std::optional<Colouring> of(const Lanes& lanes) {
    Colouring colouring;
    for (int rank = 0; rank < lanes.ranks(); ++rank) {
      std::vector<int> neighbours;
      for (const Lanes::Lane& lane : lanes.from(rank)) {
        if (lane.left != 1 || lanes.left(lane.to, rank) != 1) return std::nullopt;
        neighbours.push_back(lane.to);
      }
      if (neighbours.size() != 4) return std::nullopt;
      colouring.neighbours_.push_back(std::move(neighbours));
    }
    colouring.colour_by_tour();
    return colouring;
  }

  std::vector<Ring> run(std::mt19937& random) {
    const auto ranks = static_cast<std::uint32_t>(neighbours_.size());
    std::size_t rings = rings_of(0).size() + rings_of(1).size();
    for (std::uint32_t tries = 0; tries < 4000 * ranks && rings > 2; ++tries) {
      // a - b - c - d - a with alternating colours
      const int a = static_cast<int>(random() % ranks);
      const int b = neighbours_[at(a)][random() % 4], c = neighbours_[at(b)][random() % 4];
      const int d = neighbours_[at(c)][random() % 4];
      if (c == a || d == b || !is_edge(d, a)) continue;
      if (colour(a, b) != colour(c, d) || colour(b, c) != colour(d, a) ||
          colour(a, b) == colour(b, c))
        continue;
      exchange(a, b, c, d);
      const std::size_t now = rings_of(0).size() + rings_of(1).size();
      if (now > rings)
        exchange(a, b, c, d);
      else
        rings = now;
    }
    std::vector<Ring> found;
    for (const int which : {0, 1}) {
      std::vector<Ring> all = rings_of(which);
      if (all.size() != 1) continue;
      found.push_back(all.front());
      std::reverse(all.front().begin() + 1, all.front().end());
      found.push_back(std::move(all.front()));
    }
    return found;
  }

 private:
  bool is_edge(int a, int b) const {
    return std::count(neighbours_[at(a)].begin(), neighbours_[at(a)].end(), b) > 0;
  }
  std::size_t index(int a, int b) const {
    const auto& row = neighbours_[at(a)];
    return at(std::find(row.begin(), row.end(), b) - row.begin());
  }
  int colour(int a, int b) const { return colours_[at(a)][index(a, b)]; }
  void set(int a, int b, int value) {
    colours_[at(a)][index(a, b)] = value;
    colours_[at(b)][index(b, a)] = value;
  }
  void exchange(int a, int b, int c, int d) {
    const int first = colour(a, b), second = colour(b, c);
    set(a, b, second);
    set(c, d, second);
    set(b, c, first);
    set(d, a, first);
  }

  /// Along a closed tour of all edges colours alternate (there are evenly many edges), so every
  /// rank gets two of each (Petersen).
  void colour_by_tour() {
    colours_.assign(neighbours_.size(), std::vector<int>(4, -1));
    for (int start = 0; start < static_cast<int>(neighbours_.size()); ++start) {
      std::vector<int> stack{start}, tour;
      while (!stack.empty()) {
        const int rank = stack.back();
        auto& row = colours_[at(rank)];
        const auto open = std::find(row.begin(), row.end(), -1);
        if (open == row.end()) {
          tour.push_back(rank);
          stack.pop_back();
          continue;
        }
        const int next = neighbours_[at(rank)][at(open - row.begin())];
        set(rank, next, 0);  // walked; coloured below
        stack.push_back(next);
      }
      for (std::size_t i = 0; i + 1 < tour.size(); ++i)
        set(tour[i], tour[i + 1], static_cast<int>(i % 2));
    }
  }

  std::vector<Ring> rings_of(int which) const {
    std::vector<bool> seen(neighbours_.size(), false);
    std::vector<Ring> rings;
    for (int start = 0; start < static_cast<int>(neighbours_.size()); ++start) {
      if (seen[at(start)]) continue;
      Ring ring;
      for (int rank = start; rank >= 0;) {
        seen[at(rank)] = true;
        ring.push_back(rank);
        int next = -1;
        for (std::size_t i = 0; i < 4; ++i) {
          if (colours_[at(rank)][i] == which && !seen[at(neighbours_[at(rank)][i])])
            next = neighbours_[at(rank)][i];
        }
        rank = next;
      }
      rings.push_back(std::move(ring));
    }
    return rings;
  }

  std::vector<std::vector<int>> neighbours_, colours_;
};

constexpr int kUnreached = -2;

/// Adds what lanes of which at least `least` are left reach, up to `most` children per rank.
void grow(Lanes& lanes, int least, int most, Tree& tree, std::vector<int>& reached) {
  for (std::size_t i = 0; i < reached.size(); ++i) {
    const int rank = reached[i];
    auto children = std::count(tree.begin(), tree.end(), rank);
    for (const Lanes::Lane& lane : std::vector<Lanes::Lane>(lanes.from(rank))) {
      if (children >= most || lane.left < least || tree[at(lane.to)] != kUnreached) continue;
      tree[at(lane.to)] = rank;
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
  for (int rank = 0; rank < fabric.ranks(); ++rank) {
    if (fabric.island(rank) != rank / size * size) return 0;
  }
  return size;
}

/// Every second node backwards, so that a node is entered where the one before was left.
std::vector<Ring> rings_over_nodes(int ranks, int inner) {
  std::vector<Ring> rings;
  for (int shift = 0; shift < inner; ++shift) {
    Ring ring;
    for (int place = 0; place < ranks; ++place) {
      const int node = place / inner, step = place % inner;
      const int turned = node % 2 == 0 ? step : inner - 1 - step;
      ring.push_back(node * inner + (turned + shift) % inner);
    }
    std::rotate(ring.begin(), std::find(ring.begin(), ring.end(), 0), ring.end());
    rings.push_back(std::move(ring));
  }
  return rings;
}

}  // namespace

std::vector<Ring> find_rings(const Fabric& fabric) {
  Ring in_order(at(fabric.ranks()));
  std::iota(in_order.begin(), in_order.end(), 0);
  const Lanes lanes(fabric);
  const std::int64_t most = lanes.most_rings();
  std::vector<Ring> best;
  std::mt19937 random(1);
  if (const auto colouring = most > 0 ? Colouring::of(lanes) : std::nullopt)
    best = Colouring(*colouring).run(random);
  const int attempts = most > 0 ? std::max(64, 4096 / fabric.ranks()) : 0;
  for (int i = 0; i < attempts && std::ssize(best) < most; ++i) {
    std::vector<Ring> rings = take_rings(lanes, random, i % 2 == 0);
    if (rings.size() > best.size()) best = std::move(rings);
  }
  if (!best.empty()) {
    // One that is in order comes first.
    const auto found = std::find(best.begin(), best.end(), in_order);
    if (found != best.end()) std::rotate(best.begin(), found, found + 1);
    return best;
  }
  if (const int inner = node_size(fabric)) return rings_over_nodes(fabric.ranks(), inner);
  return {in_order};
}

std::vector<Tree> find_trees(const Fabric& fabric, int root) {
  Lanes lanes(fabric);
  std::vector<Tree> trees;
  for (int number = 0; number < 2; ++number) {
    Tree tree(at(fabric.ranks()), kUnreached);
    std::vector<int> reached{root};
    tree[at(root)] = -1;
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

Tree tree_over_nodes(const Fabric& fabric, int head) {
  const int inner = node_size(fabric);
  if (inner == 0) return {};
  const Tree across = binary_tree(fabric.ranks() / inner);
  Tree tree;
  for (int rank = 0; rank < fabric.ranks(); ++rank) {
    const int step = (rank % inner - head % inner + inner) % inner;
    const int node = rank / inner;
    const int above = across[at(node)];
    if (step > 0)
      tree.push_back(node * inner + (rank % inner + inner - 1) % inner);
    else
      tree.push_back(above < 0 ? -1 : above * inner + head % inner);
  }
  return tree;
}

}  // namespace hemiola::plan
