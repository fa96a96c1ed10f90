#include "compile/fuse/carry.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/index.h"
#include "plan/area.h"

namespace hemiola::compile {
namespace {

/// Memory of a rank that a movement touches.
struct Touched {
  std::int64_t rank = 0;
  plan::Area area;
  bool is_written = false;
};

/// A movement and where it stands.
struct PlacedMovement {
  Point point;
  std::vector<Touched> touches;
  std::vector<Point> after;   ///< with those of its stream whose memory it shares
  std::int64_t earliest = 0;  ///< in front of this wave of its rank, or of a later one
  std::int64_t latest = LLONG_MAX;
  std::int64_t level = 0;  ///< movements behind each other before it
  std::int64_t place = 0;
};

class Carrier {
 public:
  Carrier(const plan::Plan& plan, const Fusions& fusions, const std::vector<RankTasks>& tasks,
          const std::string& file)
      : plan_(plan), fusion_(fusions.front()), tasks_(tasks), file_(file) {
    if (fusions.size() > 1)
      refuse("several launches of one kernel, and data that its programs move, are not written",
             "--realization load-store has workgroups of their own");
  }

  std::vector<std::vector<CarriedItem>> make() {
    for (int rank = 0; rank < plan_.ranks; ++rank) add_movements(rank);
    order_by_level();
    find_latest();
    for (const Point& point : in_order_) place(movements_.at(point));
    std::vector<std::vector<CarriedItem>> lists;
    for (int rank = 0; rank < plan_.ranks; ++rank) lists.push_back(list_of(rank));
    prove(lists);
    tell(lists);
    return lists;
  }

 private:
  [[noreturn]] void refuse(const std::string& what, const std::string& hint,
                           ExitCode code = ExitCode::bad_input) const {
    throw Failure(what, {.file = file_}, hint, code);
  }

  const std::vector<FusedWave>& waves(int rank) const { return fusion_.ranks[index(rank)].waves; }

  void add_movements(int rank) {
    const RankTasks& tasks = tasks_[index(rank)];
    for (std::int32_t s = 0; s < tasks.copies; ++s) {
      const std::vector<Task>& stream = tasks.actors[index(s)];
      for (std::int64_t i = 0; i < std::ssize(stream); ++i) {
        const Task& task = stream[index(i)];
        check(task, rank);
        PlacedMovement made{
            .point = {rank, s, i}, .touches = touched(task, rank), .after = task.after};
        // Shares of a movement are mostly not those of another one: what touches the same memory
        // waits.
        for (std::int64_t j = i; j-- > 0;) {
          const PlacedMovement& earlier = movements_.at({rank, s, j});
          if (!conflict(earlier, made) || shares_alike(earlier, made)) continue;
          made.after.push_back({rank, s, j});
          break;  // those before it are behind each other
        }
        movements_.emplace(made.point, std::move(made));
      }
    }
  }

  void check(const Task& task, int rank) const {
    const plan::Transfer& transfer = *task.transfer;
    if (transfer.kind == plan::TransferKind::collective || transfer.group >= 0)
      refuse(fmt::format("rank {}: a library's collective, or a movement through a switch, is not "
                         "moved by the programs that compute",
                         rank),
             "--realization load-store and multicast have workgroups of their own");
    if (transfer.reduce != ReduceOp::none && transfer.reduce != ReduceOp::sum)
      refuse(fmt::format("rank {}: a {} by the programs that compute is not written", rank,
                         name_of(transfer.reduce)),
             "sums are");
  }

  static std::vector<Touched> touched(const Task& task, int rank) {
    const plan::Transfer& transfer = *task.transfer;
    Indices at = task.at;
    at.rank = rank;
    const std::int64_t peer = transfer.peer(at);
    const bool pushes = transfer.kind == plan::TransferKind::push;
    const bool pulls = transfer.kind == plan::TransferKind::pull;
    std::vector<Touched> made{
        {pushes ? peer : rank, plan::evaluate(transfer.destination, at), true},
        {pulls ? peer : rank, plan::evaluate(transfer.source, at), false}};
    if (transfer.reduce != ReduceOp::none)
      made.push_back({pushes ? peer : rank, plan::evaluate(transfer.operand, at), false});
    return made;
  }

