#include "program/formats/mscclpp/channels.h"

#include <algorithm>
#include <map>
#include <utility>

namespace hemiola::program {

PairedChannels pair_channels(std::vector<std::vector<int>> peers) {
  PairedChannels out;
  out.peers = std::move(peers);
  out.targets.resize(out.peers.size());
  std::map<std::pair<int, int>, std::vector<std::int32_t>> between;  // (owner, peer): ids in order
  std::vector<std::int32_t> semaphores;                              // by rank
  for (std::size_t owner = 0; owner < out.peers.size(); ++owner) {
    semaphores.push_back(static_cast<std::int32_t>(out.peers[owner].size()));
    for (std::size_t id = 0; id < out.peers[owner].size(); ++id)
      between[{static_cast<int>(owner), out.peers[owner][id]}].push_back(
          static_cast<std::int32_t>(id));
  }
  for (std::size_t owner = 0; owner < out.peers.size(); ++owner) {
    std::map<int, std::size_t> seen;
    for (const int peer : out.peers[owner]) {
      const std::vector<std::int32_t>& back = between[{peer, static_cast<int>(owner)}];
      const std::size_t k = seen[peer]++;
      out.targets[owner].push_back(k < back.size() ? back[k]
                                                   : semaphores[static_cast<std::size_t>(peer)]++);
    }
  }
  for (const std::int32_t count : semaphores) out.semaphores = std::max(out.semaphores, count);
  return out;
}

std::int32_t PairedChannels::find(int rank, int peer, std::int32_t target) const {
  const auto owner = static_cast<std::size_t>(rank);
  for (std::size_t id = 0; id < peers[owner].size(); ++id)
    if (peers[owner][id] == peer && targets[owner][id] == target)
      return static_cast<std::int32_t>(id);
  return -1;
}

std::int32_t PairedChannels::find(int rank, int peer) const {
  const std::vector<int>& mine = peers[static_cast<std::size_t>(rank)];
  const auto found = std::ranges::find(mine, peer);
  return found == mine.end() ? -1 : static_cast<std::int32_t>(found - mine.begin());
}

}  // namespace hemiola::program
