// The reference engine: one event per request and hop. Simple enough to be read as the definition
// that docs/model.md describes; the line engine must give the same femtoseconds.
#pragma once

#include <cstdint>

#include "sim/device/cores.h"
#include "sim/support/event_queue.h"

namespace hemiola::sim {

class Reference final : public Cores {
 public:
  using Cores::Cores;
  Result run() override;

 private:
  // --- reference.cc: the event loop
  void push(std::int64_t time, EventKind kind, std::int32_t a, std::int32_t b = 0,
            std::uint32_t tag = 0) override;
  void depart(std::int32_t id, Request& request, std::int64_t departure) override;
  void leave(std::int32_t id, std::int64_t now) override;
  void answer_at(std::int32_t id, std::int64_t time) override { reply(id, time); }
  void to_memory(std::int32_t id, std::int64_t time) override { push(time, kMemory, id); }
  void push_answer(std::int64_t time, std::int32_t id, EventKind kind, std::uint32_t tag);
  void handle(const Event& event);
  void prefetch();

  // --- reference/network.cc: servers, queues, credits
  void travel(std::int32_t id, std::int64_t now, bool accepted);
  void begin_leg(std::int32_t id, Stage stage, const Leg& leg, std::int32_t base, std::int64_t now,
                 std::int32_t payload);
  void enqueue(std::int32_t server, std::int32_t id, std::int64_t now);
  void enter_queue(std::int32_t server, std::int32_t id, std::int64_t now);
  void pick(std::int32_t server, std::int64_t now);
  void schedule_pick(std::int32_t server, std::int64_t at);
  void leave_buffer(Request& request, std::int64_t now);
  void admit_freed(std::int64_t now);
  std::uint32_t way_home(const Request& request);
  void at_switch(std::int32_t id, std::int64_t now);
  void answer_parent(std::int32_t id, std::int64_t now);

  // --- reference/memory.cc: slices, caches, HBM
  struct Pending {
    std::int32_t first = -1, last = -1;
  };  ///< requests, linked by next_pending
  void at_slice(std::int32_t id, std::int64_t now);
  void look_up(std::int32_t id, std::int64_t ready);
  void at_memory(std::int32_t id, std::int64_t now);
  void filled(std::int32_t id, std::int64_t now);
  void reply(std::int32_t id, std::int64_t now);
  void write_back(int rank, std::int32_t line, std::int64_t now);

  EventQueue events_;
  std::vector<std::int32_t> freed_;  ///< finite queues that have been picked from at this instant
  std::vector<LineMap<Pending>> pending_;  ///< by GPU: lines on their way into the L2
};

}  // namespace hemiola::sim
