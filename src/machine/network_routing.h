// NICs on paths, and which of the shortest ways between two of them messages take
// (--set fabric.routing).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/diagnostics.h"
#include "machine/machine.h"

namespace hemiola::machine {

enum class NetworkRouting : std::uint8_t {
  destination,  ///< every switch chooses by the destination, whose places at its switch are dealt
                ///< to the ways in turn, as InfiniBand's tables do (fat trees by d mod k): where
                ///< each rank sends to another one, no two meet on a full tree
  pairs,        ///< the way (from + to) modulo their number
  ecmp,  ///< the way that a hash of the two ranks chooses, as switches do: pairs meet by chance
  spray  ///< a message's packets take all ways in turn, as adaptive routing and packet spraying do
         ///< where no way is busier than another
};

/// The annotation of the graph that says so; without it `destination`.
inline const std::string kRoutingAttribute = "hemiola.fabric.routing";

NetworkRouting network_routing(const Machine& machine);

/// Failure at `where` for what is none of the four.
void set_network_routing(Machine& machine, std::string_view name, const SourceLocation& where);

/// The path, of Machine::routes(from, to), on which all messages between these ranks stay. -1:
/// packet i of a message takes path i modulo their number; or they are load/store paths, which
/// lines choose by their address (select_path()).
std::int32_t path_of_messages(const Machine& machine, const Routes& routes, int from, int to);

/// The first NIC on a path.
std::optional<NodeId> first_nic(const Machine& machine, std::span<const LinkId> path);

/// Ranks of the first `node_size` that have a NIC of their own on their way to the next node: of
/// those that share one, the first.
std::vector<int> nic_owners(const Machine& machine, int node_size);

}  // namespace hemiola::machine
