// Plans as files that executors run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/template.h"
#include "program/program.h"

namespace hemiola::program {

/// Whose reader of MSCCL XML a file is for. They have different names for a reduce-scatter, and
/// each refuses what the other takes (docs/formats.md, dialects).
enum class MscclDialect : std::uint8_t {
  common,     ///< as ROCm/rccl names things, with what only microsoft/msccl reads as well
  microsoft,  ///< microsoft/msccl src/graph/topo.cc
  rccl        ///< ROCm/rccl src/misc/msccl/msccl_parser.cc, Azure/msccl-scheduler src/parser.cc
};
/// write_msccl() in a dialect; Failure for what that one has no words for, too.
std::string write_msccl(const Program& program, MscclDialect dialect);

/// "msccl", and in the two dialects of it (program.h).
enum class ExecutorFormat : std::uint8_t { mscclpp, msccl, msccl_microsoft, msccl_rccl };

/// "mscclpp", "msccl", "msccl:microsoft", "msccl:rccl", in this order.
const std::vector<std::string>& executor_format_names();
std::string_view format_name(ExecutorFormat format);

/// The program as the format's text; Failure for one that the format cannot say, or its executor
/// has no room for (executor_limits.h).
std::string write_as(ExecutorFormat format, const Program& program,
                     const machine::Machine* machine = nullptr);

/// A plan as text: its own lowering where the format has the words and the executor the room for
/// it, else with `sync` channels or connections (docs/plans.md, export). Where `machine` is given,
/// what crosses a NIC goes through ports. Failure: what neither can say, with the reason of the
/// second; parameters that the lowering does not take.
std::string export_plan(const plan::Plan& plan, ExecutorFormat format,
                        const plan::Parameters& lowering,
                        const machine::Machine* machine = nullptr);

}  // namespace hemiola::program
