// The page of `check`.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "report/page.h"
#include "report/report.h"

namespace hemiola::report {
namespace {

std::string holds_for(const Checked& check) {
  if (check.plan) return check.of_elements ? "its own size" : "all sizes";
  return check.sizes ? sizes_text(*check.sizes, check.beside) : to_string(check.size);
}

page::Table steps_table(const Checked& check) {
  page::Table table{
      .heading = "What goes wrong in " + check.program,
      .note = check.proof.summary,
      .columns = {
          {"step", true}, {"rank", true}, {"part"}, {"operation"}, {"place"}, {"what happens"}}};
  for (const verify::Witness& step : check.proof.counterexample)
    table.rows.push_back(
        {std::to_string(table.rows.size() + 1), std::to_string(step.rank),
         step.workgroup >= 0 ? fmt::format("{} {}", step.part, step.workgroup) : "", step.operation,
         step.where, step.text});
  return table;
}

}  // namespace

page::Page check_page(const std::string& command, const std::string& machine,
                      const std::vector<Checked>& checks) {
  page::Page page{.title = checks.size() == 1 ? "Check of " + checks.front().program : "Checks",
                  .subtitle = command};
  if (!machine.empty()) page.facts.emplace_back("machine", machine);
  page::Table verdicts{
      .heading = "Verdicts",
      .columns = page::columns_of(
          {"program", "size", "verdict", "holds for", "what was found", "not proven", "data"}, {})};
  page::Text warnings{"Warnings", {}};
  for (const Checked& check : checks) {
    const verify::Proof& proof = check.proof;
    verdicts.rows.push_back({check.program, check.plan ? "a plan" : to_string(check.size),
                             std::string(verify::name_of(proof.verdict)), holds_for(check),
                             proof.counterexample.empty()
                                 ? fmt::format("{}", fmt::join(proof.proven, "; "))
                                 : proof.summary,
                             fmt::format("{}", fmt::join(proof.reasons, "; ")),
                             check.data ? std::string(verify::name_of(check.data->outcome)) : ""});
    for (const Diagnostic& warning : proof.warnings.items())
      warnings.paragraphs.push_back(check.program + ": " + warning.message);
  }
  if (checks.empty())
    page.blocks.emplace_back(page::Text{
        "Not proven", {"The kernel breaks a rule; what is printed and --json say which."}});
  else
    page.blocks.emplace_back(std::move(verdicts));
  for (const Checked& check : checks)
    if (!check.proof.counterexample.empty()) page.blocks.emplace_back(steps_table(check));
  if (!warnings.paragraphs.empty()) page.blocks.emplace_back(std::move(warnings));
  return page;
}

}  // namespace hemiola::report
