// Trees over nodes as NCCL makes them (src/graph/trees.cc), and the connections of their ranks.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "program/program.h"

namespace hemiola::program {

/// Neighbours of a rank, or of a node, in a tree. `second`: of its parent it is the second child.
struct TreePlace {
  static constexpr int kNone = -1;
  int up = kNone;
  std::vector<int> down{};
  bool second = false;
};

/// By node, in one of the two trees over `nodes` nodes, or in the other.
std::vector<TreePlace> node_places(int nodes, bool second);

/// Ends of connections, numbered by rank.
class TreeConnections {
 public:
  explicit TreeConnections(int ranks) : inbound_(index(ranks)), outbound_(index(ranks)) {}

  /// A connection from one rank to another: as the sender and as the receiver see it.
  std::pair<ConnectionRef, ConnectionRef> connect(int from, int to, int channel) {
    const std::int32_t in = inbound_[index(to)]++;
    const std::int32_t out = outbound_[index(from)]++;
    return {{constant(to), in, out, channel}, {constant(from), in, out, channel}};
  }
  std::int32_t most_inbound() const { return *std::ranges::max_element(inbound_); }
  std::int32_t most_outbound() const { return *std::ranges::max_element(outbound_); }

 private:
  std::vector<std::int32_t> inbound_, outbound_;
};

/// What a rank does in a channel: connections with the parent and the children.
struct TreeRole {
  std::vector<ConnectionRef> to_parent{}, from_parent{}, to_children{}, from_children{};
};

/// The roles of all ranks in a channel, from their places.
std::vector<TreeRole> tree_roles(const std::vector<TreePlace>& places, int channel,
                                 TreeConnections& connections);

void receive_from(Op& op, const std::vector<ConnectionRef>& connections);
void send_to(Op& op, const std::vector<ConnectionRef>& connections);

}  // namespace hemiola::program
