// Plans of chunks made into plans of elements: the same movements on tensors of a shape.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace hemiola::plan {

/// `plan` is of chunks, with tensors of one axis. `shape` is that of the tensor that nccl-tests'
/// size means (chunks_per_size chunks): chunks are equal parts of it along `axis`, and other
/// tensors hold as many such parts as they held chunks. Failure when the axis does not divide, for
/// a plan of elements, or for tensors of several axes.
Plan shaped(const Plan& plan, const std::vector<std::int64_t>& shape, DataType type,
            std::size_t axis);

}  // namespace hemiola::plan
