// Which tiles wait for which transfers, and which transfers wait for which tiles: the space of
// tiles cut where chunks end.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "compile/fuse/fusion.h"
#include "plan/launches.h"
#include "plan/tiles.h"
#include "plan/waves.h"

namespace hemiola::compile {
namespace {

constexpr std::size_t kMostCells = 100'000;

/// Part of the space of tiles that a transfer brings something for, or takes.
struct Claim {
  plan::Rect box;  ///< by fused axis
  Point transfer;
  bool takes = false;                       ///< it waits for the tiles
  std::int64_t begin = 0, end = INT64_MAX;  ///< along the loop
};

/// Tiles of a launch.
struct LaunchBox {
  plan::Rect box;  ///< by fused axis
  std::int32_t launch = 0, place = 0;
};

class WaveFinder {
 public:
  WaveFinder(const Grids& grids, Fusion& fusion, bool keeps_loop)
      : grids_(grids),
        plan_(grids.plan),
        fusion_(fusion),
        keeps_loop_(keeps_loop),
        timeline_(grids.plan) {}

  ChunkEnds find() {
    claims_.resize(static_cast<std::size_t>(plan_.ranks));
    boxes_.resize(claims_.size());
    for (int rank = 0; rank < plan_.ranks; ++rank) claim(rank);
    if (grids_.are_of_launches) {
      for (int rank = 0; rank < plan_.ranks; ++rank) claim_for_launches(rank);
      claim_taken();
    }
    choose_loop();
    find_apart();
    std::set<std::int64_t> along_loop;
    std::vector<std::set<std::int64_t>> all(fusion_.axes.size());
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      const auto of_rank = cuts_of(rank);
      for (std::size_t i = 0; i < all.size(); ++i)
        all[i].insert(of_rank[i].begin(), of_rank[i].end());
      fusion_.ranks.push_back(waves_of(rank, of_rank));
      add_pieces(rank, fusion_.ranks.back());
      for (const FusedPiece& piece : fusion_.ranks.back().pieces) along_loop.insert(piece.end);
    }
    ChunkEnds ends;
    for (const std::set<std::int64_t>& of_axis : all)
      ends.axes.emplace_back(of_axis.begin(), of_axis.end());
    ends.loop.assign(along_loop.begin(), along_loop.end());
    return ends;
  }

 private:
  const plan::Compute& compute(int rank) const {
    return plan_.code(rank).computes[static_cast<std::size_t>(fusion_.compute)];
  }

  const std::vector<GridLaunch>& launches(int rank) const {
    return grids_
        .launches[static_cast<std::size_t>(fusion_.compute)][static_cast<std::size_t>(rank)];
  }
  /// Whether tiles wait for what they read, one by one.
  bool waits_by_tiles(int rank) const {
    return !grids_.are_of_launches || launches(rank).front().by_tiles;
  }

  /// What the streams of a rank bring to tiles of any rank, and take from them.
  void claim(int rank) {
    for_each_transfer(plan_, rank,
                      [&](const plan::Transfer& transfer, const Indices& at, const Point& point) {
                        for (const int owner : owners_of(transfer, at))
                          add(owner, plan::evaluate(transfer.destination, at), point, false);
                        for (const plan::Dependency& dependency : transfer.after) {
                          if (dependency.on_transfer()) continue;
                          const auto of = static_cast<int>(dependency.rank(at));
                          if (dependency.computed)
                            add(of, plan::evaluate(*dependency.computed, at), point, true);
                          else
                            add_all(of, point);
                        }
                      });
  }

  /// Whose memory a transfer writes.
  std::vector<int> owners_of(const plan::Transfer& transfer, const Indices& at) const {
    if (transfer.kind != plan::TransferKind::push) return {static_cast<int>(at.rank)};
    if (transfer.group >= 0) return plan_.groups[static_cast<std::size_t>(transfer.group)];
    return {static_cast<int>(transfer.peer(at))};
  }

