// The JSON of `explore --block`.
#include "report/block_exploration.h"
#include "report/values/exploration_fields.h"
#include "report/values/json_text.h"
#include "report/values/numbers.h"

namespace hemiola::report {
namespace {

using explore::Block;
using explore::BlockCandidate;
using explore::BlockExploration;
using explore::BlockJob;

JsonText block_object(const Block& block) {
  JsonObject object;
  object.add("kind", name_of(block.kind), "tokens", block.tokens, "hidden", block.hidden);
  if (block.kind == explore::BlockKind::mlp)
    object.add("intermediate", block.intermediate, "activation", block.gated ? "swiglu" : "gelu");
  else
    object.add("heads", block.heads, "kv_heads", block.kv_heads, "head_dim", block.head_dim,
               "sequences", block.sequences, "causal", block.causal);
  return object.add("dtype", name_of(block.type), "ranks", block.ranks).json();
}

JsonText job_object(const BlockJob& job) {
  return json_object("time", BothUnits{job.time}, "confirmed_fs", job.confirmed, "parts",
                     json_array(job.parts, [](const BlockJob::Part& part) {
                       return json_object("name", part.name, "program", part.program, "alone",
                                          BothUnits{part.alone});
                     }));
}

JsonText losses_object(const explore::BlockLosses& losses) {
  const JsonText parts = json_object_of(losses.parts(), [](JsonObject& object, const auto& one) {
    object.add(one.first, one.second);
  });
  return json_object("dil_compute", losses.dil_compute, "dil_communication",
                     losses.dil_communication, "cil_compute", losses.cil_compute, "computes",
                     BothUnits{losses.computes}, "communication", BothUnits{losses.communication},
                     "fs", parts);
}

JsonText chain_object(const BlockExploration& found, const BlockCandidate& one) {
  return json_object(
      "schedule", one.schedule.text(), "steps", one.schedule.hetero ? "hetero" : "uniform",
      "degree", one.schedule.degree, "program", explore::template_of(found.block), "parameters",
      one.parameters, "engine", engine_of(one), "time", BothUnits{one.time()}, "fluid",
      BothUnits{one.fluid}, "confirmed_fs", one.confirmed, "speedup", found.speedup(one),
      "buffers_bytes", one.buffers, "extra_traffic_bytes", one.extra_traffic, "losses",
      one.losses ? losses_object(*one.losses) : JsonText{"null"}, "attribution",
      attribution_object(one.attribution));
}

}  // namespace

std::string block_exploration_json(const std::string& command, const BlockExploration& found) {
  const BlockCandidate* winner = found.winner();
  const char* other = found.apart.time < found.serial.time ? "apart" : "serial";
  return json_file("schema", "hemiola/1", "command", command, "machine", found.machine, "launch",
                   name_of(found.launch), "block", block_object(found.block), "serial",
                   job_object(found.serial), "apart", job_object(found.apart), "apart_first",
                   found.apart_first, "apart_last", found.apart_last, "compute",
                   BothUnits{found.compute()}, "communication", BothUnits{found.communication()},
                   "ideal", BothUnits{found.ideal}, "best",
                   winner != nullptr ? winner->schedule.text() : std::string(other), "space",
                   found.space, "refused", found.refused.size(), "results",
                   json_lines(found.candidates, "  ",
                              [&](const auto& one) { return chain_object(found, one); }));
}

}  // namespace hemiola::report
