#include "sim/sampled/moves.h"

#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "sim/result/period_shares.h"

namespace hemiola::sim::sampled {
namespace {

/// Of wavefronts beside those that a window has shown: from there on it says nothing of them.
constexpr std::int64_t kMoreMovers = 2;
/// A kind of which fewer than that share have been seen says nothing.
constexpr std::int64_t kFewBytes = 20;
/// By how much windows differ where too few have been seen to tell, relative.
constexpr double kPrior = 0.01;
// What the table of docs/sampled.md shows beyond that: by how much what is between moves may be
// wrong, and the time of moves over links that others leave and come to as they drift apart.
constexpr double kOfPauses = 0.5, kOfDrift = 0.25;
/// Of runs through NICs, in which wavefronts pass over what packets share with them inside GPUs.
constexpr double kOfBoth = 0.04;
/// Of several kernels in turn, whose begins and ends windows seldom show.
constexpr double kOfKernels = 0.03;
/// How far the pace of moves is off that no window has shown, relative.
constexpr double kOfUnseen = 0.1;

}  // namespace

Moves::Moves(Windows& windows, Pauses& pauses, const Steps& steps, std::size_t ranks,
             std::size_t groups, std::size_t waves)
    : windows_(windows),
      pauses_(pauses),
      steps_(steps),
      groups_(groups),
      crowds_(kPlaces * ranks),
      movers_(ranks),
      links_(ranks),
      waves_(waves) {}

std::int32_t Moves::number_of(const MoveKind& kind, bool remote) {
  const auto [place, added] = numbers_.emplace(kind, static_cast<std::int32_t>(kinds_.size()));
  if (added) {
    kinds_.push_back({.remote = remote});
    kinds_.back().by_group.resize(groups_);
  }
  return place->second;
}

std::int32_t Moves::way_over(int rank, std::int32_t link) {
  std::vector<std::int32_t>& links = links_[at(rank)];
  const auto known = std::ranges::find(links, link);
  if (known == links.end() && kFirstLink + std::ssize(links) >= kPlaces) return kEverywhere;
  const auto number = static_cast<std::int32_t>(known - links.begin());
  if (known == links.end()) links.push_back(link);
  return kFirstLink + number;
}

Moves::Crowd& Moves::catch_up(std::int32_t place, std::int64_t now) {
  Crowd& crowd = crowds_[at(place)];
  const auto go_on = [&](std::int64_t until) {
    if (until <= crowd.since) return;
    crowd.share += ((until - crowd.since) << kShift) / crowd.among();
    crowd.since = until;
  };
  if (crowd.moving >= crowd.peak) {
    crowd.peak = crowd.moving;
    crowd.peak_until = INT64_MAX;
  } else if (crowd.peak_until == INT64_MAX) {
    crowd.peak_until = crowd.since + 2 * pauses_.least();
  }
  if (crowd.peak_until <= now) {
    go_on(crowd.peak_until);
    crowd.peak = crowd.moving;
    crowd.peak_until = INT64_MAX;
  }
  go_on(now);
  crowd.since = now;
  return crowd;
}

// One more moves.
Moves::Crowd& Moves::join(const Mover& mover, std::int64_t now) {
  windows_.begin_batch(now);
  ++movers_[at(mover.rank)].moving;
  pauses_.begin_batch(mover.group);
  Crowd& crowd = catch_up(place_of(mover), now);
  ++crowd.moving;
  return crowd;
}

void Moves::begin_batch(const Mover& mover, std::int64_t now, std::int64_t bytes,
                        const LatencyBreakdown& spent) {
  pauses_.measure(mover.group, now, steps_.computes(mover.group), movers(mover.rank));
  const Crowd& crowd = join(mover, now);
  waves_[at(mover.wave)] = {
      .began = now, .bytes = bytes, .share = crowd.share, .mover = mover, .spent = spent};
}

// A batch counts in a window with as much of its bytes and of its share as it was there.
void Moves::end_batch(std::int32_t wave, std::int64_t now, const LatencyBreakdown& spent) {
  Batch& batch = waves_[at(wave)];
  const std::int64_t began = std::exchange(batch.began, -1);
  if (began < 0) return;
  windows_.end_batch(now);
  pauses_.end_batch(batch.mover.group, now);
  Crowd& crowd = catch_up(place_of(batch.mover), now);
  const std::int32_t moving = crowd.moving--;
  RankMovers& movers = movers_[at(batch.mover.rank)];
  if (--movers.moving == 0) movers.empty = now;
  if (batch.skipped) return;
  windows_.see();
  Kind& kind = kinds_[at(batch.mover.kind)];
  const std::int64_t time = std::max<std::int64_t>(1, now - began);
  const std::int64_t share = std::max<std::int64_t>(1, crowd.share - batch.share);
  batches_.add(1, time);
  ++window_batches_;
  const bool known = kind.remote ? kind.shared.known() : !kind.windows.empty();
  if (!windows_.measures() && known) {
    if (windows_.in_gap() && !kind.windows.empty())
      kind.too_fast.add(batch.bytes,
                        kind.full ? share_of(batch.mover, batch.bytes) - share
                                  : ((kind.alone.time_for(batch.bytes) - time) << kShift) / moving);
    return;
  }
  const std::int64_t inside = windows_.measures() ? now - std::max(began, windows_.from()) : time;
  const auto part = [&](std::int64_t whole) {
    return static_cast<std::int64_t>(static_cast<__int128>(whole) * inside / time);
  };
  const bool second =
      windows_.measures() && now - windows_.from() > windows_.window_time(cycle()) / 2;
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

bool Moves::knows(const Mover& mover) const {
  if (kinds_[at(mover.kind)].shared.known()) return true;
  return mover.way != kOwn && crowds_[at(place_of(mover))].shared.known();
}

// Whether what it takes grows with those who move at the same time. Windows that have shown far
// fewer do not say so.
bool Moves::shares(const Mover& mover) const {
  const Kind& kind = kinds_[at(mover.kind)];
  if (!kind.full || !kind.shared.known()) return kind.full;
  const std::int64_t moved =
      (kind.alone.time << kShift) / std::max<std::int64_t>(1, kind.shared.time);
  return crowds_[at(place_of(mover))].moving <= kMoreMovers * moved;
}

std::int64_t Moves::share_of(const Mover& mover, std::int64_t bytes) const {
  const Kind& kind = kinds_[at(mover.kind)];
  if (!kind.shared.known()) return crowds_[at(place_of(mover))].shared.time_for(bytes);
  const std::int64_t all = kind.shared.time_for(bytes);
  if (kind.apart == 0) return all;
  const auto& [first, second] = kind.by_group[at(mover.group)];
  const Pace own{first.units + second.units, first.time + second.time};
  return own.known() ? all + kind.apart * (own.time_for(bytes) - all) / 1024 : all;
}

std::int64_t Moves::move_time(const Mover& mover, std::int64_t bytes) const {
  const Kind& kind = kinds_[at(mover.kind)];
  const std::int64_t moving = std::max<std::int64_t>(crowds_[at(place_of(mover))].moving + 1,
                                                     crowds_[at(place_of(mover))].filling);
  return std::max<std::int64_t>(
      1, shares(mover) ? share_of(mover, bytes) * moving >> kShift : kind.alone.time_for(bytes));
}

// --- Windows.

void Moves::begin_window() {
  window_batches_ = 0;
  if (windows_.count() == 0) find_filling();
  for (Kind& kind : kinds_) kind.window = {};
}

void Moves::end_window(std::int64_t now) {
  count_open_batches(now);
  for (Kind& kind : kinds_) sum_up(kind);
  find_filling();
}

// At the end of a window: as much of those under way as they have had of what they are going to
// need.
void Moves::count_open_batches(std::int64_t now) {
  for (std::int32_t place = 0; place < std::ssize(crowds_); ++place) catch_up(place, now);
  for (const Batch& batch : waves_) {
    if (batch.began < 0 || batch.skipped) continue;
    Kind& kind = kinds_[at(batch.mover.kind)];
    const std::int64_t time = now - batch.began,
                       inside = now - std::max(batch.began, windows_.from());
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

// Copies inside a GPU by workgroups that go on pushing to others take long beside the fastest one,
// and no longer when there are more of them: it is their compute unit that is full. Where as many
// move all the time nothing tells.
bool Moves::grows_with_movers(const Kind& kind) {
  constexpr double kSpread = 0.2, kElastic = 0.3;
  const auto& sums = kind.crowding;
  if (kind.remote || sums.count < 2) return true;
  const double x = sums.x / sums.count, y = sums.y / sums.count;
  const double spread = sums.xx / sums.count - x * x, both = sums.xy / sums.count - x * y;
  return spread < kSpread * kSpread * x * x || both * x > kElastic * spread * y;
}

// After a window.
void Moves::sum_up(Kind& kind) const {
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

// Fewer wavefronts than this leave some of what they share: each is as fast as the fastest batch.
void Moves::find_filling() {
  for (std::int32_t place = 0; place < std::ssize(crowds_); ++place) {
    if (place % kPlaces == kFree) continue;
    Crowd& crowd = crowds_[at(place)];
    const bool remote = place % kPlaces != kOwn;
    crowd.shared = {};
    for (const Kind& kind : kinds_)
      if (kind.full && kind.remote == remote) crowd.shared.add(kind.shared.units, kind.shared.time);
    double most = 1;
    for (const Kind& kind : kinds_) {
      if (!kind.full || kind.remote != remote || !kind.shared.known() ||
          kFewBytes * kind.shared.units < crowd.shared.units)
        continue;
      most = std::max(most, kind.least / (kind.shared.each() / (1 << kShift)));
    }
    crowd.filling = static_cast<std::int32_t>(most);
  }
}

std::int64_t Moves::take_saved() {
  std::int64_t saved = 0;
  for (Kind& kind : kinds_) {
    const Pace gap = std::exchange(kind.too_fast, {});
    if (kFewBytes * kind.shared.units >= gap.units) saved += gap.time;
  }
  return saved >> kShift;
}

// --- Wavefronts that pass over.

void Moves::skip_batches(const Mover& mover, std::int64_t now, std::int64_t bytes) {
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

std::int64_t Moves::next_wake(std::int32_t place, std::int64_t now) {
  if (crowds_[at(place)].naps.empty()) return INT64_MAX;
  Crowd& crowd = catch_up(place, now);
  const std::int64_t left = std::max<std::int64_t>(0, crowd.naps.front().until - crowd.share);
  const std::int64_t time =
      now + std::max<std::int64_t>(1, (left * crowd.among() + (1 << kShift) - 1) >> kShift);
  if (crowd.wake > now && crowd.wake <= time) return INT64_MAX;
  return crowd.wake = time;
}

std::int32_t Moves::woken(std::int32_t place, std::int64_t now) {
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

void Moves::charge(std::int32_t wave, std::int64_t now, LatencyBreakdown& spent) const {
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

// --- After the run.

// How far the mean of windows may be from the mean of all, relative. Windows that have shown little
// of it beside others say nothing.
double Moves::error_of(const Kind& kind) {
  std::int64_t most = 0;
  for (const Pace& window : kind.windows) most = std::max(most, window.units);
  double count = 0, sum = 0, squares = kPrior * kPrior;
  const auto each = [&](const auto& look) {
    for (const Pace& window : kind.windows)
      if (kFewBytes * window.units >= most) look(window.each());
  };
  each([&](double share) { sum += share, count += 1; });
  if (count == 0) return kOfUnseen;
  each([&](double share) { squares += std::pow(share * count / sum - 1, 2); });
  return 2 * std::sqrt(squares / count / count);
}

// Whether wavefronts of more than one kernel have passed over something.
bool Moves::in_several_kernels() const {
  std::int32_t kernel = -1;
  for (const auto& [kind, number] : numbers_) {
    if (kinds_[at(number)].skipped == 0) continue;
    if (kernel >= 0 && kernel != kind.front()) return true;
    kernel = kind.front();
  }
  return false;
}

double Moves::error() const {
  double skipped = 0, error = 0;
  for (const Kind& kind : kinds_) {
    skipped += kind.skipped;
    error += kind.skipped * error_of(kind);
  }
  if (skipped == 0) return 2 * kPrior;
  error = error / skipped + kOfPauses * pauses_.share();
  for (const std::vector<std::int32_t>& links : links_)
    if (links.size() > 2) error = std::max(error, kOfDrift);  // more than one there and one back
  if (in_several_kernels()) error += kOfKernels;
  if (windows_.has_engines()) error += kOfBoth;
  return error;
}

}  // namespace hemiola::sim::sampled
