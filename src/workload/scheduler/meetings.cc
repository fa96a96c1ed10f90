#include "workload/scheduler/meetings.h"

namespace hemiola::workload {

void Meetings::take(const Key& key, Arrival& arrival) {
  arrival.members = std::move(gatherings_[key].members);
  arrival.last = arrival.members.back();
  arrival.outcome = Outcome::begins;
  gatherings_.erase(key);
}

Meetings::Arrival Meetings::arrive(const Call& call, const Member& member,
                                   const std::function<Bytes()>& buffer) {
  const std::int64_t turn = turns_[{call.lane, member.rank_class, call.kind}]++;
  const Key key{call.lane, turn};
  Gathering& gathering = gatherings_[key];
  Arrival arrival;
  if (!gathering.members.empty())
    arrival.other = gathering.members.front();
  else if (gathering.state != Gathering::gathers)
    arrival.other = gathering.last_sender;
  gathering.members.push_back(member);
  gathering.receivers += call.kind == NodeKind::receive ? 1 : 0;
  if (gathering.state == Gathering::gathers) {
    if (gathering.members.size() == call.callers + call.receivers) {
      take(key, arrival);
      return arrival;
    }
    if (call.kind == NodeKind::collective || gathering.receivers > 0 ||
        gathering.members.size() < call.callers)
      return arrival;
    std::int64_t& buffered = buffered_[call.lane.place];
    if (buffered + call.bytes > buffer().count) return arrival;
    buffered += call.bytes;
    gathering.state = Gathering::is_under_way;
    gathering.bytes = call.bytes;
    gathering.expected = call.receivers;
    gathering.last_sender = member;
    arrival.outcome = Outcome::begins;
    arrival.members = std::exchange(gathering.members, {});
    arrival.last = member;
    const Member& first = arrival.members.front();
    senders_[{first.rank_class, first.node}] = key;
    return arrival;
  }
  if (gathering.members.size() < call.receivers) return arrival;
  buffered_[call.lane.place] -= gathering.bytes;
  if (gathering.state == Gathering::is_sent) {
    take(key, arrival);
    arrival.outcome = Outcome::takes_out;
    return arrival;
  }
  arrival.outcome = Outcome::joins;
  arrival.members = gathering.members;
  arrival.last = gathering.last_sender;
  return arrival;
}

std::vector<Member> Meetings::end_send(const Member& sender) {
  const auto sent = senders_.find({sender.rank_class, sender.node});
  if (sent == senders_.end()) return {};
  const auto at = gatherings_.find(sent->second);
  senders_.erase(sent);
  Gathering& gathering = at->second;
  gathering.state = Gathering::is_sent;
  if (gathering.members.size() < gathering.expected) return {};
  std::vector<Member> through = std::move(gathering.members);
  gatherings_.erase(at);
  return through;
}

std::vector<std::pair<Lane, std::vector<Member>>> Meetings::waiting() const {
  std::vector<std::pair<Lane, std::vector<Member>>> found;
  for (const auto& [key, gathering] : gatherings_)
    if (!gathering.members.empty()) found.emplace_back(key.first, gathering.members);
  return found;
}

std::int64_t Meetings::unreceived() const {
  std::int64_t count = 0;
  for (const auto& [key, gathering] : gatherings_)
    count += gathering.state == Gathering::is_sent ? 1 : 0;
  return count;
}

}  // namespace hemiola::workload
