#include "report/tuning.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ostream>
#include <set>

#include "report/values/columns.h"
#include "report/values/exploration_fields.h"
#include "report/values/numbers.h"
#include "report/values/tuning_fields.h"

namespace hemiola::report {
namespace {

using tune::Bucket;
using tune::Tuning;

constexpr std::size_t kFastestShown = 8;

void print_candidates(std::ostream& out, const Bucket& bucket) {
  Columns columns({kLeft, kRight, kRight, kRight, kRight, kLeft, kLeft});
  columns.add_heading({"point", "time", "slower", "workgroups", "buffers", "engine", "loses"});
  columns.add_heading({"", "(us)", "(%)", "", "(MiB)", "", "(us)"});
  const std::vector<std::size_t> front = bucket.pareto();
  for (const std::size_t i : shown_candidates(bucket)) {
    const tune::Candidate& one = bucket.candidates[i];
    const bool is_front = std::ranges::find(front, i) != front.end();
    columns.add({(is_front ? "* " : "  ") + one.text + (one.is_written ? "" : " (not written yet)"),
                 table_us(one.time()), slower(bucket, one), std::to_string(one.workgroups),
                 mebibytes(one.buffers), one.sampled ? "sampled" : "fluid", loses(bucket, one)});
  }
  for (const tune::Beside& one : bucket.beside)
    columns.add({"  " + one.name + ": " + one.plan, table_us(one.time), slower(bucket, one.time),
                 "-", "-", bucket.candidates.front().sampled ? "sampled" : "fluid", "-"});
  columns.print(out, "  ");
}

void print_dropped(std::ostream& out, const Bucket& bucket) {
  out << fmt::format("# {} points: {} simulations", bucket.space, bucket.simulations);
  if (bucket.descents > 1) out << fmt::format(" in {} descents", bucket.descents);
  if (bucket.pruned > 0) out << fmt::format("; {} cannot win: their bound", bucket.pruned);
  out << '\n';
  constexpr std::string_view kWhy[] = {"make no plan", "cannot be fused",
                                       "move data as the compiler does not", "cannot be lowered"};
  for (const auto& [why, dropped] : bucket.dropped)
    out << fmt::format("# {} {}: {}\n", dropped.count, kWhy[index(why)], dropped.first);
}

void print_measured_points(std::ostream& out, const Tuning& tuning) {
  print_measured_order(out, "point", tuning.measured_us, [&](const std::string& text) {
    std::optional<Time> simulated;
    for (const Bucket& bucket : tuning.buckets) {
      for (const tune::Candidate& one : bucket.candidates)
        if (bench_name(tuning, bucket, one) == text) simulated = one.time();
    }
    return simulated;
  });
}

}  // namespace

std::vector<std::size_t> shown_candidates(const Bucket& bucket) {
  std::set<std::size_t> shown;
  for (const std::size_t i : bucket.pareto()) shown.insert(i);
  std::set<study::Settings> seen;
  for (std::size_t i = 0; i < bucket.candidates.size() && seen.size() < kFastestShown; ++i)
    if (seen.insert(bucket.candidates[i].plan.parameters).second) shown.insert(i);
  return {shown.begin(), shown.end()};
}

namespace {

std::string percent_of(Time time, Time least) {
  return fmt::format("{:.1f}", 100 * (static_cast<double>(time.fs) /
                                          static_cast<double>(std::max<std::int64_t>(1, least.fs)) -
                                      1));
}

}  // namespace

std::string slower(const Bucket& bucket, Time time) {
  return percent_of(time, bucket.candidates.front().time());
}

std::string slower(const Bucket& bucket, const tune::Candidate& candidate) {
  const tune::Candidate& best = bucket.candidates.front();
  if (candidate.sampled && best.sampled)
    return percent_of(candidate.sampled->time, best.sampled->time);
  if (candidate.fluid && best.fluid) return percent_of(candidate.fluid->fluid, best.fluid->fluid);
  return "-";
}

std::string loses(const Bucket& bucket, const tune::Candidate& candidate) {
  const tune::Candidate& best = bucket.candidates.front();
  const sim::Attribution *of = nullptr, *least = nullptr;
  if (candidate.sampled && best.sampled) {
    of = &candidate.sampled->attribution;
    least = &best.sampled->attribution;
  } else if (candidate.fluid && best.fluid) {
    of = &candidate.fluid->attribution;
    least = &best.fluid->attribution;
  } else {
    return "-";
  }
  sim::Attribution more{};
  for (std::size_t i = 0; i < more.size(); ++i)
    more[i] = std::max<std::int64_t>(0, (*of)[i] - (*least)[i]);
  std::vector<std::string> words;
  for (const sim::Reason reason : by_share(more)) {
    const double us = static_cast<double>(more[index(reason)]) / 1e9;
    if (words.size() < 2 && us >= 0.05)
      words.push_back(fmt::format("{} {:.1f}", sim::name_of(reason), us));
  }
  return words.empty() ? "-" : fmt::format("{}", fmt::join(words, ", "));
}

std::string command_of(const Tuning& tuning, const Bucket& bucket,
                       const tune::Candidate& candidate) {
  const std::string where =
      fmt::format("--machine {} --ranks {}{}", tuning.machine, tuning.ranks, tuning.timing);
  if (!candidate.is_written)
    return run_command(candidate.plan.name, where, candidate.plan.parameters);
  if (!bucket.file.empty()) return run_command(bucket.file, where, {});
  return "-o FILE.py writes it; " + run_command("FILE.py", where, {});
}

std::string bench_name(const Tuning& tuning, const Bucket& bucket,
                       const tune::Candidate& candidate) {
  return tuning.buckets.size() > 1 ? bucket.name + ": " + candidate.text : candidate.text;
}

void print_tuning(std::ostream& out, const Tuning& tuning) {
  out << fmt::format("# kernel    {}\n# plan      {} on {} ranks\n# machine   {}\n", tuning.kernel,
                     tuning.plan, tuning.ranks, tuning.machine);
  std::vector<std::string> dimensions;
  for (const tune::Dimension& one : tuning.dimensions)
    dimensions.push_back(fmt::format("{} {}", one.values.size(), one.name));
  out << fmt::format("# space     {}\n", fmt::join(dimensions, " x "));
  out << fmt::format("# search    {}{}\n", name_of(tuning.method),
                     tuning.method == tune::Method::exhaustive
                         ? ""
                         : fmt::format(", at most {} simulations of each size", tuning.budget));
  for (const std::string& remark : tuning.remarks) out << "# measured: " << remark << '\n';
  for (const Bucket& bucket : tuning.buckets) {
    out << "#\n# " << bucket.name << '\n';
    print_candidates(out, bucket);
    print_dropped(out, bucket);
    if (const tune::Candidate* winner = bucket.winner())
      out << fmt::format("# best: {}: {} us\n#   {}\n", winner->text, table_us(winner->time()),
                         command_of(tuning, bucket, *winner));
    else
      out << "# best: none that the compiler writes\n";
  }
  print_measured_points(out, tuning);
}

}  // namespace hemiola::report
