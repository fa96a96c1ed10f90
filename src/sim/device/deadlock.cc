// A wait that cannot end, and its report.

#include <algorithm>
#include <set>

#include "sim/device/cores.h"

namespace hemiola::sim {

// Only polls have been under way for long, so values do not change any more: somebody must already
// have what it waits for (and find out with its next poll); otherwise nothing will ever happen
// again.
void Cores::check_progress() {
  std::set<std::int32_t> without_packets;
  for (const GpuState& gpu : device_.gpus) {
    gpu.packets.for_each([&](std::int64_t, const PacketLine& packet) {
      for (const std::int32_t id : packet.watches) without_packets.insert(device_.request(id).wave);
    });
  }
  for (std::size_t w = 0; w < device_.waves.size(); ++w) {
    const Wave& wave = device_.waves[w];
    const auto number = static_cast<std::int32_t>(w);
    if (wave.waiting == Waiting::stores) return;  // behind polls that wait for slots
    if (wave.waiting == Waiting::loads && !without_packets.contains(number) &&
        !waits_in_vain(number))
      return;
    if (wave.waiting != Waiting::poll) continue;
    const bool all = std::ranges::all_of(wave.watched, [&](const Watched& watched) {
      return watched.satisfied ||
             device_.gpu(watched.id.rank).semaphores[index(watched.id.index)].value >=
                 watched.target;
    });
    if (all) return;
  }
  report_deadlock();
}

std::string Cores::why_not(program::SemaphoreId) const {
  return " and nobody will signal it";
}

std::string Cores::why_not(std::int32_t) const {
  return " waits for packets that nobody sends";
}

// What a wavefront waits for; empty: nothing that is missing.
std::string Cores::why_blocked(const Wave& wave, std::int32_t number) const {
  if (wave.waiting == Waiting::loads) return why_not(number);
  std::string reason;
  for (const Watched& watched : wave.watched) {
    if (wave.waiting != Waiting::poll || watched.satisfied) continue;
    const std::int32_t flag = watched.id.index;
    const std::int64_t value = device_.gpu(watched.id.rank).semaphores[index(flag)].value;
    if (value >= watched.target) continue;
    const bool barrier = flag >= device_.barrier_base;
    reason += (reason.empty() ? " waits for " : ", ") +
              (barrier ? "barrier " + std::to_string(flag - device_.barrier_base)
                       : "semaphore '" + device_.program.semaphores()[index(flag)].name + "'") +
              " of rank " + std::to_string(watched.id.rank) + " to reach " +
              std::to_string(watched.target) + ", it is " + std::to_string(value) +
              why_not(watched.id);
  }
  return reason;
}

void Cores::add_queues(Diagnostics& diagnostics) const {
  for (const CopyQueue& queue : copy_queues_.queues()) {
    if (queue.primitive.kind != program::PrimitiveKind::wait || queue.primitive.semaphores.empty())
      continue;
    const program::SemaphoreId id = queue.primitive.semaphores.front();
    const program::Op& op =
        device_.program.bodies()[index(queue.body)].ops[index(queue.primitive.op)];
    diagnostics.error(
        "the copy queue of rank " + std::to_string(queue.rank) + " waits for semaphore '" +
            device_.program.semaphores()[index(id.index)].name + "' of rank " +
            std::to_string(id.rank),
        {.file = device_.program.source(), .line = 0, .column = 0, .pointer = op.where});
  }
}

void Cores::add_streams(Diagnostics& diagnostics) const {
  for (std::size_t rank = 0; rank < device_.ranks.size(); ++rank) {
    for (std::size_t s = 0; s < device_.ranks[rank].streams.size(); ++s) {
      const StreamRun& run = device_.ranks[rank].streams[s];
      if (!run.waits) continue;
      const program::Stream& items = device_.program.code(static_cast<int>(rank)).streams[s];
      diagnostics.error("rank " + std::to_string(rank) + " stream " + std::to_string(s) +
                            " waits for event " + std::to_string(items[run.item].index) +
                            " that nobody records",
                        {.file = device_.program.source(), .line = 0, .column = 0, .pointer = {}});
    }
  }
}

void Cores::report_deadlock() {
  Diagnostics diagnostics;
  int shown = 0;
  std::int64_t blocked = 0;
  for (const Workgroup& group : device_.groups) {
    for (std::int32_t w = group.first_wave; w < group.first_wave + group.waves; ++w) {
      Wave& wave = device_.wave(w);
      if (wave.waiting != Waiting::poll && wave.waiting != Waiting::loads &&
          wave.waiting != Waiting::flush)
        continue;
      ++blocked;
      if (shown >= 8) continue;
      const Step* step = wavefronts_.step_of(wave);
      if (step == nullptr) continue;
      const std::string reason = why_blocked(wave, w);
      if (reason.empty()) continue;
      ++shown;
      const program::Op& op = device_.op_of(group, step->primitive);
      diagnostics.error(
          "rank " + std::to_string(group.rank) + " workgroup " + std::to_string(group.index) +
              " op " + std::to_string(step->primitive.op) + " (" +
              std::string(program::name_of(op.kind)) + ")" + reason,
          {.file = device_.program.source(), .line = 0, .column = 0, .pointer = op.where});
    }
  }
  add_queues(diagnostics);
  add_streams(diagnostics);
  add_reasons(diagnostics);
  const std::string head = "a wait cannot end: at " + to_string(Time{now_}) +
                           " nothing can happen any more (" + std::to_string(blocked) +
                           " wavefronts wait)";
  Diagnostics all;
  all.error(head, {.file = device_.program.source(), .line = 0, .column = 0, .pointer = {}},
            device_.options.replay == nullptr
                ? "`hemiola check` shows the cycle or the missing signal"
                : "`hemiola replay --describe PROGRAM` lists the flags that a profile has to have");
  all.append(diagnostics);
  throw Failure(all, ExitCode::deadlock);
}

}  // namespace hemiola::sim
