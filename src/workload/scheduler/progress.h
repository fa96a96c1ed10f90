// Launches that are under way: how much of each is left, at which speed it goes, when it ends.
// Private to the scheduler.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <tuple>
#include <vector>

#include "workload/once.h"
#include "workload/scheduler/costs.h"

namespace hemiola::workload {

/// A node of a class.
struct Member {
  std::int32_t rank_class = 0;
  std::uint32_t node = 0;
};

class Progress {
 public:
  Progress(Costs& costs, std::size_t classes) : costs_(costs), classes_(classes) {}

  struct Launch {
    LaunchKind kind;
    std::vector<Member> members;
    Time begin{}, alone{};
  };

  /// It takes `alone` at full speed from `begin` on, which may be later than now.
  std::int32_t start(const LaunchKind& kind, std::vector<Member> members, Time begin, Time alone);
  /// Speeds follow the situations of now; to be called when all that begins and ends now has.
  void settle(Time now);

  /// When the next launch ends; nothing when none is under way.
  bool is_empty();
  Time next_end();
  /// It is not under way any more.
  Launch take_next();

  std::int64_t situations() const { return static_cast<std::int64_t>(speeds_.size()); }

 private:
  struct State {
    Launch launch;
    std::int32_t kind = -1;  ///< of kinds_; -1: fixed, it disturbs nobody and nobody it
    Time since{};            ///< `left` is that of this moment
    std::int64_t left = 0;   ///< fs at full speed
    std::int64_t speed = 0;  ///< 0: it has no end yet
    std::uint32_t version = 0;
  };
  struct End {
    Time at{};
    std::int64_t order = 0;  ///< the launch that began first ends first
    std::int32_t number = 0;
    std::uint32_t version = 0;
    bool operator>(const End& other) const {
      return std::tuple(at, order) > std::tuple(other.at, other.order);
    }
  };
  struct OfClass {
    std::vector<std::int32_t> under_way;  ///< launches that are not fixed
    bool is_changed = false;
  };

  void touch(const State& state);
  void drop_stale();
  std::int64_t speed_of(const State& state);
  const std::vector<std::int64_t>& speeds_at(std::int32_t rank_class);
  void set_speed(std::int32_t number, std::int64_t speed, Time now);

  Costs& costs_;
  std::vector<State> states_;
  std::vector<std::int64_t> order_;  ///< by state
  std::vector<std::int32_t> free_;
  std::vector<OfClass> classes_;
  std::vector<std::int32_t> changed_;  ///< classes
  std::vector<std::int32_t> begun_;    ///< fixed launches without an end
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  std::vector<LaunchKind> kinds_;
  OnceList<LaunchKind> numbers_;                                           ///< of these
  std::map<std::vector<std::int32_t>, std::vector<std::int64_t>> speeds_;  ///< class, then kinds
  std::vector<std::int32_t> key_;
  std::int64_t started_ = 0;
};

}  // namespace hemiola::workload
