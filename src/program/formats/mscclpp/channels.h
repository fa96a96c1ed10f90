// How the channels of MSCCL++ plans are paired, for reader and writer.
#pragma once

#include <cstdint>
#include <vector>

namespace hemiola::program {

/// The channels of one type, by rank and id.
struct PairedChannels {
  std::vector<std::vector<int>> peers;
  /// The semaphore of the peer that a channel signals: the k-th channel of a to b signals that of
  /// the k-th channel of b to a. Where b has fewer, a further semaphore of b that nobody waits for.
  std::vector<std::vector<std::int32_t>> targets;
  std::int32_t semaphores = 0;  ///< per rank: the most that any rank needs

  /// The channel of `rank` that signals semaphore `target` of `peer`; -1 if none does.
  std::int32_t find(int rank, int peer, std::int32_t target) const;
  /// Any channel of `rank` to `peer`; -1 if there is none.
  std::int32_t find(int rank, int peer) const;
};
PairedChannels pair_channels(std::vector<std::vector<int>> peers);

}  // namespace hemiola::program
