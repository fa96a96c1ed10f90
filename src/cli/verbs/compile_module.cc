#include "cli/verbs/compile_module.h"

#include <fmt/format.h>

#include <iostream>

#include "cli/options/inputs.h"
#include "core/expansion.h"
#include "core/text.h"
#include "plan/plan_json.h"
#include "workload/hlo/lift.h"
#include "workload/hlo/module.h"

namespace hemiola::cli {
namespace {

namespace hlo = workload::hlo;

hlo::Module read_module(const std::string& file) {
  std::string text = read_file(file);
  const Format format = recognise(text);
  if (format != Format::hlo)
    throw Failure("is " + std::string(describe(format)) + ", not an HLO module", {.file = file},
                  format == Format::mlir ? "what XLA dumps after its optimizations is read: "
                                           "docs/hlo.md"
                                         : "");
  return hlo::parse(file, std::move(text));
}

std::string shape_text(const machine::GemmShape& shape) {
  const std::string batch = shape.batch > 1 ? fmt::format("{} x ", shape.batch) : "";
  return fmt::format("{}{} x {} x {} {}", batch, shape.m, shape.n, shape.k, name_of(shape.type));
}

std::string lift_text(const hlo::Lift& lift) {
  std::string text = fmt::format("{} with {} '{}' on {} ranks, m={} n={} k={}", lift.family,
                                 lift.collective->opcode, lift.collective->name, lift.ranks, lift.m,
                                 lift.n, lift.k);
  if (lift.is_transposed) text += ", transposed";
  if (lift.groups > 1) text += fmt::format(", in {} groups", lift.groups);
  return text;
}

}  // namespace

bool is_module_file(const std::string& file) {
  return is_file(file) && recognise(read_start(file)) == Format::hlo;
}

ExitCode describe_module(const CompileModuleOptions& options) {
  const hlo::Module module = read_module(options.module);
  const std::vector<hlo::ProductOfModule> products = hlo::find_products(module);
  std::cout << fmt::format("module {} ({}): {} matrix product{}\n", module.name, options.module,
                           products.size(), products.size() == 1 ? "" : "s");
  for (const hlo::ProductOfModule& one : products) {
    const std::string origin = module.origin(*one.product);
    std::cout << fmt::format("{} (line {}): {}{}\n", one.product->name,
                             module.at(one.product->offset).line, shape_text(one.shape),
                             origin.empty() ? "" : ", of " + origin);
    for (const hlo::Lift& lift : one.lifts) std::cout << "  " << lift_text(lift) << '\n';
    for (const hlo::NoLift& other : one.others)
      std::cout << fmt::format("  {} '{}' is left: {}\n", other.collective->opcode,
                               other.collective->name, other.reason);
  }
  return ExitCode::done;
}

ExitCode compile_module(const CompileModuleOptions& options) {
  hlo::LiftRequest request{.product = options.product, .template_name = options.template_name};
  for (const auto& [name, value] : parameter_values(options.parameters))
    request.parameters.emplace_back(name, value);
  const hlo::Module module = read_module(options.module);
  const hlo::LiftedPlan lifted = hlo::lift_product(module, request);
  write_file(options.output, plan::write_plan(lifted.plan));
  std::cout << fmt::format("{}: {} of product '{}': {}\n", options.output, lifted.template_name,
                           options.product, lift_text(lifted.lift));
  return ExitCode::done;
}

}  // namespace hemiola::cli