  static bool conflict(const PlacedMovement& a, const PlacedMovement& b) {
    for (const Touched& one : a.touches)
      for (const Touched& other : b.touches)
        if (one.rank == other.rank && (one.is_written || other.is_written) &&
            plan::overlap(one.area, other.area))
          return true;
    return false;
  }

  /// Rows and elements of a row, as hemiola_rt divides a movement among programs.
  std::pair<std::int64_t, std::int64_t> rows_of(const PlacedMovement& movement) const {
    std::int64_t rows = 1, width = 1;
    bool in_row = true;
    const Touched& first = movement.touches.front();
    if (first.area.rects.size() != 1) return {0, 0};
    const plan::Rect& target = first.area.rects.front();
    std::vector<std::int64_t> strides(movement.touches.size(), 1);  // of the axis at hand
    for (std::size_t i = target.begin.size(); i-- > 0;) {
      const std::int64_t count = target.end[i] - target.begin[i];
      for (std::size_t t = 0; t < movement.touches.size(); ++t) {
        const plan::Area& area = movement.touches[t].area;
        const auto& shape = plan_.tensors[index(area.tensor)].shape;
        if (area.rects.size() != 1 || shape.size() != target.begin.size() ||
            area.rects[0].end[i] - area.rects[0].begin[i] != count)
          return {0, 0};
        if (count > 1 && strides[t] != width) in_row = false;
        strides[t] *= shape[i];
      }
      if (count > 1) (in_row ? width : rows) *= count;
    }
    return {rows, width};
  }

  /// Whether each program touches the same elements of what both touch: they write the same ones,
  /// and share nothing else.
  bool shares_alike(const PlacedMovement& a, const PlacedMovement& b) const {
    const Touched &to = a.touches.front(), &other = b.touches.front();
    if (to.rank != other.rank || !(to.area == other.area)) return false;
    const auto rows = rows_of(a);
    if (rows.first == 0 || rows != rows_of(b)) return false;
    for (const Touched& one : a.touches)
      for (const Touched& two : b.touches)
        if (one.rank == two.rank && (one.is_written || two.is_written) &&
            plan::overlap(one.area, two.area) && !(one.area == two.area && one.area == to.area))
          return false;
    return true;
  }

  /// What has to be done before a movement is: its stream too, in whose order they stay.
  std::vector<Point> before(const PlacedMovement& movement) const {
    std::vector<Point> all = movement.after;
    const Point& own = movement.point;
    if (own.position > 0) all.push_back({own.rank, own.actor, own.position - 1});
    return all;
  }

  void order_by_level() {
    std::map<Point, int> open;
    std::map<Point, std::vector<Point>> later;
    for (const auto& [point, movement] : movements_) {
      open.try_emplace(point, 0);
      for (const Point& one : before(movement)) {
        ++open[point];
        later[one].push_back(point);
      }
    }
    for (const auto& [point, count] : open)
      if (count == 0) in_order_.push_back(point);
    for (std::size_t i = 0; i < in_order_.size(); ++i) {
      for (const Point& next : later[in_order_[i]]) {
        PlacedMovement& movement = movements_.at(next);
        movement.level = std::max(movement.level, movements_.at(in_order_[i]).level + 1);
        if (--open[next] == 0) in_order_.push_back(next);
      }
    }
    if (in_order_.size() < movements_.size())
      refuse("transfers wait for each other", "'hemiola check' says which", ExitCode::deadlock);
  }

  void find_latest() {
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      const auto needs = [&](const std::vector<Point>& points, std::int64_t wave) {
        for (const Point& point : points) {
          std::int64_t& latest = movements_.at(point).latest;
          latest = std::min(latest, wave);
        }
      };
      for (std::int64_t w = 0; w < std::ssize(waves(rank)); ++w)
        needs(waves(rank)[index(w)].needs, w);
      for (const FusedPiece& piece : fusion_.ranks[index(rank)].pieces) needs(piece.needs, 0);
    }
    for (std::size_t i = in_order_.size(); i-- > 0;) {
      const PlacedMovement& movement = movements_.at(in_order_[i]);
      for (const Point& one : before(movement)) {
        std::int64_t& latest = movements_.at(one).latest;
        latest = std::min(latest, movement.latest);
      }
    }
  }

  /// Behind which wave of its rank a part is complete.
  std::int64_t wave_of(const PartWait& part) const {
    const FusedRank& of_rank = fusion_.ranks[index(part.rank)];
    std::int64_t last = 0;
    for (std::int64_t w = 0; w < std::ssize(of_rank.waves); ++w)
      if (of_rank.waves[index(w)].part + of_rank.first_part == part.part &&
          of_rank.waves[index(w)].part >= 0)
        last = w + 1;
    return last;
  }

