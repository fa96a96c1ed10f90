#include "report/values/exploration_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <utility>
#include <vector>

#include "report/values/columns.h"
#include "report/values/json_text.h"
#include "report/values/numbers.h"

namespace hemiola::report {

JsonText operator_object(const explore::Operator& op) {
  const machine::GemmShape local = explore::local_product(op);
  return json_object("kind", name_of(op.kind), "gather", op.gathers_b ? "b" : "a", "m", op.m, "n",
                     op.n, "k", op.k, "dtype", name_of(op.type), "ranks", op.ranks, "load", op.load,
                     "local", json_object("m", local.m, "n", local.n, "k", local.k),
                     "collective_size_bytes", explore::collective_size(op));
}

JsonText attribution_object(const sim::Attribution& attribution) {
  return json_object_of(by_share(attribution), [&](JsonObject& object, sim::Reason reason) {
    object.add(sim::name_of(reason), attribution[index(reason)]);
  });
}

void add_panels(page::Timelines& all, const std::string& name, const RunTimeline::Panels& panels) {
  for (page::Timelines::Panel panel : panels.panels) {
    panel.name = name + ": " + panel.name;
    all.panels.push_back(std::move(panel));
  }
}

void add_loss(page::Bars::Row& row, std::string_view name, std::int64_t fs) {
  if (fs > 0) row.parts.push_back({std::string(name), static_cast<double>(fs) / 1e9});
}

std::string run_command(const std::string& program, const std::string& where,
                        const study::Settings& parameters) {
  std::string text = "hemiola run " + program + " " + where;
  for (const auto& [name, value] : parameters) text += " --param " + name + "=" + value;
  return text;
}

void print_measured_order(std::ostream& out, const std::string& what,
                          const std::map<std::string, double>& measured_us,
                          const std::function<std::optional<Time>(const std::string&)>& simulated) {
  if (measured_us.empty()) return;
  std::vector<std::pair<double, std::string>> order;
  for (const auto& [text, us] : measured_us) order.emplace_back(us, text);
  std::ranges::sort(order);
  Columns columns({kLeft, kRight, kRight, kRight});
  columns.add_heading({what + ", measured order", "measured", "simulated", "error"});
  columns.add_heading({"", "(us)", "(us)", "(%)"});
  for (const auto& [us, text] : order) {
    const std::optional<Time> time = simulated(text);
    columns.add({text, fmt::format("{:.3f}", us), time ? table_us(*time) : "-",
                 time ? fmt::format("{:+.1f}", 100 * (time->us() / us - 1)) : "-"});
  }
  out << "#\n";
  columns.print(out, "  ");
}

std::string mebibytes(Bytes bytes) {
  return fmt::format("{:.1f}", static_cast<double>(bytes.count) / (1 << 20));
}

std::string ratio_cell(const std::optional<double>& ratio) {
  return ratio ? fmt::format("{:.2f}", *ratio) : "-";
}

}  // namespace hemiola::report
