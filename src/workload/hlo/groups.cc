#include "workload/hlo/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>

#include "core/index.h"
#include "workload/hlo/attributes.h"
#include "workload/hlo/opcodes.h"
#include "workload/workload.h"

namespace hemiola::workload::hlo {
namespace {

constexpr int kMostRanks = 1 << 20;

/// Reads `replica_groups` of one collective; ids that it names are checked at the end.
class GroupNotation {
 public:
  GroupNotation(const Module& module, const Instruction& collective, int ids)
      : module_(module), collective_(collective), ids_(ids) {}

  Groups read(std::string_view value) {
    Groups groups;
    if (value.empty() || value == "{}")
      groups.push_back(ranks_from(0, ids_));
    else if (value.starts_with('{'))
      for (const std::string_view group : items_of(value)) groups.push_back(ids_in(group));
    else if (value.starts_with('['))
      groups = iota_groups(value);
    else if (value.starts_with("mesh[") || value.starts_with("@mesh"))
      groups = mesh_groups(value);
    else
      fail("is in a notation that is not known");
    check(groups);
    return groups;
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    module_.fail(
        collective_,
        fmt::format("replica_groups={} of '{}' {}",
                    module_.attribute(collective_, "replica_groups"), collective_.name, problem),
        "notations are {{0,1},{2,3}}, [2,2]<=[4] with or without T(1,0), and "
        "mesh['x'=2,'y'=2] {'y'}");
  }

  int id(std::int64_t number) const {
    if (number < 0 || number >= ids_)
      fail(fmt::format("has id {}, and there are {}", number, ids_));
    return static_cast<int>(number);
  }

  std::vector<int> ids_in(std::string_view list) const {
    std::vector<int> ids;
    for (const std::string_view item : items_of(list)) {
      const auto number = integer_of(item);
      if (!number) fail(fmt::format("has '{}', which is no id", item));
      ids.push_back(id(*number));
    }
    return ids;
  }

  /// The numbers of "[4,2]" at the front of a text, which they are taken from; all at least 1.
  std::vector<std::int64_t> take_extents(std::string_view& text) const {
    const std::size_t end = text.find(']');
    if (!text.starts_with('[') || end == std::string_view::npos) fail("has no list in '[' and ']'");
    const std::vector<std::int64_t> extents = integers_in(text.substr(0, end + 1));
    text.remove_prefix(end + 1);
    std::int64_t product = 1;
    for (const std::int64_t extent : extents) {
      if (extent < 1 || extent > kMostRanks || product > kMostRanks / extent)
        fail("has an extent that is no number of devices");
      product *= extent;
    }
    if (extents.empty()) fail("has a list without numbers");
    return extents;
  }

  /// 0, 1, 2, ... of an array of these extents, its axes in another order: "[2,4]T(1,0)".
  std::vector<int> transposed_iota(std::string_view text) const {
    const std::vector<std::int64_t> extents = take_extents(text);
    std::vector<std::int64_t> order(extents.size());
    std::iota(order.begin(), order.end(), 0);
    if (text.starts_with('T')) {
      order = integers_in(text.substr(1));
      std::vector<std::int64_t> sorted = order;
      std::ranges::sort(sorted);
      for (std::size_t i = 0; i < sorted.size(); ++i)
        if (sorted.size() != extents.size() || sorted[i] != static_cast<std::int64_t>(i))
          fail("has a T(...) that is no order of its axes");
      if (order.empty()) fail("has a T(...) that is no order of its axes");
    } else if (!text.empty()) {
      fail(fmt::format("has '{}' behind its list", text));
    }
    return walk(extents, order);
  }

  /// The ids of an array in row-major order of its axes `order`.
  static std::vector<int> walk(const std::vector<std::int64_t>& extents,
                               const std::vector<std::int64_t>& order) {
    std::vector<std::int64_t> strides(extents.size(), 1);
    for (std::size_t i = extents.size(); i-- > 1;) strides[i - 1] = strides[i] * extents[i];
    std::vector<int> ids{0};
    for (const std::int64_t axis : order) {
      const auto at = index(axis);
      std::vector<int> longer;
      longer.reserve(ids.size() * index(extents[at]));
      for (const int id : ids)
        for (std::int64_t i = 0; i < extents[at]; ++i)
          longer.push_back(id + static_cast<int>(i * strides[at]));
      ids = std::move(longer);
    }
    return ids;
  }