  void place(PlacedMovement& movement) {
    const Point& point = movement.point;
    const std::int64_t count = std::ssize(waves(point.rank));
    const Task& task = tasks_[index(point.rank)].at(point);
    std::int64_t from_parts = 0;
    for (const PartWait& part : task.parts) from_parts = std::max(from_parts, wave_of(part));
    std::int64_t from_others = 0;
    for (const Point& one : before(movement))
      from_others = std::max(from_others, movements_.at(one).place);
    if (movement.latest == LLONG_MAX) {
      // Nobody waits for it: a wave later, when those who store the part are through with it.
      movement.place = std::max(from_others, task.parts.empty() ? 0 : from_parts + 1);
    } else {
      movement.place = std::max({from_others, from_parts, movement.latest - 1});
    }
    movement.place = std::min(movement.place, count);
  }

  std::vector<CarriedItem> list_of(int rank) const {
    std::vector<const PlacedMovement*> own;
    for (const auto& [point, movement] : movements_)
      if (point.rank == rank) own.push_back(&movement);
    std::ranges::sort(own, [](const PlacedMovement* a, const PlacedMovement* b) {
      return std::tuple(a->place, a->level, a->point) < std::tuple(b->place, b->level, b->point);
    });
    std::vector<CarriedItem> list;
    std::map<std::pair<int, std::int32_t>, std::int64_t> awaited;  // by rank and stream, the last
    std::set<PartWait> parts;
    std::size_t next = 0;
    const std::int64_t count = std::ssize(waves(rank));
    for (std::int64_t w = 0; w <= count; ++w) {
      for (; next < own.size() && own[next]->place <= w; ++next) {
        CarriedItem item{.movement = own[next]->point};
        std::map<std::pair<int, std::int32_t>, std::int64_t> last;
        for (const Point& one : own[next]->after) {
          std::int64_t& position = last.try_emplace({one.rank, one.actor}, -1).first->second;
          position = std::max(position, one.position);
        }
        for (const auto& [of, position] : last) {
          std::int64_t& known = awaited.try_emplace(of, -1).first->second;
          if (position > known) item.after.push_back({of.first, of.second, position});
          known = std::max(known, position);
        }
        for (const PartWait& part : tasks_[index(rank)].at(item.movement).parts)
          if (parts.insert(part).second) item.parts.push_back(part);
        const auto distance = [&](int of) { return (of - rank + plan_.ranks) % plan_.ranks; };
        std::ranges::sort(item.after, [&](const Point& a, const Point& b) {
          return std::tuple(distance(a.rank), a.actor) < std::tuple(distance(b.rank), b.actor);
        });
        list.push_back(std::move(item));
      }
      if (w < count) list.push_back({.wave = static_cast<std::int32_t>(w)});
    }
    return list;
  }

  /// Every program goes through its rank's list, and no item of a list waits for one that stands
  /// behind it: so the lists end, however many programs there are.
  void prove(const std::vector<std::vector<CarriedItem>>& lists) const {
    std::vector<std::size_t> next(lists.size(), 0);
    std::set<Point> moved;
    std::set<std::pair<int, std::int32_t>> computed;  // waves
    const auto is_ready = [&](int rank, const CarriedItem& item) {
      const auto are_moved = [&](const std::vector<Point>& points) {
        return std::ranges::all_of(points, [&](const Point& one) { return moved.contains(one); });
      };
      if (item.wave >= 0) {
        const auto& pieces = fusion_.ranks[index(rank)].pieces;
        return are_moved(waves(rank)[index(item.wave)].needs) &&
               std::ranges::all_of(pieces,
                                   [&](const FusedPiece& piece) { return are_moved(piece.needs); });
      }
      return are_moved(item.after) && std::ranges::all_of(item.parts, [&](const PartWait& part) {
               for (std::int32_t w = 0; w < wave_of(part); ++w)
                 if (!computed.contains({part.rank, w})) return false;
               return true;
             });
    };
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (std::size_t r = 0; r < lists.size(); ++r) {
        const int rank = static_cast<int>(r);
        for (; next[r] < lists[r].size() && is_ready(rank, lists[r][next[r]]); ++next[r]) {
          const CarriedItem& item = lists[r][next[r]];
          goes_on = true;
          if (item.wave >= 0)
            computed.insert({rank, item.wave});
          else
            moved.insert(item.movement);
        }
      }
    }
    for (std::size_t r = 0; r < lists.size(); ++r) {
      if (next[r] == lists[r].size()) continue;
      const CarriedItem& item = lists[r][next[r]];
      refuse(fmt::format("rank {}'s programs would wait for ever in front of {}, if they move the "
                         "data too: it waits for what comes later in the list of a rank",
                         r,
                         item.wave >= 0 ? fmt::format("wave {} of their tiles", item.wave)
                                        : fmt::format("transfer {} of stream {}",
                                                      item.movement.position, item.movement.actor)),
             "--realization load-store has workgroups of their own", ExitCode::deadlock);
    }
  }

