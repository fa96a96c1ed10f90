// The object of `check --json`.
#include <fmt/format.h>

#include <algorithm>

#include "report/report.h"
#include "report/values/json_lists.h"
#include "report/values/numbers.h"

namespace hemiola::report {
namespace {

/// What a check comes to; data that come out wrong are worse than any proof.
verify::Verdict verdict_of(const Checked& check) {
  verify::Verdict verdict = check.proof.verdict;
  if (check.data && check.data->outcome != verify::Outcome::right) {
    const bool hangs = check.data->outcome == verify::Outcome::hang;
    verdict = std::max(verdict, hangs ? verify::Verdict::deadlock : verify::Verdict::wrong);
  }
  return verdict;
}

std::string warning(const Diagnostic& diagnostic) {
  return fmt::format("{{\"message\": {}, \"file\": {}, \"where\": {}, \"hint\": {}}}",
                     json_string(diagnostic.message), json_string(diagnostic.where.file),
                     json_string(diagnostic.where.pointer), json_string(diagnostic.hint));
}

std::string step_object(const verify::Witness& witness) {
  std::string text = fmt::format("{{\"rank\": {}", witness.rank);
  if (witness.workgroup >= 0)
    text += fmt::format(", {}: {}", json_string(witness.part), witness.workgroup);
  return text + fmt::format(", \"operation\": {}, \"where\": {}, \"text\": {}}}",
                            json_string(witness.operation), json_string(witness.where),
                            json_string(witness.text));
}

std::string sizes(const Checked& check) {
  if (check.plan)
    return check.of_elements ? "{\"all\": false, \"why\": \"a plan of elements has one size\"}"
                             : "{\"all\": true}";
  std::string looked_at = std::to_string(check.size.count);
  for (const Bytes size : check.beside) looked_at += ", " + std::to_string(size.count);
  std::string text = fmt::format("{{\"looked_at_bytes\": [{}]", looked_at);
  if (check.sizes) {
    text += fmt::format(", \"min_bytes\": {}, \"max_bytes\": {}", check.sizes->min.count,
                        check.sizes->open() ? "null" : std::to_string(check.sizes->max.count));
    if (check.sizes->multiple.count > 0)
      text += ", \"multiple_bytes\": " + std::to_string(check.sizes->multiple.count);
    if (!check.sizes->why.empty()) text += ", \"why\": " + json_string(check.sizes->why);
  }
  return text + "}";
}

std::string data(const verify::Execution& execution) {
  return fmt::format("{{\"outcome\": {}, \"summary\": {}, \"elements\": {}}}",
                     json_string(verify::name_of(execution.outcome)),
                     json_string(execution.summary), execution.compared);
}

/// Its fields, one to a line.
std::string fields(const Checked& check, const std::vector<Diagnostic>& warnings,
                   const std::string& indent) {
  const verify::Proof& proof = check.proof;
  std::string text;
  const auto field = [&](std::string_view key, const std::string& value) {
    text += fmt::format(",\n{}\"{}\": {}", indent, key, value);
  };
  field("program", json_string(check.program));
  field("kind", json_string(check.plan ? "plan" : "program"));
  if (!check.plan) field("size_bytes", std::to_string(check.size.count));
  if (!check.plan) field("executor", json_string(proof.executor));
  field("verdict", json_string(verify::name_of(verdict_of(check))));
  field("summary", json_string(proof.summary));
  field("proven", json_list(proof.proven, indent, json_string));
  field("reasons", json_list(proof.reasons, indent, json_string));
  field("warnings", json_list(warnings, indent, warning));
  field("counterexample", json_list(proof.counterexample, indent, step_object));
  if (!check.plan) field("calls", std::to_string(proof.calls));
  field("sizes", sizes(check));
  if (check.data) field("data", data(*check.data));
  return text;
}

}  // namespace

std::string check_json(const std::string& command, const std::string& machine,
                       const std::vector<Checked>& checks) {
  std::string text = fmt::format(
      "{{\n  \"schema\": \"hemiola/1\",\n  \"command\": {},\n"
      "  \"machine\": {}",
      json_string(command), json_string(machine));
  std::vector<Diagnostic> all;
  for (const Checked& check : checks) {
    const auto& items = check.proof.warnings.items();
    all.insert(all.end(), items.begin(), items.end());
  }
  const auto worst = std::ranges::max_element(
      checks, [](const Checked& a, const Checked& b) { return verdict_of(a) < verdict_of(b); });
  if (worst != checks.end()) text += fields(*worst, all, "  ");
  text += ",\n  \"checks\": " + json_list(checks, "  ", [](const Checked& check) {
            const std::string own = fields(check, check.proof.warnings.items(), "      ");
            return "{" + own.substr(1) + "\n    }";
          });
  return text + "\n}\n";
}

}  // namespace hemiola::report