  Groups cut(const std::vector<int>& ids, std::int64_t size) const {
    Groups groups;
    for (std::size_t at = 0; at < ids.size(); at += index(size)) {
      const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(at);
      groups.emplace_back(begin, begin + size);
    }
    for (std::vector<int>& group : groups)
      for (int& one : group) one = id(one);
    return groups;
  }

  /// "[groups,size]<=[4,2]T(1,0)".
  Groups iota_groups(std::string_view text) const {
    const std::vector<std::int64_t> extents = take_extents(text);
    if (!text.starts_with("<=") || extents.size() != 2) fail("is no [groups,size]<=[devices]");
    const std::vector<int> ids = transposed_iota(text.substr(2));
    if (static_cast<std::int64_t>(ids.size()) != extents[0] * extents[1])
      fail("has more or fewer ids than groups times size");
    return cut(ids, extents[1]);
  }

  struct MeshAxisName {
    std::string_view name;
    std::int64_t extent;
  };

  /// "mesh['x'=2,'y'=4] {'y'}", with ", device_ids=(...)" between the two where devices are not in
  /// order. An axis may be divided: 'y':(2)2 are 2 parts of it, behind a first 2.
  Groups mesh_groups(std::string_view text) const {
    const std::size_t open = text.find('['), close = text.find(']');
    if (open == std::string_view::npos || close == std::string_view::npos || close < open)
      fail("has a mesh without axes");
    std::vector<MeshAxisName> axes;
    std::int64_t devices = 1;
    for (const std::string_view item : items_of(text.substr(open, close + 1 - open))) {
      const std::size_t equals = item.rfind('=');
      const auto extent =
          equals == std::string_view::npos ? std::nullopt : integer_of(item.substr(equals + 1));
      if (!extent || *extent < 1 || *extent > kMostRanks || devices > kMostRanks / *extent)
        fail(fmt::format("has '{}', which is no axis of a mesh", item));
      devices *= *extent;
      axes.push_back({unquoted(item.substr(0, equals)), *extent});
    }
    // What looks like an attribute of its own, for its comma, is the order and the axes.
    const std::string_view ids = module_.attribute(collective_, "device_ids");
    const std::size_t brace = ids.find('{');
    const std::string_view named =
        ids.empty() ? text.substr(close + 1) : ids.substr(std::min(brace, ids.size()));
    std::vector<int> order = ranks_from(0, static_cast<int>(devices));
    if (!ids.empty()) {
      std::string_view list = ids.substr(0, brace);
      while (list.ends_with(' ')) list.remove_suffix(1);
      if (list.size() < 2 || list.front() != '(' || list.back() != ')')
        fail(fmt::format("has device_ids={}, which is no list", ids));
      const std::string_view inside = list.substr(1, list.size() - 2);
      order = inside.starts_with('[') ? transposed_iota(inside) : ids_in(list);
      if (static_cast<std::int64_t>(order.size()) != devices)
        fail("has more or fewer device_ids than its mesh");
    }
    const std::vector<int> places = grouped_places(axes, named);
    std::vector<int> all;
    all.reserve(places.size());
    for (const int place : places) all.push_back(order[index(place)]);
    return cut(all, size_);
  }

  /// A part of an axis that groups go along: behind `before` parts, `size` of them.
  struct AxisPart {
    std::size_t axis = 0;
    std::int64_t before = 1, size = 1;
  };

  AxisPart axis_part(const std::vector<MeshAxisName>& axes, std::string_view item) const {
    const std::size_t colon = item.rfind(":(");
    const std::string_view name = unquoted(item.substr(0, colon));
    AxisPart part;
    while (part.axis < axes.size() && axes[part.axis].name != name) ++part.axis;
    if (part.axis == axes.size())
      fail(fmt::format("names '{}', which is no axis of its mesh", item));
    part.size = axes[part.axis].extent;
    if (colon == std::string_view::npos) return part;
    const std::string_view numbers = item.substr(colon + 2);
    const std::size_t end = numbers.find(')');
    const std::int64_t before = integer_of(numbers.substr(0, end)).value_or(0);
    const std::int64_t size =
        end == std::string_view::npos ? 0 : integer_of(numbers.substr(end + 1)).value_or(0);
    if (before < 1 || size < 1 || before > part.size || size > part.size ||
        part.size % (before * size) != 0)
      fail(fmt::format("has '{}', which is no part of an axis", item));
    return {part.axis, before, size};
  }

