#include "program/export.h"

#include <algorithm>

#include "program/built_in.h"
#include "program/lower.h"

namespace hemiola::program {

std::string write_as(ExecutorFormat format, const Program& program) {
  return format == ExecutorFormat::mscclpp ? write_mscclpp(program) : write_msccl(program);
}

std::string export_plan(const plan::Plan& plan, ExecutorFormat format,
                        const plan::Parameters& lowering, const machine::Machine* machine) {
  const auto attempt = [&](const plan::Parameters& parameters) {
    Program program = lower_plan(plan, parameters);
    program.machine = machine;
    return write_as(format, program);
  };
  const bool chosen = std::any_of(lowering.begin(), lowering.end(),
                                  [](const auto& parameter) { return parameter.first == "sync"; });
  if (chosen) return attempt(lowering);
  if (is_chain(plan) || is_exchange(plan)) {  // others count progress, as neither format does
    try {
      return attempt(lowering);
    } catch (const Failure&) {
    }
  }
  plan::Parameters other = lowering;
  other.emplace_back("sync", format == ExecutorFormat::mscclpp ? "channels" : "connections");
  return attempt(other);
}

}  // namespace hemiola::program
