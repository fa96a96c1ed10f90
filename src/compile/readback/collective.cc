// Collectives of a library: which members take part in which, and what each does. The file does not
// say how the library does it; here all members meet, each moves or adds up what is its part with
// loads and stores, and all meet again, as collectives of plans are lowered.
#include <fmt/format.h>

#include <algorithm>

#include "compile/readback/body.h"
#include "core/index.h"

namespace hemiola::compile::readback {
namespace {

using program::Op;
using program::OpKind;

constexpr std::int64_t kElements = 4096;  // that a workgroup takes
constexpr std::int64_t kMostWorkgroups = 16;

/// Part `number` of `parts`, of the elements in their order.
Region part_of(const Walker& walker, const Region& region, std::int64_t number, std::int64_t parts,
               const Node& node) {
  Region made = region;
  std::erase_if(made.axes, [](const auto& axis) { return axis.first <= 1; });
  if (made.axes.empty() || made.axes.front().first % parts != 0)
    walker.refuse(node,
                  fmt::format("a collective whose view is not {} equal parts of rows", parts));
  auto& [count, stride] = made.axes.front();
  count /= parts;
  made.offset += number * count * stride;
  return made;
}

}  // namespace

std::optional<Collective> collective_named(const std::string& name) {
  for (const Collective one : {Collective::all_reduce, Collective::reduce_scatter,
                               Collective::all_gather, Collective::all_to_all})
    if (name == name_of(one)) return one;
  return std::nullopt;
}

std::vector<Meeting> meetings_of(const Reading& reading) {
  std::vector<Meeting> made;
  std::map<std::pair<std::vector<int>, std::size_t>, std::size_t> known;
  for (int rank = 0; rank < reading.ranks; ++rank) {
    std::map<std::vector<int>, std::size_t> turns;
    for (const auto& stream : reading.records[index(rank)].streams) {
      for (const HostOp& op : stream) {
        if (op.kind != HostOp::Kind::collective) continue;
        if (!collective_named(op.name))
          reading.walker.refuse(*op.node, fmt::format("a collective '{}'", op.name));
        if (std::ranges::find(op.group, rank) == op.group.end())
          reading.walker.wrong(*op.node, fmt::format("rank {} is no member of the group", rank));
        const auto [at, is_new] = known.try_emplace({op.group, turns[op.group]++}, made.size());
        if (is_new) made.push_back({.members = op.group, .workgroups = 0, .ops = {}});
        Meeting& meeting = made[at->second];
        const auto* other = meeting.ops.empty() ? nullptr : meeting.ops.begin()->second;
        if (other != nullptr &&
            (other->name != op.name || other->regions[0].elements() != op.regions[0].elements() ||
             other->regions[1].elements() != op.regions[1].elements()))
          reading.walker.wrong(
              *op.node, "members of a group run different collectives, or bring different sizes");
        meeting.ops[rank] = &op;
        const std::int64_t elements =
            std::max(op.regions[0].elements(), op.regions[1].elements()) / std::ssize(op.group);
        meeting.workgroups =
            std::clamp<std::int64_t>((elements + kElements - 1) / kElements, 1, kMostWorkgroups);
      }
    }
  }
  for (const Meeting& meeting : made) {
    if (meeting.ops.size() == meeting.members.size()) continue;
    reading.walker.wrong(*meeting.ops.begin()->second->node,
                         fmt::format("a collective of {} ranks, to which {} come",
                                     meeting.members.size(), meeting.ops.size()),
                         "", ExitCode::deadlock);
  }
  return made;
}

void BodyWriter::meet(const Meeting& meeting, std::int32_t first, const Node* node) {
  Op tell{.kind = OpKind::dep_signal, .channel = program::Channel::any};
  Op wait{.kind = OpKind::dep_wait, .channel = program::Channel::any};
  const auto& members = meeting.members;
  const auto me =
      static_cast<std::int32_t>(std::ranges::find(members, target_.rank) - members.begin());
  for (std::size_t m = 0; m < members.size(); ++m) {
    if (members[m] == target_.rank) continue;
    tell.semaphores.push_back({constant(members[m]), first + me});
    wait.semaphores.push_back({own_rank(), first + static_cast<std::int32_t>(m)});
    wait.targets.emplace_back(1, 1);
  }
  add({.kind = OpKind::sync}, node);
  if (members.size() > 1) {
    add(std::move(tell), node);
    add(std::move(wait), node);
  }
  add({.kind = OpKind::sync}, node);
}

void BodyWriter::collective(const Meeting& meeting, std::int64_t workgroup, std::int32_t first) {
  const HostOp& own = *meeting.ops.at(target_.rank);
  const Walker& walker = target_.reading.walker;
  const auto& members = meeting.members;
  const auto size = std::ssize(members);
  const std::int64_t me = std::ranges::find(members, target_.rank) - members.begin();
  const auto region = [&](std::int64_t member, std::size_t which) -> const Region& {
    return meeting.ops.at(members[index(member % size)])->regions[which];
  };
  const auto part = [&](const Region& of, std::int64_t number) {
    return part_of(walker, of, number, size, *own.node);
  };
  const auto moved = [&](const Region& to, const std::vector<Region>& from) {
    HostOp op{.node = own.node};
    op.regions = {to};
    op.regions.insert(op.regions.end(), from.begin(), from.end());
    transfer(op, workgroup, meeting.workgroups);
  };
  const auto parts = [&](std::int64_t number) {
    std::vector<Region> made;
    for (std::int64_t d = 0; d < size; ++d) made.push_back(part(region(me + d, 1), number));
    return made;
  };
  meet(meeting, first, own.node);
  switch (*collective_named(own.name)) {
    case Collective::reduce_scatter:
      moved(region(me, 0), parts(me));
      break;
    case Collective::all_reduce: {
      const Region result = part(region(me, 0), me);
      moved(result, parts(me));
      add({.kind = OpKind::sync}, own.node);
      for (std::int64_t d = 1; d < size; ++d) moved(part(region(me + d, 0), me), {result});
      break;
    }
    case Collective::all_gather:
      for (std::int64_t d = 0; d < size; ++d) moved(part(region(me + d, 0), me), {region(me, 1)});
      break;
    default:  // all-to-all
      for (std::int64_t d = 0; d < size; ++d)
        moved(part(region(me + d, 0), me), {part(region(me, 1), (me + d) % size)});
      break;
  }
  meet(meeting, first + static_cast<std::int32_t>(size), own.node);
}

}  // namespace hemiola::compile::readback
