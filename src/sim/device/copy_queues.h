// Queues of copies that a host stream gives to the copy engines of its rank
// (StreamItem::Kind::engine). A queue does one item after the other: a submission of copies until
// all of them are complete, a flag behind the copies before it, a wait until the flags are there.
//
// The phases of a submission (docs/model.md): control by a host thread, schedule, the copies, sync.
// What was prelaunched has the first two behind it. With Options::one_host one thread does the
// control phases of all ranks one after the other, and sees one completion after the other.
#pragma once

#include <cstdint>
#include <deque>

#include "sim/device/device.h"
#include "sim/device/transport.h"

namespace hemiola::sim {

class CopyEngines;
class Host;

class CopyQueues {
 public:
  CopyQueues(Device& device, Transport& transport, CopyEngines& copy_engines, Host& host)
      : device_(device), transport_(transport), copy_engines_(copy_engines), host_(host) {}

  /// Its number.
  std::int32_t make_queue(int rank, std::int32_t stream, const program::StreamItem& item);
  void start_queue(std::int32_t queue, std::int64_t now, const LatencyBreakdown& spent);
  /// Does what takes no time and starts what does.
  void next_of_queue(std::int32_t queue, std::int64_t now);
  void copies_done(std::int32_t queue, SpanId span, const LatencyBreakdown& spent,
                   std::int64_t now);
  /// A flag changed that queues wait for: the front end sees it with its next look.
  void wake_queues(SemaphoreState& semaphore, const LatencyBreakdown& cause, SpanId by,
                   std::int64_t now);
  const std::deque<CopyQueue>& queues() const { return queues_; }

 private:
  void submit(std::int32_t queue, std::int64_t now);
  void queue_post(std::int32_t queue, std::int64_t now);
  std::int64_t by_host(std::int64_t now, std::int64_t time, LatencyBreakdown& spent);
  void queue_flag(const CopyQueue& queue, program::SemaphoreId id, std::int64_t now);
  bool queue_may_go_on(std::int32_t queue);

  Device& device_;
  Transport& transport_;
  CopyEngines& copy_engines_;
  Host& host_;
  std::deque<CopyQueue> queues_;
  std::int64_t host_free_ = 0;  ///< Options::one_host: of its thread, as far as copies keep it busy
};

}  // namespace hemiola::sim
