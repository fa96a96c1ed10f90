// What the executors of MSCCL++ plans and MSCCL XML have room for. Nothing in the formats says so;
// a file past these is refused, or overruns an array, when it is loaded.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "core/diagnostics.h"

namespace hemiola::program {

struct Limit {
  std::size_t most = 0;
  std::string_view what;  ///< "operations"
  std::string_view name;  ///< as the executor's source calls it
  std::string_view hint;
};

/// microsoft/mscclpp src/core/include/execution_common.hpp
namespace mscclpp_limits {
inline constexpr std::string_view kFewer = "take fewer workgroups, ranks or parts";
inline constexpr Limit kOperations{64, "operations", "MAX_OPERATION", kFewer};  // thread block
/// ... of one type, of a thread block.
inline constexpr Limit kChannels{16, "channels of one type", "MAX_CHANNEL", kFewer};
inline constexpr Limit kRemotes{16, "remote buffers of one type", "MAX_CHANNEL", kFewer};
inline constexpr Limit kOperands{8, "operands or channels", "MAX_CHANNEL_PER_OPERATION", kFewer};
inline constexpr Limit kSemaphores{16, "semaphores", "MAX_DEVICE_SEMAPHORES", kFewer};  // operation
inline constexpr Limit kBarriers{16, "barriers", "MAX_DEVICE_SYNCERS", kFewer};         // GPU
/// Thread blocks of a GPU wait for each other, and there is one to a compute unit
/// (execution_kernel.hpp), of which the largest GPU (MI300X) has 304.
inline constexpr Limit kThreadBlocks{304, "thread blocks at a time",
                                     "__launch_bounds__(1024, 1) on 304 compute units", kFewer};
}  // namespace mscclpp_limits

/// microsoft/msccl src/include/msccl.h, src/include/devcomm.h
namespace msccl_limits {
inline constexpr std::string_view kFewer = "take fewer channels, ranks or parts";
inline constexpr Limit kSteps{256, "steps", "MSCCL_MAX_NUM_STEPS", kFewer};  // thread block
/// The same in ROCm/rccl's msccl_struct.h.
inline constexpr Limit kRcclSteps{64, "steps", "MSCCL_MAX_NUM_STEPS of rccl", kFewer};
inline constexpr Limit kThreadBlocks{216, "thread blocks", "MSCCL_MAX_NUM_THREAD_BLOCKS", kFewer};
inline constexpr Limit kAwaited{128, "thread blocks that others wait for",
                                "dependentBid is an int8_t", kFewer};
inline constexpr Limit kChannels{32, "channels", "MAXCHANNELS", kFewer};
/// Each way, of a channel.
inline constexpr Limit kPeers{32, "peers on one channel", "MSCCL_MAX_NUM_THREAD_BLOCKS_PER_CHANNEL",
                              kFewer};
inline constexpr Limit kCount{72, "chunks", "MSCCL_MAX_COUNT", kFewer};  // step
inline constexpr Limit kChunks{32768, "chunks of one buffer", "srcOffset is an int16_t", kFewer};
}  // namespace msccl_limits

/// Failure "WHO needs NEEDED ...; the executor has room for ..." where that is more than the limit.
void check_limit(const Limit& limit, const std::string& who, std::size_t needed,
                 const SourceLocation& where);

/// ... of a thread block as it stands in an MSCCL++ plan.
void check_mscclpp_block(const nlohmann::ordered_json& block, int rank, const std::string& file);

}  // namespace hemiola::program
