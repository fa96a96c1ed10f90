#include "compile/emit/torch_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace hemiola::compile {
namespace {

constexpr std::int64_t kNone = -1;
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

/// By actor and position.
using Figures = std::vector<std::vector<std::int64_t>>;

std::vector<Figures> filled(const std::vector<RankTasks>& tasks, std::int64_t value) {
  std::vector<Figures> all;
  for (const RankTasks& rank : tasks) {
    Figures& of_rank = all.emplace_back();
    for (const auto& actor : rank.actors) of_rank.emplace_back(actor.size(), value);
  }
  return all;
}

std::int64_t& figure_at(std::vector<Figures>& figures, const Point& point) {
  return figures[static_cast<std::size_t>(point.rank)][static_cast<std::size_t>(point.actor)]
                [static_cast<std::size_t>(point.position)];
}

/// Which launches, by their place in the order of their rank, transfers stand behind and in front
/// of.
class Phases {
 public:
  Phases(const std::vector<RankTasks>& tasks, const std::string& file)
      : tasks_(tasks), file_(file), needs_(filled(tasks, kNone)), wanted_(filled(tasks, kNever)) {
    for (int rank = 0; rank < static_cast<int>(tasks.size()); ++rank) {
      const RankTasks& all = tasks[static_cast<std::size_t>(rank)];
      for (std::size_t i = 0; i < all.launches.size(); ++i) {
        const Point point = all.places_of_launches[static_cast<std::size_t>(all.launches[i])];
        figure_at(needs_, point) = figure_at(wanted_, point) = static_cast<std::int64_t>(i);
      }
    }
    sort();
    for (const Point& point : sorted_) learn_needs(point);
    for (auto point = sorted_.rbegin(); point != sorted_.rend(); ++point) pass_on_wanted(*point);
  }

  /// Twice the launch, and one more behind it: a number by which the tasks of a rank are sorted.
  std::int64_t phase(const Point& point) {
    const std::int64_t needs = figure_at(needs_, point), wanted = figure_at(wanted_, point);
    if (is_launch(point)) return 3 * needs + 1;
    if (needs != kNone) return 3 * needs + 2;
    return wanted != kNever ? 3 * wanted : kNone;
  }

 private:
  const Task& task(const Point& point) const {
    return tasks_[static_cast<std::size_t>(point.rank)].at(point);
  }
  bool is_launch(const Point& point) const { return task(point).compute >= 0; }

  std::vector<Point> before(const Point& point) const {
    std::vector<Point> all = task(point).after;
    if (point.position > 0) all.push_back({point.rank, point.actor, point.position - 1});
    return all;
  }

  /// All tasks of all ranks, each after what it waits for.
  void sort() {
    std::map<Point, std::pair<int, std::vector<Point>>> open;  // waits left, and who waits for it
    for (int rank = 0; rank < static_cast<int>(tasks_.size()); ++rank) {
      const RankTasks& all = tasks_[static_cast<std::size_t>(rank)];
      for (std::int32_t actor = 0; actor < std::ssize(all.actors); ++actor) {
        for (std::int64_t i = 0; i < std::ssize(all.actors[static_cast<std::size_t>(actor)]); ++i) {
          const Point point{rank, actor, i};
          for (const Point& earlier : before(point)) {
            open[earlier].second.push_back(point);
            ++open[point].first;
          }
          open[point];
        }
      }
    }
    std::vector<Point> ready;
    for (const auto& [point, state] : open)
      if (state.first == 0) ready.push_back(point);
    for (std::size_t i = 0; i < ready.size(); ++i) {
      for (const Point& later : open[ready[i]].second)
        if (--open[later].first == 0) ready.push_back(later);
    }
    if (ready.size() < open.size())
      throw Failure("transfers and launches wait for each other", {.file = file_},
                    "'hemiola check' says which", ExitCode::deadlock);
    sorted_ = std::move(ready);
  }

  void learn_needs(const Point& point) {
    if (is_launch(point)) return;
    std::int64_t& needs = figure_at(needs_, point);
    for (const PartWait& part : task(point).parts) needs = std::max<std::int64_t>(needs, part.grid);
    for (const Point& earlier : before(point)) needs = std::max(needs, figure_at(needs_, earlier));
  }
  void pass_on_wanted(const Point& point) {
    const std::int64_t wanted = figure_at(wanted_, point);
    for (const Point& earlier : before(point)) {
      if (is_launch(earlier)) continue;
      std::int64_t& other = figure_at(wanted_, earlier);
      other = std::min(other, wanted);
    }
  }

  const std::vector<RankTasks>& tasks_;
  const std::string& file_;
  std::vector<Figures> needs_, wanted_;
  std::vector<Point> sorted_;
};

class Orderer {
 public:
  Orderer(const std::vector<RankTasks>& tasks, const std::string& file)
      : tasks_(tasks), phases_(tasks, file) {}

