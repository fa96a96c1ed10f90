// The engine sampled: what moves and steps take, and when those that are passed over are through.

#include <cmath>
#include <functional>
#include <numeric>

#include "sim/result/period_shares.h"
#include "sim/sampled/sampling.h"

namespace hemiola::sim {
namespace {

/// Of wavefronts beside those that a window has shown: from there on it says nothing of them.
constexpr std::int64_t kMoreMovers = 2;
constexpr std::int64_t kLook = 500'000'000;  // fs: whether all pause

}  // namespace

// --- Moves.

std::int32_t Sampling::number_of(const MoveKind& kind, bool remote) {
  const auto [place, added] = numbers_.emplace(kind, static_cast<std::int32_t>(kinds_.size()));
  if (added) {
    kinds_.push_back({.remote = remote});
    kinds_.back().by_group.resize(drains_.size());
  }
  return place->second;
}

std::int32_t Sampling::way_over(int rank, std::int32_t link) {
  std::vector<std::int32_t>& links = links_[at(rank)];
  const auto known = std::ranges::find(links, link);
  if (known == links.end() && kFirstLink + std::ssize(links) >= kPlaces) return kEverywhere;
  const auto number = static_cast<std::int32_t>(known - links.begin());
  if (known == links.end()) links.push_back(link);
  return kFirstLink + number;
}

// One more moves.
Sampling::Crowd& Sampling::join(const Mover& mover, std::int64_t now) {
  ++moving_;
  note_move(now);
  ++movers_[at(mover.rank)].moving;
  ++drains_[at(mover.group)].moving;
  Crowd& crowd = catch_up(place_of(mover), now);
  ++crowd.moving;
  return crowd;
}

void Sampling::begin_batch(const Mover& mover, std::int64_t now, std::int64_t bytes,
                           const LatencyBreakdown& spent) {
  const Movers& movers = movers_[at(mover.rank)];
  Drain& drain = drains_[at(mover.group)];
  if (drain.moving == 0 && std::exchange(drain.waited, false) && phase_ == Phase::measuring &&
      !computes(mover.group)) {
    pauses_.push_back(now - drain.ended);
    paused_ += now - std::max(drain.ended, from_);
    ++window_pauses_;
    if (movers.empty >= drain.ended) {
      ++together_;
      after_all_.add(1, now - movers.empty);
    }
  }
  if (phase_ == Phase::measuring && !computes(mover.group) &&
      std::exchange(drain.window, windows_) != windows_)
    ++window_groups_;
  const Crowd& crowd = join(mover, now);
  waves_[at(mover.wave)] = {
      .began = now, .bytes = bytes, .share = crowd.share, .mover = mover, .spent = spent};
}

// A batch counts in a window with as much of its bytes and of its share as it was there.
void Sampling::end_batch(std::int32_t wave, std::int64_t now, const LatencyBreakdown& spent) {
  Batch& batch = waves_[at(wave)];
  const std::int64_t began = std::exchange(batch.began, -1);
  if (began < 0) return;
  --moving_;
  note_move(now);
  Drain& drain = drains_[at(batch.mover.group)];
  drain.stored = true;
  if (--drain.moving == 0) drain.ended = now;
  Crowd& crowd = catch_up(place_of(batch.mover), now);
  const std::int32_t moving = crowd.moving--;
  Movers& movers = movers_[at(batch.mover.rank)];
  if (--movers.moving == 0) movers.empty = now;
  if (batch.skipped) return;
  seen_ = true;
  Kind& kind = kinds_[at(batch.mover.kind)];
  const std::int64_t time = std::max<std::int64_t>(1, now - began);
  const std::int64_t share = std::max<std::int64_t>(1, crowd.share - batch.share);
  batches_.add(1, time);
  ++window_batches_;
  const bool known = kind.remote ? kind.shared.known() : !kind.windows.empty();
  if (phase_ != Phase::measuring && known) {
    if (gap_from_ >= 0 && !kind.windows.empty())
      kind.too_fast.add(batch.bytes,
                        kind.full ? share_of(batch.mover, batch.bytes) - share
                                  : ((kind.alone.time_for(batch.bytes) - time) << kShift) / moving);
    return;
  }
  const std::int64_t inside = phase_ == Phase::measuring ? now - std::max(began, from_) : time;
  const auto part = [&](std::int64_t whole) {
    return static_cast<std::int64_t>(static_cast<__int128>(whole) * inside / time);
  };
  const bool second = phase_ == Phase::measuring && now - from_ > window_time() / 2;
  kind.by_group[at(batch.mover.group)][second ? 1 : 0].add(part(batch.bytes), part(share));
  kind.shared.add(part(batch.bytes), part(share));
  kind.window.add(part(batch.bytes), part(share));
  kind.alone.add(part(batch.bytes), inside);
  const double each = static_cast<double>(time) / static_cast<double>(batch.bytes);
  kind.least = kind.least == 0 ? each : std::min(kind.least, each);
  const double among = static_cast<double>(time << kShift) / static_cast<double>(share);
  auto& crowding = kind.crowding;
  crowding.count += 1;
  crowding.x += among;
  crowding.y += each;
  crowding.xx += among * among;
  crowding.xy += among * each;
  const Attribution before = batch.spent.attribution(), after = spent.attribution();
  for (std::size_t r = 0; r < kReasons; ++r)
    kind.spent[r] += std::max<std::int64_t>(0, after[r] - before[r]);
}

// At the end of a window: as much of those under way as they have had of what they are going to
// need.
void Sampling::count_open_batches(std::int64_t now) {
  for (std::int32_t place = 0; place < std::ssize(crowds_); ++place) catch_up(place, now);
  for (const Batch& batch : waves_) {
    if (batch.began < 0 || batch.skipped) continue;
    Kind& kind = kinds_[at(batch.mover.kind)];
    const std::int64_t time = now - batch.began, inside = now - std::max(batch.began, from_);
    if (time == 0 || !kind.window.known()) continue;
    const std::int64_t share = crowds_[at(place_of(batch.mover))].share - batch.share;
    const std::int64_t needed = std::max(share, kind.window.time_for(batch.bytes));
    const auto part = static_cast<std::int64_t>(static_cast<__int128>(share) * inside / time);
    const auto bytes = static_cast<std::int64_t>(static_cast<__int128>(batch.bytes) * part /
                                                 std::max<std::int64_t>(1, needed));
    kind.by_group[at(batch.mover.group)][1].add(bytes, part);
    kind.shared.add(bytes, part);
    kind.alone.add(bytes, inside);
  }
}

bool Sampling::knows(const Mover& mover) const {
  if (kinds_[at(mover.kind)].shared.known()) return true;
  return mover.way != kOwn && crowds_[at(place_of(mover))].shared.known();
}

// Whether what it takes grows with those who move at the same time. Windows that have shown far
// fewer do not say so.
bool Sampling::shares(const Mover& mover) const {
  const Kind& kind = kinds_[at(mover.kind)];
  if (!kind.full || !kind.shared.known()) return kind.full;
  const std::int64_t moved =
      (kind.alone.time << kShift) / std::max<std::int64_t>(1, kind.shared.time);
  return crowds_[at(place_of(mover))].moving <= kMoreMovers * moved;
}

std::int64_t Sampling::share_of(const Mover& mover, std::int64_t bytes) const {
  const Kind& kind = kinds_[at(mover.kind)];
  if (!kind.shared.known()) return crowds_[at(place_of(mover))].shared.time_for(bytes);
  const std::int64_t all = kind.shared.time_for(bytes);
  if (kind.apart == 0) return all;
  const auto& [first, second] = kind.by_group[at(mover.group)];
  const Pace own{first.units + second.units, first.time + second.time};
  return own.known() ? all + kind.apart * (own.time_for(bytes) - all) / 1024 : all;
}

std::int64_t Sampling::move_time(const Mover& mover, std::int64_t bytes) const {
  const Kind& kind = kinds_[at(mover.kind)];
  const std::int64_t moving = std::max<std::int64_t>(crowds_[at(place_of(mover))].moving + 1,
                                                     crowds_[at(place_of(mover))].filling);
  return std::max<std::int64_t>(
      1, shares(mover) ? share_of(mover, bytes) * moving >> kShift : kind.alone.time_for(bytes));
}

// Copies inside a GPU by workgroups that go on pushing to others take long beside the fastest one,
// and no longer when there are more of them: it is their compute unit that is full. Where as many
// move all the time nothing tells.
bool Sampling::grows_with_movers(const Kind& kind) {
  constexpr double kSpread = 0.2, kElastic = 0.3;
  const auto& sums = kind.crowding;
  if (kind.remote || sums.count < 2) return true;
  const double x = sums.x / sums.count, y = sums.y / sums.count;
  const double spread = sums.xx / sums.count - x * x, both = sums.xy / sums.count - x * y;
  return spread < kSpread * kSpread * x * x || both * x > kElastic * spread * y;
}

// After a window.
void Sampling::sum_up(Kind& kind) const {
  if (kind.window.known() && kind.window.time > 0) {
    kind.windows.push_back(kind.window);
    if (kind.windows.size() == 1) kind.shared = kind.window;  // what was before is of no window
  }
  if (!kind.shared.known()) return;
  // Where something is full, each batch takes as much longer as there are more; that is so where
  // they take long beside the fastest one.
  constexpr double kFull = 2.25;
  kind.full = kind.alone.each() > kFull * kind.least && grows_with_movers(kind);
  // Workgroups may differ, by where they are on the GPU and by where their data go; or just by
  // chance, which would add up if each kept to what it has shown. What is no chance is the same in
  // both halves of windows.
  double sum = 0, both = 0, squares = 0, count = 0;

  for (const auto& [first, second] : kind.by_group) {
    if (!first.known() || !second.known()) continue;
    sum += first.each() + second.each();
    count += 2;
  }
  const double mean = count > 0 ? sum / count : 0;
  for (const auto& [first, second] : kind.by_group) {
    if (!first.known() || !second.known()) continue;
    const double x = first.each() - mean, y = second.each() - mean;
    both += x * y;
    squares += (x * x + y * y) / 2;
  }
  const double alike = squares > 0 ? std::clamp(both / squares, 0.0, 1.0) : 0;
  // Of both halves together (Spearman and Brown).
  kind.apart = std::llround(1024 * 2 * alike / (1 + alike));
}

// --- Wavefronts that pass over.

void Sampling::skip_batches(const Mover& mover, std::int64_t now, std::int64_t bytes) {
  Kind& kind = kinds_[at(mover.kind)];
  const bool shared = shares(mover);
  Crowd& crowd = join(mover, now);
  ++naps_;
  kind.skipped += static_cast<double>(bytes);
  waves_[at(mover.wave)] = {
      .began = now, .bytes = bytes, .share = crowd.share, .skipped = true, .mover = mover};
  Crowd& queue = shared ? crowd : catch_up(free_place(mover.rank), now);
  const std::int64_t share = shared ? share_of(mover, bytes) : kind.alone.time_for(bytes) << kShift;
  queue.naps.push_back({queue.share + share, mover.wave});
  std::push_heap(queue.naps.begin(), queue.naps.end(), std::greater<>{});
}

std::int64_t Sampling::next_wake(std::int32_t place, std::int64_t now) {
  if (crowds_[at(place)].naps.empty()) return INT64_MAX;
  Crowd& crowd = catch_up(place, now);
  const std::int64_t left = std::max<std::int64_t>(0, crowd.naps.front().until - crowd.share);
  const std::int64_t time =
      now + std::max<std::int64_t>(1, (left * crowd.among() + (1 << kShift) - 1) >> kShift);
  if (crowd.wake > now && crowd.wake <= time) return INT64_MAX;
  return crowd.wake = time;
}

std::int32_t Sampling::woken(std::int32_t place, std::int64_t now) {
  Crowd& crowd = catch_up(place, now);
  // Shares are rounded down, by those of one change at a time.
  constexpr std::int64_t kRounding = 1 << kShift;
  if (crowd.naps.empty() || crowd.naps.front().until > crowd.share + kRounding) return -1;
  const std::int32_t wave = crowd.naps.front().wave;
  std::pop_heap(crowd.naps.begin(), crowd.naps.end(), std::greater<>{});
  crowd.naps.pop_back();
  --naps_;
  return wave;
}

void Sampling::charge(std::int32_t wave, std::int64_t now, LatencyBreakdown& spent) const {
  const Batch& batch = waves_[at(wave)];
  Attribution shares = kinds_[at(batch.mover.kind)].spent;
  const std::int64_t all = std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
  const Time time{now - batch.began};
  if (all == 0) {
    spent.charge(Reason::link, time.fs);
    return;
  }
  scale_to_period(shares, all, time);
  for (std::size_t r = 0; r < kReasons; ++r)
    if (shares[r] > 0) spent.charge(static_cast<Reason>(r), shares[r]);
}

// --- Releases, waits, steps.

// Where workgroups pause together, what is simulated keeps them together: the first are through
// when the last ones are, for all share queues. Passed over, they would drift apart.
std::int64_t Sampling::hold(const Mover& mover, std::int64_t now) {
  Drain& drain = drains_[at(mover.group)];
  if (!skips(now) || drain.moving > 0 || !drain.waited || computes(mover.group)) return drain.hold;
  const Movers& movers = movers_[at(mover.rank)];
  if (lockstep_ && movers.moving > 0 && movers.empty < drain.ended) return now + kLook;
  drain.waited = false;
  return drain.hold = lockstep_ ? std::max(drain.ended, movers.empty) + after_all_.time_for(1)
                                : drain.ended + least_pause_;
}

void Sampling::begin_drain(std::int32_t group, std::int64_t now) {
  Drain& drain = drains_[at(group)];
  if (drain.began < 0) drain.began = now;
}

std::int64_t Sampling::end_drain(std::int32_t group, std::int64_t now) {
  Drain& drain = drains_[at(group)];
  const std::int64_t began = std::exchange(drain.began, -1);
  if (std::exchange(drain.passed, false)) return skips(now) ? draining_.time_for(1) : 0;
  if (std::exchange(drain.stored, false) && phase_ == Phase::measuring)
    draining_.add(1, began < 0 ? 0 : now - began);
  return 0;
}

void Sampling::end_step(std::int32_t group, std::int64_t now, bool others_under_way) {
  Steps& steps = steps_[at(group)];
  const std::int64_t last = std::exchange(steps.last, others_under_way ? now : -1);
  seen_ = true;
  note_move(now);
  const std::int64_t posted = std::exchange(steps.posted, -1);
  if (phase_ == Phase::measuring) {
    if (posted >= from_) {
      first_steps_.add(1, now - posted);
      ++window_firsts_;
    }
    if (std::exchange(steps.window, windows_) != windows_) ++window_steppers_;
  }
  if (last < 0 || phase_ != Phase::measuring) return;
  steps.pace.add(1, now - last);
  batches_.add(1, now - last);
}

std::int64_t Sampling::end_of_step(std::int32_t group, std::int64_t now, std::int64_t end) {
  Steps& steps = steps_[at(group)];
  if (skips(now) && steps.pace.known())
    end = steps.end > now ? steps.end + steps.pace.time_for(1)
                          : std::max(end, now + first_steps_.time_for(1));
  return steps.end = end;
}

}  // namespace hemiola::sim
