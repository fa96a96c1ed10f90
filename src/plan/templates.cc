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

void set_value(const TemplateInfo& info, Parameters& parameters, const std::string& name,
               const std::string& value) {
  const SourceLocation& where = kOption;
  const ParameterInfo* known = info.parameter(name);
  if (known == nullptr) {
    const std::vector<std::string> names = names_of(info.parameters);
    throw Failure(
        "'" + info.name + "' has no parameter '" + name + "'", where,
        suggest(name, names,
                names.empty() ? "it has no parameters" : "its parameters are " + joined(names)));
  }
  if (known->is_text()) {
    // Its template reads it.
  } else if (known->choices.empty()) {
    const auto number = parse_count(value);
    if (!number || *number < 0) {
      throw Failure(
          "parameter '" + name + "' of '" + info.name + "' is not a count: '" + value + "'", where,
          "write an integer from 0 on");
    }
  } else if (std::ranges::find(known->choices, value) == known->choices.end()) {
    throw Failure("parameter '" + name + "' of '" + info.name + "' cannot be '" + value + "'",
                  where, suggest(value, known->choices, "it takes " + joined(known->choices)));
  }
  const auto at = index(known - info.parameters.data());
  parameters[at].second = value;
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

std::int64_t TemplateArguments::number(std::string_view parameter) const {
  return *parse_count(word(parameter));
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
  TemplateArguments arguments{info->name, info->collective, ranks, {}, machine, judge, monitor};
  for (const ParameterInfo& parameter : info->parameters)
    arguments.parameters.emplace_back(parameter.name, parameter.default_value);
  for (const auto& [parameter, value] : parameters)
    set_value(*info, arguments.parameters, parameter, value);
  return info->make(arguments);
}

}  // namespace hemiola::plan
