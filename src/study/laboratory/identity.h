// Numbers that stand for a program and for what a proof needs to know of a machine.
#pragma once

#include <array>
#include <cstdint>

#include "machine/machine.h"
#include "program/program.h"

namespace hemiola::study {

/// 128 bits. Equal contents have equal ones in every process; others have different ones but for
/// chance (one in 2^64 after 2^32 programs). Not for secrets.
using Identity = std::array<std::uint64_t, 2>;

/// Of everything that a program says: names, places in files and warnings too, because proofs name
/// them. A program that follows the size has none: Program::sized() gives the one that has.
Identity identity_of(const program::Program& program);

/// Of all that a proof, or the walk of a bound program, asks of a machine: how many GPUs it has;
/// how many compute units each has, what fits on one, whether a workgroup that waits leaves its
/// place; which GPUs have the same model; and, where there are NICs, everything that decides which
/// ranks meet over them (Machine::routes): nodes, links, latencies by which routes are chosen, GPUs
/// that forward. Bandwidths, and all other latencies and sizes, are not in it. Null: no machine.
Identity proof_facts(const machine::Machine* machine);

/// Of all that loading or making a program asks of a machine, templates that derive their plan from
/// it (plan::TemplateInfo::needs_machine) apart, which ask everything: its graph with all figures
/// of links, switches and NICs; and of each GPU the model's number, name, compute units, rate of
/// its ports, and whether it forwards. A test changes everything else, and makes every built-in
/// again. Null: no machine.
Identity making_facts(const machine::Machine* machine);

}  // namespace hemiola::study
