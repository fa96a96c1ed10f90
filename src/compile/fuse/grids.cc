#include "compile/fuse/grids.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "compile/fuse/grid_parts.h"
#include "core/index.h"
#include "plan/launches.h"
#include "plan/tiles.h"

namespace hemiola::compile {
namespace {

std::int64_t elements_of(const std::vector<plan::Rect>& rects) {
  std::int64_t all = 0;
  for (const plan::Rect& rect : rects) all += rect.elements();
  return all;
}

class GridMaker {
 public:
  GridMaker(const plan::Plan& plan, const std::string& file)
      : plan_(plan), file_(file), parts_(plan, file) {}

  Grids make() {
    for (int rank = 0; rank < plan_.ranks; ++rank) divide(rank);
    find_folds();
    made_.are_of_launches = true;
    made_.plan = with_folded_tensors(plan_, folds_);
    made_.launches.resize(by_rank_.front().size());
    for (int rank = 0; rank < plan_.ranks; ++rank)
      for (std::size_t grid = 0; grid < by_rank_.front().size(); ++grid) unite(rank, grid);
    check_ranks();
    for (int rank = 0; rank < plan_.ranks; ++rank) find_taken(rank);
    return std::move(made_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what, const std::string& hint = {}) const {
    throw Failure(what, {.file = file_}, hint.empty() ? kWithoutKernel : hint);
  }
  const plan::Tensor& tensor(std::int32_t number) const { return plan_.tensors[index(number)]; }

  /// The computes of a rank in the order of their launches, as many to a grid as can be.
  void divide(int rank) {
    const plan::Code& code = plan_.code(rank);
    const plan::LaunchOrder order(code);
    before_.push_back(before(code, order));
    std::vector<std::int32_t> sorted = order.sorted();
    for (std::int32_t i = 0; i < std::ssize(code.computes); ++i)
      if (!code.computes[index(i)].is_launch()) sorted.insert(sorted.begin(), i);
    std::vector<Grid> grids;
    std::vector<std::string> reasons;
    for (const std::int32_t number : sorted) {
      Placed one = parts_.placed(code.computes[index(number)], number, rank);
      std::string why = grids.empty() ? "" : parts_.why_not(grids.back(), one);
      if (grids.empty() || !why.empty()) {
        if (!grids.empty()) reasons.push_back(std::move(why));
        grids.emplace_back();
      }
      grids.back().push_back(std::move(one));
    }
    for (const Grid& grid : grids) parts_.require_begun(grid);
    if (rank == 0)
      made_.reasons = reasons;
    else if (grids.size() != by_rank_.front().size())
      refuse(fmt::format("its ranks run different computes: {} grids on rank 0, {} on rank {}",
                         by_rank_.front().size(), grids.size(), rank));
    by_rank_.push_back(std::move(grids));
  }

  /// Blocks of ranks and the rows of a block are one axis of a kernel, which has matrices.
  void find_folds() {
    folds_.assign(plan_.tensors.size(), -1);
    for (std::size_t grid = 0; grid < by_rank_.front().size(); ++grid) {
      fold_of_.push_back(fold_of(grid));
      if (!fold_of_.back()) continue;
      for (const plan::ComputeOperand& operand : first_compute(grid).operands) {
        for (std::size_t i = 0; i < operand.axes.size(); ++i) {
          if (operand.axes[i] != fold_of_.back()->first) continue;
          std::int32_t& fold = folds_[index(operand.tensor)];
          if (fold >= 0 && fold != static_cast<std::int32_t>(i))
            refuse("tensor '" + tensor(operand.tensor).name + "' is cut in two ways");
          fold = static_cast<std::int32_t>(i);
        }
      }
    }
    check_folds();
    for (std::size_t i = 0; i < folds_.size(); ++i) {  // those that data comes from, or goes to
      for (std::size_t j = 0; folds_[i] < 0 && !is_operand(i) && j < folds_.size(); ++j)
        if (folds_[j] >= 0 && is_operand(j) && have_like_shapes(i, j)) folds_[i] = folds_[j];
    }
  }

  const plan::Compute& first_compute(std::size_t grid) const {
    return *by_rank_.front()[grid].front().compute;
  }

  bool have_like_shapes(std::size_t i, std::size_t j) const {
    const auto &one = plan_.tensors[i].shape, &other = plan_.tensors[j].shape;
    const std::size_t at = index(folds_[j]);
    return one.size() == other.size() && one[at] == other[at] && one[at + 1] == other[at + 1];
  }

  bool is_operand(std::size_t number) const {
    for (std::size_t grid = 0; grid < by_rank_.front().size(); ++grid) {
      for (const plan::ComputeOperand& operand : first_compute(grid).operands)
        if (index(operand.tensor) == number) return true;
    }
    return false;
  }

  /// Axes p and q of the computes of a grid, so that p of one element stands in front of q wherever
  /// either is.
  std::optional<std::pair<std::int32_t, std::int32_t>> fold_of(std::size_t grid) const {
    const plan::Compute& one = first_compute(grid);
    if (one.waits == plan::Waits::tiles) return std::nullopt;
    for (std::int32_t p = 0; p < std::ssize(one.axes); ++p) {
      std::optional<std::int32_t> q;
      std::optional<std::int64_t> length;
      bool fits = true;
      for (std::size_t o = 0; o < one.operands.size(); ++o) {
        const plan::ComputeOperand& operand = one.operands[o];
        for (std::size_t i = 0; i < operand.axes.size(); ++i) {
          if (operand.axes[i] != p) continue;
          fits = fits && i + 1 < operand.axes.size() && operand.axes[i + 1] >= 0;
          if (!fits) break;
          const std::int64_t rows = tensor(operand.tensor).shape[i + 1];
          fits = q.value_or(operand.axes[i + 1]) == operand.axes[i + 1] &&
                 length.value_or(rows) == rows;
          q = operand.axes[i + 1];
          length = rows;
        }
      }
      for (const Grid& of_rank : all_of(grid)) {
        for (const Placed& placed : of_rank) {
          fits = fits && placed.compute->axes[index(p)].tile == 1;
          for (std::size_t o = 0; fits && q && o < placed.moved.size(); ++o) {
            const std::vector<std::int32_t>& axes = placed.compute->operands[o].axes;
            for (std::size_t i = 0; i < axes.size(); ++i) {
              if (axes[i] == p || axes[i] == *q) fits = fits && placed.moved[o][i] == 0;
              if (axes[i] == *q) fits = fits && i > 0 && axes[i - 1] == p;
            }
          }
        }
      }
      if (fits && q) return std::pair(p, *q);
    }
    return std::nullopt;
  }

  std::vector<Grid> all_of(std::size_t grid) const {
    std::vector<Grid> all;
    for (const std::vector<Grid>& of_rank : by_rank_) all.push_back(of_rank[grid]);
    return all;
  }

  /// A tensor that one grid takes as rows all take so.
  void check_folds() const {
    for (std::size_t grid = 0; grid < by_rank_.front().size(); ++grid) {
      for (const plan::ComputeOperand& operand : first_compute(grid).operands) {
        const std::int32_t fold = folds_[index(operand.tensor)];
        if (fold < 0) continue;
        const auto& of_grid = fold_of_[grid];
        if (!of_grid || operand.axes[index(fold)] != of_grid->first)
          refuse("tensor '" + tensor(operand.tensor).name +
                 "' is taken as rows by some computes only");
      }
    }
  }

  std::string why_others() const {
    return made_.reasons.empty() ? "" : ", because " + made_.reasons.front();
  }

  /// The computes of a grid as one, which the code of the rank gets.
  void unite(int rank, std::size_t grid) {
    const Grid& parts = by_rank_[index(rank)][grid];
    plan::Compute made = *parts.front().compute;
    made.stream.clear();
    made.after.clear();
    made.waits = plan::Waits::tiles;
    for (plan::ComputeOperand& operand : made.operands)
      if (operand.use == plan::Use::add) operand.use = plan::Use::accumulate;
    std::vector<GridLaunch> launches;
    const plan::Rect box = hull_of(parts);
    for (const Placed& one : parts) {
      launches.push_back({.name = one.compute->name,
                          .boxes = one.boxes,
                          .needs = needs_of(rank, parts, one),
                          .by_tiles = one.compute->waits == plan::Waits::tiles});
      for (std::size_t i = 0; i < made.axes.size(); ++i)
        made.axes[i].tile = std::min(made.axes[i].tile, one.compute->axes[i].tile);
    }
    std::int64_t filled = 0;
    for (const GridLaunch& launch : launches) filled += elements_of(launch.boxes);
    if (filled != box.elements())
      refuse(
          fmt::format("rank {}'s computes from '{}' to '{}' leave out part of the box of tiles "
                      "that a grid would take{}",
                      rank, launches.front().name, launches.back().name, why_others()));
    for (std::size_t i = 0; i < made.axes.size(); ++i) {
      made.axes[i].extent = box.end[i] - box.begin[i];
      for (std::size_t o = 0; o < made.operands.size(); ++o) {
        plan::ComputeOperand& operand = made.operands[o];
        operand.wraps = false;
        operand.begin.resize(operand.axes.size());
        for (std::size_t a = 0; a < operand.axes.size(); ++a)
          if (operand.axes[a] == static_cast<std::int32_t>(i))
            operand.begin[a] = constant(parts.front().moved[o][a] + box.begin[i]);
      }
    }
    for (GridLaunch& launch : launches) {
      for (plan::Rect& rect : launch.boxes) {
        for (std::size_t i = 0; i < box.begin.size(); ++i) {
          rect.begin[i] -= box.begin[i];
          rect.end[i] -= box.begin[i];
        }
      }
    }
    if (fold_of_[grid]) fold(made, launches, *fold_of_[grid]);
    made_.plan.codes[index(rank)].computes.push_back(std::move(made));
    made_.launches[grid].push_back(std::move(launches));
  }

  /// Axis p of the compute and of its boxes goes into q, where p is of one element or q whole.
  void fold(plan::Compute& made, std::vector<GridLaunch>& launches,
            std::pair<std::int32_t, std::int32_t> axes) const {
    const auto [p, q] = axes;
    const plan::ComputeOperand& result = *result_of(made);
    const auto place = std::ranges::find(result.axes, p) - result.axes.begin();
    const std::int64_t rows = tensor(result.tensor).shape[index(place) + 1];
    const std::int64_t length = made.axes[index(q)].extent;
    const std::int64_t blocks = made.axes[index(p)].extent;
    if (blocks > 1 && length != rows)
      refuse("computes from '" + launches.front().name + "' to '" + launches.back().name +
             "' leave out rows of blocks" + why_others());
    for (GridLaunch& launch : launches) {
      std::vector<plan::Rect> all;
      for (const plan::Rect& rect : launch.boxes) {
        const std::size_t first = all.size();
        for (std::int64_t block = rect.begin[index(p)]; block < rect.end[index(p)]; ++block) {
          plan::Rect one = rect;
          one.begin[index(q)] = block * length + rect.begin[index(q)];
          one.end[index(q)] = block * length + rect.end[index(q)];
          one.begin.erase(one.begin.begin() + p);
          one.end.erase(one.end.begin() + p);
          const std::size_t along = index(q > p ? q - 1 : q);
          if (all.size() > first && all.back().end[along] == one.begin[along] &&
              rect.begin[index(q)] == 0 && rect.end[index(q)] == length)
            all.back().end[along] = one.end[along];
          else
            all.push_back(std::move(one));
        }
      }
      launch.boxes = std::move(all);
    }
    made.axes[index(q)].extent *= blocks;
    for (plan::ComputeOperand& operand : made.operands) {
      const auto at = std::ranges::find(operand.axes, p);
      if (at != operand.axes.end()) {
        const auto i = at - operand.axes.begin();
        const auto first = operand.begin.begin() + i;
        *first = constant((*first)({}) * rows + (*(first + 1))({}));
        operand.begin.erase(first + 1);
        operand.axes.erase(at);
      }
      for (std::int32_t& axis : operand.axes)
        if (axis > p) --axis;
    }
    made.axes.erase(made.axes.begin() + p);
    made.order.clear();
  }

  /// Whether a launch of a rank comes after another one of it, or is that one.
  bool comes_after(int rank, std::int32_t later, std::int32_t earlier) const {
    return before_[index(rank)][index(later)][index(earlier)];
  }

  /// By launch of a rank those that it comes after, and itself.
  static std::vector<std::vector<bool>> before(const plan::Code& code,
                                               const plan::LaunchOrder& order) {
    const std::size_t count = code.computes.size();
    std::vector<std::vector<bool>> all(count, std::vector<bool>(count, false));
    for (std::size_t i = 0; i < count; ++i) all[i][i] = true;
    for (const std::int32_t later : order.sorted()) {
      for (const std::int32_t earlier : order.directly_before(later)) {
        for (std::size_t i = 0; i < count; ++i)
          if (all[index(earlier)][i]) all[index(later)][i] = true;
      }
    }
    return all;
  }

  /// What a launch waits for: what it names, and those of its grid that it comes after.
  std::vector<Point> needs_of(int rank, const Grid& grid, const Placed& one) const {
    std::map<std::pair<int, std::int32_t>, std::int64_t> last;  // by stream
    for (const Placed& other : grid) {
      if (!comes_after(rank, one.number, other.number)) continue;
      for (const plan::Dependency& dependency : other.compute->after) {
        if (!dependency.on_transfer()) continue;
        const Indices here{.rank = rank};
        std::int64_t& known =
            last.try_emplace({static_cast<int>(dependency.rank(here)), dependency.stream}, -1)
                .first->second;
        known = std::max(known, dependency.transfer(here));
      }
    }
    std::vector<Point> needs;
    for (const auto& [stream, position] : last)
      needs.push_back({stream.first, stream.second, position});
    return needs;
  }

  void check_ranks() const {
    for (const plan::Code& code : made_.plan.codes) {
      for (std::size_t i = 0; i < code.computes.size(); ++i) {
        const plan::Compute &one = code.computes[i], &first = made_.plan.codes.front().computes[i];
        if (!(one.axes == first.axes && one.operands.size() == first.operands.size()))
          refuse("its ranks run different computes");
      }
    }
  }

  /// Launches that transfers come after: all that they wait for, and those before them in their
  /// grid; but for those that an earlier transfer of the stream came after already.
  void find_taken(int rank) {
    std::set<std::pair<std::int32_t, TakenLaunch>> known;  // by stream
    for_each_transfer(plan_, rank,
                      [&](const plan::Transfer& transfer, const Indices& at, const Point& point) {
                        std::set<TakenLaunch> all;
                        for (const plan::Dependency& dependency : transfer.after)
                          if (!dependency.on_transfer()) add_taken(dependency, at, all);
                        for (const TakenLaunch& one : all)
                          if (known.emplace(point.actor, one).second)
                            made_.taken[point].push_back(one);
                      });
  }

  void add_taken(const plan::Dependency& dependency, const Indices& at,
                 std::set<TakenLaunch>& all) {
    const auto rank = static_cast<int>(dependency.rank(at));
    const std::vector<Grid>& grids = by_rank_[index(rank)];
    for (std::int32_t grid = 0; grid < std::ssize(grids); ++grid) {
      for (const Placed& one : grids[index(grid)]) {
        if (dependency.compute ? (*dependency.compute)(at) != one.number
                               : !takes_all(*dependency.computed, at, one, rank))
          continue;
        for (std::int32_t i = 0; i < std::ssize(grids[index(grid)]); ++i)
          if (comes_after(rank, one.number, grids[index(grid)][index(i)].number))
            all.insert({rank, grid, i});
      }
    }
  }

  /// Whether a region is made by a launch that waits in front, all of which it then stands for.
  bool takes_all(const plan::Region& region, const Indices& at, const Placed& one, int rank) const {
    if (one.compute->waits == plan::Waits::tiles) return false;
    const plan::Area area = plan::evaluate(region, at);
    return std::ranges::any_of(one.compute->operands, [&](const plan::ComputeOperand& operand) {
      return plan::makes(operand.use) &&
             plan::overlap(plan::operand_area(plan_, operand, plan::whole_box(*one.compute), rank),
                           area);
    });
  }

  const plan::Plan& plan_;
  const std::string& file_;
  GridParts parts_;
  std::vector<std::vector<Grid>> by_rank_;
  std::vector<std::optional<std::pair<std::int32_t, std::int32_t>>> fold_of_;  ///< by grid
  std::vector<std::vector<std::vector<bool>>> before_;  ///< by rank: see before()
  Folds folds_;
  Grids made_;
};

/// One compute on every rank, which waits tile by tile: nothing has to be united.
bool is_one_kernel(const plan::Plan& plan) {
  return std::ranges::all_of(plan.codes, [](const plan::Code& code) {
    return code.computes.size() == 1 && !code.computes.front().is_launch();
  });
}

}  // namespace

Grids grids_of(const plan::Plan& plan, const std::string& file) {
  for (const plan::Code& code : plan.codes) {
    if (code.computes.empty())
      throw Failure("plan '" + plan.name + "' computes nothing that a kernel could be fused into",
                    {.file = file}, kWithoutKernel);
  }
  if (!is_one_kernel(plan)) return GridMaker(plan, file).make();
  for (const plan::Code& code : plan.codes) {
    const plan::Compute &one = code.computes.front(), &first = plan.codes.front().computes.front();
    if (!(one.axes == first.axes && one.operands.size() == first.operands.size()))
      throw Failure("its ranks run different computes", {.file = file});
    for (const plan::ComputeOperand& operand : one.operands)
      if (operand.wraps)
        throw Failure("compute '" + one.name + "' goes around the end of a tensor", {.file = file});
  }
  Grids made;
  made.plan = plan;
  made.launches.resize(1);
  return made;
}

}  // namespace hemiola::compile
