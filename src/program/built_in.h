// Built-in programs: plan templates, lowered. "all-reduce/ring" with channels=8, protocol=ll, ...
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hemiola/parts/lower_plan.h"
#include "plan/template.h"
#include "program/program.h"

namespace hemiola::program {

/// A template's plan, and the parameters that are its lowering's.
struct BuiltInPlan {
  plan::Plan plan;
  plan::Parameters lowering;
};
/// Nothing and failure as make_built_in(); for the monitor see plan::make().
std::optional<BuiltInPlan> plan_of_built_in(const std::string& name, const LoadOptions& options,
                                            Monitor* monitor = nullptr);

/// `options.judge` for plan::make(): judges what a plan is lowered to with those of the parameters
/// that its shape has. Unset where that is.
plan::Judge judge_of_plans(const LoadOptions& options, const plan::Parameters& lowering);

/// Nothing when no template has this name. Failure: unknown or malformed parameters (with a
/// suggestion), a number of ranks or a combination that the template cannot take.
///
/// Parameters are those of the template and of the lowering (`parameters_of`). With protocol `ll`
/// the template's own defaults are push, because packets cannot be pulled.
std::optional<Program> make_built_in(const std::string& name, const LoadOptions& options);

// lower_plan(): hemiola/parts/lower_plan.h. Where the parameters say nothing, it takes those
// that the plan proposes (Plan::lowering). Failure as above.

/// The templates.
std::vector<std::string> built_in_names(const parts::Registry* parts = nullptr);

/// The templates of a collective and what NCCL takes, to be tried when no algorithm is named.
std::vector<std::string> algorithms_of(Collective collective,
                                       const parts::Registry* parts = nullptr);

/// All parameters of a built-in, for --help and errors. Failure for an unknown name.
std::vector<plan::ParameterInfo> parameters_of(const std::string& name,
                                               const parts::Registry* parts = nullptr);
std::vector<plan::ParameterInfo> parameters_of(const plan::TemplateInfo& info);

}  // namespace hemiola::program
