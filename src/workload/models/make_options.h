// Which iteration is made, where people say it in words: those of the command line and of the
// library.
#pragma once

#include <string>

#include "workload/models/generate.h"

namespace hemiola::workload {

struct MakeWords {
  std::string phase = "train";              ///< "train", "prefill", "decode"
  std::string recompute = "none";           ///< "none", "selective", "full"
  std::string pipeline = "1f1b";            ///< "gpipe", "1f1b", "interleaved", "zero-bubble"
  std::string attention = "flash";          ///< "flash", "unfused"
  std::string context_parallel = "gather";  ///< "gather", "ring"
};

/// Phase, recomputation, schedule, attention and context parallelism of `request`. Failure: its
/// place is "phase" or the like behind `prefix` ("--" on the command line).
void apply(const MakeWords& words, const std::string& prefix, MakeRequest& request);

}  // namespace hemiola::workload
