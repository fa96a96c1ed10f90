#include "report/exploration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ostream>
#include <utility>
#include <vector>

#include "report/values/columns.h"
#include "report/values/exploration_fields.h"
#include "report/values/numbers.h"
#include "study/tables/statistics.h"

namespace hemiola::report {
namespace {

using explore::Exploration;
using explore::Loss;

std::string two_decimals(double value) {
  return fmt::format("{:.2f}", value);
}

void print_operator(std::ostream& out, const Exploration& found) {
  const machine::GemmShape local = explore::local_product(found.op);
  out << "# operator  " << explore::text_of(found.op) << '\n';
  out << fmt::format("#           each GPU multiplies {} x {} x {} (M x N x K)\n", local.m, local.n,
                     local.k);
  for (const std::string& tensor : explore::who_holds_what(found.op))
    out << "#           " << tensor << '\n';
  out << "# machine   " << found.machine << '\n';
  out << "# launch    " << name_of(found.launch) << '\n';
}

void print_serial(std::ostream& out, const Exploration& found) {
  const explore::Serial& serial = found.serial;
  out << fmt::format(
      "#\n# serial    {} us = {} {} us + product {} us (tiles {}x{}{})\n", table_us(serial.time),
      serial.program, table_us(serial.collective), table_us(serial.product), serial.kernel.tile.m,
      serial.kernel.tile.n,
      serial.kernel.split_k > 1 ? fmt::format(", split-K {}", serial.kernel.split_k) : "");
  if (!explore::is_even(found.op))
    out << "#           as if all ranks had as many tokens as the busiest one\n";
  out << fmt::format(
      "# ideal     {} us, which no schedule is below (by {}): {} x\n#\n",
      table_us(found.ideal.time), explore::name_of(found.ideal.by),
      two_decimals(static_cast<double>(serial.time.fs) /
                   static_cast<double>(std::max<std::int64_t>(1, found.ideal.time.fs))));
}

std::vector<std::string> row_of(const Exploration& found, const explore::Candidate& candidate) {
  const explore::Losses lost = candidate.losses.value_or(explore::Losses{});
  const std::int64_t exposed = std::max<std::int64_t>(0, candidate.fluid.fs - lost.products.fs);
  return {candidate.schedule.text(),
          table_us(candidate.time()),
          two_decimals(found.speedup(candidate)),
          percent(found.ideal.time, candidate.time()),
          ratio_cell(lost.dil_product),
          ratio_cell(lost.dil_communication),
          ratio_cell(lost.cil_product),
          ratio_cell(lost.cil_communication),
          candidate.losses ? table_us({exposed}) : "-",
          mebibytes(candidate.extra_traffic),
          mebibytes(candidate.buffers),
          candidate.confirmed ? "sampled" : "fluid"};
}

void print_rows(std::ostream& out, const Exploration& found) {
  Columns columns({kLeft, kRight, kRight, kRight, kRight, kRight, kRight, kRight, kRight, kRight,
                   kRight, kLeft});
  columns.add_heading({"schedule", "time", "speedup", "%ideal", "DIL", "DIL", "CIL", "CIL",
                       "exposed", "extra", "buffers", "engine"});
  columns.add_heading(
      {"", "(us)", "", "", "product", "comm", "product", "comm", "(us)", "(MiB)", "(MiB)", ""});
  for (const std::size_t i : found.shown()) columns.add(row_of(found, found.candidates[i]));
  columns.print(out, "  ");
}

/// What was measured beside what was simulated.
void print_measured(std::ostream& out, const Exploration& found) {
  std::vector<double> beyond;  // us
  print_measured_order(out, "schedule", found.measured_us, [&](const std::string& schedule) {
    std::optional<Time> simulated;
    if (schedule == "serial") simulated = found.serial.confirmed.value_or(found.serial.time);
    for (const explore::Candidate& candidate : found.candidates) {
      if (candidate.schedule.text() != schedule) continue;
      simulated = candidate.time();
      beyond.push_back(found.measured_us.at(schedule) - simulated->us());
    }
    return simulated;
  });
  if (beyond.empty() || found.software.fs > 0) return;
  const double software = study::median_of(std::move(beyond));
  if (software <= 0) return;
  out << fmt::format(
      "# measured schedules take {:.3f} us more than simulated (median): a row\n"
      "#   software,,,,,,{:.3f}\n# adds what software takes around them\n",
      software, software);
}

void print_losses(std::ostream& out, const Exploration& found) {
  if (found.candidates.empty() || !found.candidates.front().losses) return;
  const explore::Candidate& best = found.candidates.front();
  out << fmt::format("# where {} us are lost against ideal (fluid; {}):\n",
                     table_us({best.fluid.fs - found.ideal.time.fs}), best.schedule.text());
  for (std::size_t i = 0; i < explore::kLosses; ++i) {
    const std::int64_t part = best.losses->parts[i];
    if (part == 0) continue;
    out << fmt::format("#   {:<10} {:>12.3f} us\n", explore::name_of(static_cast<Loss>(i)),
                       static_cast<double>(part) / 1e9);
  }
}

void print_space(std::ostream& out, const Exploration& found) {
  std::vector<std::string> why;
  for (const auto& [by, count] : found.pruned)
    why.push_back(fmt::format("{} by {}", count, explore::name_of(by)));
  out << fmt::format("# {} schedules: {} simulated", found.space, found.candidates.size() + 1);
  if (!why.empty()) out << fmt::format("; cannot win: {}", fmt::join(why, ", "));
  if (found.left_out > 0)
    out << fmt::format("; {} promise less than those simulated", found.left_out);
  out << '\n';
  if (!found.refused.empty()) {
    out << fmt::format("# {} cannot be run: {}: {}\n", found.refused.size(),
                       found.refused.front().schedule.text(), found.refused.front().refused);
  }
  if (!found.not_tried.empty()) out << "# not tried: " << found.not_tried << '\n';
  if (!found.not_confirmed.empty())
    out << "# sampled did not confirm: " << found.not_confirmed << '\n';
}

void print_picks(std::ostream& out, const Exploration& found) {
  for (const explore::RulePick& pick : found.picks) {
    out << fmt::format("# rule {}: {}", pick.rule, pick.pick.text());
    if (pick.regret)
      out << fmt::format(", {:.1f} % slower than the best\n", 100 * *pick.regret);
    else
      out << ", of which nothing was simulated\n";
  }
}

}  // namespace

std::string command_of(const Exploration& found, const explore::Candidate& candidate) {
  return run_command(explore::template_of(found.op, candidate.schedule),
                     "--machine " + found.machine, candidate.parameters);
}

void print_exploration(std::ostream& out, const Exploration& found) {
  print_operator(out, found);
  print_serial(out, found);
  print_rows(out, found);
  print_measured(out, found);
  out << "#\n";
  for (const std::string& remark : found.remarks) out << "# measured: " << remark << '\n';
  print_losses(out, found);
  print_space(out, found);
  if (const explore::Candidate* winner = found.winner()) {
    out << fmt::format("# best: {}: {} us, {} x serial\n#   {}\n", winner->schedule.text(),
                       table_us(winner->time()), two_decimals(found.speedup(*winner)),
                       command_of(found, *winner));
  } else {
    out << "# best: serial: nothing that overlaps is faster here\n";
  }
  const study::EvidenceRows& rows = study::EvidenceRows::shipped();
  out << "# "
      << study::evidence_line(found.serial_likeness(),
                              study::evidence_of(found.serial_likeness(), rows))
      << " (serial)\n";
  if (!found.candidates.empty())
    out << "# "
        << study::speedup_line(study::evidence_of(found.ratio_likeness(), rows),
                               found.speedup(found.candidates.front()))
        << '\n';
  print_picks(out, found);
}

void print_range(std::ostream& out, const explore::RangeOfRows& range) {
  if (range.found.empty()) return;
  const Exploration& last = range.found.back();
  out << fmt::format("# operator  {}, M from {} to {}; N = {}, K = {}, {} on {} GPUs\n",
                     name_of(last.op.kind), range.found.front().op.m, last.op.m, last.op.n,
                     last.op.k, name_of(last.op.type), last.op.ranks);
  out << "# machine   " << last.machine << '\n';
  out << "# launch    " << name_of(last.launch) << "\n#\n";
  Columns columns({kRight, kRight, kRight, kRight, kRight, kRight, kLeft});
  columns.add_heading({"M", "serial", "collective", "product", "best", "speedup", "schedule"});
  columns.add_heading({"", "(us)", "(us)", "(us)", "(us)", "", ""});
  for (const Exploration& found : range.found) {
    const explore::Candidate* winner = found.winner();
    columns.add({std::to_string(found.op.m), table_us(found.serial.time),
                 table_us(found.serial.collective), table_us(found.serial.product),
                 table_us(found.best()),
                 two_decimals(winner != nullptr ? found.speedup(*winner) : 1.0),
                 winner != nullptr ? winner->schedule.text() : "serial"});
  }
  columns.print(out, "  ");
  if (!range.refused.empty())
    out << fmt::format("# not looked at, as M does not divide: {}\n",
                       fmt::join(range.refused, ", "));
  if (const auto from = explore::pays_from(range.found))
    out << fmt::format("# overlap pays from M = {} on\n", *from);
  else
    out << "# overlap does not pay for the largest M\n";
}

}  // namespace hemiola::report
