// What lies in the memory of each GPU. docs/models.md has the formulas and their sources.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "workload/models/generate.h"

namespace hemiola::workload {

/// By stage, bytes by name: "parameters", "gradients", "optimizer", "activations", "gathered
/// parameters" (ZeRO 3), "kv cache" (inference). Only names that hold something. Not counted:
/// the CUDA context, buffers of communication and workspaces of libraries, fragmentation.
/// Failure as check().
std::vector<std::map<std::string, std::int64_t>> memory_of(const MakeRequest& request);

/// All that one of these holds.
std::int64_t sum_of(const std::map<std::string, std::int64_t>& memory);

/// Bytes of activations that one layer keeps from forward to backward for one micro batch on one
/// rank, as `request.recompute` says (Korthikanti et al., arXiv:2205.05198, table 2, generalised
/// to models with other MLPs and attention). The request must be legal and its model complete.
std::int64_t activation_bytes(const MakeRequest& request, bool mixture_layer);

}  // namespace hemiola::workload
