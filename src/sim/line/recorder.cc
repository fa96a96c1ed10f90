#include "sim/line/recorder.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "sim/line/arrivals.h"
#include "sim/line/replayer.h"
#include "sim/line/way_table.h"
#include "sim/result/profile.h"

namespace hemiola::sim {

void Recorder::carry_all_or_between_watched(bool all) {
  carries_.assign(device_.machine.links.size(), all);
  asked_.resize(index(device_.program.ranks()));
  if (all) return;
  for (const int from : device_.options.watched) {
    for (const int to : device_.options.watched) {
      if (from == to) continue;
      const Fabric::Paths paths = device_.fabric.paths(from, to);
      for (std::int32_t p = paths.first; p < paths.first + paths.count; ++p) {
        for (const Leg* leg : {&device_.fabric.path(p).forward, &device_.fabric.path(p).reverse})
          for (std::int32_t h = 0; h < leg->count; ++h)
            carries_[index(leg->hops[h].server - device_.fabric.link_base)] = true;
      }
    }
  }
}

void Recorder::start_recording() {
  Profile& profile = *device_.options.record;
  profile = {.file = {}, .ranks = device_.program.ranks(), .at_ports = device_.options.at_ports};
  profile.buffers = {{std::string(kWholeMemory), device_.addresses.end()},
                     {std::string(kSemaphores), 8 * std::max<std::int64_t>(1, semaphore_count())}};
  carry_all_or_between_watched(device_.options.at_ports);
  user_of_engine_.assign(device_.engines.size(), -1);
  refuse_groups();
}

// What a switch replicates and reduces is known where it comes in at one rank. On simulated links
// the switch would have to be simulated, too, and what all members answer it.
void Recorder::refuse_groups() const {
  if (!WayTable::multicasts(device_.program)) return;
  const bool all = std::ranges::find(carries_, true) != carries_.end();
  if (!all && device_.options.watched.size() == 1) return;
  throw Failure(
      "a program with multicast groups is recorded and replayed at the ingress of one rank, whose "
      "switches are not simulated",
      {.file = device_.program.source()},
      "one rank whose answers were recorded; no --record-at port, --mode fabric, no rows behind "
      "signals");
}

// Whoever shares a NIC, or an engine, with a watched rank is in its way there.
void Recorder::note_engine(std::int32_t engine, int rank) {
  int& user = user_of_engine_[index(engine)];
  if (user < 0) user = rank;
  if (device_.is_watched(user) == device_.is_watched(rank)) return;
  const auto [seen, other] =
      device_.is_watched(user) ? std::pair(user, rank) : std::pair(rank, user);
  throw Failure("ranks " + std::to_string(seen) + " and " + std::to_string(other) + " share " +
                    device_.engines[index(engine)].name + ", and only rank " +
                    std::to_string(seen) + " is recorded",
                {.file = device_.program.source()},
                "record all ranks that use it: --record-rank " + std::to_string(seen) + ',' +
                    std::to_string(other));
}

// An engine that reads at a peer is at its slices at once.
void Recorder::refuse_pull(const Request& request) const {
  if (request.intent != Intent::burst || !request.reads_source) return;
  const int rank =
      device_.descriptors[index(device_.details[index(request.detail)].descriptor)].rank;
  if (rank == request.source || device_.is_watched(rank) == device_.is_watched(request.source))
    return;
  throw Failure("an engine of rank " + std::to_string(rank) + " reads memory of rank " +
                    std::to_string(request.source) + ", which a profile cannot tell",
                {.file = device_.program.source()},
                "record a program whose engines only write to peers");
}

// What a poll of somebody else's memory finds is not in a row.
void Recorder::refuse_polls(const Request& request) const {
  if (!is_load(request.intent) || (!request.packet && request.intent != Intent::poll)) return;
  if (device_.is_watched(request.source) && device_.is_watched(request.target)) return;
  throw Failure("rank " + std::to_string(request.source) + " polls memory of rank " +
                    std::to_string(request.target) + ", which a profile cannot tell",
                {.file = device_.program.source()}, "record a program whose waits are local");
}

bool Recorder::enters(std::int32_t id, const Request& request, const WayLeg& leg,
                      std::int64_t now) {
  const auto carried = [&](int hop) { return carries_[index(leg.hops[hop].link)]; };
  const bool here = carried(request.link);
  if (device_.options.replay != nullptr) {
    if (!here) replayer_.drop(id, now);
    return here;
  }
  if (!here) return true;  // with groups always: what a switch sends back comes from no rank
  const bool back = request.stage == Stage::back_out;
  const bool before = request.link > 0 ? carried(request.link - 1)
                                       : device_.is_watched(back ? request.target : request.source);
  if (!before) record(id, leg, now, leg.count - request.link);
  return true;
}

void Recorder::record(std::int32_t id, const WayLeg& leg, std::int64_t now, int links) {
  const Request& request = device_.request(id);
  ProfileRow row;
  row.time = {now};
  row.size = request.bytes;
  if (!device_.options.at_ports) row.links = links;
  if (links == 0) row.stream = leg.in_port;
  // Ways of one port may differ in links that others' answers pass.
  if (links > 0 || (device_.options.watched.size() > 1 && !request.group))
    row.path = request.route - device_.fabric.paths(request.source, request.target).first;
  if (request.stage == Stage::back_out) {
    row.source = request.group ? (request.source + 1) % device_.program.ranks() : request.target;
    row.destination = request.source;
    row.kind = is_load(request.intent) ? ProfileKind::response : ProfileKind::acknowledgement;
    if (device_.is_watched(request.source)) row.request = numbers_[index(id)];
    if (row.request >= 0 && !asked_at_.empty()) row.took = now - asked_at_[index(id)];
  } else {
    // A switch sends a rank its own requests, too.
    row.source = request.source != request.target ? request.source
                                                  : (request.source + 1) % device_.program.ranks();
    row.destination = request.target;
    row.buffer = 0;
    row.offset = std::int64_t{request.line} << device_.lines.shift;
    if (request.intent == Intent::burst) {
      set_recorded_burst(row, request);
    } else if (request.intent == Intent::flag) {
      row.kind = ProfileKind::add;
      row.buffer = 1;
      row.offset = 8 * std::int64_t{device_.detail(request).semaphore};
      row.value = device_.detail(request).increment;
      row.size = 8;
    } else if (request.packet && !is_load(request.intent)) {
      const std::uint64_t mask = device_.detail(request).packet_mask;
      row.kind = ProfileKind::packet;
      row.offset += 8 * std::countr_zero(mask);
      row.size = 8 * std::popcount(mask);
      row.value = device_.detail(request).packet_flag;
    } else {
      row.kind = is_load(request.intent) ? ProfileKind::read : ProfileKind::write;
      // What stands behind the buffers: flags.
      if (row.offset >= device_.addresses.end()) row.offset = 0;
    }
    if (device_.is_watched(request.target)) refuse_polls(request);
  }
  device_.options.record->rows.push_back(std::move(row));
}

void Recorder::set_recorded_burst(ProfileRow& row, const Request& request) const {
  const Detail& burst = device_.details[index(request.detail)];
  const Descriptor& descriptor = device_.descriptors[index(burst.descriptor)];
  row.kind = ProfileKind::burst;
  if (request.line < 0) {
    row.buffer = -1;
    row.offset = 0;
  }
  if (!descriptor.message) return;
  row.message = descriptor.number;
  row.packets = burst.packets;
  if (burst.packets >= 0 && !descriptor.semaphores.empty())
    row.flag = 8 * std::int64_t{descriptor.semaphores.front().index};
}

void Recorder::number_request(std::int32_t id, std::int64_t now) {
  const Request& request = device_.request(id);
  refuse_polls(request);
  if (index(id) >= numbers_.size()) numbers_.resize(index(id) + 1, -1);
  numbers_[index(id)] = asked_[index(request.source)]++;
  if (device_.options.record == nullptr || !WayTable::multicasts(device_.program)) return;
  asked_at_.resize(numbers_.size());
  asked_at_[index(id)] = now;
}

}  // namespace hemiola::sim
