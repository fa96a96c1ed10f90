#include <algorithm>
#include <map>
#include <string>

#include "core/lists.h"
#include "core/units.h"
#include "plan/template.h"
#include "plan/templates/families.h"

namespace hemiola::plan {
namespace {

std::string family_of(const TemplateInfo& info) {
  return info.name.substr(0, info.name.find('/'));
}

std::vector<TemplateInfo> make_table() {
  std::vector<TemplateInfo> all;
  std::map<std::string, std::size_t> families;  // in the order of their first rows
  const auto add = [&](const std::vector<TemplateInfo>& rows) {
    for (const TemplateInfo& row : rows) families.try_emplace(family_of(row), families.size());
    all.insert(all.end(), rows.begin(), rows.end());
  };
#define HEMIOLA_TEMPLATES(name) add(name##_templates());
#include "plan/templates/template_list.h"
#undef HEMIOLA_TEMPLATES
  std::ranges::stable_sort(all, {}, [&](const TemplateInfo& info) {
    return std::pair(info.collective, families.at(family_of(info)));
  });
  return all;
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

bool ParameterInfo::is_text() const {
  return choices.empty() && !parse_count(default_value);
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

const std::vector<TemplateInfo>& templates() {
  static const std::vector<TemplateInfo> table = make_table();
  return table;
}

const TemplateInfo* find_template(std::string_view name) {
  for (const TemplateInfo& info : templates())
    if (info.name == name) return &info;
  return nullptr;
}

Plan make(std::string_view name, int ranks, const Parameters& parameters,
          const machine::Machine* machine, const Judge& judge, Monitor* monitor) {
  const TemplateInfo* info = find_template(name);
  const SourceLocation& where = kOption;
  if (info == nullptr) {
    const std::vector<std::string> names = names_of(templates());
    throw Failure("there is no plan template '" + std::string(name) + "'", where,
                  suggest(name, names, "the templates are " + joined(names)));
  }
  if (ranks < 2) {
    throw Failure("'" + info->name + "' needs at least 2 ranks, not " + std::to_string(ranks),
                  where);
  }
  if (machine != nullptr && machine->ranks() != ranks) {
    throw Failure("'" + info->name + "' over " + std::to_string(ranks) + " ranks cannot follow '" +
                      machine->name + "', which has " + std::to_string(machine->ranks()),
                  where);
  }
  if (machine == nullptr && info->needs_machine) {
    throw Failure("'" + info->name + "' derives its plan from a machine, and none is given", where,
                  "name one with --machine");
  }
  return info->make({info->name, info->collective, ranks,
                     complete(info->name, info->parameters, parameters), machine, judge, monitor});
}

}  // namespace hemiola::plan
