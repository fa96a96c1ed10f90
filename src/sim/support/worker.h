// Which thread of an engine this is, and what each of them counts for itself.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/support/counters.h"

namespace hemiola::sim {

// Found without a call in the Python module, too.
#ifdef __GNUC__
#define HEMIOLA_NEAR [[gnu::tls_model("initial-exec")]]
#else
#define HEMIOLA_NEAR
#endif

/// Number of the worker whose part of an engine is being run here, from 0. Engines that do not
/// divide their work know only 0.
HEMIOLA_NEAR inline constinit thread_local int this_worker = 0;
/// Whether other threads may touch what this one touches.
HEMIOLA_NEAR inline constinit thread_local bool several_workers = false;

/// Of one worker; what they say together is the sum.
struct alignas(128) Tally {
  Counters counters;
  std::int64_t active = 0;  ///< requests and events that are not polls: begun less ended
  std::int64_t events = 0;  ///< of ranks, since somebody asked
  bool spun = false;        ///< a flag was swapped by who spins for it, since somebody asked
};

/// Counters as numbers, for what treats all of them alike.
using Counts = std::array<std::int64_t, sizeof(Counters) / sizeof(std::int64_t)>;

/// Of all workers.
class Tallies {
 public:
  void resize(std::size_t workers) { tallies_.resize(workers); }
  std::size_t size() const { return tallies_.size(); }
  Tally& mine() { return tallies_[static_cast<std::size_t>(this_worker)]; }

  Counters counters() const {
    Counts sum{};
    for (const Tally& tally : tallies_) {
      const auto counts = std::bit_cast<Counts>(tally.counters);
      for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += counts[c];
    }
    return std::bit_cast<Counters>(sum);
  }
  std::int64_t active() const {
    std::int64_t sum = 0;
    for (const Tally& tally : tallies_) sum += tally.active;
    return sum;
  }
  std::int64_t hops() const {
    std::int64_t sum = 0;
    for (const Tally& tally : tallies_) sum += tally.counters.hops;
    return sum;
  }
  /// Since the last time.
  std::int64_t take_events() {
    std::int64_t sum = 0;
    for (Tally& tally : tallies_) sum += std::exchange(tally.events, 0);
    return sum;
  }
  bool take_spun() {
    bool any = false;
    for (Tally& tally : tallies_) any |= std::exchange(tally.spun, false);
    return any;
  }

 private:
  std::vector<Tally> tallies_ = std::vector<Tally>(1);
};

/// Thrown where ranks wait for what is in memory of others: they cannot be divided among workers.
struct NeedsOneWorker {};

}  // namespace hemiola::sim
