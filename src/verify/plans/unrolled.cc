#include "verify/plans/unrolled.h"

#include <algorithm>
#include <map>

namespace hemiola::verify {

using plan::Area;
using plan::Rect;
using plan::Transfer;
using plan::TransferKind;

Unrolled::Unrolled(const plan::Plan& plan) : plan_(plan) {
  std::vector<std::int32_t> first_steps;
  bool collectives = false;
  for (const plan::Code& code : plan.codes) {
    first_steps.push_back(static_cast<std::int32_t>(steps_.size()));
    for (const plan::Stream& stream : code.streams) {
      Step path;
      unroll(stream.items, path, 0, steps_.emplace_back());
      collectives = collectives || std::ranges::any_of(steps_.back(), [](const Step& step) {
                      return step.transfer->kind == TransferKind::collective;
                    });
    }
  }
  for (int rank = 0; rank < plan.ranks; ++rank) {
    first_.push_back(streams());
    const auto code = index(plan.code_of[index(rank)]);
    for (std::size_t i = 0; i < plan.codes[code].streams.size(); ++i) {
      rank_of_.push_back(rank);
      code_steps_.push_back(first_steps[code] + static_cast<std::int32_t>(i));
    }
  }
  if (collectives) find_meetings();
}

void Unrolled::unroll(const std::vector<plan::Item>& items, Step& path, std::size_t depth,
                      std::vector<Step>& out) const {
  for (std::size_t i = 0; i < items.size(); ++i) {
    path.items[depth] = static_cast<std::int32_t>(i);
    if (const auto* transfer = std::get_if<Transfer>(&items[i])) {
      path.transfer = transfer;
      out.push_back(path);
      continue;
    }
    const plan::Loop& loop = std::get<plan::Loop>(items[i]);
    for (path.loop[depth] = 0; path.loop[depth] < loop.count; ++path.loop[depth])
      unroll(loop.items, path, depth + 1, out);
    path.loop[depth] = 0;
  }
  path.items[depth] = -1;
}

void Unrolled::find_meetings() {
  std::map<std::pair<std::int32_t, std::int64_t>, std::int32_t> known;  // group, count -> meeting
  std::map<std::pair<std::int32_t, int>, std::int64_t> counts;          // group, rank
  each_transfer([&](TransferId id) {
    const Transfer& transfer = this->transfer(id);
    if (transfer.kind != TransferKind::collective) return;
    const auto& group = plan_.groups[index(transfer.group)];
    const int rank = rank_of(id.stream);
    const std::int64_t count = counts[{transfer.group, rank}]++;
    const auto [entry, fresh] =
        known.try_emplace({transfer.group, count}, static_cast<std::int32_t>(meetings_.size()));
    if (fresh)
      meetings_.push_back({transfer.group, std::vector<TransferId>(group.size(), {-1, -1})});
    const auto member = std::ranges::find(group, rank) - group.begin();
    meetings_[index(entry->second)].members[index(member)] = id;
    meeting_of_.emplace_back(id, entry->second);
  });
}

std::int64_t Unrolled::transfers() const {
  std::int64_t total = 0;
  for (std::int32_t s = 0; s < streams(); ++s) total += transfers(s);
  return total;
}

std::int32_t Unrolled::meeting_of(TransferId id) const {
  const auto found = std::lower_bound(
      meeting_of_.begin(), meeting_of_.end(), id,
      [](const auto& entry, const TransferId& wanted) { return entry.first < wanted; });
  return found != meeting_of_.end() && found->first == id ? found->second : -1;
}

std::vector<Movement> Unrolled::movements(TransferId id) const {
  const Transfer& transfer = this->transfer(id);
  const Indices at = this->at(id);
  const int self = rank_of(id.stream);
  const Area source = evaluate(transfer.source, at);
  const Area destination = evaluate(transfer.destination, at);
  if (transfer.group >= 0) {
    const auto& group = plan_.groups[index(transfer.group)];
    if (transfer.kind == TransferKind::pull) {
      Movement reduction{self, destination, {}};
      for (const int member : group) reduction.sources.emplace_back(member, source);
      return {reduction};
    }
    std::vector<Movement> multicast;
    for (const int member : group) multicast.push_back({member, destination, {{self, source}}});
    return multicast;
  }
  const int peer = static_cast<int>(transfer.peer(at));
  const int reader = transfer.kind == TransferKind::pull ? peer : self;
  const int writer = transfer.kind == TransferKind::push ? peer : self;
  Movement movement{writer, destination, {{reader, source}}};
  if (transfer.reduce != ReduceOp::none)
    movement.sources.emplace_back(writer, evaluate(transfer.operand, at));
  return {movement};
}

std::vector<Movement> Unrolled::movements(const Meeting& meeting) const {
  struct Member {
    int rank;
    Area source, destination;
  };
  std::vector<Member> members;
  for (const TransferId id : meeting.members)
    members.push_back({rank_of(id.stream), evaluate(transfer(id).source, at(id)),
                       evaluate(transfer(id).destination, at(id))});
  const auto count = static_cast<std::int64_t>(members.size());
  const Collective collective = transfer(meeting.members.front()).collective;
  std::vector<Movement> all;
  for (std::int64_t to = 0; to < count; ++to) {
    const Member& self = members[index(to)];
    Movement whole{self.rank, self.destination, {}};
    switch (collective) {
      case Collective::all_reduce:
        for (const Member& from : members) whole.sources.emplace_back(from.rank, from.source);
        break;
      case Collective::reduce_scatter:
        for (const Member& from : members) {
          const std::int64_t share = from.source.elements() / count;
          whole.sources.emplace_back(from.rank, part(from.source, to * share, share));
        }
        break;
      case Collective::broadcast:
        whole.sources.emplace_back(members.front().rank, members.front().source);
        break;
      default: {  // all-gather, all-to-all: one part of the destination from each member
        const std::int64_t share = self.destination.elements() / count;
        for (std::int64_t from = 0; from < count; ++from) {
          const Member& peer = members[index(from)];
          all.push_back({self.rank,
                         part(self.destination, from * share, share),
                         {{peer.rank, collective == Collective::all_to_all
                                          ? part(peer.source, to * share, share)
                                          : peer.source}}});
        }
        continue;
      }
    }
    all.push_back(std::move(whole));
  }
  return all;
}

std::string Unrolled::disagreement(const Meeting& meeting) const {
  const TransferId* first = nullptr;
  for (const TransferId& id : meeting.members) {
    if (id.stream < 0) continue;
    if (first == nullptr) first = &id;
    const Transfer& a = transfer(*first);
    const Transfer& b = transfer(id);
    const std::string ranks = "ranks " + std::to_string(rank_of(first->stream)) + " and " +
                              std::to_string(rank_of(id.stream));
    if (a.collective != b.collective || a.reduce != b.reduce)
      return ranks +
             " run different collectives of one group: " + std::string(name_of(a.collective)) +
             " and " + std::string(name_of(b.collective));
    if (a.source.elements() != b.source.elements())
      return ranks + " bring " + std::to_string(a.source.elements()) + " and " +
             std::to_string(b.source.elements()) + " elements to one " +
             std::string(name_of(a.collective));
  }
  return {};
}

std::vector<bool> Unrolled::reduced_tensors() const {
  std::vector<bool> reduced(plan_.tensors.size());
  for (const std::vector<Step>& steps : steps_) {
    for (const Step& step : steps)
      if (step.transfer->reduce != ReduceOp::none)
        reduced[index(step.transfer->destination.tensor)] = true;
  }
  return reduced;
}

std::vector<bool> Unrolled::written_tensors() const {
  std::vector<bool> written(plan_.tensors.size());
  for (const std::vector<Step>& steps : steps_)
    for (const Step& step : steps) written[index(step.transfer->destination.tensor)] = true;
  return written;
}

std::vector<Movement> Unrolled::movements_of_meetings() const {
  std::vector<Movement> all;
  for (const Meeting& meeting : meetings_) {
    const bool complete =
        std::ranges::none_of(meeting.members, [](TransferId id) { return id.stream < 0; });
    if (!complete || !disagreement(meeting).empty()) continue;
    std::ranges::move(movements(meeting), std::back_inserter(all));
  }
  return all;
}

std::string Unrolled::place(TransferId id) const {
  const int rank = rank_of(id.stream);
  std::string text = "/codes/" + std::to_string(plan_.code_of[index(rank)]) + "/streams/" +
                     std::to_string(index_of(id.stream));
  for (const std::int32_t item : step(id).items)
    if (item >= 0) text += "/items/" + std::to_string(item);
  return text;
}

namespace {

// Elements [begin, begin + count) of a rectangle: whole slabs along the first axis that is longer
// than one, and parts of the slabs at both ends.
void part_of(Rect rect, std::size_t axis, std::int64_t begin, std::int64_t count,
             std::vector<Rect>& out) {
  if (count == 0) return;
  if (count == rect.elements()) {
    out.push_back(std::move(rect));
    return;
  }
  while (rect.end[axis] - rect.begin[axis] == 1) ++axis;
  const std::int64_t slab = rect.elements() / (rect.end[axis] - rect.begin[axis]);
  const auto slabs = [&](std::int64_t first, std::int64_t last) {
    Rect some = rect;
    some.begin[axis] = rect.begin[axis] + first;
    some.end[axis] = rect.begin[axis] + last;
    return some;
  };
  const std::int64_t first = begin / slab, inside = begin % slab;
  if (inside > 0) {
    const std::int64_t here = std::min(count, slab - inside);
    part_of(slabs(first, first + 1), axis, inside, here, out);
    return part_of(std::move(rect), axis, begin + here, count - here, out);
  }
  if (const std::int64_t full = count / slab; full > 0) {
    out.push_back(slabs(first, first + full));
    begin += full * slab;
    count -= full * slab;
  }
  if (count > 0) part_of(slabs(begin / slab, begin / slab + 1), axis, 0, count, out);
}

}  // namespace

Area part(const Area& area, std::int64_t begin, std::int64_t count) {
  Area result{area.tensor, {}};
  for (const Rect& rect : area.rects) {
    const std::int64_t here = std::min(count, std::max<std::int64_t>(0, rect.elements() - begin));
    part_of(rect, 0, begin, here, result.rects);
    begin = std::max<std::int64_t>(0, begin - rect.elements());
    count -= here;
  }
  return result;
}

}  // namespace hemiola::verify
