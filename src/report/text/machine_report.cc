// `hemiola machine show`: what the simulator will use, with its sources.
#include <fmt/format.h>

#include <ostream>
#include <set>

#include "report/report.h"
#include "report/values/columns.h"
#include "report/values/machine_rows.h"
#include "report/values/pair_figures.h"

namespace hemiola::report {
namespace {

using machine::Machine;

std::string plural(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

void add_all(Columns& columns, const std::vector<Row>& rows) {
  for (const Row& row : rows) columns.add(row);
}

void print_nodes(std::ostream& out, const Machine& machine) {
  out << "nodes: " << node_counts(machine) << "; " << plural(machine.links.size(), "directed link")
      << "\n\nGPUs\n";
  Columns columns({Align::left, Align::left, Align::left});
  add_all(columns, gpu_rows(machine));
  columns.print(out, "  ");
}

void print_link_classes(std::ostream& out, const Machine& machine) {
  const auto right = Align::right;
  out << "\nlink classes (per direction)\n";
  Columns columns({Align::left, right, right, right, right, right, right, right, Align::left});
  columns.add(
      {"class", "links", "bandwidth", "goodput", "latency", "payload", "header", "credits"});
  add_all(columns, link_class_rows(machine));
  columns.print(out, "  ");
  out << "  goodput = bandwidth x payload / (payload + header)\n";
}

void print_devices(std::ostream& out, const Machine& machine) {
  const std::vector<Row> rows = device_rows(machine);
  if (rows.empty()) return;
  out << "\nswitches and NICs\n";
  Columns columns({Align::right, Align::left, Align::left, Align::left});
  add_all(columns, rows);
  columns.print(out, "  ");
}

void print_matrix(std::ostream& out, const Machine& machine, std::string_view title,
                  std::string (*cell)(const PairFigures&)) {
  out << '\n' << title << '\n';
  Columns columns(std::vector<Align>(index(machine.ranks()) + 1, Align::right));
  std::vector<std::string> heading{""};
  for (int to = 0; to < machine.ranks(); ++to) heading.push_back(std::to_string(to));
  columns.add(heading);
  for (int from = 0; from < machine.ranks(); ++from) {
    std::vector<std::string> row{std::to_string(from)};
    for (int to = 0; to < machine.ranks(); ++to)
      row.push_back(from == to ? "-" : cell(pair_figures(machine, from, to)));
    columns.add(row);
  }
  columns.print(out, "  ");
}

void print_pair_classes(std::ostream& out, const Machine& machine) {
  const PairClasses pairs = pair_classes(machine);
  out << "\nbandwidth and latency between GPUs" << (pairs.of_rank_0 ? ", from rank 0" : "")
      << " (pairs with equal figures together)\n";
  const auto right = Align::right;
  Columns columns({right, Align::left, right, right, right, right, Align::left});
  columns.add({"pairs", "by", "hops", "paths", "GB/s", "ns", "such as"});
  add_all(columns, pairs.rows);
  columns.print(out, "  ");
}

void print_pairs(std::ostream& out, const Machine& machine) {
  constexpr int kMatrix = 16;
  if (machine.ranks() < 2) return;
  if (machine.ranks() <= kMatrix) {
    print_matrix(out, machine, "bandwidth between GPUs (GB/s, raw, over all paths; row to column)",
                 bandwidth_text);
    print_matrix(out, machine, "latency of one line between GPUs (ns, unloaded, outside the GPUs)",
                 latency_text);
  } else {
    print_pair_classes(out, machine);
  }
}

void print_parameters(std::ostream& out, const machine::GpuModel& model) {
  out << "\nparameters of " << model.name << " (--set gpu.NAME=VALUE)\n";
  Columns columns({Align::left, Align::right, Align::left});
  add_all(columns, parameter_rows(model));
  columns.print(out, "  ");
}

}  // namespace

void print_machine(std::ostream& out, const Machine& machine) {
  out << machine.name << (machine.description.empty() ? "" : ": ") << machine.description << '\n';
  print_nodes(out, machine);
  print_link_classes(out, machine);
  print_devices(out, machine);
  print_pairs(out, machine);
  const std::set<std::int32_t> used(machine.gpu_models.begin(), machine.gpu_models.end());
  for (const std::int32_t model : used) print_parameters(out, machine.models[index(model)]);
  out << "\nwindow (smallest feedback latency): " << to_string(machine.smallest_feedback_latency())
      << '\n';
  if (!machine.warnings.empty()) out << '\n' << machine.warnings.render() << '\n';
}

}  // namespace hemiola::report
