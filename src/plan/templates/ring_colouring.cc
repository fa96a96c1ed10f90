#include "plan/templates/ring_colouring.h"

#include <functional>
#include <optional>

#include "core/index.h"

namespace hemiola::plan {
namespace {

/// Links as undirected edges in colours, of which each makes rings through all ranks; the last
/// colour is that of edges in no ring. A square whose sides alternate between two colours can
/// exchange them, which joins rings, or parts them. Squares are exchanged at random, unless that
/// leaves more rings than before, until every colour is one ring.
class Colouring {
 public:
  /// Nothing where a direction of a link has another number of lanes than the other, or more than
  /// one.
  static std::optional<Colouring> of(const Lanes& lanes) {
    Colouring colouring;
    for (int rank = 0; rank < lanes.ranks(); ++rank) {
      colouring.neighbours_.emplace_back();
      for (const Lanes::Lane& lane : lanes.from(rank)) {
        if (lane.left != 1 || lanes.left(lane.to, rank) != 1) return std::nullopt;
        colouring.neighbours_.back().push_back(lane.to);
      }
      colouring.colours_.emplace_back(colouring.neighbours_.back().size(), kNone);
    }
    colouring.colour_factors();
    return colouring;
  }

  std::vector<Ring> run(std::mt19937& random) {
    const auto ranks = static_cast<std::uint32_t>(neighbours_.size());
    std::vector<std::size_t> rings;
    for (int which = 0; which < factors_; ++which) rings.push_back(rings_of(which).size());
    const auto is_done = [&] {
      return std::ranges::all_of(rings, [](std::size_t count) { return count == 1; });
    };
    const auto count = [&](int which) { return which == kNone ? 0 : rings_of(which).size(); };
    const auto any_of = [&](int rank) {
      return neighbours_[index(rank)][random() % neighbours_[index(rank)].size()];
    };
    for (std::uint32_t tries = 0; tries < 4000 * ranks && !is_done(); ++tries) {
      // a - b - c - d - a with alternating colours
      const int a = static_cast<int>(random() % ranks);
      const int b = any_of(a), c = any_of(b), d = any_of(c);
      if (c == a || d == b || !is_edge(d, a)) continue;
      const int first = colour(a, b), second = colour(b, c);
      if (first != colour(c, d) || second != colour(d, a) || first == second) continue;
      const std::size_t before = count(first) + count(second);
      exchange(a, b, c, d);
      if (count(first) + count(second) > before) exchange(a, b, c, d);
      for (const int which : {first, second})
        if (which != kNone) rings[index(which)] = count(which);
    }
    std::vector<Ring> found;
    for (int which = 0; which < factors_; ++which) {
      std::vector<Ring> all = rings_of(which);
      if (all.size() != 1) continue;
      found.push_back(all.front());
      std::reverse(all.front().begin() + 1, all.front().end());
      found.push_back(std::move(all.front()));
    }
    return found;
  }

 private:
  static constexpr int kNone = -1, kWalked = -2;
  struct Edge {
    int from = 0, to = 0;
  };

  bool is_edge(int a, int b) const { return std::ranges::count(neighbours_[index(a)], b) > 0; }
  std::size_t column(int a, int b) const {
    const auto& row = neighbours_[index(a)];
    return index(std::ranges::find(row, b) - row.begin());
  }
  int colour(int a, int b) const { return colours_[index(a)][column(a, b)]; }
  void set(int a, int b, int value) {
    colours_[index(a)][column(a, b)] = value;
    colours_[index(b)][column(b, a)] = value;
  }
  void exchange(int a, int b, int c, int d) {
    const int first = colour(a, b), second = colour(b, c);
    set(a, b, second);
    set(c, d, second);
    set(b, c, first);
    set(d, a, first);
  }

  /// Sets of edges of which every rank has two, as many as there are. In a bipartite graph an edge
  /// leads from one side to the other, and every rank takes two. Where all degrees are even, edges
  /// are directed along closed tours, and every rank takes one that leaves it and one that enters
  /// (Petersen).
  void colour_factors() {
    std::vector<Edge> edges = edges_between_sides();
    const bool is_bipartite = !edges.empty();
    if (!is_bipartite) edges = edges_along_tours();
    while (!edges.empty()) {
      const std::vector<bool> taken = factor(edges, is_bipartite ? 2 : 1, is_bipartite);
      if (taken.empty()) return;
      std::vector<Edge> rest;
      for (std::size_t i = 0; i < edges.size(); ++i)
        if (taken[i])
          set(edges[i].from, edges[i].to, factors_);
        else
          rest.push_back(edges[i]);
      edges = std::move(rest);
      ++factors_;
    }
  }

