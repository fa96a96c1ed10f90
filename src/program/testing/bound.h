// Bound programs that tests change: nothing is checked again.
#pragma once

#include <memory>
#include <utility>

#include "machine/machine.h"
#include "program/bind/bound.h"

namespace hemiola::program {

/// With `change(Program&)` made to its program.
template <class Change>
Bound changed(const Bound& bound, Change&& change) {
  Program program = bound.program();
  change(program);
  Frame frame = bound.frame();
  frame.program = std::make_shared<const Program>(std::move(program));
  return {std::move(frame), bound.shared_machine(), bound.warnings()};
}

/// On another machine.
inline Bound moved_to(const machine::Machine& machine, const Bound& bound) {
  return {bound.frame(), machine::share(machine), bound.warnings()};
}

}  // namespace hemiola::program
