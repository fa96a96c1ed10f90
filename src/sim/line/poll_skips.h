// While nothing but polls is under way in a replay, what they do repeats; whole periods of it are
// skipped, up to the next row. Times and counters are as if they were not.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/device/device.h"
#include "sim/line/stages.h"

namespace hemiola::sim {

class Replayer;

class PollSkips {
 public:
  PollSkips(Device& device, Replayer& replayer, Stages& stages)
      : device_(device), replayer_(replayer), stages_(stages) {}

  /// To be asked between rounds: by how much all that is to come is later now, fs.
  std::int64_t skip();
  std::int64_t hops_skipped() const { return hops_skipped_; }  ///< represented, not executed

 private:
  /// Of a replay in which nothing but polls is under way.
  struct PollState {
    std::int64_t time = 0, period = 0;  ///< fs; since the last time that it was so, 0: it was not
    std::vector<std::int64_t> counts{}, more{};  ///< counters; since then
  };
  bool only_polls() const;
  template <typename Visit>
  void for_each_free(int rank, Visit visit);
  std::vector<std::int64_t> state_of_polls(std::pair<std::int64_t, std::int64_t>& times);
  void shift_polls(std::int64_t now, std::int64_t by);

  Device& device_;
  Replayer& replayer_;
  Stages& stages_;
  std::map<std::vector<std::int64_t>, PollState> states_;  ///< since skip_until_ is what it is
  std::int64_t skip_until_ = -1;                           ///< fs: the next row
  bool skipped_ = false;
  std::int64_t hops_skipped_ = 0;
};

}  // namespace hemiola::sim
