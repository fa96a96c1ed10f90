// include/hemiola/explore.h for Python.
#pragma once

#include <pybind11/pybind11.h>

namespace hemiola::python {

/// Adds explore(), explore_suite() and exploration_suites(); results are dictionaries.
void bind_explore(pybind11::module_& module);

}  // namespace hemiola::python
