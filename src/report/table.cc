// The table of nccl-tests, and where its time goes.
#include <fmt/format.h>

#include <ostream>

#include "core/data_type.h"
#include "report/columns.h"
#include "report/numbers.h"
#include "report/report.h"

namespace hemiola::report {
namespace {

/// The engine that did it, and how many GPUs stood for all, as of the last result.
std::string engine_text(const Run& run, const std::vector<sim::Result>& results) {
  std::string text = run.engine;
  if (results.empty()) return text;
  const sim::Result& last = results.back();
  if (!last.reference_because.empty())
    text = "reference (line leaves to it: " + last.reference_because + ')';
  const auto ranks = static_cast<int>(last.attribution.size());
  if (last.simulated_ranks > 0 && last.simulated_ranks < ranks)
    text += fmt::format(", {} of {} GPUs for all, which behave alike", last.simulated_ranks, ranks);
  else if (ranks > 1 && !last.unfolded_because.empty())
    text += fmt::format(", all {} GPUs: {}", ranks, last.unfolded_because);
  return text;
}

void print_head(std::ostream& out, const Run& run, const std::vector<sim::Result>& results) {
  out << "# machine  " << run.machine << '\n';
  out << "# program  " << run.program;
  if (const auto& program = run.bound) {
    out << fmt::format(", {} on {} ranks, protocol {}", name_of(program->collective()),
                       program->ranks(), name_of(program->program().protocol));
    if (program->program().in_place) out << ", in place";
  }
  out << "\n# engine   " << engine_text(run, results) << '\n';
  if (!run.launch.empty()) out << "# launch   " << run.launch << '\n';
  out << "#\n";
}

}  // namespace

void print_table(std::ostream& out, const Run& run, const std::vector<sim::Result>& results) {
  print_head(out, run, results);
  const auto right = Align::right;
  Columns columns({right, right, right, right, right, right, right, right, right, Align::left});
  columns.add_heading(
      {"size", "count", "type", "redop", "time", "algbw", "busbw", "bound", "%bound", "checked"});
  columns.add_heading({"(B)", "(elements)", "", "", "(us)", "(GB/s)", "(GB/s)", "(us)", "", ""});
  const std::optional<program::Bound>& program = run.bound;
  for (const sim::Result& result : results) {
    columns.add({std::to_string(result.size.count), std::to_string(result.count),
                 std::string(program ? name_of(program->type()) : "-"),
                 std::string(program ? name_of(program->op()) : "-"), table_us(result.time),
                 table_rate(result.algbw_GBps), table_rate(result.busbw_GBps),
                 table_us(result.bound.time()), percent(result.bound.time(), result.time),
                 result.checked});
  }
  columns.print(out, "  ");
}

void print_attribution(std::ostream& out, const sim::Result& result) {
  if (result.attribution.empty()) return;
  const std::size_t rank = latest_rank(result);
  out << fmt::format("# where the {} ns at {} B go (rank {}, the latest of {}):\n",
                     exact_ns(result.time), result.size.count, rank, result.attribution.size());
  const sim::Attribution& attribution = result.attribution[rank];
  Columns columns({Align::left, Align::right, Align::left, Align::right, Align::left});
  for (const sim::Reason reason : by_share(attribution)) {
    const Time time{attribution[static_cast<std::size_t>(reason)]};
    columns.add(
        {std::string(sim::name_of(reason)), exact_ns(time), "ns", percent(time, result.time), "%"});
  }
  columns.print(out, "#   ");
  if (!result.counters.contains("waits.wakes")) return;
  const auto count = [&](const char* name) { return result.counters.at(name); };
  out << fmt::format(
      "# waits of all ranks: {} flag reads ({} polls), {} data reads; {} wake-ups ({} false), {} "
      "workgroups switched out\n",
      count("reads.flag.cu"), count("reads.poll.cu"), count("reads.data.cu"), count("waits.wakes"),
      count("waits.false_wakes"), count("waits.switched_out"));
}

}  // namespace hemiola::report
