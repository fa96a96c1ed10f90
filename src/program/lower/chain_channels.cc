// How many channels and rings a chain takes at a size.
#include <algorithm>

#include "program/lower/lower.h"

namespace hemiola::program {
namespace {

// What a thread has to move in every step at least: NCCL's threshold of LL in rings, 8 B for each
// thread and rank of the whole buffer (NCCL_LL_THREAD_THRESHOLD of src/include/comm.h, times ranks
// in src/graph/tuning.cc), and what chunks of Simple were rounded up to (src/device/all_reduce.h up
// to 2.18). NCCL's threshold of Simple, 64 B of the whole buffer at any number of ranks, is for
// large buffers: it leaves the others to LL.
constexpr std::int64_t kBytesPerThread = 8;
// NCCL gives up threads, too, down to 3 warps (topoGetAlgoInfo, src/enqueue.cc): a ring that cannot
// feed these has links that nobody misses.
constexpr std::int64_t kLeastThreads = 96;

int fitting(std::int64_t size, std::int64_t each, int most) {
  return static_cast<int>(std::clamp<std::int64_t>(size / each, 1, most));
}

}  // namespace

ChainChannels fed_channels(const Program& unsized, int rings, Bytes size) {
  const std::int64_t step = size.count / unsized.chunks_per_size;
  const int threads = unsized.kernels.front().threads;
  const int channels = fitting(step, threads * kBytesPerThread, unsized.workgroups(0));
  ChainChannels fed;
  fed.rings = fitting(step, kLeastThreads * kBytesPerThread, rings);
  fed.channels = std::max(1, channels / fed.rings) * fed.rings;
  return fed;
}

}  // namespace hemiola::program
