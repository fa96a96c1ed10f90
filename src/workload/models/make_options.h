// Which iteration is made, where people say it in words: those of the command line and of the
// library.
#pragma once

#include <string>

#include "hemiola/workload.h"
#include "workload/models/generate.h"

namespace hemiola::workload {

/// The same, understood; the model is loaded. Failure: its place is "phase" or the like behind
/// `prefix` ("--" on the command line).
MakeRequest make_request(const ModelIteration& of, const std::string& prefix);

}  // namespace hemiola::workload
