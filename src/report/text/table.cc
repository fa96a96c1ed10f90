// The table of nccl-tests, and where its time goes.
#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <vector>

#include "core/data_type.h"
#include "plan/plan_json.h"
#include "report/report.h"
#include "report/values/columns.h"
#include "report/values/launch_text.h"
#include "report/values/numbers.h"

namespace hemiola::report {

bool is_in_place(const sim::Result& result) {
  const auto place = result.settings.find("in_place");
  return place != result.settings.end() && place->second == "1";
}

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
  if (run.engine != "sampled" || !last.reference_because.empty()) return text;
  // Of several results each has windows of its own: the head says how far they go.
  const auto less = [](const sim::Result& a, const sim::Result& b) {
    return a.sampled.share < b.sampled.share;
  };
  const auto [least, most] = std::ranges::minmax_element(results, less);
  if (least->sampled.share == 1)
    return text + "\n#          nothing is left out: the time is that of the line engine";
  const auto worst = std::ranges::max_element(
      results,
      [](const sim::Result& a, const sim::Result& b) { return a.sampled.error < b.sampled.error; });
  text += fmt::format("\n#          {:.3g} % ", 100 * least->sampled.share);
  if (least != most && most->sampled.share > least->sampled.share)
    text += fmt::format("to {:.3g} % ", 100 * most->sampled.share);
  return text + fmt::format("of the bytes went line by line, in {} windows; times within {:.1f} %",
                            last.sampled.windows, 100 * worst->sampled.error);
}

void print_head(std::ostream& out, const Run& run, const std::vector<sim::Result>& results) {
  out << "# machine  " << run.machine << '\n';
  out << "# program  " << run.program;
  if (run.bound && run.bound->linked() != nullptr) {
    out << fmt::format(", {} launches on {} GPUs", run.bound->linked()->launches.size(),
                       run.bound->ranks());
  } else if (const auto& program = run.bound) {
    out << fmt::format(", {} on {} ranks, protocol {}", name_of(program->collective()),
                       program->ranks(), name_of(program->program().protocol));
    if (std::ranges::any_of(results, is_in_place))
      out << ", out of place and in place";
    else if (program->program().in_place)
      out << ", in place";
    if (program->program().executed_by.name != "hemiola")
      out << ", executor " << program->program().executed_by.name;
  }
  out << "\n# engine   " << engine_text(run, results) << '\n';
  if (!run.launch.empty()) out << "# launch   " << run.launch << '\n';
  out << "#\n";
}

}  // namespace

void print_table(std::ostream& out, const Run& run, const std::vector<sim::Result>& results) {
  print_head(out, run, results);
  using Texts = std::vector<std::string>;
  const bool both = std::ranges::any_of(results, is_in_place);
  const auto insert = [both](Texts row, const Texts& in_place) {
    if (both) row.insert(row.begin() + 7, in_place.begin(), in_place.end());
    return row;
  };
  std::vector<Align> align(both ? 12 : 9, Align::right);
  align.push_back(Align::left);
  Columns columns(std::move(align));
  columns.add_heading(insert(
      {"size", "count", "type", "redop", "time", "algbw", "busbw", "bound", "%bound", "checked"},
      {"in place", "algbw", "busbw"}));
  columns.add_heading(
      insert({"(B)", "(elements)", "", "", "(us)", "(GB/s)", "(GB/s)", "(us)", "", ""},
             {"(us)", "(GB/s)", "(GB/s)"}));
  const auto times = [](const sim::Result& one) -> Texts {
    return {table_us(one.time), table_rate(one.algbw_GBps), table_rate(one.busbw_GBps)};
  };
  const std::optional<program::Bound>& program = run.bound;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const sim::Result& result = results[i];
    if (is_in_place(result)) continue;
    Texts row{std::to_string(result.size.count), std::to_string(result.count),
              std::string(program ? name_of(program->type()) : "-"),
              std::string(program ? name_of(program->op()) : "-")};
    const Texts of_run = times(result);
    row.insert(row.end(), of_run.begin(), of_run.end());
    row.insert(row.end(), {table_us(result.bound.time()), percent(result.bound.time(), result.time),
                           result.checked});
    // Its twin follows, unless somebody stopped the run between them.
    const bool has_twin = i + 1 < results.size() && is_in_place(results[i + 1]);
    columns.add(insert(std::move(row), has_twin ? times(results[i + 1]) : Texts{"-", "-", "-"}));
  }
  columns.print(out, "  ");
  if (const std::string text = evidence_text(run, results); !text.empty())
    out << "# " << text << '\n';
}

void print_launches(std::ostream& out, const Run& run, const sim::Result& result) {
  print_head(out, run, {result});
  const auto right = Align::right, left = Align::left;
  Columns columns({left, left, left, right, right, right, right, right});
  columns.add_heading({"launch", "program", "ranks", "size", "begin", "end", "time", "alone"});
  columns.add_heading({"", "", "", "(B)", "(us)", "(us)", "(us)", "(us)"});
  constexpr std::size_t kMostRows = 64;
  for (std::size_t i = 0; i < std::min(kMostRows, result.launches.size()); ++i) {
    const sim::LaunchResult& launch = result.launches[i];
    columns.add({launch.name, launch.program, plan::ranks_text(launch.ranks),
                 std::to_string(launch.size.count), table_us(launch.begin), table_us(launch.end),
                 table_us(launch.end - launch.begin),
                 launch.alone.fs > 0 ? table_us(launch.alone) : "-"});
  }
  columns.print(out, "  ");
  if (result.launches.size() > kMostRows)
    out << fmt::format("# {} more launches stand in --json\n", result.launches.size() - kMostRows);
  out << fmt::format("# in all {} us, bound {} us, checked: {}\n", table_us(result.time),
                     table_us(result.bound.time()), result.checked);
  for (const sim::LaunchResult& launch : result.launches) {
    if (&launch - result.launches.data() >= static_cast<std::ptrdiff_t>(kMostRows)) break;
    if (!launch.slowed_by.empty()) out << "# " << slowdown_text(launch) << '\n';
  }
}

void print_attribution(std::ostream& out, const sim::Result& result) {
  if (result.attribution.empty()) return;
  const std::size_t rank = latest_rank(result);
  const std::string at =
      result.launches.empty() ? fmt::format(" at {} B", result.size.count) : std::string();
  out << fmt::format("# where the {} ns{} go (rank {}, the latest of {}):\n", exact_ns(result.time),
                     at, rank, result.attribution.size());
  const sim::Attribution& attribution = result.attribution[rank];
  Columns columns({Align::left, Align::right, Align::left, Align::right, Align::left});
  for (const sim::Reason reason : by_share(attribution)) {
    const Time time{attribution[index(reason)]};
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
