// Outcomes as tables, JSON, CSV and timelines (docs/results.md).
#pragma once

#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "hemiola/check.h"
#include "hemiola/experiment.h"
#include "hemiola/machine.h"

namespace hemiola {

struct Exploration;

/// The columns of nccl-tests (size, count, type, redop, time us, algbw, busbw GB/s) plus bound, %
/// of bound and how far it was checked; a row for each outcome, all of one machine. Every line that
/// is not a row starts with '#'. Of one job: its launches, each with what it takes alone.
void print_table(std::ostream& out, std::span<const Outcome> outcomes);
void print_table(std::ostream& out, const Outcome& outcome);
/// Where the time of the latest rank goes: reasons by share, largest first.
void print_attribution(std::ostream& out, const Outcome& outcome);
/// One line where it is proven; reasons where it is partial; else the counterexample in numbered
/// steps. Warnings come after it.
void print_proof(std::ostream& out, const Proof& proof);
/// Nodes, link classes, bandwidth and latency between GPUs, parameters with their sources,
/// warnings.
void print_machine(std::ostream& out, const Machine& machine);

/// What `hemiola run --json` and `--csv` write. `command` stands in it as what was called;
/// `volatile_fields` false leaves out what differs from run to run.
std::string to_json(std::span<const Outcome> outcomes, const std::string& command = {},
                    bool volatile_fields = true);
std::string to_csv(std::span<const Outcome> outcomes);

/// The timeline of a run in Perfetto's format, for ui.perfetto.dev: it is simulated once more.
/// Requests are shown from lines_begin up to lines_end. Interrupted when `watch` asks for it.
std::string perfetto_trace(const Outcome& outcome, Time lines_begin = {}, Time lines_end = {},
                           const Watch& watch = {});

/// Whether this build can make pages: npm was there when it was configured.
bool has_pages();
/// Pages for a browser, as `--report` of `run`, `check` and `explore` and `machine show --graph
/// html` write them; `command` stands on them as what was called. Failure: this build has no pages.
/// One outcome has a timeline: it is simulated once more, interrupted when `watch` asks for it.
std::string page(std::span<const Outcome> outcomes, const std::string& command = {},
                 const Watch& watch = {});
std::string page(const Exploration& found, const std::string& command = {});
std::string page(const Machine& machine, const std::string& command = {});
std::string page(std::span<const Proof> proofs, const std::string& command = {});

}  // namespace hemiola
