#include "report/values/exploration_fields.h"

#include <fmt/format.h>

#include <utility>

#include "report/values/json_lists.h"
#include "report/values/numbers.h"

namespace hemiola::report {

std::string time_fields(const char* name, Time time) {
  return fmt::format("\"{0}_fs\": {1}, \"{0}_ns\": {2}", name, time.fs, exact_ns(time));
}

std::string operator_object(const explore::Operator& op) {
  const machine::GemmShape local = explore::local_product(op);
  return fmt::format(
      "{{\"kind\": {}, \"gather\": {}, \"m\": {}, \"n\": {}, \"k\": {}, \"dtype\": {}, "
      "\"ranks\": {}, \"load\": {}, \"local\": {{\"m\": {}, \"n\": {}, \"k\": {}}}, "
      "\"collective_size_bytes\": {}}}",
      json_string(name_of(op.kind)), op.gathers_b ? "\"b\"" : "\"a\"", op.m, op.n, op.k,
      json_string(name_of(op.type)), op.ranks, json_string(op.load), local.m, local.n, local.k,
      explore::collective_size(op).count);
}

std::string settings_object(const study::Settings& settings) {
  return json_object(settings, json_string);
}

std::string attribution_object(const sim::Attribution& attribution) {
  return "{" +
         joined(by_share(attribution),
                [&](sim::Reason reason) {
                  return fmt::format("\"{}\": {}", sim::name_of(reason),
                                     attribution[static_cast<std::size_t>(reason)]);
                }) +
         "}";
}

namespace {

/// "best: GPU 0": the panels of one run among those of others.
void add_panels(page::Timelines& all, const char* name, const RunTimeline::Panels& panels) {
  for (page::Timelines::Panel panel : panels.panels) {
    panel.name = std::string(name) + ": " + panel.name;
    all.panels.push_back(std::move(panel));
  }
}

}  // namespace

void add_timelines(page::Page& page, const char* what, const ExplorationTimelines& timelines) {
  page::Timelines all{
      .heading = "What happens when",
      .note = fmt::format("The fastest {}, then serial, as fluid simulated them.", what),
      .panels = {}};
  add_panels(all, "best", timelines.winner);
  add_panels(all, "serial", timelines.serial);
  if (!all.panels.empty()) page.blocks.push_back(std::move(all));
}

void add_loss(page::Bars::Row& row, std::string_view name, std::int64_t fs) {
  if (fs > 0) row.parts.push_back({std::string(name), static_cast<double>(fs) / 1e9});
}

std::string mebibytes(Bytes bytes) {
  return fmt::format("{:.1f}", static_cast<double>(bytes.count) / (1 << 20));
}

std::string ratio_cell(const std::optional<double>& ratio) {
  return ratio ? fmt::format("{:.2f}", *ratio) : "-";
}

}  // namespace hemiola::report
