// What a trace writer is told of streams, operations, and who released whom; where there is one.
#pragma once

#include <cstdint>
#include <string_view>

#include "sim/device/device.h"

namespace hemiola::sim {

class Wavefronts;

class Tracing {
 public:
  Tracing(Device& device, Wavefronts& wavefronts) : device_(device), wavefronts_(wavefronts) {}

  SpanId next_span() { return ++spans_; }
  SpanId sender_of(const Request& request) {
    return device_.tracing() && request.detail >= 0 ? device_.spans_of(request).sender : 0;
  }
  SpanId span_of(Wave& wave);  ///< of the step that it is at
  void released(Wave& wave, SpanId by, std::int64_t at);
  void show_step(const Workgroup& group, const Step& step, std::int64_t now) const;
  void show_stream(int rank, std::int32_t stream, std::string_view name, std::int64_t begin,
                   std::int64_t end) const;
  /// A request was at a server, queue and service.
  void show_request(const Request& request, Reason reason, std::int64_t arrival,
                    std::int64_t departure) const;

 private:
  Device& device_;
  Wavefronts& wavefronts_;
  SpanId spans_ = 0;  ///< named so far
};

}  // namespace hemiola::sim
