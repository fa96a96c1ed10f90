// Measured products with collectives, serial and fused, beside explored ones.
#pragma once

#include "study/tables/rows.h"

namespace hemiola::explore {

/// Rows of kind overlap. Those with a column `serial_us` are two: serial and fused. A fused one
/// stands for the fastest schedule of the family that data/tables.yaml reads out of its words.
study::JudgeRow judge_overlaps(study::Laboratory& laboratory, const study::JudgeOptions& options);

}  // namespace hemiola::explore
