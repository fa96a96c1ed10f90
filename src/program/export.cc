#include "program/export.h"

#include <algorithm>

#include "program/built_in.h"
#include "program/formats/executor_limits.h"
#include "program/lower/lower.h"

namespace hemiola::program {
namespace {

/// Whether the format might take the plan's own lowering; that of others counts progress, and that
/// of an exchange has a channel to every peer in each workgroup, of one of two types.
bool may_fit(const plan::Plan& plan, ExecutorFormat format) {
  if (is_chain(plan)) return true;
  const auto peers = index(plan.ranks - 1);
  return format == ExecutorFormat::mscclpp && peers <= 2 * mscclpp_limits::kChannels.most &&
         is_exchange(plan);
}

}  // namespace

const std::vector<std::string>& executor_format_names() {
  static const std::vector<std::string> kNames{"mscclpp", "msccl", "msccl:microsoft", "msccl:rccl"};
  return kNames;
}

std::string_view format_name(ExecutorFormat format) {
  return executor_format_names().at(index(format));
}

std::string write_as(ExecutorFormat format, const Program& program,
                     const machine::Machine* machine) {
  switch (format) {
    case ExecutorFormat::mscclpp:
      return write_mscclpp(program, machine);
    case ExecutorFormat::msccl_microsoft:
      return write_msccl(program, MscclDialect::microsoft);
    case ExecutorFormat::msccl_rccl:
      return write_msccl(program, MscclDialect::rccl);
    case ExecutorFormat::msccl:
      break;
  }
  return write_msccl(program);
}

std::string export_plan(const plan::Plan& plan, ExecutorFormat format,
                        const plan::Parameters& lowering, const machine::Machine* machine) {
  const auto attempt = [&](const plan::Parameters& parameters) {
    return write_as(format, lower_plan(plan, parameters), machine);
  };
  const bool chosen = std::ranges::any_of(
      lowering, [](const auto& parameter) { return parameter.first == "sync"; });
  if (chosen) return attempt(lowering);
  if (may_fit(plan, format)) {
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
