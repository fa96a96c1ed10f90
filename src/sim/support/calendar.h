// What will arrive at a stage of the line engine, by round: windows of time that the engine works
// off one after the other, all arrivals of a stage at once.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/diagnostics.h"
#include "core/index.h"
#include "sim/support/append.h"

namespace hemiola::sim {

/// A request comes to a stage. Stages accept in the order of (time, tag), then of what the stage
/// says of requests with equal ones, then of pushing.
struct Arrival {
  std::int64_t time = 0;  ///< fs
  std::uint32_t tag = 0;  ///< order tag
  std::int32_t id = 0;    ///< request
};

/// Memory of rounds that are over. What was given back last is still in the host's caches: with
/// memory of its own every round of every stage would find it gone.
using SpareRounds = std::vector<std::vector<Arrival>>;

/// Round k of a stage is [k * 2^shift + offset, (k + 1) * 2^shift + offset) fs.
class Calendar {
 public:
  void set(int shift, std::int64_t offset) {
    shift_ = shift;
    offset_ = offset;
    first_ = round_of(0);
  }

  /// Whose stage it is has it. Before the first push().
  void use(SpareRounds& spare) { spare_ = &spare; }

  /// The round must not have been taken yet.
  void push(Arrival arrival) {  // in registers
    const std::int64_t round = round_of(arrival.time);
    const std::size_t slot = slot_of(round);
    if (static_cast<std::uint64_t>(round - first_) < kRounds && (occupied_ >> slot & 1) != 0)
        [[likely]]
      append(rounds_[slot], arrival);
    else
      push_first(arrival);
  }

  /// The first round that holds anything; INT64_MAX: none.
  std::int64_t next() const {
    if (occupied_ == 0) return far_first_;
    return first_ + std::countr_zero(std::rotr(occupied_, static_cast<int>(slot_of(first_))));
  }
  /// The arrivals of that round, in order of pushing; into `taken`, whose memory becomes
  /// spare. False if there are none. No round before `round` may hold anything, and
  /// nothing may come to it any more.
  bool take(std::int64_t round, std::vector<Arrival>& taken) {
    const bool any = next() == round;
    advance(round);
    if (any) {
      const std::size_t slot = slot_of(round);
      taken.clear();
      spare_->push_back(std::exchange(taken, std::move(rounds_[slot])));
      occupied_ &= ~(std::uint64_t{1} << slot);
    }
    advance(round + 1);
    return any;
  }
  /// All that is to come, in order of pushing as far as rounds are the same.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (std::int64_t r = first_; occupied_ != 0 && r < first_ + kRounds; ++r)
      if ((occupied_ >> slot_of(r) & 1) != 0)
        for (const Arrival& arrival : rounds_[slot_of(r)]) visit(arrival);
    std::vector<Far> far = far_;
    std::ranges::sort(far, {}, &Far::number);
    for (const Far& one : far) visit(one.arrival);
  }
  /// Empty; `round` comes next.
  void restart(std::int64_t round) {
    for (std::vector<Arrival>& arrivals : rounds_) arrivals.clear();
    far_.clear();
    far_first_ = INT64_MAX;
    far_number_ = 0;
    occupied_ = 0;
    first_ = round;
  }
  /// Whether the round of `time` has been taken.
  bool is_over(std::int64_t time) const { return round_of(time) < first_; }
  [[noreturn]] static void late() {  // rounds are longer than some way: see Line::choose_rounds()
    throw Failure("internal error: a request comes to a stage after its round", {}, {},
                  ExitCode::internal);
  }
  /// Where a round begins.
  std::int64_t begin_of(std::int64_t round) const { return (round << shift_) + offset_; }

 private:
  static constexpr std::int64_t kRounds = 64;

  struct Far {
    Arrival arrival;
    std::int64_t round = 0;
    std::uint64_t number = 0;  ///< counts pushes
  };
  static bool is_later(const Far& a, const Far& b) {
    return a.round != b.round ? a.round > b.round : a.number > b.number;
  }

