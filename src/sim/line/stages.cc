#include "sim/line/stages.h"

#include <algorithm>

#include "sim/line/arrivals.h"

namespace hemiola::sim {
namespace {

constexpr auto kByTag = [](const Arrival& a, const Arrival& b) {
  return a.time != b.time ? a.time < b.time : a.tag < b.tag;
};

/// Whether a number that counts up and wraps round comes first.
bool earlier(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b) < 0;
}

/// A flag that a copy engine sends to another rank: it is at the ports before answers are.
bool sent_by_copy(const Request& request) {
  return request.stage == Stage::out && request.intent == Intent::flag;
}

}  // namespace

Stages::Stages(Device& device)
    : device(device),
      gpu_of(index(device.program.ranks()), -1),
      stage_of_engine(device.engines.size(), -1),
      links(device.machine.links.size()) {
  for (int rank = 0; rank < device.fold.period; ++rank) {
    if (!device.is_simulated(rank)) continue;
    gpu_of[index(rank)] = static_cast<std::int32_t>(simulated.size());
    simulated.push_back(rank);
  }
  gpus.resize(simulated.size());
}

// --- What comes to a stage in a round, in the order in which it accepts. False: nothing.

bool Stages::take_by_tag(Calendar& calendar, std::int64_t round, std::vector<Arrival>& taken) {
  if (!calendar.take(round, taken)) return false;
  sort_arrivals(taken, mine().scratch, calendar.begin_of(round), shift, kByTag);
  return true;
}

// What the slices answer has the tags [first, last) and is in the order of their acceptance.
bool Stages::take_with_answers(Calendar& calendar, std::int64_t round, std::uint32_t first,
                               std::uint32_t last, std::vector<Arrival>& taken) {
  if (!calendar.take(round, taken)) return false;
  const auto before = [&](const Arrival& a, const Arrival& b) {
    if (a.time != b.time) return a.time < b.time;
    if (a.tag != b.tag || a.tag < first || a.tag >= last) return a.tag < b.tag;
    const Request& x = device.request(a.id);
    const Request& y = device.request(b.id);
    if (sent_by_copy(x) || sent_by_copy(y)) return sent_by_copy(x) && !sent_by_copy(y);
    return earlier(x.accepted, y.accepted);
  };
  sort_arrivals(taken, mine().scratch, calendar.begin_of(round), shift, before);
  return true;
}

}  // namespace hemiola::sim
