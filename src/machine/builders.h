// Machines by name: the InfraGraph files of data/machines, several nodes of one ("dgx-h100:4"), and
// generated topologies ("torus:8x8").
#pragma once

#include <optional>
#include <string>

#include "machine/machine.h"

namespace hemiola::machine {

/// The machine of a built-in name; nothing if `name` is not one (it may be a file then). Throws
/// Failure for a built-in name with bad arguments ("ring:0", "mesh:4x"). Uses options.gpu, not
/// options.set (load() applies that to every kind of machine).
///
///   dgx-h100, ...           a file of data/machines
///   dgx-h100:N, ...         N of them behind rail-optimised leaf and spine switches: NIC i of
///   every node
///                           hangs on leaf i, every leaf on every spine, without oversubscription.
///                           A leaf is one logical switch: its number of ports is not limited to
///                           that of a product.
///   switch:N                N GPUs, one link each to one switch
///   ring:N                  N GPUs, one link to each neighbour
///   mesh:AxB[xC]            a grid of GPUs without wrap-around
///   torus:AxB[xC]           the same with wrap-around (a side of two has one link, not two)
///   clos:LEAVESxSPINESxH    H hosts on each leaf, each one GPU with a NIC; one link from leaf to
///   spine astra3:N                N GPUs of ASTRA-sim 3.0's case studies: 32 ports each, one per
///   switch plane
///
/// Generated topologies use the link class "link" and the device model options.gpu, else h100; both
/// defaults are stated in Machine::warnings.
std::optional<Machine> make_built_in(const std::string& name, const LoadOptions& options = {});

}  // namespace hemiola::machine
