#include <algorithm>
#include <string>

#include "core/lists.h"
#include "core/part_call.h"
#include "core/units.h"
#include "hemiola/parts/registry.h"
#include "plan/template.h"
#include "plan/templates/families.h"

namespace hemiola::plan {
namespace {

std::string family_of(const TemplateInfo& info) {
  return info.name.substr(0, info.name.find('/'));
}

}  // namespace

std::vector<TemplateInfo> of_collectives(std::vector<TemplateInfo> rows) {
  for (TemplateInfo& row : rows) row.collective = parse_collective(family_of(row)).value();
  return rows;
}

std::vector<TemplateInfo> of_elements(std::vector<TemplateInfo> rows,
                                      const std::vector<ParameterInfo>& sizes) {
  for (TemplateInfo& row : rows) {
    row.in_chunks = false;
    row.parameters.insert(row.parameters.begin(), sizes.begin(), sizes.end());
  }
  return rows;
}

const ParameterInfo& declared_parameter(const std::string& of,
                                        const std::vector<ParameterInfo>& declared,
                                        const std::string& name) {
  const auto found = std::ranges::find(declared, name, &ParameterInfo::name);
  if (found != declared.end()) return *found;
  const std::vector<std::string> names = names_of(declared);
  throw Failure(
      "'" + of + "' has no parameter '" + name + "'", kOption,
      suggest(name, names,
              names.empty() ? "it has no parameters" : "its parameters are " + joined(names)));
}

std::int64_t number_of(const std::string& what, const std::string& text, std::int64_t least,
                       std::int64_t most) {
  const auto number = parse_count(text);
  if (number && *number >= least && *number <= most) return *number;
  throw Failure(what + " cannot be " + (number ? text : "'" + text + "'"), kOption,
                "it is a number from " + std::to_string(least) +
                    (most == INT64_MAX ? " on" : " to " + std::to_string(most)));
}

Parameters complete(const std::string& of, const std::vector<ParameterInfo>& declared,
                    const Parameters& given) {
  Parameters all;
  for (const ParameterInfo& parameter : declared)
    all.emplace_back(parameter.name, parameter.default_value);
  for (const auto& [name, value] : given) {
    const ParameterInfo& known = declared_parameter(of, declared, name);
    const std::string what = "parameter '" + name + "' of '" + of + "'";
    if (known.choices.empty()) {
      if (!known.is_text()) number_of(what, value, 0, INT64_MAX);
    } else if (std::ranges::find(known.choices, value) == known.choices.end()) {
      throw Failure(what + " cannot be '" + value + "'", kOption,
                    suggest(value, known.choices, "it takes " + joined(known.choices)));
    }
    all[index(&known - declared.data())].second = value;
  }
  return all;
}

const ParameterInfo* TemplateInfo::parameter(std::string_view wanted) const {
  const auto found = std::ranges::find(parameters, wanted, &ParameterInfo::name);
  return found == parameters.end() ? nullptr : &*found;
}

const std::string& TemplateArguments::word(std::string_view parameter) const {
  for (const auto& [name_, value] : parameters)
    if (name_ == parameter) return value;
  throw Failure("template '" + name + "' asks for parameter '" + std::string(parameter) +
                    "', which it does not declare",
                {}, {}, ExitCode::internal);
}

std::int64_t TemplateArguments::number(std::string_view parameter, std::int64_t least,
                                       std::int64_t most) const {
  return number_of("parameter '" + std::string(parameter) + "' of '" + name + "'", word(parameter),
                   least, most);
}

Plan start_plan(const TemplateArguments& arguments, std::int64_t chunks_per_size) {
  Plan plan;
  plan.name = arguments.name;
  plan.collective = arguments.collective;
  plan.ranks = arguments.ranks;
  plan.chunks_per_size = chunks_per_size;
  return plan;
}

void register_parts(parts::Registry& registry) {
  const auto add = [&](std::vector<TemplateInfo> rows, const char* source) {
    for (TemplateInfo& row : rows) {
      row.is_valid = true;
      row.source = source;
      registry.add(std::move(row));
    }
  };
#define HEMIOLA_TEMPLATES(name, source) add(name##_templates(), source);
#include "plan/templates/template_list.h"
#undef HEMIOLA_TEMPLATES
}

const parts::Registry& parts_or_built_in(const parts::Registry* parts) {
  if (parts != nullptr) return *parts;
  static const parts::Registry built_ins{register_parts};
  return built_ins;
}

const std::vector<TemplateInfo>& templates(const parts::Registry* parts) {
  return parts_or_built_in(parts).algorithms();
}

const TemplateInfo* find_template(std::string_view name, const parts::Registry* parts) {
  return parts::find(templates(parts), name);
}

namespace {

/// What the role promises of a plan. Failure with the algorithm's name.
Plan made_by(const TemplateInfo& info, const TemplateArguments& arguments) {
  if (info.is_valid) return info.make(arguments);
  const std::string who = "algorithm '" + info.name + "'";
  Plan plan = call_part(who, kOption, [&] { return info.make(arguments); });
  expect_asked(who, "plan", plan, arguments.ranks, info.collective, false, kOption);
  validate(plan);
  return plan;
}

}  // namespace

Plan make(std::string_view name, int ranks, const Parameters& parameters,
          const machine::Machine* machine, const Judge& judge, Monitor* monitor,
          const parts::Registry* parts) {
  if (const TemplateInfo* info = find_template(name, parts))
    return make(*info, ranks, parameters, machine, judge, monitor, parts);

  const std::vector<std::string> names = names_of(templates(parts));
  throw Failure("there is no plan template '" + std::string(name) + "'", kOption,
                suggest(name, names, "the templates are " + joined(names)));
}

Plan make(const TemplateInfo& info, int ranks, const Parameters& parameters,
          const machine::Machine* machine, const Judge& judge, Monitor* monitor,
          const parts::Registry* parts) {
  const SourceLocation& where = kOption;
  if (ranks < 2) {
    throw Failure("'" + info.name + "' needs at least 2 ranks, not " + std::to_string(ranks),
                  where);
  }
  if (machine != nullptr && machine->ranks() != ranks) {
    throw Failure("'" + info.name + "' over " + std::to_string(ranks) + " ranks cannot follow '" +
                      machine->name + "', which has " + std::to_string(machine->ranks()),
                  where);
  }
  if (machine == nullptr && info.needs_machine) {
    throw Failure("'" + info.name + "' derives its plan from a machine, and none is given", where,
                  "name one with --machine");
  }
  return made_by(
      info, {info.name, info.collective, ranks, complete(info.name, info.parameters, parameters),
             machine, judge, monitor, parts});
}

}  // namespace hemiola::plan
