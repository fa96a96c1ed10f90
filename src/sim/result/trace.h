// What a simulation tells a trace writer while it runs.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/time.h"
#include "program/bind/bound.h"

namespace hemiola::sim {

/// Names a span from which others may learn that they can go on. 0: nobody does.
using SpanId = std::int64_t;

/// How a span hangs together with others: flows of a trace.
struct FlowEnds {
  SpanId span = 0;
  SpanId released_by = 0;  ///< whose flag, packet or request it waited for last; 0: for nobody's
  Time released_at{};      ///< when that was there; not after the end of the span
};

/// The spans behind a flag, packet or poll under way.
struct RequestSpans {
  SpanId sender = 0;
  SpanId cause = 0;  ///< packet loads: the sender of what they waited for
};

/// What the trace calls an item of a stream; kernels have names of their own.
std::string_view name_of(program::StreamItem::Kind kind);

/// Calls come in no particular order of time: a span is told when it ends, and may be told before
/// those that released it. Names must not be kept beyond the call.
class TraceSink {
 public:
  virtual ~TraceSink() = default;
  /// What a stream of a rank was at: "launch" until its first kernel starts, and between two
  /// kernels; the name of a kernel; "end" until the stream is released. They do not overlap.
  virtual void stream(int rank, int stream, std::string_view name, Time begin, Time end) = 0;
  /// A workgroup, from its dispatch on: inside a kernel of its stream. Numbers are a rank's.
  virtual void workgroup(int rank, int stream, int workgroup, Time begin, Time end) = 0;
  /// An operation of a workgroup, inside it. Several may overlap: wavefronts run ahead.
  virtual void operation(int rank, int workgroup, std::string_view name, Time begin, Time end,
                         const FlowEnds& flow) = 0;
  /// A link carried wire bytes from begin to end with `queue` requests waiting when it started.
  virtual void link(int link, std::int64_t wire_bytes, int queue, Time begin, Time end) = 0;
  /// A DMA engine, NIC or proxy worked on a descriptor.
  virtual void engine(int rank, std::string_view engine, std::string_view name, Time begin,
                      Time end, const FlowEnds& flow) = 0;
  /// A request visited a resource (only inside the window of --trace-lines).
  virtual void request(int rank, std::string_view resource, std::string_view name, Time begin,
                       Time end) = 0;
  /// Whether request() is wanted at this time.
  virtual bool wants_requests(Time at) const = 0;
};

}  // namespace hemiola::sim