  std::vector<Edge> edges_between_sides() const {
    std::vector<int> side(neighbours_.size(), -1);
    std::vector<int> queue{0};
    side[0] = 0;
    std::vector<Edge> edges;
    for (std::size_t i = 0; i < queue.size(); ++i) {
      const int rank = queue[i];
      for (const int next : neighbours_[index(rank)]) {
        if (side[index(next)] == side[index(rank)]) return {};
        if (side[index(rank)] == 0) edges.push_back({rank, next});
        if (side[index(next)] >= 0) continue;
        side[index(next)] = 1 - side[index(rank)];
        queue.push_back(next);
      }
    }
    return edges;
  }

  std::vector<Edge> edges_along_tours() {
    std::vector<Edge> edges;
    for (const auto& row : neighbours_)
      if (row.size() % 2 != 0) return {};
    for (int start = 0; start < static_cast<int>(neighbours_.size()); ++start) {
      for (int rank = start;;) {  // until it comes back to its start and cannot go on
        const auto& row = colours_[index(rank)];
        const auto open = std::ranges::find(row, kNone);
        if (open == row.end()) break;
        const int next = neighbours_[index(rank)][index(open - row.begin())];
        set(rank, next, kWalked);
        edges.push_back({rank, next});
        rank = next;
      }
    }
    for (auto& row : colours_) std::ranges::fill(row, kNone);
    return edges;
  }

  /// Edges so that every `from` has `each` of them and every `to` too; empty where there are none.
  /// `one_side`: a rank is only one of the two. Augmenting paths.
  std::vector<bool> factor(const std::vector<Edge>& edges, int each, bool one_side) const {
    std::vector<bool> taken(edges.size(), false);
    std::vector<int> leaves(neighbours_.size(), 0), enters(neighbours_.size(), 0);
    std::vector<bool> seen;
    const std::function<bool(int)> augment = [&](int from) {
      for (std::size_t i = 0; i < edges.size(); ++i) {
        if (edges[i].from != from || taken[i] || seen[index(edges[i].to)]) continue;
        const int to = edges[i].to;
        seen[index(to)] = true;
        if (enters[index(to)] < each) {
          taken[i] = true;
          ++enters[index(to)];
          return true;
        }
        for (std::size_t j = 0; j < edges.size(); ++j) {
          if (edges[j].to != to || !taken[j]) continue;
          if (!augment(edges[j].from)) continue;
          taken[j] = false;
          taken[i] = true;
          return true;
        }
      }
      return false;
    };
    for (const Edge& edge : edges) {
      while (leaves[index(edge.from)] < each) {
        seen.assign(neighbours_.size(), false);
        if (!augment(edge.from)) return {};
        ++leaves[index(edge.from)];
      }
    }
    for (std::size_t rank = 0; rank < neighbours_.size(); ++rank) {
      const bool is_full = one_side ? leaves[rank] + enters[rank] == each
                                    : leaves[rank] == each && enters[rank] == each;
      if (!is_full) return {};
    }
    return taken;
  }

  /// The rings of a colour.
  std::vector<Ring> rings_of(int which) const {
    std::vector<bool> seen(neighbours_.size(), false);
    std::vector<Ring> rings;
    for (int start = 0; start < static_cast<int>(neighbours_.size()); ++start) {
      if (seen[index(start)]) continue;
      Ring ring;
      for (int rank = start; rank >= 0;) {
        seen[index(rank)] = true;
        ring.push_back(rank);
        int next = -1;
        for (std::size_t i = 0; i < neighbours_[index(rank)].size(); ++i)
          if (colours_[index(rank)][i] == which && !seen[index(neighbours_[index(rank)][i])])
            next = neighbours_[index(rank)][i];
        rank = next;
      }
      rings.push_back(std::move(ring));
    }
    return rings;
  }

  std::vector<std::vector<int>> neighbours_, colours_;
  int factors_ = 0;
};

}  // namespace

std::vector<Ring> rings_by_colouring(const Lanes& lanes, std::mt19937& random) {
  std::optional<Colouring> colouring = Colouring::of(lanes);
  return colouring ? colouring->run(random) : std::vector<Ring>{};
}

}  // namespace hemiola::plan