  /// Places in the mesh, group after group; sets `size_`.
  std::vector<int> grouped_places(const std::vector<MeshAxisName>& axes,
                                  std::string_view named) const {
    std::vector<AxisPart> parts;
    for (const std::string_view item : items_of(named)) parts.push_back(axis_part(axes, item));
    // Each axis is cut into its parts and what is between them.
    std::vector<std::int64_t> extents;
    std::vector<std::int64_t> place_of(parts.size());
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
      std::vector<std::size_t> here;
      for (std::size_t i = 0; i < parts.size(); ++i)
        if (parts[i].axis == axis) here.push_back(i);
      std::ranges::sort(
          here, [&](std::size_t a, std::size_t b) { return parts[a].before < parts[b].before; });
      std::int64_t done = 1;
      for (const std::size_t i : here) {
        if (parts[i].before % done != 0) fail("has parts of an axis that overlap");
        extents.push_back(parts[i].before / done);
        place_of[i] = static_cast<std::int64_t>(extents.size());
        extents.push_back(parts[i].size);
        done = parts[i].before * parts[i].size;
      }
      extents.push_back(axes[axis].extent / done);
    }
    std::vector<std::int64_t> order;
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(extents.size()); ++i)
      if (std::ranges::find(place_of, i) == place_of.end()) order.push_back(i);
    order.insert(order.end(), place_of.begin(), place_of.end());
    size_ = 1;
    for (const AxisPart& part : parts) size_ *= part.size;
    return walk(extents, order);
  }

  void check(const Groups& groups) const {
    std::vector<bool> seen(index(ids_));
    for (const std::vector<int>& group : groups) {
      if (group.empty()) fail("has a group without ids");
      for (const int one : group) {
        if (seen[index(one)]) fail(fmt::format("has id {} twice", one));
        seen[index(one)] = true;
      }
    }
  }

  const Module& module_;
  const Instruction& collective_;
  int ids_;
  mutable std::int64_t size_ = 1;
};

/// What the ids of a collective are of.
enum class GroupIds : std::uint8_t { replicas, partitions, replicas_of_all_partitions, ranks };

GroupIds ids_of(const Module& module, const Instruction& collective) {
  const bool has_channel = !module.attribute(collective, "channel_id").empty();
  const std::string_view mode = module.attribute(collective, "mode");
  if (mode == "cross_replica") return GroupIds::replicas;
  if (mode == "cross_partition") return GroupIds::partitions;
  if (mode == "cross_replica_and_partition") return GroupIds::replicas_of_all_partitions;
  if (mode == "flattened_id" || module.attribute(collective, "use_global_device_ids") == "true")
    return GroupIds::ranks;
  if (!has_channel) return GroupIds::replicas;
  const std::string_view opcode = phase_of(collective.opcode).opcode;
  const bool sums_or_gathers =
      opcode == "all-reduce" || opcode == "all-gather" || opcode == "reduce-scatter";
  return sums_or_gathers ? GroupIds::replicas_of_all_partitions : GroupIds::partitions;
}

/// The ranks that ids stand for: of each as many as there are `others`.
struct RanksOfIds {
  bool are_together = false;  ///< all ranks of all ids of a group are one group
  int ids = 0, others = 1;
  int id_stride = 1, other_stride = 1;

  int rank(int id, int other) const { return id * id_stride + other * other_stride; }
};

RanksOfIds ranks_of_ids(const Module& module, const Instruction& collective,
                        const Devices& devices) {
  const GroupIds kind = ids_of(module, collective);
  if (kind == GroupIds::ranks) return {.ids = devices.ranks()};
  if (kind == GroupIds::partitions)
    return {
        .ids = devices.partitions, .others = devices.replicas, .other_stride = devices.partitions};
  return {.are_together = kind == GroupIds::replicas_of_all_partitions,
          .ids = devices.replicas,
          .others = devices.partitions,
          .id_stride = devices.partitions};
}

int count_of(const Module& module, std::string_view name) {
  const std::string_view value = module.header_attribute(name);
  if (value.empty()) return 1;
  const auto count = integer_of(value);
  if (!count || *count < 1 || *count > kMostRanks)
    throw Failure(
        fmt::format("{}={} is no number of devices from 1 to {}", name, value, kMostRanks),
        module.at(0));
  return static_cast<int>(*count);
}

}  // namespace

Devices devices_of(const Module& module) {
  const Devices devices{count_of(module, "replica_count"), count_of(module, "num_partitions")};
  if (devices.replicas > kMostRanks / devices.partitions)
    throw Failure(fmt::format("{} replicas of {} partitions are more than {} devices",
                              devices.replicas, devices.partitions, kMostRanks),
                  module.at(0));
  return devices;
}

