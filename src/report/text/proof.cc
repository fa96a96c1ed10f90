// What was proven, or the first counterexample.
#include <fmt/format.h>

#include <ostream>

#include "report/report.h"

namespace hemiola::report {
namespace {

std::string step_text(const verify::Witness& witness) {
  std::string text = fmt::format("rank {}", witness.rank);
  if (witness.workgroup >= 0) text += fmt::format(", {} {}", witness.part, witness.workgroup);
  if (!witness.operation.empty()) text += ", " + witness.operation;
  if (!witness.where.empty()) text += ", at " + witness.where;
  return text + ": " + witness.text;
}

}  // namespace

void print_proof(std::ostream& out, const verify::Proof& proof, std::string_view prefix) {
  const std::string_view verdict = verify::name_of(proof.verdict);
  std::string summary = proof.summary;
  // "proven" alone says too little.
  if (summary.empty() || summary == "proven")
    summary = fmt::format("{}", fmt::join(proof.proven, "; "));
  // The verifier may already open its line with the verdict.
  const bool named = summary.compare(0, verdict.size(), verdict) == 0;
  out << prefix << "check: " << (named ? "" : std::string(verdict) + ": ") << summary << '\n';
  if (!proof.rules.empty())
    out << prefix << "executor: " << proof.executor << ": " << proof.rules << '\n';
  if (proof.verdict == verify::Verdict::partial) {
    for (const std::string& reason : proof.reasons) {
      if (summary.find(reason) != std::string::npos) continue;
      out << prefix << "  not proven: " << reason << '\n';
    }
  }
  for (std::size_t i = 0; i < proof.counterexample.size(); ++i)
    out << prefix << fmt::format("  {}. {}\n", i + 1, step_text(proof.counterexample[i]));
  if (!proof.warnings.empty()) out << proof.warnings.render() << '\n';
}

void print_execution(std::ostream& out, const verify::Execution& execution,
                     std::string_view prefix) {
  out << prefix << "data: " << verify::name_of(execution.outcome) << ": " << execution.summary
      << '\n';
  for (std::size_t i = 0; i < execution.steps.size(); ++i)
    out << prefix << fmt::format("  {}. {}\n", i + 1, step_text(execution.steps[i]));
}

}  // namespace hemiola::report
