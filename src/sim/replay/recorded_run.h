// Of which run a profile is a recording, and whether a replay is that run again.
#pragma once

#include <string>

#include "core/diagnostics.h"
#include "machine/machine.h"
#include "program/bind/bound.h"
#include "sim/result/options.h"
#include "sim/result/profile.h"

namespace hemiola::sim {

/// The run of `program` on `machine`, as far as ranks `options.watched` do not do the same in
/// another one: machine with all parameters, their primitives, launch and repetitions; without
/// `rows`.
RecordedRun recorded_run(const machine::Machine& machine, const program::Bound& program,
                         const Options& options);
/// What the rows of a profile do: their tags and order in the file are left out.
std::uint64_t digest_of_rows(const Profile& profile);

/// `options` with answers that are `recorded` or `live`. `because`: why they are live although the
/// profile has some; empty where that was asked for. Failure for recorded answers where there are
/// none, or none that could come in; for a profile that was recorded at other ranks.
Options choose_answers(const machine::Machine& machine, const program::Bound& program,
                       Options options, std::string& because);

/// Answers of a profile are not to what ranks ask here.
class AnswersDoNotFit : public Failure {
 public:
  using Failure::Failure;
};

}  // namespace hemiola::sim
