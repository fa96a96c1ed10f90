// NCCL and RCCL topology files (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE): <system> of <cpu>, <pci>,
// <gpu>, <nvlink>, <xgmi>, <c2c>, <nic>, <net>.
#pragma once

#include <string>
#include <string_view>

#include "machine/infragraph/infragraph.h"
#include "machine/machine.h"

namespace hemiola::machine {

/// The file as one InfraGraph instance "host" of components cpu, pcie, gpu, nic, nvswitch and
/// other, each node with its `busid`. The file's PCIe rates are used; NVLink and xGMI rates follow
/// from the GPU's generation; CPUs of one host are joined as NCCL assumes. Throws Failure.
infragraph::Document nccl_topology_document(std::string_view xml, const std::string& file);

Machine from_nccl_topology(std::string_view xml, const std::string& file,
                           const LoadOptions& options = {});

}  // namespace hemiola::machine
