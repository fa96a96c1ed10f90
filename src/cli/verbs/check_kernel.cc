#include "cli/verbs/check_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "cli/options/inputs.h"
#include "cli/options/values.h"

namespace hemiola::cli {
namespace {

std::string counted(int count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string verdict_of(const compile::RuleReport& report, bool is_proven_elsewhere) {
  if (!report.violations.empty())
    return counted(static_cast<int>(report.violations.size()), "violation");
  return report.not_judged.empty() || is_proven_elsewhere
             ? "no rule is broken"
             : "nothing wrong found, but not judged in full";
}

void print(const std::string& file, const compile::RuleReport& report,
           const CheckKernelOptions& options, bool is_proven_elsewhere) {
  using Kind = compile::MemoryEvent::Kind;
  const int waits = report.count(Kind::poll) + report.count(Kind::plain_poll);
  const int signals = report.count(Kind::signal) + report.count(Kind::plain_signal);
  const int counters = report.count(Kind::count);
  std::cout << fmt::format("kernel {} ({}): ", report.kernel, file);
  if (!report.communicates && report.not_judged.empty()) {
    std::cout << "it neither waits for others nor tells them, so there is nothing to judge\n";
    return;
  }
  std::cout << fmt::format("{}, {}, {}; {}\n", counted(waits, "wait"), counted(counters, "counter"),
                           counted(signals, "signal"), verdict_of(report, is_proven_elsewhere));
  // Of a file that is proven as a program, what the rules assume matters only if they find
  // something.
  if (!is_proven_elsewhere || !report.violations.empty()) {
    std::cout << fmt::format("  judged for {}, Triton {}\n", options.target,
                             options.triton.empty() ? "3.3 to 3.9" : options.triton);
    for (const std::string& one : report.assumed) std::cout << "  assumed: " << one << '\n';
  }
  for (const compile::Violation& one : report.violations) {
    std::cout << fmt::format("{}:{}:{}: error: {} [{}]\n", one.span.file, one.span.line,
                             one.span.column, one.what, one.rule);
    for (const compile::Span& call : one.calls)
      std::cout << fmt::format("  called at {}:{}:{}\n", call.file, call.line, call.column);
    for (const std::string& note : one.notes) std::cout << "  " << note << '\n';
    std::cout << "  hint: " << one.hint << '\n';
  }
  if (is_proven_elsewhere && !report.has_open_scope) return;
  for (const std::string& one : report.not_judged) std::cout << "  not judged: " << one << '\n';
}

/// The worst of two: what is wrong before what is not known.
ExitCode worse(ExitCode a, const compile::RuleReport& report, bool is_proven_elsewhere) {
  if (a == ExitCode::wrong_program) return a;
  if (!report.violations.empty()) {
    const bool endless = std::all_of(report.violations.begin(), report.violations.end(),
                                     [](const compile::Violation& one) { return one.is_endless; });
    return endless ? ExitCode::deadlock : ExitCode::wrong_program;
  }
  const bool is_known = is_proven_elsewhere && !report.has_open_scope;
  if (a != ExitCode::done || report.not_judged.empty() || is_known) return a;
  return ExitCode::not_proven;
}

}  // namespace

bool is_kernel_file(const std::string& name) {
  return name.ends_with(".py");
}

KernelCheck check_kernel(const std::string& file, const CheckKernelOptions& options,
                         bool is_proven_elsewhere) {
  compile::Library library(options.helpers);
  const compile::Module& module = library.load(file);
  compile::RuleRequest request{
      .kernel = options.kernel, .triton = options.triton, .protocol = options.protocol};
  request.constants = pairs_of("--constexpr", options.constants);
  request.target = choice_value("--target", options.target, {"cuda", "hip", "cdna", "rdna"});
  if (request.target == "hip") request.target = "cdna";
  std::vector<std::string> names;
  if (options.kernel.empty()) {
    for (const compile::KernelName& one : compile::kernels_of(module))
      if (!one.is_helper) names.push_back(one.name);
  }
  if (names.empty()) names.push_back(compile::choose_kernel(module, options.kernel).name);
  KernelCheck made;
  for (const std::string& name : names) {
    request.kernel = name;
    made.reports.push_back(compile::check_rules(library, module, request));
    print(file, made.reports.back(), options, is_proven_elsewhere);
    made.code = worse(made.code, made.reports.back(), is_proven_elsewhere);
  }
  return made;
}

}  // namespace hemiola::cli
