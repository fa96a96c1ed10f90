#include "cli/verbs/check_kernel.h"

#include <fmt/format.h>

#include <iostream>

#include "cli/options/inputs.h"
#include "cli/options/values.h"
#include "core/text.h"
#include "report/kernel_description.h"

namespace hemiola::cli {
namespace {

std::string counted(int count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

void print(const std::string& file, const compile::RuleReport& report) {
  using Kind = compile::MemoryEvent::Kind;
  const int waits = report.count(Kind::poll) + report.count(Kind::plain_poll);
  const int signals = report.count(Kind::signal) + report.count(Kind::plain_signal);
  const int counters = report.count(Kind::count);
  std::cout << fmt::format("kernel {} ({}): ", report.kernel, file);
  if (waits + signals + counters == 0) {
    std::cout << "it neither waits for others nor tells them, so there is nothing to judge\n";
    return;
  }
  std::cout << fmt::format("{}, {}, {}; {}\n", counted(waits, "wait"), counted(counters, "counter"),
                           counted(signals, "signal"),
                           report.violations.empty()
                               ? "no rule is broken"
                               : counted(static_cast<int>(report.violations.size()), "violation"));
  for (const compile::Violation& one : report.violations)
    std::cout << fmt::format("{}:{}:{}: error: {} [{}]\n  hint: {}\n", one.span.file, one.span.line,
                             one.span.column, one.what, one.rule, one.hint);
}

}  // namespace

bool is_kernel_file(const std::string& name) {
  return name.ends_with(".py");
}

KernelCheck check_kernel(const std::string& file, const CheckKernelOptions& options) {
  compile::Library library(options.helpers);
  const compile::Module& module = library.load(file);
  compile::DescribeRequest request{
      .file = file, .kernel = options.kernel, .helpers = options.helpers};
  request.constants = pairs_of("--constexpr", options.constants);
  if (choice_value("--target", options.target, {"cuda", "hip"}) == "hip")
    request.target = compile::Target::hip;
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
    print(file, made.reports.back());
    if (!made.reports.back().violations.empty()) made.code = ExitCode::wrong_program;
  }
  return made;
}

}  // namespace hemiola::cli
