// Plans as files that executors run.
#pragma once

#include <string>

#include "plan/template.h"
#include "program/program.h"

namespace hemiola::program {

enum class ExecutorFormat : std::uint8_t { mscclpp, msccl };

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
