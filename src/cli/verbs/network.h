// `hemiola run PLAN --network ns-3`: a plan's messages over a network that another simulator has.
#pragma once

#include <string>

#include "cli/cli.h"
#include "cli/options/inputs.h"

namespace hemiola::cli {

/// `network` is "ns-3", or "ns-3:QUEUE,ack" with the bytes that may wait at each output of a
/// switch, and messages that are over when they are acknowledged; either word may be left out.
/// Failure: another network, a program that is no plan, a plan with more than messages.
ExitCode run_network_verb(const std::string& network, const MachineOptions& machine,
                          const ProgramOptions& program, const std::string& json, Session& session);

}  // namespace hemiola::cli
