// The options of 'replay' as they were typed, and those of them that need more than a word.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/cli.h"
#include "cli/options/inputs.h"
#include "sim/result/profile.h"
#include "sim/simulate.h"

namespace hemiola::cli {

struct ReplayOptions {
  std::vector<std::string> profiles;
  MachineOptions machine;
  ProgramOptions program;
  std::string describe;
  std::string launch = "stream";
  std::string rank, mode = "ingress", table = "heap", answers = "auto";
  std::vector<std::string> delays;
  std::string traffic, save, kernels = "nccl|rccl";
  std::string threads = "1";
  bool isolate = false, partial = false;
  std::string json, csv, trace, trace_lines, report;
};

void add_replay_options(CLI::App& verb, ReplayOptions& options, Session& session);
/// Failure for those that do not go together.
void check_replay_options(const ReplayOptions& options);

/// How to replay; without profile and ranks.
sim::Options replay_engine(const ReplayOptions& options, Session& session);
/// --delay, each "PEER=TIME": "3=5us", "1,4-6=2us", "all=1us": all but those that are `simulated`,
/// which nobody can delay.
std::vector<std::pair<int, Time>> delay_values(const std::vector<std::string>& texts, int ranks,
                                               const std::vector<int>& simulated);
/// --rank, or those at which the profile was recorded, or the one rank to which rows go.
std::vector<int> replayed_ranks(const ReplayOptions& options, const sim::Profile& profile);

}  // namespace hemiola::cli
