// Traces of real runs as profiles: PyTorch's (Kineto) and rocprof's (docs/replay.md, "Importers").
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "machine/machine.h"
#include "program/bind/bound.h"
#include "sim/result/profile.h"

namespace hemiola::study {

/// What a trace says is when kernels began and ended, so this is an approximation: the end of a
/// communication kernel stands for the flags that its rank has written to all others.
struct ImportedTraces {
  /// Semaphore `communication * ranks + source` of every other rank gets 1 when the kernel of
  /// `source` ends, on the clock of the first trace; time 0 is when the first of them begins.
  sim::Profile profile;
  struct Measured {
    Time begin{}, end{};  ///< of the kernel
  };
  std::vector<std::vector<Measured>> kernels;  ///< by rank, then communication; on that clock
  std::vector<int> ranks;                      ///< by rank of the profile: in the traces
  std::vector<Time> clock_offset;              ///< of its clock to that of the first one
  Time alignment_error{};  ///< the most by which ends of one communication differ on that clock
  std::vector<std::string> notes;
};

using NamedText = std::pair<std::string, std::string>;  ///< file, and what is in it

bool is_kineto(std::string_view text);
bool is_rocprof(std::string_view text);

/// Several ranks, one file each. `partial`: ranks that are missing are none of the profile's.
/// Failure: what is cut off, ranks that are missing or there twice, no communication in common.
ImportedTraces import_kineto(const std::vector<NamedText>& files, bool partial);

/// GPUs of one file are ranks in the order of their numbers; a single one is rank 1, which writes
/// to rank 0. `kernels`: in the names of those whose ends are flags; several alternatives with '|'.
ImportedTraces import_rocprof(const NamedText& file, std::string_view kernels);

/// What a rank did as far as the traces say: it computes until its kernel begins, waits for the
/// flags of the others, computes until the next one begins. Bound to the machine, which outlives
/// it.
program::Bound measured_program(const ImportedTraces& traces, int rank,
                                machine::SharedMachine machine, std::size_t communications);

}  // namespace hemiola::study
