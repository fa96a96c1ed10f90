// Results as tables, JSON, CSV and traces.
#pragma once

#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "machine/machine.h"
#include "plan/plan.h"
#include "program/program.h"
#include "sim/result/result.h"
#include "sim/result/trace.h"
#include "verify/execute.h"
#include "verify/programs/sizes.h"
#include "verify/verify.h"

namespace hemiola::report {

namespace page {
struct Page;
}

/// What was run: the head of tables and of --json.
struct Run {
  std::string command;  ///< the command line
  std::string machine;
  std::string program;
  std::string engine;
  std::string launch;                     ///< "stream" or "graph"; "" is left out
  std::optional<program::Bound> bound{};  ///< for dtype, op, ranks
  bool one_host = false;                  ///< one host thread launches all GPUs
};

/// Of a run with --in-place-too: a row of the table has it in the columns behind its twin's.
bool is_in_place(const sim::Result& result);

/// What measured rows say of the results, in one line: "evidence: ...". Of a job "".
std::string evidence_text(const Run& run, const std::vector<sim::Result>& results);
/// These rows, one per line.
void print_evidence(std::ostream& out, const Run& run, const std::vector<sim::Result>& results);

/// nccl-tests columns (size, count, type, redop, time us, algbw, busbw GB/s) plus bound, % of bound
/// (bound / time) and how far the program was checked. Every line that is not a row starts with
/// '#'.
void print_table(std::ostream& out, const Run& run, const std::vector<sim::Result>& results);
/// Of a job: its launches, when each was under way, what it takes alone and whom it waits for.
void print_launches(std::ostream& out, const Run& run, const sim::Result& result);
/// Where the time goes, for the latest rank: reasons by share, largest first, zero ones left out.
/// Where wavefronts wait by monitor or SyncMon, a line with what that took.
void print_attribution(std::ostream& out, const sim::Result& result);
/// One line when proven; reasons when partial; the counterexample as numbered steps otherwise.
/// Warnings are rendered after it.
/// `prefix` opens every line: "# " above a table.
void print_proof(std::ostream& out, const verify::Proof& proof, std::string_view prefix = "# ");
/// For which sizes the proof holds, and which others were looked at: "every legal size from 64 KiB
/// on; looked at, too: 8 KiB".
std::string sizes_text(const verify::SizeClass& sizes, const std::vector<Bytes>& beside);
void print_sizes(std::ostream& out, const verify::SizeClass& sizes,
                 const std::vector<Bytes>& beside, std::string_view prefix = "# ");
/// What happened when it ran on real data, and where.
void print_execution(std::ostream& out, const verify::Execution& execution,
                     std::string_view prefix = "# ");
/// The graph in numbers, link classes with their goodput, bandwidth and latency between GPUs, every
/// parameter with its source, the warnings, and the window of the line engine.
void print_machine(std::ostream& out, const machine::Machine& machine);

/// The head of a plan and, for every rank or the given one, a table of its transfers: place
/// (rank.stream.number), operation, peer, areas, places that it waits for.
void print_plan(std::ostream& out, const plan::Plan& plan, std::optional<int> rank = {});
/// When the parts of a tensor arrive on a rank (plan/waves.h).
void print_waves(std::ostream& out, const plan::Plan& plan, int rank, std::int32_t tensor);
/// Transfers and what they wait for as a Mermaid flowchart or a Graphviz digraph, ranks in boxes of
/// their own; with `rank` that rank alone. Failure for more than 2,000 transfers.
std::string to_mermaid(const plan::Plan& plan, std::optional<int> rank = {});
std::string to_dot(const plan::Plan& plan, std::optional<int> rank = {});

/// The JSON object of the design (schema "hemiola/1"). `volatile_fields` false leaves out wall_s,
/// peak_rss_bytes, visited_hops and simulated_ranks, so that two runs can be compared byte by byte.
std::string to_json(const Run& run, const std::vector<sim::Result>& results,
                    bool volatile_fields = true);
/// One line per size: the table's columns in exact numbers, then the latest rank's nanoseconds by
/// reason.
std::string to_csv(const Run& run, const std::vector<sim::Result>& results);

/// One thing that was checked: a plan, or a program at a size.
struct Checked {
  std::string program;
  bool plan = false;
  bool of_elements = false;  ///< a plan that has one size, its own
  Bytes size{};              ///< of a program
  verify::Proof proof;
  std::optional<verify::SizeClass> sizes{};  ///< for which the proof of a program holds
  std::vector<Bytes> beside{};               ///< other sizes that were looked at, and are right
  std::optional<verify::Execution> data{};   ///< where it ran on real data, too
};
/// The object of `check --json`: the first check with the worst verdict, all warnings, and every
/// check by itself in `checks`.
std::string check_json(const std::string& command, const std::string& machine,
                       const std::vector<Checked>& checks);

/// A verdict for each check with the sizes that it holds for, and its counterexample step by step.
page::Page check_page(const std::string& command, const std::string& machine,
                      const std::vector<Checked>& checks);

/// Collects a simulation and renders Perfetto's protobuf trace: a process per rank with a track per
/// workgroup and per DMA engine, NIC and proxy; one process for the fabric with a track per link
/// and counters for its use and queue. Perfetto counts in nanoseconds, so both ends of a slice are
/// rounded down; the exact femtoseconds are arguments of the slice. Requests are wanted from
/// lines_begin up to lines_end (default: none); in that window links also show what they carried as
/// slices. `machine` is read by the constructor only.
class PerfettoTrace : public sim::TraceSink {
 public:
  PerfettoTrace(const machine::Machine& machine, Time lines_begin = {}, Time lines_end = {});
  ~PerfettoTrace() override;
  void stream(int rank, int stream, std::string_view name, Time begin, Time end) override;
  void workgroup(int rank, int stream, int workgroup, Time begin, Time end) override;
  void operation(int rank, int workgroup, std::string_view name, Time begin, Time end,
                 const sim::FlowEnds& flow) override;
  void link(int link, std::int64_t wire_bytes, int queue, Time begin, Time end) override;
  void engine(int rank, std::string_view engine, std::string_view name, Time begin, Time end,
              const sim::FlowEnds& flow) override;
  void request(int rank, std::string_view resource, std::string_view name, Time begin,
               Time end) override;
  bool wants_requests(Time at) const override;
  std::string serialize() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hemiola::report
