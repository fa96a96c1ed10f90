// Results as dictionaries, of which python/hemiola makes its plain classes.
#pragma once

#include <pybind11/pybind11.h>

#include "hemiola/check.h"
#include "hemiola/error.h"
#include "hemiola/experiment.h"

namespace hemiola::python {

pybind11::list to_python(const std::vector<Diagnostic>& diagnostics);
pybind11::dict to_python(const Proof& proof);
/// All that `Outcome` of python/hemiola/_results.py has.
pybind11::dict to_python(const Outcome& outcome);

/// Failure, WrongProgram and Interrupted become exceptions of python/hemiola/_errors.py.
void translate_failures();

}  // namespace hemiola::python
