#include "hemiola/program.h"

#include <utility>

#include "core/text.h"
#include "library/implementations.h"
#include "library/named.h"
#include "plan/plan_json.h"
#include "plan/template.h"
#include "program/built_in.h"
#include "program/kernels/kernel.h"
#include "study/laboratory/job_file.h"

namespace hemiola {
namespace {

/// Built-ins that the name means; none: it is something else.
std::vector<std::string> built_ins_of(const std::string& name, const parts::Registry* registry) {
  if (program::is_built_in(name, registry)) return {name};
  if (hemiola::is_file(name)) return {};
  if (const std::optional<Collective> collective = parse_collective(name))
    return program::algorithms_of(*collective, registry);
  return {};
}

}  // namespace

Program Program::load(const std::string& name_or_file, const Settings& parameters) {
  return loaded(name_or_file, parameters, nullptr);
}

Program loaded(const std::string& name_or_file, const Settings& parameters,
               const parts::Registry* registry) {
  Program::Implementation self{.name = name_or_file, .parameters = parameters};
  self.built_ins = built_ins_of(name_or_file, registry);
  if (self.built_ins.empty()) {
    const bool is_file = hemiola::is_file(name_or_file);
    const std::string content = is_file ? read_file(name_or_file) : std::string();
    if (is_file && study::is_job(content)) {
      self.job = Job::from_text(content, name_or_file);
    } else if (is_file && plan::is_plan(content)) {
      self.plan = std::make_shared<const plan::Plan>(plan::read_plan(content, name_or_file));
    } else {  // says what is wrong with a name
      self.program = std::make_shared<const program::Program>(
          program::load(name_or_file, {.parameters = parameters, .parts = registry}));
    }
  }
  return Program(std::make_shared<const Program::Implementation>(std::move(self)));
}

Program::Program(const Plan& plan, const Settings& parameters)
    : self_(std::make_shared<const Implementation>(Implementation{
          .name = plan.name(), .parameters = parameters, .plan = plan.implementation().plan})) {}

Program::Program(const Job& job)
    : self_(std::make_shared<const Implementation>(
          Implementation{.name = job.file(), .parameters = {}, .job = job})) {}

std::vector<Named> Program::built_ins() {
  std::vector<Named> all;
  for (const plan::TemplateInfo& info : plan::templates())
    all.push_back({info.name, info.description});
  for (const program::KernelInfo& info : program::kernels())
    all.push_back({info.name, info.description});
  return all;
}

const std::string& Program::name() const {
  return self_->name;
}
const Settings& Program::parameters() const {
  return self_->parameters;
}

}  // namespace hemiola
