// The device of an exact engine: its parts, and what they do when an event of theirs happens. How a
// request gets from its CU to memory and back is an engine's own: see reference.h and line.h.
#pragma once

#include <cstdint>
#include <string>

#include "sim/device/computes.h"
#include "sim/device/copy_engines.h"
#include "sim/device/copy_queues.h"
#include "sim/device/device.h"
#include "sim/device/flag_monitors.h"
#include "sim/device/host.h"
#include "sim/device/issue.h"
#include "sim/device/memory.h"
#include "sim/device/multicast.h"
#include "sim/device/residency.h"
#include "sim/device/servers.h"
#include "sim/device/skips.h"
#include "sim/device/sync.h"
#include "sim/device/tracing.h"
#include "sim/device/transport.h"
#include "sim/device/wavefronts.h"
#include "sim/sampled/sampling.h"

namespace hemiola::sim {

class Cores : public Transport {
 public:
  Cores(const machine::Machine& machine, const program::Bound& program, const Options& options);
  virtual Result run() = 0;
  const Addresses& addresses() const { return device_.addresses; }
  const Fold& fold() const { return device_.fold; }
  /// A run takes at least so long, and moves so many bytes.
  void expect(Time least, std::int64_t bytes) {
    if (device_.sampling != nullptr) device_.sampling->windows.expect(least.fs, bytes);
  }

 protected:
  void start();  ///< the first launch on every rank
  void handle_core(EventKind kind, std::int64_t now, std::int32_t a, std::int32_t b,
                   std::uint32_t tag);
  static bool is_progress(EventKind kind, std::int32_t b);
  /// To be asked after some `events`: throws when only polls have been under way for long, and
  /// nobody has what it polls for.
  void look_for_progress(std::int64_t events) {
    quiet_ = device_.tallies.active() == 0 && !device_.tallies.take_spun() ? quiet_ + events : 0;
    if (quiet_ <= 1000 + 50 * static_cast<std::int64_t>(device_.waves.size())) return;
    check_progress();
    quiet_ = 0;
  }
  [[noreturn]] void report_deadlock();
  /// To be asked now and then, with the time that has been reached: tells Options::monitor how far
  /// the run is, and leaves it (Interrupted) when that asks for it.
  void tell(std::int64_t now) const;
  Result result();

  void carry(const Passage& /*passage*/) override {}
  std::int64_t open_from() const override { return now_; }
  /// Nobody is left who could answer what the wavefront has asked for.
  virtual bool waits_in_vain(std::int32_t /*wave*/) const { return false; }
  // For the report of a wait that cannot end: why nobody will signal a semaphore, or send what a
  // wavefront has asked for, and whatever else is missing.
  virtual std::string why_not(program::SemaphoreId id) const;
  virtual std::string why_not(std::int32_t wave) const;
  virtual void add_reasons(Diagnostics& /*diagnostics*/) const {}

  Device device_;
  Servers servers_{device_};
  Multicast multicast_{device_, tracing_};
  Tracing tracing_{device_, wavefronts_};
  Host host_{device_, *this, copy_queues_, residency_, tracing_, wavefronts_};
  Residency residency_{device_, host_, issue_, sync_};
  Wavefronts wavefronts_{device_, *this,  computes_, copy_engines_, host_,
                         issue_,  skips_, sync_,     tracing_};
  Issue issue_{device_,    *this,    computes_, copy_engines_, host_,      multicast_,
               residency_, servers_, sync_,     tracing_,      wavefronts_};
  Computes computes_{device_, *this, host_, wavefronts_};
  Sync sync_{device_, *this, flag_monitors_, issue_, residency_, skips_, tracing_, wavefronts_};
  FlagMonitors flag_monitors_{device_, *this, memory_};
  Memory memory_{device_, copy_engines_, copy_queues_, flag_monitors_, servers_, skips_, tracing_};
  CopyEngines copy_engines_{device_, *this, copy_queues_, memory_, servers_, skips_, tracing_};
  CopyQueues copy_queues_{device_, *this, copy_engines_, host_};
  Skips skips_{device_, *this, wavefronts_};
  std::int64_t now_ = 0;

 private:
  void check_progress();
  std::string why_blocked(const Wave& wave, std::int32_t number) const;
  void add_queues(Diagnostics& diagnostics) const;
  void add_streams(Diagnostics& diagnostics) const;
  void add_links(Result& result) const;
  void add_reads(const Counters& c, Result& result) const;

  std::int64_t quiet_ = 0;  ///< events since nothing but polls is under way
};

}  // namespace hemiola::sim
