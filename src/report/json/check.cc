// The object of `check --json`.
#include <algorithm>

#include "report/report.h"
#include "report/values/json_text.h"

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

JsonText warning_object(const Diagnostic& diagnostic) {
  return json_object("message", diagnostic.message, "file", diagnostic.where.file, "where",
                     diagnostic.where.pointer, "hint", diagnostic.hint);
}

JsonText step_object(const verify::Witness& witness) {
  JsonObject object;
  object.add("rank", witness.rank);
  if (witness.workgroup >= 0) object.add(witness.part, witness.workgroup);
  return object.add("operation", witness.operation, "where", witness.where, "text", witness.text)
      .json();
}

JsonText sizes_object(const Checked& check) {
  JsonObject object;
  if (check.plan) {
    object.add("all", !check.of_elements);
    if (check.of_elements) object.add("why", "a plan of elements has one size");
    return object.json();
  }
  std::vector<Bytes> looked_at{check.size};
  looked_at.insert(looked_at.end(), check.beside.begin(), check.beside.end());
  object.add("looked_at_bytes", json_array(looked_at));
  if (!check.sizes) return object.json();
  object.add("min_bytes", check.sizes->min, "max_bytes",
             check.sizes->open() ? std::nullopt : std::optional(check.sizes->max));
  if (check.sizes->multiple.count > 0) object.add("multiple_bytes", check.sizes->multiple);
  if (!check.sizes->why.empty()) object.add("why", check.sizes->why);
  return object.json();
}

void add_fields(JsonObject& object, const Checked& check, const std::vector<Diagnostic>& warnings,
                const std::string& indent) {
  const verify::Proof& proof = check.proof;
  object.add("program", check.program, "kind", check.plan ? "plan" : "program");
  if (!check.plan) object.add("size_bytes", check.size, "executor", proof.executor);
  object.add("verdict", verify::name_of(verdict_of(check)), "summary", proof.summary, "proven",
             json_list(proof.proven, indent), "reasons", json_list(proof.reasons, indent),
             "warnings", json_list(warnings, indent, warning_object), "counterexample",
             json_list(proof.counterexample, indent, step_object));
  if (!check.plan) object.add("calls", proof.calls);
  object.add("sizes", sizes_object(check));
  if (check.data)
    object.add("data", json_object("outcome", verify::name_of(check.data->outcome), "summary",
                                   check.data->summary, "elements", check.data->compared));
}

}  // namespace

std::string check_json(const std::string& command, const std::string& machine,
                       const std::vector<Checked>& checks) {
  JsonObject object("  ");
  object.add("schema", "hemiola/1", "command", command, "machine", machine);
  std::vector<Diagnostic> all;
  for (const Checked& check : checks) {
    const auto& items = check.proof.warnings.items();
    all.insert(all.end(), items.begin(), items.end());
  }
  const auto worst = std::ranges::max_element(
      checks, [](const Checked& a, const Checked& b) { return verdict_of(a) < verdict_of(b); });
  if (worst != checks.end()) add_fields(object, *worst, all, "  ");
  object.add("checks", json_list(checks, "  ", [](const Checked& check) {
               JsonObject one("      ");
               add_fields(one, check, check.proof.warnings.items(), "      ");
               return one.json();
             }));
  return object.json().text + "\n";
}

}  // namespace hemiola::report
