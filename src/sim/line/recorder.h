// What others do to the GPUs of watched ranks is recorded; requests of these have numbers
// (docs/replay.md).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/device/device.h"
#include "sim/line/ways.h"
#include "sim/result/profile.h"

namespace hemiola::sim {

class Replayer;

class Recorder {
 public:
  Recorder(Device& device, Replayer& replayer) : device_(device), replayer_(replayer) {}

  void start_recording();
  /// Which links see only what watched ranks send and what is noted, or put in, where it enters
  /// them: all, or those on the ways between watched ranks.
  void carry_all_or_between_watched(bool all);
  bool carries_some() const { return !carries_.empty(); }
  bool carries(std::int32_t link) const { return carries_[index(link)]; }
  /// It comes to a link of its way. Recording: what comes from elsewhere is noted. Replay: false
  /// where the link is not simulated, and so the end of the way.
  bool enters(std::int32_t id, const Request& request, const WayLeg& leg, std::int64_t now);
  void record(std::int32_t id, const WayLeg& leg, std::int64_t now, int links);
  /// A request of a watched rank leaves its port for the first link.
  void number_request(std::int32_t id, std::int64_t now);
  bool has_number(std::int32_t id) const {
    return index(id) < numbers_.size() && numbers_[index(id)] >= 0;
  }
  std::int64_t number(std::int32_t id) const { return numbers_[index(id)]; }
  void set_number(std::int32_t id, std::int64_t number) {
    if (index(id) < numbers_.size()) numbers_[index(id)] = number;
  }
  std::int64_t semaphore_count() const { return device_.barrier_base + device_.program.barriers(); }
  // What a profile cannot tell: throw.
  void refuse_groups() const;
  void refuse_pull(const Request& request) const;
  void note_engine(std::int32_t engine, int rank);

 private:
  void refuse_polls(const Request& request) const;
  void set_recorded_burst(ProfileRow& row, const Request& request) const;

  Device& device_;
  Replayer& replayer_;
  std::vector<bool> carries_;  ///< by link: recording: what enters is noted; replay: simulated
  std::vector<std::int64_t> asked_;  ///< by rank: requests that have left for others
  /// By request: the how-manieth of them it is, -1: none; when, fs: recording of multicast groups.
  std::vector<std::int64_t> numbers_, asked_at_;
  std::vector<int> user_of_engine_;  ///< recording: a rank that uses it; -1: none
};

}  // namespace hemiola::sim
