// Measured iterations of training of any framework, beside simulated ones.
#pragma once

#include "study/tables/rows.h"

namespace hemiola::workload {

/// Rows of kind iteration: a model by name or by its sizes, how it is divided, batches. What a
/// framework ran is what data/tables.yaml says of the words of the row and of the table's head
/// (`iterations`).
study::JudgeRow judge_iterations(study::Laboratory& laboratory, const study::JudgeOptions& options);

}  // namespace hemiola::workload
