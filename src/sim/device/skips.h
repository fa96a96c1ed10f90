// What is passed over between the windows of a sampled run (sampling.h).
//
// Data are passed over, everything else goes on being simulated: signals, waits, barriers,
// launches, dispatch, matrix units and the power limit. So a run that skips does all its
// operations, in an order that its synchronisation allows.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/device/device.h"
#include "sim/device/transport.h"
#include "sim/sampled/sampling.h"

namespace hemiola::sim {

class Wavefronts;

class Skips {
 public:
  Skips(Device& device, Transport& transport, Wavefronts& wavefronts)
      : device_(device), transport_(transport), wavefronts_(wavefronts) {}

  // Moves; Device::sampling is there.
  void find_kind(const Workgroup& group, Step& step);
  bool sample_batch(std::int32_t wave, const Step& step, std::int64_t now);
  bool skip_loads(std::int32_t wave, const Step& step, std::int64_t now);
  void wake_naps(std::int32_t place, std::int64_t now);
  void touch_lines(int rank, std::int64_t from, std::int64_t to, bool write, std::int32_t cu);
  // Polls.
  bool dozes(std::int32_t wave, std::int64_t accepted_at, std::int64_t now, std::int64_t interval);
  void end_doze(std::int32_t wave, std::int64_t now);
  /// Between rounds: everything before `now` has happened.
  void sample(std::int64_t now);
  // The run is over.
  Sampled end_sampling();
  std::int64_t estimate_hops(const Counters& counted) const;
  void count_left_out(const Counters& counted, Result& result) const;
  // ... sampled or not.
  /// What an instant of the simulation is estimated to be in the line engine, fs.
  std::int64_t estimate(std::int64_t time) const;
  /// An attribution is made to sum to the estimate.
  void stretch(Attribution& spent, std::int64_t to) const;

 private:
  std::int32_t way_of(int rank, const program::Span& span, bool write);
  std::int64_t bytes_of_batches(const Workgroup& group, const Step& step, std::int64_t from,
                                std::int64_t batches) const;
  bool skip_batches(const sampled::Mover& mover, const Step& step, std::int64_t now);
  void look_for_naps(std::int32_t place, std::int64_t now);
  void leave_out(int rank, const program::Span& span, bool write, const LeftOut& requests);
  void pass_over(const program::Span& span, std::int64_t begin, std::int64_t end, bool write,
                 std::int32_t cu, bool warms, LeftOut& out);

  Device& device_;
  Transport& transport_;
  Wavefronts& wavefronts_;
  std::vector<std::int32_t> dozing_;  ///< wavefronts, some of which doze
  std::int64_t polls_passed_ = 0;
};

}  // namespace hemiola::sim
