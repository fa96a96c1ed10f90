// The JSON of `explore`.
#include "report/exploration.h"
#include "report/values/evidence_json.h"
#include "report/values/exploration_fields.h"
#include "report/values/json_text.h"

namespace hemiola::report {
namespace {

using explore::Exploration;

JsonText losses_object(const explore::Losses& losses) {
  JsonObject parts;
  for (std::size_t loss = 0; loss < losses.parts.size(); ++loss)
    parts.add(explore::name_of(static_cast<explore::Loss>(loss)), losses.parts[loss]);
  return json_object("dil_product", losses.dil_product, "dil_communication",
                     losses.dil_communication, "cil_product", losses.cil_product,
                     "cil_communication", losses.cil_communication, "products",
                     BothUnits{losses.products}, "communication", BothUnits{losses.communication},
                     "fs", parts.json());
}

JsonText candidate_object(const Exploration& found, const explore::Candidate& candidate) {
  const explore::Schedule& schedule = candidate.schedule;
  return json_object(
      "schedule", schedule.text(), "family", schedule.family.text(), "degree", schedule.degree,
      "program", explore::template_of(found.op, schedule), "parameters", candidate.parameters,
      "engine", candidate.confirmed ? "sampled" : "fluid", "time", BothUnits{candidate.time()},
      "fluid", BothUnits{candidate.fluid}, "confirmed_fs", candidate.confirmed, "speedup",
      found.speedup(candidate), "bound", BothUnits{candidate.bound.time}, "bound_by",
      explore::name_of(candidate.bound.by), "estimate", BothUnits{candidate.estimate},
      "buffers_bytes", candidate.buffers, "extra_traffic_bytes", candidate.extra_traffic, "losses",
      candidate.losses ? losses_object(*candidate.losses) : JsonText{"null"}, "attribution",
      attribution_object(candidate.attribution));
}

JsonText pick_object(const explore::RulePick& pick) {
  return json_object("rule", pick.rule, "family", pick.pick.family.text(), "degree",
                     pick.pick.degree, "regret", pick.regret);
}

JsonText features_object(const explore::Features& features) {
  JsonObject object;
  for (std::size_t feature = 0; feature < features.size(); ++feature)
    object.add(explore::name_of(static_cast<explore::Feature>(feature)), features[feature]);
  return object.json();
}

/// By family what the closed form of rules says, in femtoseconds.
JsonText analytic_object(const explore::AnalyticTimes& times) {
  JsonObject object;
  for (std::size_t family = 0; family < times.time.size(); ++family)
    object.add(explore::families()[family].text(), times.time[family]);
  return object.json();
}

JsonText serial_object(const explore::Serial& serial) {
  return json_object("time", BothUnits{serial.time}, "collective", BothUnits{serial.collective},
                     "product", BothUnits{serial.product}, "program", serial.program, "tile_m",
                     serial.kernel.tile.m, "tile_n", serial.kernel.tile.n, "split_k",
                     serial.kernel.split_k, "confirmed_fs", serial.confirmed);
}

std::optional<std::string> unless_empty(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

}  // namespace

std::string exploration_json(const std::string& command, const Exploration& found) {
  const explore::Candidate* winner = found.winner();
  const JsonText pruned = json_object_of(found.pruned, [](JsonObject& object, const auto& one) {
    object.add(explore::name_of(one.first), one.second);
  });
  JsonObject object("  ");
  object.add("schema", "hemiola/1", "command", command, "machine", found.machine, "launch",
             name_of(found.launch), "operator", operator_object(found.op), "serial",
             serial_object(found.serial), "ideal", BothUnits{found.ideal.time}, "best",
             winner != nullptr ? winner->schedule.text() : "serial", "space", found.space, "pruned",
             pruned, "left_out", found.left_out, "refused", found.refused.size(), "features",
             features_object(found.features), "analytic", analytic_object(found.analytic), "rules",
             json_array(found.picks, pick_object), "not_tried", unless_empty(found.not_tried),
             "not_confirmed", unless_empty(found.not_confirmed), "evidence",
             evidence_json(found.serial_likeness(), found.serial.time.us()), "evidence_of_ratio",
             evidence_json(found.ratio_likeness(), std::nullopt));
  if (found.software.fs > 0) object.add("software_fs", found.software);
  object.add("results", json_lines(found.candidates, "  ", [&](const auto& candidate) {
               return candidate_object(found, candidate);
             }));
  return object.json().text + "\n";
}

std::string range_json(const std::string& command, const explore::RangeOfRows& range) {
  JsonObject object("");
  object.add("schema", "hemiola/1", "command", command, "pays_from_m",
             explore::pays_from(range.found), "explorations",
             json_rows(range.found, "", [&](const Exploration& one) {
               return JsonText{exploration_json(command, one)};
             }));
  return object.json().text + "\n";
}

}  // namespace hemiola::report
