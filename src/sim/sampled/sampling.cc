#include "sim/sampled/sampling.h"

#include <cmath>

namespace hemiola::sim {
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
/// A kind of which fewer than that share have been seen says nothing.
constexpr std::int64_t kFewBytes = 20;
constexpr std::int64_t kFewestBatches = 24;  // of a wavefront, in a run of which some is left out
/// Of what is left to move, at the pace until now.
constexpr double kSure = 0.8;
/// What fills the caches, beside the lines that they hold: sets are not filled evenly.
constexpr double kFilling = 1.25;
/// By how much windows differ where too few have been seen to tell, relative.
constexpr double kPrior = 0.01;
// What the table of docs/sampled.md shows beyond that: by how much what is between moves may be
// wrong, and the time of moves over links that others leave and come to as they drift apart.
constexpr double kOfPauses = 0.5, kOfDrift = 0.25;
// Of trains: beside what trains_ says, and of the time beyond the lower bound. There messages wait
// for each other in the network, and which ones do hangs on chance (docs/sampled.md).
constexpr double kOfTrains = 0.01, kOfWaits = 0.08;
/// Of runs through NICs, in which wavefronts pass over what packets share with them inside GPUs.
constexpr double kOfBoth = 0.04;
/// Of several kernels in turn, whose begins and ends windows seldom show.
constexpr double kOfKernels = 0.03;
/// How far the pace of moves is off that no window has shown, relative.
constexpr double kOfUnseen = 0.1;

}  // namespace

Sampling::Sampling(std::size_t ranks, std::size_t groups, std::size_t waves)
    : crowds_(kPlaces * ranks),
      movers_(ranks),
      links_(ranks),
      waves_(waves),
      drains_(groups),
      steps_(groups) {}

// --- Phases.

std::int64_t Sampling::settling_time() const {
  const std::int64_t share = windows_ == 0 ? 0 : least_ / kSettling;
  return std::max({kLeastSettling, 2 * batches_.time_for(1), share,
                   std::min(between_pauses_, least_ / kMostSettling)});
}

// Whether wavefronts have not moved data for a window's time, but engines have.
bool Sampling::only_engines(std::int64_t now) const {
  return packets_ && moving_ == 0 && now - std::max(moved_at_, from_) >= kLeastWindow;
}

std::int64_t Sampling::window_time() const {
  const std::int64_t share = least_ / (windows_ == 0 ? kFirstWindow : kWindow);
  return std::max({kLeastWindow, batches_.time_for(1), share,
                   std::min(kCycles * between_pauses_,
                            least_ / (window_steppers_ > 0 ? kMostOfProduct : kMostWindow))});
}

void Sampling::advance(std::int64_t now, std::int64_t moved, std::int64_t lookups) {
  if (phase_ == Phase::measuring && moved > 0) {
    at_this_pace_ = std::llround(static_cast<double>(now) * static_cast<double>(bytes_) /
                                 static_cast<double>(moved) * kSure);
    least_ = std::max(least_, at_this_pace_);
  }
  switch (phase_) {
    case Phase::settling:
      if (!seen_) return;
      if (settled_ == INT64_MAX) settled_ = now + settling_time();
      if (naps_ > 0) settled_ = std::max(settled_, now + settling_time());
      if (now >= settled_) begin_window(now, lookups);
      return;
    case Phase::measuring:
      if (only_engines(now) || now >= from_ + window_time()) end_window(now, lookups);
      return;
    case Phase::skipping:
      if (now >= skip_to_) begin_settling(now);
      return;
  }
}