  void tell(std::vector<std::vector<CarriedItem>>& lists) const {
    std::map<Point, std::set<int>> waiting;
    const auto wait = [&](int rank, const std::vector<Point>& points) {
      for (const Point& one : points) waiting[one].insert(rank);
    };
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      for (const CarriedItem& item : lists[index(rank)]) wait(rank, item.after);
      for (const FusedWave& wave : waves(rank)) wait(rank, wave.needs);
      for (const FusedPiece& piece : fusion_.ranks[index(rank)].pieces) wait(rank, piece.needs);
    }
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      for (CarriedItem& item : lists[index(rank)]) {
        const auto found = waiting.find(item.movement);
        if (item.wave >= 0 || found == waiting.end()) continue;
        for (int d = 0; d < plan_.ranks; ++d)
          if (const int to = (rank + d) % plan_.ranks; found->second.contains(to))
            item.told.push_back(to);
      }
    }
  }

  const plan::Plan& plan_;
  const Fusion& fusion_;
  const std::vector<RankTasks>& tasks_;
  const std::string& file_;
  std::map<Point, PlacedMovement> movements_;
  std::vector<Point> in_order_;  ///< each behind what it waits for
};

}  // namespace

std::vector<std::vector<CarriedItem>> carried_of(const plan::Plan& plan, const Fusions& fusions,
                                                 const std::vector<RankTasks>& tasks,
                                                 const std::string& file) {
  return Carrier(plan, fusions, tasks, file).make();
}

/// Whether rows of a region begin and end at multiples of so many elements.
static bool has_rows_of(const plan::Plan& plan, const plan::Region& region, const Indices& at,
                        std::int64_t lanes) {
  const std::vector<plan::Rect> rects = plan::evaluate(region, at).rects;
  return plan.tensors[index(region.tensor)].shape.back() % lanes == 0 &&
         std::ranges::all_of(rects, [&](const plan::Rect& rect) {
           return rect.begin.back() % lanes == 0 && rect.end.back() % lanes == 0;
         });
}

CarriedData carried_data(const plan::Plan& plan, const std::string& file) {
  std::set<std::string> types;
  bool is_aligned = true;
  std::int64_t size = 16;
  const auto add = [&](const plan::Region& region, const Indices& at) {
    const auto& type = plan.tensors[index(region.tensor)].type;
    if (type) size = size_of(*type);
    is_aligned = is_aligned && has_rows_of(plan, region, at, 16 / size);
    if (type)
      types.emplace(*type == DataType::float16    ? "float16"
                    : *type == DataType::bfloat16 ? "bfloat16"
                    : *type == DataType::float32  ? "float32"
                    : *type == DataType::float64  ? "float64"
                    : *type == DataType::int32    ? "int32"
                    : *type == DataType::int64    ? "int64"
                                                  : "");
  };
  for (int rank = 0; rank < plan.ranks; ++rank)
    for_each_transfer(plan, rank, [&](const plan::Transfer& one, const Indices& at, const Point&) {
      add(one.source, at);
      add(one.destination, at);
      if (one.reduce != ReduceOp::none && one.group < 0) add(one.operand, at);
    });
  if (types.size() == 1 && !types.begin()->empty())
    return {*types.begin(), is_aligned ? 16 / size : 1, is_aligned ? 16 : size};
  throw Failure(types.empty() ? "moves nothing that programs which compute could move"
                              : "moves tensors of several types, or of one that Triton's programs "
                                "do not add up",
                {.file = file}, "--realization load-store has workgroups of their own");
}

}  // namespace hemiola::compile
