// A machine as boxes and lines: what `hemiola machine show --graph html` draws.
#pragma once

#include "machine/machine.h"
#include "report/page.h"

namespace hemiola::report {

/// The network stands above the GPUs, what joins only GPUs (NVSwitches) below them, and what
/// belongs to one instance of a device in a frame. Of a machine that is too wide for a page,
/// instances that have the same name become two: the first one as it is, and all others as one with
/// a box for each component; then components of one instance. The note says so. Links between two
/// boxes, of one class, are one line; its weight is their bandwidth.
page::Graph machine_drawing(const machine::Machine& machine);

}  // namespace hemiola::report
