// SimAI's topology text: what its gen_Topo_Template.py writes and its ns-3 reads
// (aliyun/SimAI, astra-sim-alibabacloud: inputs/topo/gen_Topo_Template.py,
// astra-sim/network_frontend/ns3/common.h, SetupNetwork()).
//
//   9 8 1 0 8 H100              nodes, GPUs of a server, NVSwitches, switches, links, type of GPU
//   8                           ids of the NVSwitches, then of the switches; other nodes are GPUs
//   0 8 3600Gbps 0.000025ms 0   a link in both directions: ends, rate of each, latency, error rate
#pragma once

#include <string>
#include <string_view>

#include "machine/infragraph/infragraph.h"
#include "machine/machine.h"

namespace hemiola::machine {

/// The text as InfraGraph: instances "server" (xpu, nic), "nvswitch" and "switch". A GPU that the
/// text joins to a switch reaches it through a NIC of its own. The type of GPU becomes a device
/// model; for one that there is none of, `gpu` is taken. Throws Failure.
infragraph::Document simai_topology_document(std::string_view text, const std::string& file,
                                             const std::string& gpu = {});

Machine from_simai_topology(std::string_view text, const std::string& file,
                            const LoadOptions& options = {});

}  // namespace hemiola::machine
