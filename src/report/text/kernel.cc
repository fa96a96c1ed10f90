// A kernel's description for people.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ostream>

#include "report/kernel_description.h"
#include "report/values/columns.h"
#include "report/values/kernel_words.h"

namespace hemiola::report {
namespace {

using compile::AccessDescription;
using compile::AxisIndex;
using compile::Description;
using compile::IndexKind;
using compile::Site;
using compile::Span;

std::string lines(const Span& span) {
  return span.last_line > span.line ? fmt::format("lines {}-{}", span.line, span.last_line)
                                    : fmt::format("line {}", span.line);
}

/// A place, with its file where that is not the kernel's.
std::string place(const Description& d, const Span& span) {
  return span.file == d.file ? std::to_string(span.line)
                             : fmt::format("{}:{}", span.file, span.line);
}

std::string loop_name(const Description& d, int id) {
  const compile::LoopDescription* loop = d.loop(id);
  if (loop == nullptr) return "loop";
  return loop->variable.empty() ? fmt::format("loop at line {}", loop->statement.line)
                                : loop->variable;
}

/// Expressions of a page's width are no help to people; JSON has them whole.
std::string shortened(const std::string& text) {
  constexpr std::size_t kMost = 60;
  return text.size() <= kMost ? text : text.substr(0, kMost - 3) + "...";
}

std::string index_text(const Description& d, const AxisIndex& axis) {
  std::vector<std::string> parts;
  for (const AxisIndex::TilePart& part : axis.tiles) {
    const std::string& name = d.axes[static_cast<std::size_t>(part.axis)].name;
    parts.push_back(part.block == "1" ? "tile " + name
                                      : fmt::format("tile {} x {}", name, part.block));
  }
  for (const AxisIndex::LoopPart& part : axis.loops) {
    const std::string name = "loop " + loop_name(d, part.loop);
    parts.push_back(
        part.step == "1" || part.step.empty() ? name : fmt::format("{} x {}", name, part.step));
  }
  if (!axis.indirect.empty()) parts.emplace_back("loaded index");
  if (!axis.offset.empty()) parts.push_back(shortened(axis.offset));
  if (!axis.range.empty()) parts.push_back("0:" + axis.range);
  if (axis.kind == IndexKind::unknown) parts.emplace_back("?");
  if (parts.empty()) parts.emplace_back("0");
  std::string text = fmt::format("{}", fmt::join(parts, " + "));
  if (axis.is_derived) text = "part of " + text;
  if (axis.wraps) text += " % " + axis.size;
  std::vector<std::string> notes;
  if (!axis.stride.empty() && axis.stride != "1")
    notes.push_back("stride " + shortened(axis.stride));
  if (!axis.size.empty() && !axis.wraps) notes.push_back("of " + axis.size);
  return notes.empty() ? text : fmt::format("{} ({})", text, fmt::join(notes, ", "));
}

void print_axes(std::ostream& out, const Description& d) {
  if (d.axes.empty()) return;
  out << "tile axes\n";
  Columns table({kLeft, kLeft, kLeft, kLeft, kLeft, kLeft});
  table.add({"name", "coordinate", "block", "size", "tiles", "cut"});
  for (const compile::TileAxis& axis : d.axes) {
    std::string cut = axis.can_be_cut ? "yes" : "no: " + axis.why_not;
    if (axis.splits_reduction) cut += ", splits the reduction";
    if (axis.provenance == compile::Provenance::annotated) cut += ", annotated";
    const std::string at = axis.assigned ? fmt::format(" (line {})", axis.assigned->line) : "";
    table.add({axis.name, shortened(axis.coordinate) + at, axis.block,
               axis.size.empty() ? "?" : axis.size,
               axis.tiles.empty() ? "?" : shortened(axis.tiles), cut});
  }
  table.print(out, "  ");
}

void print_loops(std::ostream& out, const Description& d) {
  if (d.loops.empty()) return;
  out << "loops\n";
  Columns table({kLeft, kLeft, kLeft});
  for (const compile::LoopDescription& loop : d.loops) {
    std::string what = loop.is_persistent      ? "tiles"
                       : loop.is_over_problems ? "problems"
                       : loop.axis.empty()     ? ""
                                               : "along " + loop.axis;
    const std::string range = loop.end.empty()
                                  ? "?"
                                  : fmt::format("{} to {} by {}", shortened(loop.begin),
                                                shortened(loop.end), shortened(loop.step));
    const bool is_here = loop.statement.file == d.file;
    table.add({is_here ? lines(loop.statement) : place(d, loop.statement),
               (loop.variable.empty() ? "" : loop.variable + ": ") + range, what});
  }
  table.print(out, "  ");
}

void print_operands(std::ostream& out, const Description& d) {
  if (d.operands.empty()) return;
  out << "operands\n";
  Columns table({kLeft, kLeft, kLeft, kLeft, kLeft});
  for (const compile::OperandDescription& operand : d.operands) {
    std::vector<std::string> does, through, axes;
    if (operand.is_read) does.emplace_back("read");
    if (operand.is_written) does.emplace_back("written");
    if (operand.is_added_to) does.emplace_back("atomic");
    for (const compile::Mechanism m : operand.mechanisms) through.emplace_back(word_of(m));
    for (const std::string& axis : operand.axes) axes.push_back(axis.empty() ? "-" : axis);
    std::string role =
        operand.role == compile::Role::none ? "" : std::string(word_of(operand.role));
    if (!operand.bound_as.empty())
      role += (role.empty() ? "is '" : ", is '") + operand.bound_as + "' of the plan";
    table.add({operand.name, fmt::format("[{}]", fmt::join(axes, ", ")),
               fmt::format("{}", fmt::join(does, ", ")),
               fmt::format("by {}", fmt::join(through, ", ")), role});
  }
  table.print(out, "  ");
}

void print_accesses(std::ostream& out, const Description& d) {
  if (d.accesses.empty()) return;
  out << "accesses\n";
  for (const AccessDescription& access : d.accesses) {
    out << fmt::format("  line {}: {} {}{}{}\n", place(d, access.call), access.function,
                       access.operand.empty() ? "?" : access.operand,
                       access.conditional ? ", under a condition" : "",
                       access.unknown.empty() ? "" : ", not understood");
    for (const AxisIndex& axis : access.axes) out << "    " << index_text(d, axis) << '\n';
  }
}

void print_reductions(std::ostream& out, const Description& d) {
  if (d.reductions.empty()) return;
  out << "reductions\n";
  for (const compile::ReductionDescription& r : d.reductions) {
    out << fmt::format("  line {}: {} over {}", place(d, r.call), r.function,
                       r.axis.empty() ? "?" : r.axis);
    if (r.loop >= 0) out << ", in loop " << loop_name(d, r.loop);
    if (!r.operands.empty()) out << ": " << fmt::format("{}", fmt::join(r.operands, " x "));
    out << '\n';
  }
}

void print_sites(std::ostream& out, const Description& d) {
  const auto print = [&](const Site& site, const char* where, int line) {
    out << fmt::format("  {}: {} line {}, indented by {}{}{}{}\n", site.operand, where, line,
                       site.indentation, site.is_inside_loop ? ", in a loop" : "",
                       site.is_conditional ? ", under a condition" : "",
                       site.is_own_line ? "" : ", which it shares with other code");
  };
  if (!d.waits.empty()) out << "waits would stand\n";
  for (const Site& site : d.waits) print(site, "before", site.statement.line);
  if (!d.signals.empty()) out << "signals would stand\n";
  for (const Site& site : d.signals) print(site, "behind", site.statement.last_line);
}

void print_tuning(std::ostream& out, const Description& d) {
  const compile::Tuning& tuning = d.tuning;
  if (tuning.line == 0 && tuning.heuristics.empty() && tuning.wrappers.empty()) return;
  out << "tuning\n";
  if (tuning.line > 0) {
    out << fmt::format("  line {}: ", tuning.line);
    if (!tuning.unknown.empty())
      out << "configurations are not in the text: " << tuning.unknown;
    else
      out << tuning.configurations.size()
          << (tuning.configurations.size() == 1 ? " configuration" : " configurations");
    if (!tuning.keys.empty()) out << fmt::format(", by {}", fmt::join(tuning.keys, ", "));
    out << '\n';
    constexpr std::size_t kShown = 4;
    for (std::size_t i = 0; i < tuning.configurations.size() && i < kShown; ++i) {
      const compile::Configuration& c = tuning.configurations[i];
      std::vector<std::string> words;
      for (const auto& [name, value] : c.constants) words.push_back(name + '=' + value);
      if (!c.warps.empty()) words.push_back("num_warps=" + c.warps);
      if (!c.stages.empty()) words.push_back("num_stages=" + c.stages);
      out << fmt::format("    {}\n", fmt::join(words, " "));
    }
    if (tuning.configurations.size() > kShown)
      out << "    and " << tuning.configurations.size() - kShown << " more\n";
  }
  for (const auto& [name, value] : tuning.heuristics)
    out << fmt::format("  {} = {}\n", name, value);
  if (!tuning.wrappers.empty())
    out << fmt::format("  wrapped in {}\n", fmt::join(tuning.wrappers, ", "));
}

}  // namespace

void print_kernel(std::ostream& out, const Description& d) {
  out << fmt::format("kernel {} ({}, {})\n", d.kernel, d.file, lines(d.definition));
  out << "  " << kind_of(d) << '\n';
  const compile::Dispatch& dispatch = d.dispatch;
  if (dispatch.region.end > 0) {
    out << fmt::format("  {} compute tile coordinates{}{}\n", lines(dispatch.region),
                       dispatch.tile_id.empty() ? "" : " from " + dispatch.tile_id,
                       dispatch.provenance == compile::Provenance::annotated ? " (annotated)" : "");
    for (const Span& again : dispatch.repeated)
      out << fmt::format("  and {} again\n", lines(again));
  }
  if (d.scheduler.is_persistent && d.scheduler.loop >= 0)
    out << fmt::format("  {} is the persistent loop over {} tiles by {}\n",
                       lines(d.loop(d.scheduler.loop)->statement), d.scheduler.tiles,
                       d.scheduler.workers);
  print_axes(out, d);
  print_loops(out, d);
  print_operands(out, d);
  print_accesses(out, d);
  print_reductions(out, d);
  print_sites(out, d);
  print_tuning(out, d);
  if (d.is_understood) return;
  out << "not understood\n";
  for (const compile::Unknown& unknown : d.unknown) {
    out << fmt::format("  {}:{}:{}: {}\n", unknown.span.file, unknown.span.line,
                       unknown.span.column, unknown.what);
    if (!unknown.hint.empty()) out << "    hint: " << unknown.hint << '\n';
  }
}

}  // namespace hemiola::report
