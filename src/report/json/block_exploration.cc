// The JSON of `explore --block`.
#include <fmt/format.h>

#include "report/block_exploration.h"
#include "report/values/exploration_fields.h"
#include "report/values/json_lists.h"
#include "report/values/numbers.h"

namespace hemiola::report {
namespace {

using explore::Block;
using explore::BlockCandidate;
using explore::BlockExploration;
using explore::BlockJob;

std::string confirmed_field(const std::optional<Time>& confirmed) {
  return fmt::format("\"confirmed_fs\": {}", confirmed ? std::to_string(confirmed->fs) : "null");
}

std::string block_object(const Block& block) {
  std::string sizes;
  if (block.kind == explore::BlockKind::mlp) {
    sizes = fmt::format("\"intermediate\": {}, \"activation\": \"{}\"", block.intermediate,
                        block.gated ? "swiglu" : "gelu");
  } else {
    sizes = fmt::format(
        "\"heads\": {}, \"kv_heads\": {}, \"head_dim\": {}, \"sequences\": {}, \"causal\": {}",
        block.heads, block.kv_heads, block.head_dim, block.sequences, block.causal);
  }
  return fmt::format(
      "{{\"kind\": \"{}\", \"tokens\": {}, \"hidden\": {}, {}, \"dtype\": \"{}\", \"ranks\": {}}}",
      name_of(block.kind), block.tokens, block.hidden, sizes, name_of(block.type), block.ranks);
}

std::string job_object(const BlockJob& job) {
  const std::string parts = joined(job.parts, [](const BlockJob::Part& part) {
    return fmt::format("{{\"name\": {}, \"program\": {}, {}}}", json_string(part.name),
                       json_string(part.program), time_fields("alone", part.alone));
  });
  return fmt::format("{{{}, {}, \"parts\": [{}]}}", time_fields("time", job.time),
                     confirmed_field(job.confirmed), parts);
}

std::string losses_object(const explore::BlockLosses& losses) {
  return fmt::format(
      "{{\"dil_compute\": {}, \"dil_communication\": {}, \"cil_compute\": {}, {}, {}, "
      "\"fs\": {{\"decomposition\": {}, \"exposed\": {}, \"contention\": {}}}}}",
      json_number(losses.dil_compute), json_number(losses.dil_communication),
      json_number(losses.cil_compute), time_fields("computes", losses.computes),
      time_fields("communication", losses.communication), losses.decomposition, losses.exposed,
      losses.contention);
}

std::string chain_object(const BlockExploration& found, const BlockCandidate& one) {
  return fmt::format(
      "    {{\"schedule\": {}, \"steps\": \"{}\", \"degree\": {}, \"program\": {}, "
      "\"parameters\": {}, \"engine\": \"{}\", {}, {}, {}, \"speedup\": {}, "
      "\"buffers_bytes\": {}, \"extra_traffic_bytes\": {}, \"losses\": {}, \"attribution\": {}}}",
      json_string(one.schedule.text()), one.schedule.hetero ? "hetero" : "uniform",
      one.schedule.degree, json_string(explore::template_of(found.block)),
      settings_object(one.parameters), one.confirmed ? "sampled" : "fluid",
      time_fields("time", one.time()), time_fields("fluid", one.fluid),
      confirmed_field(one.confirmed), json_number(found.speedup(one)), one.buffers.count,
      one.extra_traffic.count, one.losses ? losses_object(*one.losses) : "null",
      attribution_object(one.attribution));
}

}  // namespace

std::string block_exploration_json(const std::string& command, const BlockExploration& found) {
  const BlockCandidate* winner = found.winner();
  const char* other = found.apart.time < found.serial.time ? "apart" : "serial";
  std::string text = fmt::format(
      "{{\n  \"schema\": 1,\n  \"command\": {},\n  \"machine\": {},\n  \"launch\": \"{}\",\n"
      "  \"block\": {},\n  \"serial\": {},\n  \"apart\": {},\n  \"apart_first\": {},\n"
      "  \"apart_last\": {},\n  {},\n  {},\n  {},\n  \"best\": {},\n  \"space\": {},\n"
      "  \"refused\": {},\n  \"results\": [\n",
      json_string(command), json_string(found.machine), name_of(found.launch),
      block_object(found.block), job_object(found.serial), job_object(found.apart),
      json_string(found.apart_first), json_string(found.apart_last),
      time_fields("compute", found.compute()), time_fields("communication", found.communication()),
      time_fields("ideal", found.ideal),
      json_string(winner != nullptr ? winner->schedule.text() : std::string(other)), found.space,
      found.refused.size());
  text += json_lines(found.candidates, [&](const auto& one) { return chain_object(found, one); });
  return text + "  ]\n}\n";
}

}  // namespace hemiola::report
