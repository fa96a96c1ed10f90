#include "report/block_exploration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ostream>

#include "report/values/columns.h"
#include "report/values/exploration_fields.h"
#include "report/values/numbers.h"

namespace hemiola::report {
namespace {

using explore::BlockCandidate;
using explore::BlockExploration;
using explore::BlockJob;

std::string speedup_cell(Time serial, Time time) {
  return fmt::format("{:.2f}", static_cast<double>(serial.fs) / static_cast<double>(time.fs));
}

std::string parts_text(const BlockJob& job) {
  std::vector<std::string> parts;
  for (const BlockJob::Part& part : job.parts)
    parts.push_back(fmt::format("{} {}", part.name, table_us(part.alone)));
  return fmt::format("{}", fmt::join(parts, " + "));
}

void print_block(std::ostream& out, const BlockExploration& found) {
  out << "# block     " << explore::text_of(found.block) << '\n';
  for (const std::string& line : explore::who_holds_what(found.block))
    out << "#           " << line << '\n';
  out << "# machine   " << found.machine << '\n';
  out << "# launch    " << name_of(found.launch) << "\n#\n";
  out << fmt::format("# serial    {} us: {}\n", table_us(found.serial.time),
                     parts_text(found.serial));
  out << fmt::format("# apart     {} us: {}\n", table_us(found.apart.time),
                     parts_text(found.apart));
  out << fmt::format("#           first: {}\n", found.apart_first);
  out << fmt::format("#           last: {}\n", found.apart_last);
  out << fmt::format(
      "# ideal     {} us, which no chain is below; of serial compute takes {} us, communication "
      "{} us\n#\n",
      table_us(found.ideal), table_us(found.compute()), table_us(found.communication()));
}

std::vector<std::string> row_of_job(const BlockExploration& found, const char* name,
                                    const BlockJob& job) {
  const Time time = job.confirmed.value_or(job.time);
  const Time serial =
      job.confirmed && found.serial.confirmed ? *found.serial.confirmed : found.serial.time;
  return {name,
          table_us(time),
          speedup_cell(serial, time),
          percent(found.ideal, time),
          "-",
          "-",
          "-",
          "-",
          "-",
          job.confirmed ? "sampled" : "fluid"};
}

std::vector<std::string> row_of_chain(const BlockExploration& found, const BlockCandidate& one) {
  std::vector<std::string> row{one.schedule.text(), table_us(one.time()),
                               fmt::format("{:.2f}", found.speedup(one)),
                               percent(found.ideal, one.time())};
  if (one.losses) {
    const std::int64_t exposed = std::max<std::int64_t>(0, (one.fluid - one.losses->computes).fs);
    row.insert(row.end(),
               {ratio_cell(one.losses->dil_compute), ratio_cell(one.losses->dil_communication),
                ratio_cell(one.losses->cil_compute), table_us({exposed})});
  } else {
    row.insert(row.end(), 4, "-");
  }
  row.push_back(mebibytes(one.buffers));
  row.emplace_back(one.confirmed ? "sampled" : "fluid");
  return row;
}

void print_rows(std::ostream& out, const BlockExploration& found) {
  Columns columns({kLeft, kRight, kRight, kRight, kRight, kRight, kRight, kRight, kRight, kLeft});
  columns.add_heading({"schedule", "time", "speedup", "%ideal", "DIL", "DIL", "CIL", "exposed",
                       "buffers", "engine"});
  columns.add_heading({"", "(us)", "", "", "compute", "comm", "compute", "(us)", "(MiB)", ""});
  columns.add(row_of_job(found, "serial", found.serial));
  columns.add(row_of_job(found, "apart: the best of each operator", found.apart));
  for (const std::size_t i : found.shown()) columns.add(row_of_chain(found, found.candidates[i]));
  columns.print(out, "  ");
  out << "#\n";
}

void print_losses(std::ostream& out, const BlockExploration& found) {
  if (found.candidates.empty() || !found.candidates.front().losses) return;
  const BlockCandidate& best = found.candidates.front();
  out << fmt::format("# where {} us are lost against ideal (fluid; {}):\n",
                     table_us(best.fluid - found.ideal), best.schedule.text());
  for (const auto& [name, part] : best.losses->parts())
    out << fmt::format("#   {:<13} {:>12.3f} us\n", name, static_cast<double>(part) / 1e9);
}

}  // namespace

std::string command_of(const BlockExploration& found, const BlockCandidate& candidate) {
  return run_command(explore::template_of(found.block), "--machine " + found.machine,
                     candidate.parameters);
}

void print_block_exploration(std::ostream& out, const BlockExploration& found) {
  print_block(out, found);
  print_rows(out, found);
  print_losses(out, found);
  out << fmt::format("# {} chains: {} simulated\n", found.space, found.candidates.size());
  if (!found.refused.empty())
    out << fmt::format("# {} cannot be run: {}: {}\n", found.refused.size(),
                       found.refused.front().schedule.text(), found.refused.front().refused);
  if (const BlockCandidate* winner = found.winner()) {
    out << fmt::format("# best: {}: {} us, {:.2f} x serial\n#   {}\n", winner->schedule.text(),
                       table_us(winner->time()), found.speedup(*winner),
                       command_of(found, *winner));
  } else {
    out << fmt::format("# best: {}: no chain is faster here\n",
                       found.apart.time < found.serial.time ? "apart" : "serial");
  }
}

}  // namespace hemiola::report
