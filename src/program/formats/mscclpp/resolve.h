// MSCCL++ plans say of every operation through which type of channel it goes.
#pragma once

#include "program/program.h"

namespace hemiola::program {

/// The program with memory and port channels where it left the choice to the machine
/// (Channel::any): memory without a machine, and ports for what crosses one of its NICs. Failure:
/// loads through a NIC.
Program with_channel_types(const Program& program, const machine::Machine* machine);

}  // namespace hemiola::program
