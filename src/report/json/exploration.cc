// The JSON of `explore`.
#include <fmt/format.h>

#include <iterator>

#include "report/exploration.h"
#include "report/values/exploration_fields.h"
#include "report/values/numbers.h"

namespace hemiola::report {
namespace {

using explore::Exploration;

std::string losses_object(const explore::Losses& losses) {
  std::string parts = "{";
  for (std::size_t i = 0; i < explore::kLosses; ++i) {
    parts += fmt::format("{}\"{}\": {}", i > 0 ? ", " : "",
                         explore::name_of(static_cast<explore::Loss>(i)), losses.parts[i]);
  }
  return fmt::format(
      "{{\"dil_product\": {}, \"dil_communication\": {}, \"cil_product\": {}, "
      "\"cil_communication\": {}, {}, {}, \"fs\": {}}}}}",
      json_number(*losses.dil_product), json_number(*losses.dil_communication),
      losses.cil_product ? json_number(*losses.cil_product) : "null",
      losses.cil_communication ? json_number(*losses.cil_communication) : "null",
      time_fields("products", losses.products), time_fields("communication", losses.communication),
      parts);
}

std::string candidate_object(const Exploration& found, const explore::Candidate& candidate) {
  const explore::Schedule& schedule = candidate.schedule;
  return fmt::format(
      "    {{\"schedule\": {}, \"family\": {}, \"degree\": {}, \"program\": {}, "
      "\"parameters\": {}, \"engine\": \"{}\", {}, {}, \"confirmed_fs\": {}, "
      "\"speedup\": {}, {}, \"bound_by\": {}, {}, \"buffers_bytes\": {}, "
      "\"extra_traffic_bytes\": {}, \"losses\": {}, \"attribution\": {}}}",
      json_string(schedule.text()), json_string(schedule.family.text()), schedule.degree,
      json_string(explore::template_of(found.op, schedule)), settings_object(candidate.parameters),
      candidate.confirmed ? "sampled" : "fluid", time_fields("time", candidate.time()),
      time_fields("fluid", candidate.fluid),
      candidate.confirmed ? std::to_string(candidate.confirmed->fs) : "null",
      json_number(found.speedup(candidate)), time_fields("bound", candidate.bound.time),
      json_string(explore::name_of(candidate.bound.by)),
      time_fields("estimate", candidate.estimate), candidate.buffers.count,
      candidate.extra_traffic.count, candidate.losses ? losses_object(*candidate.losses) : "null",
      attribution_object(candidate.attribution));
}

std::string picks_array(const Exploration& found) {
  std::string text = "[";
  for (const explore::RulePick& pick : found.picks) {
    text += fmt::format("{}{{\"rule\": {}, \"family\": {}, \"degree\": {}, \"regret\": {}}}",
                        text.size() > 1 ? ", " : "", json_string(pick.rule),
                        json_string(pick.pick.family.text()), pick.pick.degree,
                        pick.regret ? json_number(*pick.regret) : "null");
  }
  return text + "]";
}

std::string features_object(const explore::Features& features) {
  std::string text = "{";
  for (std::size_t i = 0; i < explore::kFeatures; ++i) {
    text +=
        fmt::format("{}\"{}\": {}", i > 0 ? ", " : "",
                    explore::name_of(static_cast<explore::Feature>(i)), json_number(features[i]));
  }
  return text + "}";
}

/// By family what the closed form of rules says, in femtoseconds.
std::string analytic_object(const explore::AnalyticTimes& times) {
  std::string text = "{";
  for (std::size_t i = 0; i < explore::kFamilies; ++i) {
    text += fmt::format("{}{}: {}", i > 0 ? ", " : "", json_string(explore::families()[i].text()),
                        json_number(times.time[i]));
  }
  return text + "}";
}

std::string serial_object(const explore::Serial& serial) {
  return fmt::format(
      "{{{}, {}, {}, \"program\": {}, \"tile_m\": {}, \"tile_n\": {}, \"split_k\": {}, "
      "\"confirmed_fs\": {}}}",
      time_fields("time", serial.time), time_fields("collective", serial.collective),
      time_fields("product", serial.product), json_string(serial.program), serial.kernel.tile.m,
      serial.kernel.tile.n, serial.kernel.split_k,
      serial.confirmed ? std::to_string(serial.confirmed->fs) : "null");
}

}  // namespace

std::string exploration_json(const std::string& command, const Exploration& found) {
  const explore::Candidate* winner = found.winner();
  std::string pruned = "{";
  for (const auto& [by, count] : found.pruned) {
    pruned += fmt::format("{}{}: {}", pruned.size() > 1 ? ", " : "",
                          json_string(explore::name_of(by)), count);
  }
  std::string text = fmt::format(
      "{{\n  \"schema\": 1,\n  \"command\": {},\n  \"machine\": {},\n  \"launch\": \"{}\",\n"
      "  \"operator\": {},\n  \"serial\": {},\n  {},\n"
      "  \"best\": {},\n  \"space\": {},\n  \"pruned\": {}}},\n  \"left_out\": {},\n"
      "  \"refused\": {},\n  \"features\": {},\n  \"analytic\": {},\n  \"rules\": {},\n  "
      "\"not_tried\": {},\n  \"not_confirmed\": {},\n  {}"
      "\"results\": [\n",
      json_string(command), json_string(found.machine), name_of(found.launch),
      operator_object(found.op), serial_object(found.serial),
      time_fields("ideal", found.ideal.time),
      winner != nullptr ? json_string(winner->schedule.text()) : "\"serial\"", found.space, pruned,
      found.left_out, found.refused.size(), features_object(found.features),
      analytic_object(found.analytic), picks_array(found),
      found.not_tried.empty() ? "null" : json_string(found.not_tried),
      found.not_confirmed.empty() ? "null" : json_string(found.not_confirmed),
      found.software.fs > 0 ? fmt::format("\"software_fs\": {},\n  ", found.software.fs) : "");
  for (std::size_t i = 0; i < found.candidates.size(); ++i) {
    text += candidate_object(found, found.candidates[i]);
    text += i + 1 < found.candidates.size() ? ",\n" : "\n";
  }
  return text + "  ]\n}\n";
}

std::string range_json(const std::string& command, const explore::RangeOfRows& range) {
  const auto from = explore::pays_from(range.found);
  std::string text = fmt::format(
      "{{\n\"schema\": 1,\n\"command\": {},\n\"pays_from_m\": {},\n\"explorations\": [\n",
      json_string(command), from ? std::to_string(*from) : "null");
  for (std::size_t i = 0; i < range.found.size(); ++i) {
    text += exploration_json(command, range.found[i]);
    if (i + 1 < range.found.size()) text += ",\n";
  }
  return text + "]\n}\n";
}

}  // namespace hemiola::report