  std::vector<std::vector<Issue>> make() {
    for (int rank = 0; rank < ranks(); ++rank) orders_.push_back(host_order(rank));
    for (int rank = 0; rank < ranks(); ++rank) add_waits(rank);
    add_signals();
    return std::move(orders_);
  }

 private:
  int ranks() const { return static_cast<int>(tasks_.size()); }

  std::vector<Issue> host_order(int rank) {
    const RankTasks& all = tasks_[static_cast<std::size_t>(rank)];
    std::vector<std::tuple<std::int64_t, Point>> wished;
    for (std::int32_t actor = 0; actor < std::ssize(all.actors); ++actor)
      for (std::int64_t i = 0; i < std::ssize(all.actors[static_cast<std::size_t>(actor)]); ++i)
        wished.emplace_back(phases_.phase({rank, actor, i}), Point{rank, actor, i});
    std::ranges::sort(wished);
    given_.assign(all.actors.size(), 0);
    std::vector<Issue> order;
    for (const auto& [phase, point] : wished) give(point, all, order);
    return order;
  }

  /// With all that has to stand in front of it. Phases() has found no circle.
  void give(const Point& point, const RankTasks& all, std::vector<Issue>& order) {
    std::int64_t& next = given_[static_cast<std::size_t>(point.actor)];
    while (next <= point.position) {
      const Point here{point.rank, point.actor, next};
      for (const Point& earlier : all.at(here).after)
        if (earlier.rank == point.rank && earlier.actor != point.actor) give(earlier, all, order);
      order.push_back({.task = here, .waits = {}});
      ++next;
    }
  }

  void add_waits(int rank) {
    const RankTasks& all = tasks_[static_cast<std::size_t>(rank)];
    std::vector<Issue>& order = orders_[static_cast<std::size_t>(rank)];
    std::vector<std::int64_t> last(all.actors.size(), -1);
    // By waiting actor: how far what it waited for has come.
    std::map<std::tuple<std::int32_t, int, std::int32_t>, std::int64_t> known;
    std::set<Point> events;
    std::set<std::pair<std::int32_t, PartWait>> known_parts;  // by waiting actor
    for (Issue& issue : order) {
      for (const Point& on : all.at(issue.task).after) {
        const bool is_own = on.rank == rank;
        if (is_own && on.actor == issue.task.actor) continue;
        const auto seen = known.try_emplace({issue.task.actor, on.rank, on.actor}, -1).first;
        if (seen->second >= on.position) continue;
        seen->second = on.position;
        // Of several tasks of one actor the last is enough: they are sorted.
        if (!issue.waits.empty() && issue.waits.back().on.rank == on.rank &&
            issue.waits.back().on.actor == on.actor)
          issue.waits.pop_back();
        const bool is_last = is_own && last[static_cast<std::size_t>(on.actor)] == on.position;
        issue.waits.push_back({!is_own   ? Wait::Kind::signal
                               : is_last ? Wait::Kind::stream
                                         : Wait::Kind::event,
                               on});
      }
      for (const PartWait& part : all.at(issue.task).parts)
        if (known_parts.insert({issue.task.actor, part}).second)
          issue.waits.push_back({Wait::Kind::part, {part.rank, 0, part.part}});
      for (const Point& on : all.at(issue.task).inside) signals_[on].insert(rank);
      for (const Wait& wait : issue.waits) {
        if (wait.kind == Wait::Kind::event) events.insert(wait.on);
        if (wait.kind == Wait::Kind::signal) signals_[wait.on].insert(rank);
      }
      last[static_cast<std::size_t>(issue.task.actor)] = issue.task.position;
    }
    for (Issue& issue : order) issue.records = events.count(issue.task) > 0;
  }

  void add_signals() {
    for (std::vector<Issue>& order : orders_) {
      for (Issue& issue : order) {
        const auto waiting = signals_.find(issue.task);
        if (waiting == signals_.end()) continue;
        issue.signals_to.assign(waiting->second.begin(), waiting->second.end());
        const auto distance = [&](int rank) {
          return (rank - issue.task.rank + ranks()) % ranks();
        };
        std::ranges::sort(issue.signals_to,
                          [&](int a, int b) { return distance(a) < distance(b); });
      }
    }
  }

  const std::vector<RankTasks>& tasks_;
  Phases phases_;
  std::vector<std::vector<Issue>> orders_;
  std::vector<std::int64_t> given_;  // of the rank that is ordered, by actor
  std::map<Point, std::set<int>> signals_;
};

}  // namespace

std::vector<std::vector<Issue>> order_of(const std::vector<RankTasks>& tasks,
                                         const std::string& file) {
  return Orderer(tasks, file).make();
}

}  // namespace hemiola::compile
