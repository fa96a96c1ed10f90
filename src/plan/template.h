// Plan templates: the built-in algorithms and those of others, by the names of the command line
// ("all-reduce/ring"). hemiola/parts/collective_algorithm.h is the contract of the role.
//
// A built-in is a function and a row of the table in its file; a file has one line in
// template_list.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/monitor.h"
#include "core/time.h"
#include "core/units.h"
#include "hemiola/parts/collective_algorithm.h"
#include "machine/machine.h"
#include "plan/plan.h"

namespace hemiola::plan {

/// Of the parameters that `of` declares the one of that name. Failure, with a suggestion: it has
/// none.
const ParameterInfo& declared_parameter(const std::string& of,
                                        const std::vector<ParameterInfo>& declared,
                                        const std::string& name);
/// Values of all that `of` declares: what is given, checked, and the defaults of the rest.
Parameters complete(const std::string& of, const std::vector<ParameterInfo>& declared,
                    const Parameters& given);
/// The number that a text is. Failure, of "parameter 'split'": it is not one from `least` to
/// `most`.
std::int64_t number_of(const std::string& what, const std::string& text, std::int64_t least,
                       std::int64_t most);

/// Adds the built-in algorithms and overlap schedules.
void register_parts(parts::Registry& registry);
/// `parts`, or, where nobody gives any, the built-ins of this layer.
const parts::Registry& parts_or_built_in(const parts::Registry* parts);

/// All templates, by collective, then by the first word of their names, then in order of
/// registration.
const std::vector<TemplateInfo>& templates(const parts::Registry* parts = nullptr);
const TemplateInfo* find_template(std::string_view name, const parts::Registry* parts = nullptr);
/// False of a name that no template has.
inline bool needs_machine(std::string_view name, const parts::Registry* parts = nullptr) {
  const TemplateInfo* info = find_template(name, parts);
  return info != nullptr && info->needs_machine;
}

/// Makes a plan. With a machine, rings and trees follow its links. Failure: an unknown template or
/// parameter (with a suggestion), a bad value, fewer than two ranks, a machine of another number of
/// ranks, none where the template needs one; of an algorithm that is not built in a plan that
/// breaks the contract of its role. Interrupted when the monitor asks for it.
Plan make(std::string_view name, int ranks, const Parameters& parameters = {},
          const machine::Machine* machine = nullptr, const Judge& judge = {},
          Monitor* monitor = nullptr, const parts::Registry* parts = nullptr);
Plan make(const TemplateInfo& info, int ranks, const Parameters& parameters,
          const machine::Machine* machine, const Judge& judge = {}, Monitor* monitor = nullptr,
          const parts::Registry* parts = nullptr);

}  // namespace hemiola::plan