Sampling::Crowd& Sampling::catch_up(std::int32_t place, std::int64_t now) {
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
    crowd.peak_until = crowd.since + 2 * least_pause_;
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

void Sampling::begin_settling(std::int64_t now) {
  phase_ = Phase::settling;
  skip_from_ = warm_from_ = INT64_MAX;
  skip_to_ = 0;
  settled_ = now + settling_time();
}

// Fewer wavefronts than this leave some of what they share: each is as fast as the fastest batch.
void Sampling::find_filling() {
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

void Sampling::end_gap(std::int64_t now) {
  std::int64_t saved = 0;
  for (Kind& kind : kinds_) {
    const Pace gap = std::exchange(kind.too_fast, {});
    if (kFewBytes * kind.shared.units >= gap.units) saved += gap.time;
  }
  const std::int64_t most = (now - gap_from_) / 10;  // more is a misunderstanding
  if (gap_from_ >= 0 && now > gap_from_)
    gaps_.push_back({gap_from_, now, std::clamp(saved >> kShift, -most, most)});
  gap_from_ = -1;
}

void Sampling::begin_window(std::int64_t now, std::int64_t lookups) {
  end_gap(now);
  phase_ = Phase::measuring;
  from_ = now;
  lookups_ = lookups;
  window_pauses_ = window_groups_ = window_steppers_ = window_firsts_ = window_batches_ = 0;
  packets_ = false;
  if (windows_ == 0) find_filling();
  for (Kind& kind : kinds_) kind.window = {};
}

void Sampling::end_window(std::int64_t now, std::int64_t lookups) {
  if (window_pauses_ > 0) between_pauses_ = (now - from_) * window_groups_ / window_pauses_;
  open_end_ = only_engines(now);
  // Tiles of products: their begins are to be seen, too; batches: one of each wavefront.
  if ((window_firsts_ < window_steppers_ || window_batches_ < moving_) &&
      now < from_ + least_ / kMostWindow)
    return;
  if (!open_end_ && now < from_ + window_time()) return;
  const std::int64_t length = std::max(least_, now) / kSkip;
  // Not least_: a pace that was measured while the run began makes it too long.
  if (std::max(bound_, at_this_pace_) < (window_steppers_ > 0 ? kLeastProduct : kLeastRun)) return;
  // The run is too short for that: all of it is measured.
  if (!open_end_ &&
      (length < settling_time() + window_time() || kFewestBatches * batches_.time_for(1) > least_))
    return;
  ++windows_;
  measured_ += (now - from_) * window_groups_;
  count_open_batches(now);
  for (Kind& kind : kinds_) sum_up(kind);
  find_filling();
  if (!pauses_.empty()) {
    const auto quarter = pauses_.begin() + std::ssize(pauses_) / 4;
    std::nth_element(pauses_.begin(), quarter, pauses_.end());
    least_pause_ = *quarter;
    // What a skip leaves behind says nothing of that.
    if (windows_ == 1) lockstep_ = 10 * together_ > 9 * std::ssize(pauses_);
  }
  phase_ = Phase::skipping;
  gap_from_ = skip_from_ = now;
  const double rate = static_cast<double>(lookups - lookups_) / static_cast<double>(now - from_);
  const double filling = rate > 0 ? kFilling * static_cast<double>(cache_lines_) / rate : 0;
  filling_ = std::llround(std::min(filling, static_cast<double>(length)));
  set_end(now, length);
  // Trains meet what packets would meet: while only engines move no other window need come.
  if (open_end_) skip_to_ = warm_from_ = kForever;
  for (Steps& steps : steps_) steps.last = -1;
}

void Sampling::set_end(std::int64_t now, std::int64_t length) {
  skip_to_ = now + length;
  longest_ = length / kNapsPerSkip;
  warm_from_ = skip_to_ - filling_;
}

// A wavefront does.
void Sampling::note_move(std::int64_t now) {
  moved_at_ = now;
  if (phase_ == Phase::skipping && std::exchange(open_end_, false))
    set_end(now, std::max(least_, now) / kSkip);
}

void Sampling::end_skip(std::int64_t now) {
  if (skips(now)) skip_to_ = now;
}

// --- After the run.

void Sampling::finish(std::int64_t end) {
  end_gap(end);
}

std::int64_t Sampling::estimate(std::int64_t time) const {
  double more = 0;
  for (const Gap& gap : gaps_) {
    const double inside = static_cast<double>(std::min(time, gap.end) - gap.begin);
    if (inside > 0)
      more += static_cast<double>(gap.saved) * inside / static_cast<double>(gap.end - gap.begin);
  }
  return time + std::llround(more);
}

// How far the mean of windows may be from the mean of all, relative. Windows that have shown little
// of it beside others say nothing.
double Sampling::error_of(const Kind& kind) {
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
bool Sampling::in_several_kernels() const {
  std::int32_t kernel = -1;
  for (const auto& [kind, number] : numbers_) {
    if (kinds_[at(number)].skipped == 0) continue;
    if (kernel >= 0 && kernel != kind.front()) return true;
    kernel = kind.front();
  }
  return false;
}

Sampled Sampling::summary(std::int64_t end, std::int64_t moved) const {
  Sampled sampled;
  sampled.windows = windows_;
  if (moved > 0)
    sampled.share =
        1 - static_cast<double>(left_out_ + trains_.bytes()) / static_cast<double>(moved);
  double time = 0, skipped = 0, error = 0;
  for (const Gap& gap : gaps_) time += static_cast<double>(gap.end - gap.begin);
  for (const Kind& kind : kinds_) {
    skipped += kind.skipped;
    error += kind.skipped * error_of(kind);
  }
  error = skipped > 0 ? error / skipped : 2 * kPrior;
  if (measured_ > 0 && skipped > 0)
    error += kOfPauses * static_cast<double>(paused_) / static_cast<double>(measured_);
  for (const std::vector<std::int32_t>& links : links_)
    if (links.size() > 2 && skipped > 0)
      error = std::max(error, kOfDrift);  // more than one there and one back
  if (in_several_kernels()) error += kOfKernels;
  if (skipped > 0 && engines_) error += kOfBoth;
  if (trains_.bytes() > 0 && end > 0) {
    const double waits = 1 - static_cast<double>(bound_) / static_cast<double>(end);
    error = std::max(error, kOfTrains + trains_.error() + kOfWaits * std::max(0.0, waits));
  }
  if (end > 0) sampled.error = error * time / static_cast<double>(end);
  return sampled;
}

void scale_caches(Result& result, double share) {
  for (auto& [name, count] : result.counters) {
    const bool of_caches = name.starts_with("l1.") || name.starts_with("l2.") ||
                           name.starts_with("msc.") || name.starts_with("hbm.") ||
                           name == "reads.data.memory";
    if (of_caches) count = std::llround(static_cast<double>(count) / share);
  }
}

}  // namespace hemiola::sim
