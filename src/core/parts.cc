// What is checked of a part when it is registered (hemiola/parts/registry.h).
#include <algorithm>
#include <string>
#include <utility>

#include "core/units.h"
#include "hemiola/parts/registry.h"

namespace hemiola::parts {
namespace {

constexpr std::string_view kAlgorithm = "collective algorithm", kKernel = "library kernel",
                           kFormat = "program format", kTraceReader = "trace reader",
                           kRule = "schedule rule";

std::string_view family_of(std::string_view name) {
  return name.substr(0, name.find('/'));
}

/// What is wrong with a parameter; empty: nothing.
std::string problem_of(const Parameter& parameter) {
  if (parameter.name.empty()) return "has a parameter without a name";
  const std::string what = "has a parameter '" + parameter.name + "' ";
  if (parameter.default_value.empty()) return what + "without a default";
  if (parameter.description.empty()) return what + "without a description";
  const auto& choices = parameter.choices;
  if (!choices.empty() && std::ranges::find(choices, parameter.default_value) == choices.end())
    return what + "whose default '" + parameter.default_value + "' is none of its choices";
  return {};
}

std::string problem_of(const std::vector<Parameter>& parameters) {
  for (const Parameter& parameter : parameters)
    if (std::string problem = problem_of(parameter); !problem.empty()) return problem;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (find(parameters, parameters[i].name) != &parameters[i])
      return "has two parameters '" + parameters[i].name + "'";
  return {};
}

template <class Part>
std::string problem_of(const Part& part, bool has_function) {
  if (part.name.find_first_of(" \t\r\n") != std::string::npos) return "has blanks in its name";
  if (!has_function) return "has no function";
  if constexpr (requires { part.format; }) {
    if (part.format.empty()) return "has no name for its format";
  } else {
    if (part.description.empty()) return "has no description";
  }
  if constexpr (requires { part.in_chunks; }) {
    if (part.collective != Collective::custom && family_of(part.name) != name_of(part.collective))
      return "does not begin with its collective, '" + std::string(name_of(part.collective)) + "/'";
  }
  if constexpr (requires { part.parameters; }) return problem_of(part.parameters);
  return {};
}

}  // namespace

bool Parameter::is_text() const {
  return choices.empty() && !parse_count(default_value);
}

template <class Part>
bool Registry::is_sound(std::string_view role, const Part& part, bool has_function) {
  if (part.name.empty()) {
    problems_.error("a " + std::string(role) + " has no name");
    return false;
  }
  const std::string problem = problem_of(part, has_function);
  if (problem.empty()) return is_free(role, part.name);
  problems_.error(std::string(role) + " '" + part.name + "' " + problem, {},
                  "hemiola/parts has the contract of each role");
  return false;
}

bool Registry::is_free(std::string_view role, std::string_view name) {
  const bool is_program = role == kAlgorithm || role == kKernel;
  const bool is_taken = is_program             ? find(algorithms_, name) || find(kernels_, name)
                        : role == kFormat      ? find(formats_, name) != nullptr
                        : role == kTraceReader ? find(trace_readers_, name) != nullptr
                                               : find(rules_, name) != nullptr;
  if (is_taken)
    problems_.error("there are two parts '" + std::string(name) + "'", {},
                    "the second one is a " + std::string(role) + ": call it something else");
  return !is_taken;
}

void Registry::add(plan::TemplateInfo algorithm) {
  if (!is_sound(kAlgorithm, algorithm, algorithm.make != nullptr)) return;
  // Behind those of its family, or else of its collective.
  auto place = algorithms_.end();
  for (auto at = algorithms_.begin(); at != algorithms_.end(); ++at) {
    if (at->collective > algorithm.collective) {
      if (place == algorithms_.end()) place = at;
      break;
    }
    if (at->collective == algorithm.collective && family_of(at->name) == family_of(algorithm.name))
      place = at + 1;
  }
  algorithms_.insert(place, std::move(algorithm));
}

void Registry::add(program::KernelInfo kernel) {
  if (is_sound(kKernel, kernel, kernel.make != nullptr)) kernels_.push_back(std::move(kernel));
}

void Registry::add(program::FormatReader format) {
  if (is_sound(kFormat, format, format.recognises != nullptr && format.read != nullptr))
    formats_.push_back(std::move(format));
}

void Registry::add(workload::TraceReader reader) {
  if (is_sound(kTraceReader, reader, reader.recognises != nullptr && reader.read != nullptr))
    trace_readers_.push_back(std::move(reader));
}

void Registry::add(explore::ScheduleRule rule) {
  if (is_sound(kRule, rule, rule.pick != nullptr)) rules_.push_back(std::move(rule));
}

}  // namespace hemiola::parts
