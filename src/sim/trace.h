// What a simulation tells a trace writer while it runs.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/time.h"

namespace hemiola::sim {

/// Calls come in no particular order of time. Names must not be kept beyond the call.
class TraceSink {
 public:
  virtual ~TraceSink() = default;
  /// An operation of a workgroup ran from begin to end.
  virtual void operation(int rank, int workgroup, std::string_view name, Time begin, Time end) = 0;
  /// A link carried wire bytes from begin to end with `queue` requests waiting when it started.
  virtual void link(int link, std::int64_t wire_bytes, int queue, Time begin, Time end) = 0;
  /// A DMA engine, NIC or proxy worked on a descriptor.
  virtual void engine(int rank, std::string_view engine, std::string_view name, Time begin,
                      Time end) = 0;
  /// A request visited a resource (only inside the window of --trace-lines).
  virtual void request(int rank, std::string_view resource, std::string_view name, Time begin,
                       Time end) = 0;
  /// Whether request() is wanted at this time.
  virtual bool wants_requests(Time at) const = 0;
};

}  // namespace hemiola::sim