  std::int64_t round_of(std::int64_t time) const { return (time - offset_) >> shift_; }
  static std::size_t slot_of(std::int64_t round) {  // rounds of the first moments are below 0
    return index(round & (kRounds - 1));
  }

  /// Of its round, or far away.
  [[gnu::noinline]] void push_first(Arrival arrival) {
    const std::int64_t round = round_of(arrival.time);
    if (round < first_) late();
    if (round < first_ + kRounds) {
      const std::size_t slot = slot_of(round);
      open(slot);
      rounds_[slot].push_back(arrival);
    } else {
      far_.push_back({arrival, round, far_number_++});
      std::push_heap(far_.begin(), far_.end(), is_later);
      far_first_ = far_.front().round;
    }
  }

  void open(std::size_t slot) {
    if (rounds_.empty()) rounds_.resize(kRounds);
    occupied_ |= std::uint64_t{1} << slot;
    if (rounds_[slot].capacity() > 0 || spare_->empty()) return;
    rounds_[slot] = std::move(spare_->back());
    spare_->pop_back();
  }

  void advance(std::int64_t round) {
    first_ = std::max(first_, round);
    if (far_first_ < first_ + kRounds) bring_near();
  }
  [[gnu::noinline]] void bring_near() {
    do {
      std::pop_heap(far_.begin(), far_.end(), is_later);
      const Arrival arrival = far_.back().arrival;
      far_.pop_back();
      far_first_ = far_.empty() ? INT64_MAX : far_.front().round;
      push(arrival);
    } while (far_first_ < first_ + kRounds);
  }

  int shift_ = 0;
  std::int64_t offset_ = 0;
  std::int64_t first_ = 0;  ///< the first round that has not been taken
  std::uint64_t occupied_ = 0;
  std::vector<std::vector<Arrival>> rounds_;  ///< none until something comes: stages may be idle
  SpareRounds* spare_ = nullptr;
  std::vector<Far> far_;  ///< beyond these rounds: a heap, since links may hold thousands
  std::int64_t far_first_ = INT64_MAX;
  std::uint64_t far_number_ = 0;
};

/// Of the thread: ends of buckets. On the heap, because memory of threads is scarce in a module
/// that is loaded at run time (Python's).
inline std::vector<std::uint32_t>& bucket_ends() {
  static thread_local std::vector<std::uint32_t> ends((1 << 12) + 1);
  return ends;
}

/// Sorts by `before`, a strict order of times first; equal ones stay in their order. All times are
/// in [begin, begin + 2^shift).
template <typename Before>
void sort_arrivals(std::vector<Arrival>& arrivals, std::vector<Arrival>& scratch,
                   std::int64_t begin, int shift, Before before) {
  constexpr std::size_t kFew = 24;
  const std::size_t n = arrivals.size();
  if (n > kFew) {
    // Into as many buckets of time as there are arrivals: few stand in one.
    const int bits = std::min(std::min(shift, 12), static_cast<int>(std::bit_width(n)) - 1);
    const int drop = shift - bits;
    std::uint32_t* const ends = bucket_ends().data();
    std::fill_n(ends, (std::size_t{1} << bits) + 1, 0);
    for (const Arrival& a : arrivals) ++ends[index((a.time - begin) >> drop) + 1];
    for (std::size_t b = 1; b <= std::size_t{1} << bits; ++b) ends[b] += ends[b - 1];
    scratch.resize(n);
    for (const Arrival& a : arrivals) scratch[ends[index((a.time - begin) >> drop)]++] = a;
    arrivals.swap(scratch);
  }
  for (std::size_t i = 1; i < n; ++i) {
    if (!before(arrivals[i], arrivals[i - 1])) continue;
    const Arrival moved = arrivals[i];
    std::size_t j = i;
    do {
      arrivals[j] = arrivals[j - 1];
      --j;
    } while (j > 0 && before(moved, arrivals[j - 1]));
    arrivals[j] = moved;
  }
}

}  // namespace hemiola::sim