  plan::Rect fused_box(const plan::Rect& of_compute) const {
    plan::Rect box = whole();
    for (std::size_t a = 0; a < fusion_.axes.size(); ++a) {
      if (fusion_.axes[a].compute < 0 || fusion_.axes[a].splits_reduction) continue;
      const auto axis = static_cast<std::size_t>(fusion_.axes[a].compute);
      box.begin[a] = of_compute.begin[axis];
      box.end[a] = of_compute.end[axis];
    }
    return box;
  }

  /// Tiles of a launch wait for what the launch waits for.
  void claim_for_launches(int rank) {
    const std::vector<GridLaunch>& all = launches(rank);
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (const plan::Rect& rect : all[i].boxes) {
        const plan::Rect box = fused_box(rect);
        std::vector<LaunchBox>& boxes = boxes_[static_cast<std::size_t>(rank)];
        boxes.push_back(
            {box, static_cast<std::int32_t>(i), static_cast<std::int32_t>(boxes.size())});
        Claim claim{.box = box, .transfer = {}, .takes = false};
        if (fusion_.loop.loop >= 0) {  // a launch may be part of a sum
          claim.begin = rect.begin[static_cast<std::size_t>(fusion_.loop.compute)];
          claim.end = rect.end[static_cast<std::size_t>(fusion_.loop.compute)];
        }
        for (const Point& need : all[i].needs) {
          claim.transfer = need;
          claims_[static_cast<std::size_t>(rank)].push_back(claim);
        }
      }
      if (all[i].needs.empty()) continue;
      const bool any = std::ranges::any_of(fusion_.operands,
                                           [](const FusedOperand& one) { return one.arrives; });
      for (FusedOperand& one : fusion_.operands)
        one.arrives |= !any && !plan::makes(operand_of(rank, one).use);
    }
  }

  /// A transfer that comes after a launch is told when all of it is stored.
  void claim_taken() {
    for (const auto& [point, all] : grids_.taken) {
      for (const TakenLaunch& one : all) {
        if (one.grid != fusion_.compute) continue;
        for (const LaunchBox& box : boxes_[static_cast<std::size_t>(one.rank)])
          if (box.launch == one.launch)
            claims_[static_cast<std::size_t>(one.rank)].push_back({box.box, point, true});
        for (FusedOperand& operand : fusion_.operands)
          operand.leaves |= plan::makes(operand_of(one.rank, operand).use);
      }
    }
  }

  const plan::ComputeOperand& operand_of(int rank, const FusedOperand& one) const {
    return compute(rank).operands[static_cast<std::size_t>(one.operand)];
  }

  /// A transfer that waits for all of the compute of a rank.
  void add_all(int owner, const Point& point) {
    claims_[static_cast<std::size_t>(owner)].push_back({whole(), point, true});
    for (FusedOperand& one : fusion_.operands)
      one.leaves |= plan::makes(compute(owner).operands[static_cast<std::size_t>(one.operand)].use);
  }

  plan::Rect whole() const {
    plan::Rect box;
    for (const FusedAxis& axis : fusion_.axes) {
      box.begin.push_back(0);
      box.end.push_back(axis.extent);
    }
    return box;
  }

  /// Whether what arrives along the loop is all of it for a tile, a chunk at a time.
  bool arrives_along_loop(const Claim& claim) const {
    return !claim.takes && fusion_.loop.loop >= 0 &&
           (claim.begin > 0 || claim.end < fusion_.loop.extent) && claim.box == whole();
  }

  /// The loop is worth waiting in if anything arrives along it for all tiles alike, and nothing for
  /// some of them only.
  void choose_loop() {
    bool any = false, mixed = false;
    for (const std::vector<Claim>& of_rank : claims_) {
      for (const Claim& claim : of_rank) {
        const bool is_part = claim.begin > 0 || claim.end < fusion_.loop.extent;
        any |= arrives_along_loop(claim);
        mixed |= !claim.takes && is_part && claim.box != whole();
      }
    }
    if (!keeps_loop_ && (!any || mixed)) fusion_.loop = {};
  }

