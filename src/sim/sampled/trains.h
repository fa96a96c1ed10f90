// Packets that an engine sends together between the windows of a sampled run (docs/sampled.md,
// "Trains"). Plain data.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hemiola::sim {

/// What lines of bursts have found in the L2 of a GPU.
struct BurstLookUps {
  std::int64_t lines = 0, hits = 0, evicted = 0;  ///< evicted: dirty lines that had to leave
  void add(const BurstLookUps& other) {
    lines += other.lines;
    hits += other.hits;
    evicted += other.evicted;
  }
};

/// How many packets go together, what they would have found in caches, and how far the time may be
/// off by them.
class Trains {
 public:
  /// Of a message or copy of `bytes`, for an engine that keeps `limit` packets of `burst` bytes in
  /// flight (0: any number). 1: each by itself.
  static std::int64_t length(std::int64_t bytes, std::int64_t burst, std::int64_t limit) {
    const std::int64_t most = limit == 0 ? kMost : std::min(kMost, limit / kOfLimit);
    return std::clamp<std::int64_t>(bytes / burst / kOfMessage, 1, most);
  }

  /// One leaves: of `packets`, and of a message of `bytes`. Each would have visited `hops` servers.
  void send(std::int64_t packets, std::int64_t train, std::int64_t bytes, std::int64_t hops) {
    bytes_ += train;
    hops_ += (packets - 1) * hops;
    wrong_ += static_cast<double>(train) * static_cast<double>(train) / static_cast<double>(bytes);
  }
  /// Packets that went by themselves, in a window or not.
  void saw(bool read, const BurstLookUps& found) { (read ? reads_ : writes_).add(found); }
  /// What so many lines of a train find, if they find what packets by themselves have found.
  BurstLookUps pass(bool read, std::int64_t lines) {
    const BurstLookUps& seen = read ? reads_ : writes_;
    BurstLookUps found{.lines = lines};
    if (seen.lines > 0) {
      found.hits = lines * seen.hits / seen.lines;
      found.evicted = lines * seen.evicted / seen.lines;
    }
    passed_.add(found);
    return found;
  }

  std::int64_t bytes() const { return bytes_; }
  std::int64_t hops() const { return hops_; }
  const BurstLookUps& passed() const { return passed_; }
  /// Of the time in which they went, relative: a message may end by one of its trains sooner or
  /// later.
  double error() const { return bytes_ > 0 ? wrong_ / static_cast<double>(bytes_) : 0; }

 private:
  /// A train is no longer than that; no more of what may be in flight; no more of a message.
  static constexpr std::int64_t kMost = 32, kOfLimit = 8, kOfMessage = 16;

  std::int64_t bytes_ = 0, hops_ = 0;
  double wrong_ = 0;  ///< bytes, each by the share of its message that its train was
  BurstLookUps reads_, writes_, passed_;
};

}  // namespace hemiola::sim
