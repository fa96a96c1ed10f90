#include "sim/sampled/windows.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hemiola::sim::sampled {
namespace {

constexpr std::int64_t kUs = 1'000'000'000;  // fs
// Of what the run takes at least: how long it settles, how long windows are, the first one (which
// no skip comes before) and others, and skips. And how long each is at least.
constexpr std::int64_t kSettling = 100, kFirstWindow = 28, kWindow = 80, kSkip = 3;
constexpr std::int64_t kLeastSettling = 8 * kUs, kLeastWindow = 24 * kUs;
// A window has so many of the cycles in which workgroups pause for each other, if these are no
// longer than that share of the run.
constexpr std::int64_t kCycles = 3, kMostSettling = 20, kMostWindow = 8;
// Where most is products, so much less depends on who waits for whom.
constexpr std::int64_t kMostOfProduct = 40;
// Runs that are no longer take little time line by line, and begins and ends are much of them.
constexpr std::int64_t kLeastRun = 1000 * kUs, kLeastProduct = 300 * kUs;
constexpr std::int64_t kNapsPerSkip = 24;
constexpr std::int64_t kForever = std::int64_t{1} << 60;  // fs
constexpr std::int64_t kFewestBatches = 24;  // of a wavefront, in a run of which some is left out
/// Of what is left to move, at the pace until now.
constexpr double kSure = 0.8;
/// What fills the caches, beside the lines that they hold: sets are not filled evenly.
constexpr double kFilling = 1.25;

}  // namespace

void Windows::expect(std::int64_t least, std::int64_t bytes) {
  least_ = bound_ = least;
  bytes_ = bytes;
}

std::int64_t Windows::settling_time(const Cycle& cycle) const {
  const std::int64_t share = count_ == 0 ? 0 : least_ / kSettling;
  return std::max({kLeastSettling, 2 * cycle.batch, share,
                   std::min(cycle.between_pauses, least_ / kMostSettling)});
}

// Whether wavefronts have not moved data for a window's time, but engines have.
bool Windows::only_engines(std::int64_t now) const {
  return packets_ && moving_ == 0 && now - std::max(moved_at_, from_) >= kLeastWindow;
}

std::int64_t Windows::window_time(const Cycle& cycle) const {
  const std::int64_t share = least_ / (count_ == 0 ? kFirstWindow : kWindow);
  return std::max({kLeastWindow, cycle.batch, share,
                   std::min(kCycles * cycle.between_pauses,
                            least_ / (cycle.products ? kMostOfProduct : kMostWindow))});
}

Windows::Due Windows::due(std::int64_t now, std::int64_t moved, const Cycle& cycle, bool napping) {
  if (measures() && moved > 0) {
    at_this_pace_ = std::llround(static_cast<double>(now) * static_cast<double>(bytes_) /
                                 static_cast<double>(moved) * kSure);
    least_ = std::max(least_, at_this_pace_);
  }
  switch (phase_) {
    case Phase::settling:
      if (!seen_) return Due::nothing;
      if (settled_ == INT64_MAX) settled_ = now + settling_time(cycle);
      if (napping) settled_ = std::max(settled_, now + settling_time(cycle));
      return now >= settled_ ? Due::begin : Due::nothing;
    case Phase::measuring:
      return only_engines(now) || now >= from_ + window_time(cycle) ? Due::end : Due::nothing;
    case Phase::skipping:
      if (now < skip_to_) return Due::nothing;
      phase_ = Phase::settling;
      skip_from_ = warm_from_ = INT64_MAX;
      skip_to_ = 0;
      settled_ = now + settling_time(cycle);
      return Due::nothing;
  }
  return Due::nothing;
}

void Windows::begin(std::int64_t now, std::int64_t lookups) {
  phase_ = Phase::measuring;
  from_ = now;
  lookups_ = lookups;
  packets_ = false;
}

bool Windows::ends(std::int64_t now, const Cycle& cycle, bool shown) {
  open_end_ = only_engines(now);
  if (!shown && now < from_ + least_ / kMostWindow) return false;
  if (!open_end_ && now < from_ + window_time(cycle)) return false;
  const std::int64_t length = std::max(least_, now) / kSkip;
  // Not least_: a pace that was measured while the run began makes it too long.
  if (std::max(bound_, at_this_pace_) < (cycle.products ? kLeastProduct : kLeastRun)) return false;
  // The run is too short for that: all of it is measured.
  if (!open_end_ &&
      (length < settling_time(cycle) + window_time(cycle) || kFewestBatches * cycle.batch > least_))
    return false;
  ++count_;
  return true;
}

void Windows::begin_skip(std::int64_t now, std::int64_t lookups) {
  phase_ = Phase::skipping;
  gap_from_ = skip_from_ = now;
  const std::int64_t length = std::max(least_, now) / kSkip;
  const double rate = static_cast<double>(lookups - lookups_) / static_cast<double>(now - from_);
  const double filling = rate > 0 ? kFilling * static_cast<double>(cache_lines_) / rate : 0;
  filling_ = std::llround(std::min(filling, static_cast<double>(length)));
  set_end(now, length);
  // Trains meet what packets would meet: while only engines move no other window need come.
  if (open_end_) skip_to_ = warm_from_ = kForever;
}

void Windows::set_end(std::int64_t now, std::int64_t length) {
  skip_to_ = now + length;
  longest_ = length / kNapsPerSkip;
  warm_from_ = skip_to_ - filling_;
}

void Windows::end_skip(std::int64_t now) {
  if (skips(now)) skip_to_ = now;
}

void Windows::begin_batch(std::int64_t now) {
  ++moving_;
  note_move(now);
}

void Windows::end_batch(std::int64_t now) {
  --moving_;
  note_move(now);
}

void Windows::note_move(std::int64_t now) {
  moved_at_ = now;
  if (phase_ == Phase::skipping && std::exchange(open_end_, false))
    set_end(now, std::max(least_, now) / kSkip);
}

void Windows::end_gap(std::int64_t now, std::int64_t saved) {
  const std::int64_t most = (now - gap_from_) / 10;  // more is a misunderstanding
  if (gap_from_ >= 0 && now > gap_from_)
    gaps_.push_back({gap_from_, now, std::clamp(saved, -most, most)});
  gap_from_ = -1;
}

double Windows::gap_time() const {
  double time = 0;
  for (const Gap& gap : gaps_) time += static_cast<double>(gap.end - gap.begin);
  return time;
}

std::int64_t Windows::estimate(std::int64_t time) const {
  double more = 0;
  for (const Gap& gap : gaps_) {
    const double inside = static_cast<double>(std::min(time, gap.end) - gap.begin);
    if (inside > 0)
      more += static_cast<double>(gap.saved) * inside / static_cast<double>(gap.end - gap.begin);
  }
  return time + std::llround(more);
}

}  // namespace hemiola::sim::sampled