  void add_pieces(int rank, FusedRank& made) const {
    if (fusion_.loop.loop < 0) return;
    std::set<std::int64_t> cuts{0, fusion_.loop.extent};
    for (const Claim& claim : claims_[static_cast<std::size_t>(rank)]) {
      if (!arrives_along_loop(claim)) continue;
      cuts.insert(claim.begin);
      cuts.insert(claim.end);
    }
    for (auto at = cuts.begin(); std::next(at) != cuts.end(); ++at) {
      FusedPiece piece{.begin = *at, .end = *std::next(at), .needs = {}};
      LastNeeds needs;
      for (const Claim& claim : claims_[static_cast<std::size_t>(rank)]) {
        if (!arrives_along_loop(claim) || claim.end <= piece.begin || claim.begin >= piece.end)
          continue;
        piece.arrives = std::max(piece.arrives, take(needs, claim.transfer));
      }
      piece.needs = points_of(needs);
      if (!made.pieces.empty() && made.pieces.back().needs == piece.needs)
        made.pieces.back().end = piece.end;
      else
        made.pieces.push_back(std::move(piece));
    }
    if (!fusion_.loop.reorders) return;
    std::ranges::stable_sort(made.pieces, [&](const FusedPiece& a, const FusedPiece& b) {
      return std::pair(a.arrives, nearest(rank, a.needs)) <
             std::pair(b.arrives, nearest(rank, b.needs));
    });
  }

  /// By rank and stream the last transfer that is needed.
  using LastNeeds = std::map<std::pair<int, std::int32_t>, std::int64_t>;
  /// Adds a transfer; the step at which it is there.
  std::int64_t take(LastNeeds& needs, const Point& point) const {
    std::int64_t& last = needs.try_emplace({point.rank, point.actor}, point.position).first->second;
    last = std::max(last, point.position);
    return timeline_.start(point.rank, point.actor, point.position) + 1;
  }
  static std::vector<Point> points_of(const LastNeeds& needs) {
    std::vector<Point> points;
    for (const auto& [stream, position] : needs)
      points.push_back({stream.first, stream.second, position});
    return points;
  }

  const FusedOperand& fused(std::int32_t tensor) const {
    return *std::ranges::find(fusion_.operands, tensor, &FusedOperand::tensor);
  }

  void mark(std::int32_t tensor, bool takes) {
    for (FusedOperand& one : fusion_.operands) {
      if (one.tensor != tensor) continue;
      one.arrives |= !takes;
      one.leaves |= takes;
    }
  }

  void add(int owner, const plan::Area& area, const Point& point, bool takes) {
    for (const plan::ComputeOperand& operand : compute(owner).operands) {
      if (operand.tensor != area.tensor || plan::makes(operand.use) != takes) continue;
      if (!waits_by_tiles(owner)) {  // its launches say what they wait for
        if (!takes) mark(operand.tensor, false);
        continue;
      }
      for (const plan::Rect& rect : area.rects) {
        const std::vector<bool>& follows = fused(operand.tensor).follows;
        plan::Rect box = whole();
        Claim claim{.box = {}, .transfer = point, .takes = takes};
        for (std::size_t i = 0; i < operand.axes.size(); ++i) {
          if (!follows[i]) continue;
          const std::int64_t first = operand.first(i, owner);
          if (operand.axes[i] >= 0 && operand.axes[i] == fusion_.loop.compute) {
            claim.begin = std::max<std::int64_t>(0, rect.begin[i] - first);
            claim.end = std::min(fusion_.loop.extent, rect.end[i] - first);
          }
          for (std::size_t a = 0; a < fusion_.axes.size(); ++a) {
            if (operand.axes[i] < 0 || fusion_.axes[a].compute != operand.axes[i] ||
                fusion_.axes[a].splits_reduction)
              continue;
            box.begin[a] = std::max(box.begin[a], rect.begin[i] - first);
            box.end[a] = std::min(box.end[a], rect.end[i] - first);
          }
        }
        if (box.empty()) continue;
        claim.box = box;
        claims_[static_cast<std::size_t>(owner)].push_back(claim);
        mark(operand.tensor, takes);
      }
    }
  }

