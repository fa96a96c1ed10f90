// Kernels as libraries write them: grids, barriers, thresholds of the code that they ship, where a
// plan says only what moves. Named as built-ins are: "all-reduce/vllm". The number of workgroups,
// or the algorithm, depends on the size, so that bind() makes them (Program::follow_size).
// hemiola/parts/library_kernel.h is the contract of the role.
//
// A kernel is a function and a row of the table in its file; a file has one line in kernel_list.h.
// Sources stand where constants do.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hemiola/parts/library_kernel.h"
#include "plan/template.h"
#include "program/program.h"

namespace hemiola::program {

const std::vector<KernelInfo>& kernels(const parts::Registry* parts = nullptr);
const KernelInfo* find_kernel(std::string_view name, const parts::Registry* parts = nullptr);

/// Nothing when no kernel has this name. Failure: unknown parameters (with a suggestion), fewer
/// ranks than it needs, what the library refuses.
std::optional<Program> make_kernel(const std::string& name, const LoadOptions& options);

/// Rows of a file's table: of the collectives that their names begin with.
std::vector<KernelInfo> of_collectives(std::vector<KernelInfo> rows);

/// The kernel of that name instead, with those of the arguments' parameters that it has.
Program make_other(const std::string& name, KernelArguments arguments);

}  // namespace hemiola::program