Groups replica_groups(const Module& module, const Instruction& collective, int ids) {
  return GroupNotation(module, collective, ids)
      .read(module.attribute(collective, "replica_groups"));
}

Groups groups_of_ranks(const Module& module, const Instruction& collective,
                       const Devices& devices) {
  const RanksOfIds of = ranks_of_ids(module, collective, devices);
  Groups groups;
  for (const std::vector<int>& group : replica_groups(module, collective, of.ids)) {
    if (of.are_together) {
      std::vector<int>& whole = groups.emplace_back();
      for (const int id : group)
        for (int other = 0; other < of.others; ++other) whole.push_back(of.rank(id, other));
      continue;
    }
    for (int other = 0; other < of.others; ++other) {
      std::vector<int>& one = groups.emplace_back();
      for (const int id : group) one.push_back(of.rank(id, other));
    }
  }
  std::size_t members = 0;
  for (const std::vector<int>& group : groups) {
    members += group.size();
    if (group.size() != groups.front().size())
      module.fail(collective, fmt::format("the groups of '{}' have different sizes, {} and {}",
                                          collective.name, groups.front().size(), group.size()));
  }
  if (members != index(devices.ranks()))
    module.fail(collective,
                fmt::format("{} of {} devices are in no group of '{}'",
                            index(devices.ranks()) - members, devices.ranks(), collective.name));
  return groups;
}

std::vector<std::pair<int, int>> pairs_of_ranks(const Module& module,
                                                const Instruction& instruction,
                                                const Devices& devices) {
  const RanksOfIds of = ranks_of_ids(module, instruction, devices);
  const std::string_view text = module.attribute(instruction, "source_target_pairs");
  std::vector<std::pair<int, int>> pairs;
  std::vector<bool> sends(index(of.ids)), receives(index(of.ids));
  for (const std::string_view item : items_of(text)) {
    const std::vector<std::int64_t> pair = integers_in(item);
    const auto fail = [&](const std::string& problem) {
      module.fail(instruction, fmt::format("source_target_pairs of '{}' have {}, {}",
                                           instruction.name, item, problem));
    };
    if (pair.size() != 2) fail("which is no pair");
    if (std::min(pair[0], pair[1]) < 0 || std::max(pair[0], pair[1]) >= of.ids)
      fail(fmt::format("and there are {} ids", of.ids));
    const auto from = index(pair[0]), to = index(pair[1]);
    if (sends[from] || receives[to]) fail("of which one sends or receives twice");
    sends[from] = receives[to] = true;
    pairs.emplace_back(static_cast<int>(pair[0]), static_cast<int>(pair[1]));
  }
  std::vector<std::pair<int, int>> of_ranks;
  for (int other = 0; other < of.others; ++other)
    for (const auto& [from, to] : pairs)
      of_ranks.emplace_back(of.rank(from, other), of.rank(to, other));
  return of_ranks;
}

std::vector<std::vector<std::pair<int, int>>> disjoint_pairs(
    const std::vector<std::pair<int, int>>& pairs) {
  // Every rank sends once and receives once at most: pairs form paths and circles. Along each, two
  // sets take turns; the last pair of a circle of odd length needs a third one.
  int ranks = 0;
  for (const auto& [from, to] : pairs) ranks = std::max({ranks, from + 1, to + 1});
  std::vector<int> target(index(ranks), -1);
  std::vector<bool> is_target(index(ranks)), done(index(ranks));
  for (const auto& [from, to] : pairs) {
    if (from == to) continue;
    target[index(from)] = to;
    is_target[index(to)] = true;
  }
  std::vector<std::vector<std::pair<int, int>>> sets;
  const auto follow = [&](int first) {
    int rank = first;
    for (std::size_t turn = 0; target[index(rank)] >= 0 && !done[index(rank)]; ++turn) {
      const int next = target[index(rank)];
      done[index(rank)] = true;
      const std::size_t set = next == first && turn % 2 == 0 ? 2 : turn % 2;
      if (sets.size() <= set) sets.resize(set + 1);
      sets[set].emplace_back(rank, next);
      rank = next;
    }
  };
  for (int rank = 0; rank < ranks; ++rank)
    if (!is_target[index(rank)]) follow(rank);
  for (int rank = 0; rank < ranks; ++rank) follow(rank);
  return sets;
}

}  // namespace hemiola::workload::hlo