  /// What is kept apart, as boxes of tiles.
  void find_apart() {
    for (const KeptApart& one : grids_.apart) {
      plan::Rect box = whole();
      bool is_made = false;
      for (const plan::ComputeOperand& operand : compute(one.rank).operands) {
        if (operand.tensor != one.tensor || !plan::makes(operand.use)) continue;
        is_made = true;
        for (std::size_t i = 0; i < operand.axes.size(); ++i) {
          for (std::size_t a = 0; a < fusion_.axes.size(); ++a) {
            if (operand.axes[i] < 0 || fusion_.axes[a].compute != operand.axes[i]) continue;
            box.begin[a] = one.rect.begin[i] - operand.first(i, one.rank);
            box.end[a] = one.rect.end[i] - operand.first(i, one.rank);
          }
        }
      }
      apart_.push_back(is_made ? box : plan::Rect{});
    }
  }

  std::vector<std::vector<std::int64_t>> cuts_of(int rank) const {
    std::vector<std::set<std::int64_t>> cuts(fusion_.axes.size());
    for (std::size_t a = 0; a < cuts.size(); ++a) cuts[a] = {0, fusion_.axes[a].extent};
    for (const Claim& claim : claims_[static_cast<std::size_t>(rank)]) {
      for (std::size_t a = 0; a < cuts.size(); ++a) {
        cuts[a].insert(claim.box.begin[a]);
        cuts[a].insert(claim.box.end[a]);
      }
    }
    const auto cut_at = [&](const plan::Rect& box) {
      for (std::size_t a = 0; a < box.begin.size(); ++a) {
        cuts[a].insert(box.begin[a]);
        cuts[a].insert(box.end[a]);
      }
    };
    for (const LaunchBox& one : boxes_[static_cast<std::size_t>(rank)]) cut_at(one.box);
    for (std::size_t i = 0; i < apart_.size(); ++i)
      if (grids_.apart[i].rank == rank) cut_at(apart_[i]);
    std::vector<std::vector<std::int64_t>> all;
    for (const std::set<std::int64_t>& of_axis : cuts)
      all.emplace_back(of_axis.begin(), of_axis.end());
    return all;
  }

  FusedRank waves_of(int rank, const std::vector<std::vector<std::int64_t>>& cuts) {
    std::size_t count = 1;
    for (const auto& of_axis : cuts) count *= std::max<std::size_t>(1, of_axis.size() - 1);
    if (count > kMostCells)
      throw Failure(
          fmt::format("rank {} has {} pieces of tiles that wait for different chunks, more "
                      "than {}",
                      rank, count, kMostCells),
          {}, "take larger chunks");
    FusedRank made;
    std::map<std::vector<Point>, std::int32_t> part_of;  // by who takes the tiles
    std::vector<std::size_t> place(cuts.size(), 0);
    for (std::size_t i = 0; i < count; ++i) {
      FusedWave wave;
      for (std::size_t a = 0; a < cuts.size(); ++a) {
        wave.box.begin.push_back(cuts[a][place[a]]);
        wave.box.end.push_back(cuts[a][place[a] + 1]);
      }
      fill(rank, wave, made, part_of);
      made.waves.push_back(std::move(wave));
      for (std::size_t a = cuts.size(); a-- > 0;) {
        if (++place[a] + 1 < cuts[a].size()) break;
        place[a] = 0;
      }
    }
    join(made.waves);
    std::ranges::stable_sort(made.waves, [&](const FusedWave& a, const FusedWave& b) {
      return key(rank, a) < key(rank, b);
    });
    for (const auto& [takers, part] : part_of) {
      std::set<int> ranks;
      for (const Point& taker : takers) {
        ranks.insert(taker.rank);
        fusion_.part_waits[taker].push_back({rank, part, fusion_.compute});
      }
      std::vector<int>& told = made.parts[static_cast<std::size_t>(part)].told;
      told.assign(ranks.begin(), ranks.end());
      std::ranges::sort(told, [&](int a, int b) { return distance(rank, a) < distance(rank, b); });
    }
    return made;
  }

  int distance(int own, int other) const { return (other - own + plan_.ranks) % plan_.ranks; }

