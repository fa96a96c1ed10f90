// How long the transfers of a plan take on a machine, without lowering it: to choose among plans
// and parameters, and to judge schedules. The simulator has the last word.
#pragma once

#include "plan/fabric.h"
#include "plan/plan.h"

namespace hemiola::plan {

/// Transfers start in the order in which they become ready: when their peer has told that it runs,
/// what they wait for is known to be complete, the one before in the stream lets them, and the
/// first link of their way is free (before it the port of the GPU that sends). They occupy every
/// link, and the ports at both ends, each from when it is free, for their bytes (on links with
/// packet headers) over its bandwidth, and are complete one latency after the last; a pull asks for
/// its data one latency before. Who waits for a transfer of another rank knows of it when its data
/// are acknowledged, a fence has passed, and a flag has crossed and been polled. A stream goes on
/// after that fence; after a push that nobody waits for as soon as the stores that its compute
/// units may have outstanding are what is left of it; after a pull when the data are there. Behind
/// a NIC the proxy posts data and flag one after the other. Copies take what the memory of the GPU
/// takes to read and write. Sources of one sum are loaded at once, and so is all that a rank does
/// in a whole collective. A multicast occupies the way to every member at once, and with
/// `by_switch` each link once where a switch can multicast. Computes take no time, and neither do
/// launches.
///
/// `chunk_bytes`: size of a chunk; unused by plans of elements. Failure: ranks without a way, a
/// plan that waits for ever.
Time estimate(const Plan& plan, Fabric& fabric, std::int64_t chunk_bytes, bool by_switch = true);
Time estimate(const Plan& plan, const machine::Machine& machine, std::int64_t chunk_bytes);

}  // namespace hemiola::plan
