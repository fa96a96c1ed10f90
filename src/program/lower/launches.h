// Computes that are kernels of their own (plan/launches.h), on host streams of their rank.
//
// A stream of computes becomes a host stream. In front of the kernel of a launch stand, where they
// are needed, waits for events of other streams, and its *gate*: an item of the copy engines that
// copies nothing, and waits until the transfers are complete that the launch comes after. Behind it
// stand the event that other streams wait for, and its *bell*: another such item, which signals to
// whatever transfers wait for the launch, on any rank.
//
// These are the wait and the write of a value that the front end of a GPU does in the order of a
// stream (cuStreamWaitValue32, cuStreamWriteValue32): no workgroup spins, so a launch takes no
// place on a compute unit before what it needs is there, and communication stays one kernel, or
// queues of copies, that need not be cut where an event could be recorded. Private to lower/.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "plan/launches.h"
#include "program/lower/general.h"

namespace hemiola::program::general {

/// Streams of Movements that are gates, by the compute that waits there; each has one movement
/// without places.
std::map<std::int32_t, std::int32_t> gates_of(const plan::Code& code);

/// The launches that a movement waits for as a whole: rank and compute. Tiles of others that make
/// what it waits for it awaits one by one.
std::set<std::pair<int, std::int32_t>> awaited_launches(const plan::Plan& plan,
                                                        const Movement& movement);
/// Whether transfers wait for all of the compute rather than for its tiles.
inline bool is_whole(const plan::Plan& plan, int rank, std::int32_t compute) {
  return plan.code(rank).computes[index(compute)].waits == plan::Waits::launch;
}

/// Bodies of a launch; -1: none.
struct LaunchBodies {
  std::int32_t gate = -1, bell = -1;
  std::vector<std::int32_t> workgroups;
};
/// The host streams of the launches of a code. Kernels are added to the program, each a copy of
/// `kernel` but for its name and bodies.
std::vector<Stream> streams_of_launches(Program& program, const plan::Code& code,
                                        const std::map<std::int32_t, LaunchBodies>& launches,
                                        const Kernel& kernel);

}  // namespace hemiola::program::general
