// include/hemiola/workload.h for Python.
#pragma once

#include <pybind11/pybind11.h>

namespace hemiola::python {

/// Adds Workload, Iteration, run_iteration() and search_parallelism().
void bind_workload(pybind11::module_& module);

}  // namespace hemiola::python
