// The evaluator's entrance.
#include "compile/describe/evaluator.h"

namespace hemiola::compile {

bool Evaluator::tired() {
  if (++steps_ <= kMostSteps) return false;
  trace_.exhausted = true;
  return true;
}

void Evaluator::run(const Function& kernel, const ParameterValues& values) {
  Frame frame{.function = &kernel, .module = kernel.module};
  here_.frame = &frame;
  calls_.push_back(&kernel);
  for (const Parameter& parameter : kernel.parameters) {
    const auto given = values.find(parameter.name);
    frame.names[parameter.name] =
        given != values.end()
            ? here_.literal(given->second)
            : values::number(algebra_.parameter(parameter.name, parameter.is_constexpr));
  }
  block(kernel.body());
}

std::unique_ptr<Trace> follow(Library& library, const Function& kernel,
                              const ParameterValues& values) {
  auto trace = std::make_unique<Trace>();
  trace->kernel = &kernel;
  Evaluator(library, *trace).run(kernel, values);
  return trace;
}

}  // namespace hemiola::compile
