// How long a program takes, for whoever has to choose among programs (program::LoadOptions::judge).
#pragma once

#include <atomic>
#include <optional>

#include "core/data_type.h"
#include "machine/machine.h"
#include "plan/judgement.h"
#include "program/program.h"

namespace hemiola::study {

/// A cold run, line by line, at `size` or at the largest half, quarter, ... of it that
/// takes a few seconds at most. Nothing for more than 32 ranks, or if the program takes no such
/// size. Interrupted once `stop` is set. Failure: a size that the program
/// cannot take, a program that cannot run on the machine (bind(), simulate()).
std::optional<plan::Judgement> simulated_time(const machine::SharedMachine& machine,
                                              const program::Program& program, Bytes size,
                                              DataType type, ReduceOp op,
                                              const std::atomic<bool>* stop = nullptr);

}  // namespace hemiola::study