  std::tuple<std::int32_t, std::int64_t, std::int64_t, int> key(int rank,
                                                                const FusedWave& wave) const {
    return {wave.place, wave.arrives, wave.is_wanted, nearest(rank, wave.needs)};
  }
  /// Ranks that do the same begin each with its own neighbour.
  int nearest(int rank, const std::vector<Point>& needs) const {
    int least = needs.empty() ? 0 : plan_.ranks;
    for (const Point& need : needs) least = std::min(least, distance(rank, need.rank));
    return least;
  }

  void fill(int rank, FusedWave& wave, FusedRank& made,
            std::map<std::vector<Point>, std::int32_t>& part_of) const {
    for (const LaunchBox& one : boxes_[static_cast<std::size_t>(rank)])
      if (!plan::intersection(one.box, wave.box).empty())
        std::tie(wave.launch, wave.place) = std::tie(one.launch, one.place);
    for (std::size_t i = 0; i < apart_.size(); ++i)
      if (grids_.apart[i].rank == rank && !apart_[i].begin.empty() &&
          !plan::intersection(apart_[i], wave.box).empty())
        wave.apart = static_cast<std::int32_t>(i);
    LastNeeds needs;
    std::set<Point> takers;
    for (const Claim& claim : claims_[static_cast<std::size_t>(rank)]) {
      if (arrives_along_loop(claim) || plan::intersection(claim.box, wave.box).empty()) continue;
      const Point& point = claim.transfer;
      if (claim.takes) {
        takers.insert(point);
        continue;
      }
      wave.arrives = std::max(wave.arrives, take(needs, point));
    }
    wave.needs = points_of(needs);
    wave.is_wanted = INT64_MAX;
    if (takers.empty()) return;
    for (const Point& taker : takers)
      wave.is_wanted =
          std::min(wave.is_wanted, timeline_.start(taker.rank, taker.actor, taker.position));
    const auto next = static_cast<std::int32_t>(made.parts.size());
    const auto [at, is_new] =
        part_of.try_emplace(std::vector<Point>(takers.begin(), takers.end()), next);
    if (is_new) made.parts.emplace_back();
    wave.part = at->second;
  }

  /// Neighbours that wait for the same and are waited for by the same, as one.
  void join(std::vector<FusedWave>& waves) const {
    for (std::size_t a = fusion_.axes.size(); a-- > 0;) {
      std::vector<FusedWave> joined;
      std::map<std::vector<std::int64_t>, std::size_t> by_end;  // box up to the axis
      for (const FusedWave& wave : waves) {
        std::vector<std::int64_t> others;
        for (std::size_t b = 0; b < fusion_.axes.size(); ++b) {
          if (b == a) continue;
          others.push_back(wave.box.begin[b]);
          others.push_back(wave.box.end[b]);
        }
        std::vector<std::int64_t> before = others;
        before.push_back(wave.box.begin[a]);
        const auto found = by_end.find(before);
        const bool continues = found != by_end.end() && joined[found->second].needs == wave.needs &&
                               joined[found->second].part == wave.part &&
                               joined[found->second].apart == wave.apart &&
                               joined[found->second].launch == wave.launch;
        std::size_t at = joined.size();
        if (continues) {
          at = found->second;
          joined[at].box.end[a] = wave.box.end[a];
        } else {
          joined.push_back(wave);
        }
        others.push_back(wave.box.end[a]);
        by_end[others] = at;
      }
      waves = std::move(joined);
    }
  }

  const Grids& grids_;
  const plan::Plan& plan_;
  Fusion& fusion_;
  bool keeps_loop_;
  plan::Timeline timeline_;
  std::vector<std::vector<Claim>> claims_;     ///< by the rank whose tiles they are
  std::vector<std::vector<LaunchBox>> boxes_;  ///< by rank; none: there are no launches
  std::vector<plan::Rect> apart_;              ///< of Grids::apart; empty: of another grid
};

}  // namespace

ChunkEnds find_waves(const Grids& grids, Fusion& fusion, bool keeps_loop) {
  return WaveFinder(grids, fusion, keeps_loop).find();
}

}  // namespace hemiola::compile
