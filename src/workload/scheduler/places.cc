#include "workload/scheduler/places.h"

#include <algorithm>
#include <set>
#include <utility>

namespace hemiola::workload {
namespace {

/// A class in a group; of a message, on the other side or on the own one.
using ClassOnSide = std::pair<std::int32_t, bool>;

/// Groups that belong together: those with one of `members`, and those with any member that these
/// bring in. Indices of groups; `members` has all of theirs.
template <class MembersOf>
std::set<std::size_t> reach(const GroupFamily& family, std::set<ClassOnSide>& members,
                            const MembersOf& members_of) {
  std::set<std::size_t> groups;
  for (bool grew = true; grew;) {
    grew = false;
    for (std::size_t g = 0; g < family.groups.size(); ++g) {
      if (groups.contains(g)) continue;
      const std::vector<ClassOnSide> here = members_of(family.groups[g]);
      if (std::ranges::none_of(here, [&](const ClassOnSide& one) { return members.contains(one); }))
        continue;
      groups.insert(g);
      members.insert(here.begin(), here.end());
      grew = true;
    }
  }
  return groups;
}

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
  std::set<ClassOnSide> members{{rank_class, false}};
  const auto groups = reach(all, members, [&](const std::vector<int>& group) {
    std::vector<ClassOnSide> classes;
    for (const int rank : group) classes.emplace_back(class_of(rank), false);
    return classes;
  });
  Place place;
  for (const auto& [one, is_other] : members) place.classes.push_back(one);
  for (const std::size_t g : groups) place.groups.push_back(all.groups[g]);
  const std::int32_t number = add(std::move(place));
  for (const auto& [one, is_other] : members) collectives_[{one, family}] = number;
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
  std::set<ClassOnSide> members{{rank_class, false}};
  const auto pairs = reach(all, members, [&](const std::vector<int>& pair) {
    if (pair.size() != 2) return std::vector<ClassOnSide>();
    return std::vector<ClassOnSide>{{class_of(pair[mine]), false},
                                    {class_of(pair[1 - mine]), true}};
  });
  Sides sides;
  std::set<std::int32_t> classes;
  for (const auto& [one, is_other] : members) {
    (sends == is_other ? sides.receivers : sides.senders).push_back(one);
    classes.insert(one);
  }
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
