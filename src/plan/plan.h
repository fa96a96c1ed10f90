// Plans (hemiola/parts/plan.h), and what walks them.
#pragma once

#include <cstdint>
#include <functional>

#include "core/affine.h"
#include "core/data_type.h"
#include "core/diagnostics.h"
#include "hemiola/parts/plan.h"

namespace hemiola::plan {

/// Number of transfers of a stream, loops unrolled.
std::int64_t count_transfers(const Stream& stream);
/// ... of all streams of all ranks.
std::int64_t count_transfers(const Plan& plan);

/// Calls `visit` for every transfer of the stream in order, loops unrolled.
void for_each_transfer(const Stream& stream, int rank,
                       const std::function<void(const Transfer&, const Indices&)>& visit);

}  // namespace hemiola::plan
