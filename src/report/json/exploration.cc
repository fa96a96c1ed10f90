// The JSON of `explore`.
#include <fmt/format.h>

#include "report/exploration.h"
#include "report/values/exploration_fields.h"
#include "report/values/json_lists.h"
#include "report/values/numbers.h"

namespace hemiola::report {
namespace {

using explore::Exploration;

std::string losses_object(const explore::Losses& losses) {
  std::size_t loss = 0;
  const std::string parts = joined(losses.parts, [&](const auto& part) {
    return fmt::format("\"{}\": {}", explore::name_of(static_cast<explore::Loss>(loss++)), part);
  });
  return fmt::format(
      "{{\"dil_product\": {}, \"dil_communication\": {}, \"cil_product\": {}, "
      "\"cil_communication\": {}, {}, {}, \"fs\": {{{}}}}}",
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
  return "[" +
         joined(found.picks,
                [](const explore::RulePick& pick) {
                  return fmt::format(
                      "{{\"rule\": {}, \"family\": {}, \"degree\": {}, \"regret\": {}}}",
                      json_string(pick.rule), json_string(pick.pick.family.text()),
                      pick.pick.degree, pick.regret ? json_number(*pick.regret) : "null");
                }) +
         "]";
}

std::string features_object(const explore::Features& features) {
  std::size_t feature = 0;
  return "{" +
         joined(features,
                [&](double value) {
                  return fmt::format("\"{}\": {}",
                                     explore::name_of(static_cast<explore::Feature>(feature++)),
                                     json_number(value));
                }) +
         "}";
}

/// By family what the closed form of rules says, in femtoseconds.
std::string analytic_object(const explore::AnalyticTimes& times) {
  std::size_t family = 0;
  return "{" +
         joined(times.time,
                [&](double time) {
                  return fmt::format("{}: {}", json_string(explore::families()[family++].text()),
                                     json_number(time));
                }) +
         "}";
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
  const std::string pruned = joined(found.pruned, [](const auto& one) {
    return fmt::format("{}: {}", json_string(explore::name_of(one.first)), one.second);
  });
  std::string text = fmt::format(
      "{{\n  \"schema\": 1,\n  \"command\": {},\n  \"machine\": {},\n  \"launch\": \"{}\",\n"
      "  \"operator\": {},\n  \"serial\": {},\n  {},\n"
      "  \"best\": {},\n  \"space\": {},\n  \"pruned\": {{{}}},\n  \"left_out\": {},\n"
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
  text += json_lines(found.candidates,
                     [&](const auto& candidate) { return candidate_object(found, candidate); });
  return text + "  ]\n}\n";
}

std::string range_json(const std::string& command, const explore::RangeOfRows& range) {
  const auto from = explore::pays_from(range.found);
  std::string text = fmt::format(
      "{{\n\"schema\": 1,\n\"command\": {},\n\"pays_from_m\": {},\n\"explorations\": [\n",
      json_string(command), from ? std::to_string(*from) : "null");
  text += joined(
      range.found, [&](const Exploration& one) { return exploration_json(command, one); }, ",\n");
  return text + "]\n}\n";
}

}  // namespace hemiola::report
