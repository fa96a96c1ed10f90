// What bind() checks of a program before anything walks it.
#pragma once

#include "program/bind/bound.h"

namespace hemiola::program {

/// Every index of a bound program is in range, loops are matched and at most two deep, and every
/// pair of ranks reaches each other the way the operation between them needs. Throws Failure with
/// all that is wrong (at most a dozen errors), each at its operation.
void check_bound(const Bound& bound);

/// Failure where a rank's GPU has no copy engines; ranks beyond the machine are let pass.
void require_copy_engines(const machine::Machine& machine, int rank);

/// Whether all ranks of the program load and store each other's memory, without a look at every
/// pair where they are many and a switch joins them. False where that is not plain to see. True
/// without a machine.
bool all_reach_each_other(const Bound& bound);
/// Whether an operation needs one look, where ranks reach each other: its ranks and chunks are
/// there whatever the rank and the counters of loops are, up to those of `last`. False where that
/// is not plain to see. `table`: the loop around it that has places, or null.
bool is_alike_everywhere(const Program& program, const Op& op, const Indices& last,
                         const Op* table = nullptr);
/// Whether all iterations refer to the same ranks, and to chunks that are there whatever the
/// counters are: then one stands for all. Rings have thousands of them.
bool is_alike_in_loops(const Program& program, const Op& op, const Indices& at);
/// The first of the two of each operation of a body.
std::vector<bool> alike_in(const Bound& bound, const std::vector<Op>& ops);
/// How often a loop goes round.
std::int64_t iterations_of(const Bound& bound, const Op& loop);

}  // namespace hemiola::program
