// Plan templates: the built-in algorithms, by the names of the command line ("all-reduce/ring").
//
// An algorithm is a function and a row of the table in its file; a file has one line in
// template_list.h (docs/extending.md shows one being added).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/monitor.h"
#include "core/time.h"
#include "core/units.h"
#include "machine/machine.h"
#include "plan/plan.h"

namespace hemiola::plan {

/// A parameter of a template: a word out of `choices`, or, where there are none, an integer >= 0; a
/// text that the template reads where the default is no integer.
struct ParameterInfo {
  std::string name;
  std::string default_value;
  std::vector<std::string> choices;
  std::string description;

  bool is_text() const;
};

using Parameters =
    std::vector<std::pair<std::string, std::string>>;  ///< name, value; the last one wins

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

/// For templates that choose among plans: the time at `size`, better known than by estimate().
/// Nothing where it is not.
using Judge = std::function<std::optional<Time>(const Plan&, Bytes size)>;

/// What a template is made for. Parameters are complete and valid: defaults are filled in.
struct TemplateArguments {
  std::string name;
  Collective collective = Collective::custom;
  int ranks = 0;
  Parameters parameters;
  const machine::Machine* machine = nullptr;  ///< with as many ranks; null: not known
  Judge judge{};                              ///< unset: estimate() chooses alone
  Monitor* monitor = nullptr;                 ///< of templates that take long; null: nobody watches

  const std::string& word(std::string_view parameter) const;
  /// Failure: not from `least` to `most`.
  std::int64_t number(std::string_view parameter, std::int64_t least = 0,
                      std::int64_t most = INT64_MAX) const;
};

struct TemplateInfo {
  std::string name;         ///< "all-reduce/ring"
  std::string description;  ///< one line
  std::vector<ParameterInfo> parameters;
  Plan (*make)(const TemplateArguments&) = nullptr;
  Collective collective = Collective::custom;
  bool in_chunks = true;       ///< false: of elements, with the sizes as parameters
  bool needs_machine = false;  ///< derives its plan from the machine's links

  const ParameterInfo* parameter(std::string_view name) const;  ///< null: it has none of that name
};

/// An empty plan with the names and ranks of the arguments, for a template to fill.
Plan start_plan(const TemplateArguments& arguments, std::int64_t chunks_per_size);

/// All templates, by collective, then by the first word of their names, then in order of
/// registration.
const std::vector<TemplateInfo>& templates();
const TemplateInfo* find_template(std::string_view name);
/// False of a name that no template has.
inline bool needs_machine(std::string_view name) {
  const TemplateInfo* info = find_template(name);
  return info != nullptr && info->needs_machine;
}

/// Makes a plan. With a machine, rings and trees follow its links. Failure: an unknown template or
/// parameter (with a suggestion), a bad value, fewer than two ranks, a machine of another number of
/// ranks, none where the template needs one. Interrupted when the monitor asks for it.
Plan make(std::string_view name, int ranks, const Parameters& parameters = {},
          const machine::Machine* machine = nullptr, const Judge& judge = {},
          Monitor* monitor = nullptr);

}  // namespace hemiola::plan
