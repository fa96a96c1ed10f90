// Lowering: from a plan (what moves) to a program (which workgroups move it, and how they
// synchronise).
#pragma once

#include <optional>

#include "plan/plan.h"
#include "program/program.h"

namespace hemiola::program {

/// Values of 0 (and an empty `barrier`) mean the default that docs/plans.md states.
struct LowerOptions {
  Protocol protocol = Protocol::simple;
  int workgroups = 0;  ///< per rank; a chain calls them channels
  int threads = 0;     ///< per workgroup
  Bytes piece{};  ///< chains: data bytes that a workgroup passes on at a time; a multiple of 16 B
  std::optional<bool> barrier;  ///< exchanges: begin with a barrier among all ranks
  bool in_place = false;        ///< input and output share memory, as nccl-tests shares it
};

/// Two shapes of plans can be lowered:
///
/// * A *chain*: every rank pushes to one and the same neighbour (rank + d) and forwards what
/// arrives.
///   Each workgroup owns a slice of every piece and a connection to the neighbour: a FIFO of slots
///   with credits. What arrives and what is passed on next are one operation, as in NCCL's kernels.
/// * An *exchange*: every rank runs the same single stream of pushes to, pulls from and reductions
/// over
///   peers. Each workgroup owns a slice of every chunk, and signals and awaits its counterparts
///   only. With protocol `ll` pushed chunks travel as packets through scratch memory, without
///   signals.
///
/// The program has one body per workgroup index (and, in a chain, per distinct role), shared by all
/// ranks. Failure: a plan of neither shape, or options that it cannot take.
Program lower(const plan::Plan& plan, const LowerOptions& options = {});

/// Whether the plan is a chain.
bool is_chain(const plan::Plan& plan);

}  // namespace hemiola::program
