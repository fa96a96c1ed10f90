// The page of `hemiola machine show --graph html`.
#pragma once

#include <string>

#include "machine/machine.h"
#include "report/page.h"

namespace hemiola::report {

/// The machine drawn (machine_drawing.h), what `machine show` prints as tables, and of at most 64
/// GPUs a map of the bandwidth between them. `command` is the command line that makes it.
page::Page machine_page(const machine::Machine& machine, const std::string& command);

}  // namespace hemiola::report
