#include "report/machine_page.h"

#include <set>

#include "report/pages/machine_drawing.h"
#include "report/values/machine_rows.h"
#include "report/values/pair_figures.h"

namespace hemiola::report {
namespace {

using machine::Machine;

constexpr int kMostInMap = 64;

page::HeatMap bandwidth_map(const Machine& machine) {
  page::HeatMap map{.heading = "Bandwidth between GPUs",
                    .note = "Raw, over all paths, from one GPU to another when nothing else runs.",
                    .row_title = "from",
                    .column_title = "to",
                    .unit = "GB/s"};
  for (int from = 0; from < machine.ranks(); ++from) {
    map.rows.push_back(std::to_string(from));
    std::vector<std::optional<double>>& row = map.values.emplace_back();
    for (int to = 0; to < machine.ranks(); ++to) {
      if (from == to) {
        row.emplace_back();
        continue;
      }
      const PairFigures figures = pair_figures(machine, from, to);
      const bool is_known = figures.reach != machine::Reach::none && !figures.ideal;
      row.push_back(is_known ? std::optional(figures.bandwidth * 1e-9) : std::nullopt);
    }
  }
  map.columns = map.rows;
  return map;
}

page::Table pairs_table(const Machine& machine) {
  PairClasses pairs = pair_classes(machine);
  page::Table table{.heading = "Bandwidth and latency between GPUs"};
  table.note = pairs.of_rank_0 ? "From rank 0 to all others. " : "";
  table.note += "Pairs with equal figures are one row; nothing else runs.";
  table.columns = {{"pairs", true}, {"by"},       {"hops", true}, {"paths", true},
                   {"GB/s", true},  {"ns", true}, {"such as"}};
  table.rows = std::move(pairs.rows);
  return table;
}

}  // namespace

page::Page machine_page(const Machine& machine, const std::string& command) {
  page::Page page{.title = machine.name, .subtitle = command};
  page.facts = {{"GPUs", std::to_string(machine.ranks())},
                {"nodes", node_counts(machine)},
                {"directed links", std::to_string(machine.links.size())}};
  if (!machine.description.empty())
    page.facts.insert(page.facts.begin(), {"machine", machine.description});
  page.blocks.push_back(machine_drawing(machine));
  page.blocks.push_back(page::Table{.heading = "GPUs",
                                    .columns = {{"ranks"}, {"model"}, {"description"}},
                                    .rows = gpu_rows(machine)});
  page.blocks.push_back(page::Table{
      .heading = "Link classes",
      .note = "Per direction. Goodput is bandwidth x payload / "
              "(payload + header) of full packets.",
      .columns = page::columns_of(
          {"class"}, {"links"},
          {"bandwidth", "goodput", "latency", "payload", "header", "credits", "source"}),
      .rows = link_class_rows(machine)});
  std::vector<Row> devices = device_rows(machine);
  if (!devices.empty())
    page.blocks.push_back(
        page::Table{.heading = "Switches and NICs",
                    .columns = {{"number", true}, {"kind"}, {"device"}, {"parameters"}},
                    .rows = std::move(devices)});
  if (machine.ranks() >= 2) {
    page.blocks.push_back(pairs_table(machine));
    if (machine.ranks() <= kMostInMap) page.blocks.push_back(bandwidth_map(machine));
  }
  const std::set<std::int32_t> used(machine.gpu_models.begin(), machine.gpu_models.end());
  for (const std::int32_t number : used) {
    const machine::GpuModel& model = machine.models[index(number)];
    page.blocks.push_back(page::Table{.heading = "Parameters of " + model.name,
                                      .columns = {{"--set gpu.NAME"}, {"value"}, {"source"}},
                                      .rows = parameter_rows(model)});
  }
  if (!machine.warnings.empty())
    page.blocks.push_back(page::Text{"Warnings", {machine.warnings.render()}});
  return page;
}

}  // namespace hemiola::report
