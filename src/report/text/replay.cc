#include "report/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "report/values/numbers.h"
#include "report/values/result_tables.h"
#include "sim/result/profile.h"

namespace hemiola::report {
namespace {

constexpr std::size_t kMostLines = 12;

void print_program(std::ostream& out, const Run& run) {
  out << "# machine  " << run.machine << "\n# program  " << run.program;
  if (run.bound) out << ", " << to_string(run.bound->size());
  out << '\n';
}

/// "fifo" of "fifo 3"; the whole name where no number ends it.
std::string stem(const std::string& name) {
  return name.substr(0, name.find_last_not_of("0123456789") + 1);
}

/// Those of one size that differ in a number only stand together.
void print_other_buffers(std::ostream& out, const sim::Profile& profile,
                         const std::vector<bool>& named) {
  std::string text;
  for (std::size_t b = 0; b < named.size(); ++b) {
    if (named[b]) continue;
    const sim::ProfileBuffer& first = profile.buffers[b];
    std::size_t last = b;
    while (last + 1 < named.size() && !named[last + 1] &&
           profile.buffers[last + 1].bytes == first.bytes &&
           stem(profile.buffers[last + 1].name) == stem(first.name))
      ++last;
    text += text.empty() ? "" : ", ";
    text += last == b ? fmt::format("{} {}", first.name, first.bytes)
                      : fmt::format("{} to {} {} each", first.name, profile.buffers[last].name,
                                    first.bytes);
    b = last;
  }
  out << "#\n# Rows of data may name these, too:";
  out << (text.empty() ? "" : " " + text + ",") << " and @memory, all that a rank has.\n";
}

}  // namespace

void print_replays(std::ostream& out, const Replay& replay,
                   const std::vector<sim::Result>& results) {
  print_program(out, replay.run);
  out << fmt::format("# profile  {}, {} rows; rank {} of {} is simulated\n#\n", replay.profile,
                     replay.rows, fmt::join(replay.ranks, ","), replay.of);
  printed(replays_table(results)).print(out, "  ");
}

void print_peer_waits(std::ostream& out, const sim::Result& result) {
  if (result.peer_waits.empty()) return;
  out << "# what it waited for (reason 'peer'):\n";
  page::Table table = peer_waits_table(result);
  const std::size_t all = table.rows.size();
  table.rows.resize(std::min(kMostLines, all));
  printed(table, Units::beside).print(out, "#   ");
  if (all <= kMostLines) return;
  Time sum{};
  for (const sim::PeerWait& wait : result.peer_waits) sum += wait.time;
  out << fmt::format("#   ... and {} more (--json has all); all are {} ns\n", all - kMostLines,
                     exact_ns(sum));
}

std::string replays_to_csv(const std::vector<sim::Result>& results) {
  const std::vector<std::string> names = setting_names(results);
  std::string text;
  for (const std::string& name : names) text += csv_cell(name) + ',';
  text += "size_bytes,time_ns";
  for (const ReplayCount& count : kReplayCounts) text += fmt::format(",{}", count.column);
  text += ",answers";
  for (std::size_t r = 0; r < sim::kReasons; ++r)
    text += fmt::format(",{}_ns", sim::name_of(static_cast<sim::Reason>(r)));
  text += '\n';
  for (const sim::Result& result : results) {
    for (const std::string& name : names) text += csv_cell(setting_of(result, name)) + ',';
    text += fmt::format("{},{}", result.size.count, exact_ns(result.time));
    for (const ReplayCount& count : kReplayCounts)
      text += fmt::format(",{}", result.counters.at(count.counter));
    text += ',' + result.answers;
    for (const std::int64_t fs : result.attribution[latest_rank(result)])
      text += ',' + exact_ns(Time{fs});
    text += '\n';
  }
  return text;
}

void print_needed_rows(std::ostream& out, const Run& run, const std::vector<int>& ranks,
                       const study::NeededRows& needed) {
  const sim::Profile& profile = needed.profile;
  print_program(out, run);
  out << fmt::format(
      "#\n# The head of a profile for rank {}, with the buffers that rows have to name:\n",
      fmt::join(ranks, ","));
  out << fmt::format("# ranks {}\n", profile.ranks);
  std::vector<bool> named(profile.buffers.size());
  for (const sim::ProfileRow& row : profile.rows) named[index(row.buffer)] = true;
  for (std::size_t b = 0; b < named.size(); ++b)
    if (named[b])
      out << fmt::format("# buffer {} {}\n", profile.buffers[b].name, profile.buffers[b].bytes);
  print_other_buffers(out, profile, named);
  if (needed.flags.empty()) {
    out << "#\n# It waits for nobody: no row has to be there.\n";
    return;
  }
  out << fmt::format("#\n# What it waits for, in {} rows:\n", profile.rows.size());
  const auto left = Align::left, right = Align::right;
  Columns columns({right, right, left, left, right, right, right, right, left});
  columns.add_heading({"source", "destination", "kind", "buffer", "offset", "size", "value", "rows",
                       "what the program calls it"});
  constexpr std::size_t kMostFlags = 64;
  for (std::size_t f = 0; f < std::min(kMostFlags, needed.flags.size()); ++f) {
    const study::NeededFlag& flag = needed.flags[f];
    columns.add({std::to_string(flag.source), std::to_string(flag.rank),
                 std::string(name_of(flag.kind)), flag.buffer, std::to_string(flag.offset),
                 std::to_string(flag.end - flag.offset), std::to_string(flag.value),
                 std::to_string(flag.rows), flag.name});
  }
  columns.print(out, "  ");
  if (needed.flags.size() > kMostFlags)
    out << fmt::format("# ... and {} more (--output FILE has all)\n",
                       needed.flags.size() - kMostFlags);
  out << "# `value` of an `add` is what its rows add in all. --output FILE writes all rows, at "
         "time "
         "0 or\n"
         "# behind what their ranks wait for from this one. Other times are yours to say.\n";
}

}  // namespace hemiola::report
