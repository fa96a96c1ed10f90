#include "workload/scheduler/places.h"

#include <algorithm>
#include <set>
#include <utility>

namespace hemiola::workload {
namespace {

/// Groups of a family that belong together: those with a rank of `first`, and those with a rank of
/// any class that these reach. Indices of groups, in order.
class Reach {
 public:
  Reach(const GroupFamily& family, const std::vector<std::int32_t>& class_of)
      : family_(family), class_of_(class_of) {}

  /// `joins`: whether the group brings in the class of its rank at `position`.
  template <class Joins>
  std::pair<std::vector<std::size_t>, std::set<std::int32_t>> from(std::int32_t first,
                                                                   const Joins& joins) const {
    std::set<std::int32_t> classes{first};
    std::set<std::size_t> groups;
    for (bool grew = true; grew;) {
      grew = false;
      for (std::size_t g = 0; g < family_.groups.size(); ++g) {
        const auto& group = family_.groups[g];
        if (groups.count(g) != 0) continue;
        bool is_in = false;
        for (std::size_t p = 0; p < group.size() && !is_in; ++p)
          is_in = joins(p) && classes.count(class_of_[index(group[p])]) != 0;
        if (!is_in) continue;
        groups.insert(g);
        for (std::size_t p = 0; p < group.size(); ++p)
          if (joins(p)) classes.insert(class_of_[index(group[p])]);
        grew = true;
      }
    }
    return {{groups.begin(), groups.end()}, classes};
  }

 private:
  const GroupFamily& family_;
  const std::vector<std::int32_t>& class_of_;
};

}  // namespace

std::vector<int> disjoint_sets(const std::vector<std::vector<int>>& groups) {
  std::map<int, std::set<int>> taken;
  std::vector<int> sets;
  for (const auto& group : groups) {
    int set = 0;
    while (std::ranges::any_of(group, [&](int rank) { return taken[rank].count(set) != 0; })) ++set;
    for (const int rank : group) taken[rank].insert(set);
    sets.push_back(set);
  }
  return sets;
}

Places::Places(const Workload& workload)
    : workload_(workload), class_of_(classes_of_ranks(workload)) {}

std::int32_t Places::add(Place place) {
  const auto known = std::ranges::find(places_, place);
  if (known != places_.end()) return static_cast<std::int32_t>(known - places_.begin());
  places_.push_back(std::move(place));
  return static_cast<std::int32_t>(places_.size() - 1);
}

std::int32_t Places::of_compute(std::int32_t rank_class) {
  const auto known = computes_.find(rank_class);
  if (known != computes_.end()) return known->second;
  Place place{.classes = {rank_class}};
  for (const int rank : workload_.classes[index(rank_class)].ranks) place.groups.push_back({rank});
  return computes_[rank_class] = add(std::move(place));
}

std::int32_t Places::of_collective(std::int32_t rank_class, std::int32_t family) {
  const auto known = collectives_.find({rank_class, family});
  if (known != collectives_.end()) return known->second;
  const GroupFamily& all = workload_.families[index(family)];
  const auto [groups, classes] =
      Reach(all, class_of_).from(rank_class, [](std::size_t) { return true; });
  Place place{.classes = {classes.begin(), classes.end()}};
  for (const std::size_t g : groups) place.groups.push_back(all.groups[g]);
  const std::int32_t number = add(std::move(place));
  for (const std::int32_t c : classes) collectives_[{c, family}] = number;
  return number;
}

std::int32_t Places::of_message(std::int32_t rank_class, const Message& message, bool sends) {
  const std::tuple key(rank_class, message.family, message.from_first, sends);
  const auto known = messages_.find(key);
  if (known != messages_.end()) return known->second;
  const GroupFamily& all = workload_.families[index(message.family)];
  const std::size_t sender = message.from_first ? 0 : 1;
  // The pairs whose sender (or receiver) is of the class, and those that the other side brings in.
  const std::size_t mine = sends ? sender : 1 - sender;
  std::set<std::size_t> pairs;
  Sides sides;
  std::set<std::int32_t> own{rank_class}, others;
  for (bool grew = true; grew;) {
    grew = false;
    for (std::size_t g = 0; g < all.groups.size(); ++g) {
      const auto& pair = all.groups[g];
      if (pair.size() != 2 || pairs.count(g) != 0) continue;
      const std::int32_t here = class_of(pair[mine]), there = class_of(pair[1 - mine]);
      if (own.count(here) == 0 && others.count(there) == 0) continue;
      pairs.insert(g);
      own.insert(here);
      others.insert(there);
      grew = true;
    }
  }
  sides.senders.assign(sends ? own.begin() : others.begin(), sends ? own.end() : others.end());
  sides.receivers.assign(sends ? others.begin() : own.begin(), sends ? others.end() : own.end());
  std::set<std::int32_t> classes = own;
  classes.insert(others.begin(), others.end());
  Place place{.classes = {classes.begin(), classes.end()}};
  // The sender first: a message goes from the first of its pair to the second.
  for (const std::size_t g : pairs)
    place.groups.push_back({all.groups[g][sender], all.groups[g][1 - sender]});
  places_.push_back(std::move(place));  // not shared with one that meets other calls
  const auto number = static_cast<std::int32_t>(places_.size() - 1);
  for (const std::int32_t c : sides.senders)
    messages_[{c, message.family, message.from_first, true}] = number;
  for (const std::int32_t c : sides.receivers)
    messages_[{c, message.family, message.from_first, false}] = number;
  sides_[number] = std::move(sides);
  return number;
}

std::int32_t Places::of_call(std::int32_t rank_class, const Node& node) {
  const auto work = index(node.work);
  return node.kind == NodeKind::collective
             ? of_collective(rank_class, workload_.collectives[work].family)
             : of_message(rank_class, workload_.messages[work], node.kind == NodeKind::send);
}

}  // namespace hemiola::workload
