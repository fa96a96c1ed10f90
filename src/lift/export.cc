#include "lift/lift.h"

namespace hemiola::lift {

std::string export_lifted(const program::Bound& program, program::ExecutorFormat format) {
  plan::Plan plan = lift(program);
  plan.collective = program.collective();
  plan.root = static_cast<int>(program.program().root);
  plan.in_place_safe = program.program().in_place;  // it did run so
  plan::Parameters lowering;
  if (program.program().in_place) lowering.emplace_back("in_place", "1");
  // MSCCL XML has no words for a switch: what goes through one is sent and received.
  if (format != program::ExecutorFormat::mscclpp)
    lowering.emplace_back("realization", "load-store");
  return program::export_plan(plan, format, lowering, program.machine());
}

}  // namespace hemiola::lift
