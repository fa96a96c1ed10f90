#include "sim/replay/peer_waits.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "sim/support/index.h"

namespace hemiola::sim {
namespace {

constexpr std::size_t kPeer = index(Reason::peer);

/// Where a row is: rows of packets and data of one buffer are one thing that is waited for.
PeerWait wait_for(const ProfileRow& row, const Profile& profile) {
  PeerWait wait{.peer = row.source, .kind = row.kind};
  if (row.kind == ProfileKind::burst && row.flag >= 0) {
    wait.kind = ProfileKind::add;
    wait.buffer = kSemaphores;
    wait.offset = row.flag;
  } else if (row.buffer >= 0) {
    wait.buffer = profile.buffers[index(row.buffer)].name;
    if (row.kind == ProfileKind::add) wait.offset = row.offset;
  }
  return wait;
}

}  // namespace

void PeerWaits::comes(LatencyBreakdown& spent, std::int32_t row, std::int64_t due) {
  spent.charge_wait(due - spent.sum(), -2 - row);
}

void PeerWaits::answers(LatencyBreakdown& spent, std::int32_t row, std::int64_t due) {
  const std::int64_t fs = due - spent.sum();
  spent.charge_wait(fs, add(spent.waits(), row, fs));
}

void PeerWaits::begin(std::int32_t wave, const LatencyBreakdown& spent) {
  if (until_.size() <= index(wave)) until_.resize(index(wave) + 1);
  until_[index(wave)] = spent;
}

LatencyBreakdown PeerWaits::ended(const LatencyBreakdown& cause, std::int32_t wave) {
  return ended(cause, until_[index(wave)]);
}

LatencyBreakdown PeerWaits::ended(const LatencyBreakdown& cause, const LatencyBreakdown& until) {
  if (cause.waits() >= -1) return cause;  // somebody who is simulated did it
  const std::int32_t row = -2 - cause.waits();
  Attribution way = cause.attribution();
  const std::int64_t waited = std::exchange(way[kPeer], 0) - until.sum();
  LatencyBreakdown spent = until;
  if (waited > 0) spent.charge_wait(waited, add(until.waits(), row, waited));
  // The row was on its way when the wait began: what is left of that, from its end back.
  std::int64_t passed = std::max<std::int64_t>(0, -waited);
  for (const Reason reason : {Reason::link, Reason::switch_, Reason::nic, Reason::io, Reason::noc,
                              Reason::l2, Reason::msc, Reason::hbm}) {
    std::int64_t& part = way[index(reason)];
    const std::int64_t before = std::clamp<std::int64_t>(part, 0, passed);
    part -= before;
    passed -= before;
  }
  for (std::size_t r = 0; r < kReasons; ++r)
    if (way[r] != 0) spent.charge(static_cast<Reason>(r), way[r]);
  return spent;
}

std::int32_t PeerWaits::add(std::int32_t before, std::int32_t row, std::int64_t fs) {
  links_.push_back({before, row, fs});
  return static_cast<std::int32_t>(links_.size()) - 1;
}

std::vector<PeerWait> PeerWaits::of(int rank, const LatencyBreakdown& spent,
                                    const Profile& profile) const {
  std::map<std::tuple<int, ProfileKind, std::string, std::int64_t>, PeerWait> waits;
  std::int64_t named = 0;
  const auto add_to = [&](std::int32_t row, std::int64_t fs) {
    PeerWait wait = wait_for(profile.rows[index(row)], profile);
    PeerWait& sum =
        waits.try_emplace({wait.peer, wait.kind, wait.buffer, wait.offset}, wait).first->second;
    sum.rank = rank;
    sum.time.fs += fs;
    ++sum.waits;
    named += fs;
  };
  std::int32_t at = spent.waits();
  for (; at >= 0; at = links_[index(at)].before)
    add_to(links_[index(at)].row, links_[index(at)].fs);
  // Nobody waited for that row: a request that met it did.
  if (at < -1) add_to(-2 - at, spent.attribution()[kPeer] - named);
  std::vector<PeerWait> longest;
  for (auto& [key, wait] : waits) longest.push_back(std::move(wait));
  std::ranges::stable_sort(longest,
                           [](const PeerWait& a, const PeerWait& b) { return a.time > b.time; });
  return longest;
}

}  // namespace hemiola::sim
