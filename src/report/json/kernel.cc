// A kernel's description as JSON.
#include <nlohmann/json.hpp>

#include "report/kernel_description.h"
#include "report/values/kernel_words.h"

namespace hemiola::report {
namespace {

using Json = nlohmann::ordered_json;
using compile::Description;
using compile::Span;

Json json_of(const Span& span) {
  return {{"file", span.file}, {"begin", span.begin},   {"end", span.end},
          {"line", span.line}, {"column", span.column}, {"last_line", span.last_line}};
}

Json json_of(const std::optional<Span>& span) {
  return span ? json_of(*span) : Json(nullptr);
}

/// `element(item)` of each.
template <typename Items, typename Element>
Json list_of(const Items& items, const Element& element) {
  Json all = Json::array();
  for (const auto& item : items) all.push_back(element(item));
  return all;
}

Json json_of(const std::vector<Span>& spans) {
  return list_of(spans, [](const Span& span) { return json_of(span); });
}

Json axes_of(const Description& d) {
  return list_of(d.axes, [&](const compile::TileAxis& axis) {
    return Json{{"name", axis.name},
                {"coordinate", axis.coordinate},
                {"is_variable", axis.is_variable},
                {"block", axis.block},
                {"size", axis.size},
                {"tiles", axis.tiles},
                {"program_axes", axis.program_axes},
                {"assigned", json_of(axis.assigned)},
                {"is_problem", axis.is_problem},
                {"splits_reduction", axis.splits_reduction},
                {"can_be_cut", axis.can_be_cut},
                {"why_not", axis.why_not},
                {"provenance", word_of(axis.provenance)}};
  });
}

Json loops_of(const Description& d) {
  return list_of(d.loops, [&](const compile::LoopDescription& loop) {
    return Json{{"id", loop.id},
                {"variable", loop.variable},
                {"begin", loop.begin},
                {"end", loop.end},
                {"step", loop.step},
                {"axis", loop.axis},
                {"is_persistent", loop.is_persistent},
                {"is_over_problems", loop.is_over_problems},
                {"in_helper", loop.in_helper},
                {"statement", json_of(loop.statement)},
                {"body", json_of(loop.body)},
                {"indentation", loop.indentation}};
  });
}

Json index_of(const Description& d, const compile::AxisIndex& axis) {
  const Json tiles = list_of(axis.tiles, [&](const auto& part) {
    return Json{{"axis", d.axes[static_cast<std::size_t>(part.axis)].name}, {"block", part.block}};
  });
  const Json loops = list_of(axis.loops, [](const auto& part) {
    return Json{{"loop", part.loop}, {"step", part.step}, {"begin", part.begin}};
  });
  return {{"kind", word_of(axis.kind)},
          {"stride", axis.stride},
          {"index", axis.index},
          {"tiles", tiles},
          {"loops", loops},
          {"indirect", axis.indirect},
          {"range", axis.range},
          {"dimension", axis.dimension},
          {"offset", axis.offset},
          {"size", axis.size},
          {"wraps", axis.wraps},
          {"clamps", axis.clamps},
          {"is_derived", axis.is_derived},
          {"unknown", axis.unknown}};
}

Json accesses_of(const Description& d) {
  return list_of(d.accesses, [&](const compile::AccessDescription& access) {
    const Json axes =
        list_of(access.axes, [&](const compile::AxisIndex& axis) { return index_of(d, axis); });
    return Json{{"id", access.id},
                {"operand", access.operand},
                {"is_loaded_address", access.is_loaded_address},
                {"action", word_of(access.action)},
                {"mechanism", word_of(access.mechanism)},
                {"function", access.function},
                {"axes", axes},
                {"call", json_of(access.call)},
                {"statement", json_of(access.statement)},
                {"loops", access.loops},
                {"conditional", access.conditional},
                {"offset", access.offset},
                {"value_from", access.value_from},
                {"unknown", access.unknown}};
  });
}

Json operands_of(const Description& d) {
  return list_of(d.operands, [&](const compile::OperandDescription& operand) {
    const Json mechanisms =
        list_of(operand.mechanisms, [](compile::Mechanism m) { return Json(word_of(m)); });
    return Json{{"name", operand.name},
                {"bound_as", operand.bound_as},
                {"role", word_of(operand.role)},
                {"is_read", operand.is_read},
                {"is_written", operand.is_written},
                {"is_added_to", operand.is_added_to},
                {"mechanisms", mechanisms},
                {"axes", operand.axes},
                {"accesses", operand.accesses}};
  });
}

Json sites_of(const std::vector<compile::Site>& sites) {
  return list_of(sites, [&](const compile::Site& site) {
    return Json{{"operand", site.operand},
                {"offset", site.offset},
                {"indentation", site.indentation},
                {"statement", json_of(site.statement)},
                {"is_inside_loop", site.is_inside_loop},
                {"is_conditional", site.is_conditional},
                {"is_own_line", site.is_own_line}};
  });
}

Json tuning_of(const compile::Tuning& tuning) {
  Json configurations = Json::array();
  for (const compile::Configuration& c : tuning.configurations)
    configurations.push_back({{"constants", c.constants},
                              {"num_warps", c.warps},
                              {"num_stages", c.stages},
                              {"line", c.span.line}});
  return {{"configurations", configurations}, {"keys", tuning.keys},
          {"heuristics", tuning.heuristics},  {"wrappers", tuning.wrappers},
          {"unknown", tuning.unknown},        {"line", tuning.line}};
}

Json parameters_of(const Description& d) {
  using Use = compile::KernelParameter::Use;
  return list_of(d.parameters, [&](const compile::KernelParameter& p) {
    const char* use = p.use == Use::operand    ? "operand"
                      : p.use == Use::constant ? "constexpr"
                                               : "scalar";
    return Json{{"name", p.name},
                {"use", use},
                {"default", p.default_value},
                {"value", p.value},
                {"span", json_of(p.span)}};
  });
}

Json event_object(const compile::MemoryEvent& event) {
  Json json{{"kind", compile::name_of(event.kind)}, {"operand", event.operand}};
  if (!event.sem.empty()) json["sem"] = event.sem;
  if (!event.scope.empty()) json["scope"] = event.scope;
  json["remote"] = event.is_remote;
  json["at"] = json_of(event.span);
  return json;
}

Json violation_object(const compile::Violation& violation) {
  return {{"rule", violation.rule},
          {"message", violation.what},
          {"hint", violation.hint},
          {"at", json_of(violation.span)},
          {"calls", json_of(violation.calls)},
          {"notes", violation.notes}};
}

}  // namespace

std::string kernel_json(std::string_view command, const Description& d) {
  const Json reductions = list_of(d.reductions, [](const compile::ReductionDescription& r) {
    return Json{{"function", r.function},
                {"axis", r.axis},
                {"loop", r.loop},
                {"operands", r.operands},
                {"call", json_of(r.call)}};
  });
  const Json unknown = list_of(d.unknown, [](const compile::Unknown& u) {
    return Json{{"what", u.what}, {"span", json_of(u.span)}, {"hint", u.hint}};
  });
  const Json all{
      {"schema", "hemiola/1"},
      {"command", command},
      {"file", d.file},
      {"kernel", d.kernel},
      {"understood", d.is_understood},
      {"kind", kind_of(d)},
      {"family", word_of(d.family)},
      {"split_k", d.is_split_k},
      {"target", word_of(d.target)},
      {"definition", json_of(d.definition)},
      {"body", json_of(d.body)},
      {"parameters", parameters_of(d)},
      {"scheduler",
       {{"order", word_of(d.scheduler.order)},
        {"is_persistent", d.scheduler.is_persistent},
        {"loop", d.scheduler.loop},
        {"group_size", d.scheduler.group_size},
        {"tiles", d.scheduler.tiles},
        {"workers", d.scheduler.workers}}},
      {"dispatch",
       {{"region", json_of(d.dispatch.region)},
        {"statements", json_of(d.dispatch.statements)},
        {"repeated", json_of(d.dispatch.repeated)},
        {"tile_id", d.dispatch.tile_id},
        {"tile_id_assigned", json_of(d.dispatch.tile_id_assigned)},
        {"program_ids", json_of(d.dispatch.program_ids)},
        {"is_in_loop", d.dispatch.is_in_loop},
        {"indentation", d.dispatch.indentation},
        {"provenance", word_of(d.dispatch.provenance)}}},
      {"axes", axes_of(d)},
      {"loops", loops_of(d)},
      {"operands", operands_of(d)},
      {"accesses", accesses_of(d)},
      {"reductions", reductions},
      {"waits", sites_of(d.waits)},
      {"signals", sites_of(d.signals)},
      {"tuning", tuning_of(d.tuning)},
      {"unknown", unknown},
  };
  return all.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string rules_json(std::string_view command, const std::string& file,
                       const std::vector<compile::RuleReport>& reports,
                       const std::string& program) {
  Json root{{"schema", "hemiola/1"}, {"command", command}, {"file", file}};
  root["kernels"] = list_of(reports, [](const compile::RuleReport& report) {
    return Json{{"kernel", report.kernel},
                {"events", list_of(report.events, event_object)},
                {"violations", list_of(report.violations, violation_object)},
                {"assumed", report.assumed},
                {"not_judged", report.not_judged}};
  });
  if (!program.empty()) root["program"] = Json::parse(program);
  return root.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hemiola::report
