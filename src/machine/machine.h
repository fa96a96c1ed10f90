// The machine: a directed multigraph of GPUs, NICs, switches and links with their parameters, and
// routes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/diagnostics.h"
#include "core/index.h"
#include "core/time.h"
#include "core/units.h"
#include "machine/devices/gpu_model.h"

namespace hemiola::machine {

using NodeId = std::int32_t;
using LinkId = std::int32_t;

enum class NodeKind : std::uint8_t { xpu, nic, switch_, cpu, memory, port, custom };
std::string_view name_of(NodeKind kind);

/// What a node adds to a line that passes through it. Rates that are 0 are ideal.
struct SwitchModel {
  Time latency{0};         ///< switch.latency: input to output queue
  std::int64_t queue = 0;  ///< switch.queue: requests per output queue; 0 unlimited
  bool multicast = false;  ///< switch.multicast: can replicate stores and reduce loads (NVLS)
  Rate reduce_rate{};      ///< switch.reduce_rate: bytes of operands per second of the in-network
                           ///< reduction unit, per switch
  Time reduce_latency{0};  ///< switch.reduce_latency
};

/// A NIC's share of a message. Lines end here: messages travel on as MTU packets.
struct NicModel {
  Bytes mtu{4096};       ///< nic.mtu: payload of one packet
  Time message_time{1};  ///< nic.message_time: work per message (work request to first packet)
  Time latency{1};       ///< nic.latency: per packet, each side
  Rate rate{};           ///< nic.rate: 0 as fast as its links
};

/// InfraGraph id: "dgx_h100.0.xpu.3"
struct Node {
  std::string name;
  NodeKind kind = NodeKind::custom;
  std::string instance;  ///< "dgx_h100"
  int instance_index = 0;
  std::string device;                             ///< InfraGraph device name
  std::map<std::string, std::string> attributes;  ///< annotations
  SwitchModel switch_model;                       ///< for kind switch_ (and any node that forwards)
  NicModel nic_model;                             ///< for kind nic
};

/// Parameters shared by all links of one InfraGraph link definition.
struct LinkClass {
  std::string name;          ///< "nvlink4"
  Rate bandwidth{};          ///< per direction, raw; goodput follows from the packet format
  Time latency{1};           ///< propagation and serdes, per direction
  Bytes max_payload{128};    ///< of one packet
  Bytes header{16};          ///< of one packet
  Bytes control{};           ///< a packet without payload: a load's request, an acknowledgement; 0:
                             ///< as a header
  std::int64_t credits = 0;  ///< receive buffer at the far end, in requests; 0 unlimited
  Arbitration arbitration = Arbitration::fifo;  ///< control against data at the sender
  bool assumed = false;  ///< the file gave no numbers: a stated default is in use
  /// What routes() minimises after hops: the latency as read. --set changes costs, not paths, so
  /// that a sweep over a latency compares the same paths. Negative: equal to `latency`.
  Time route_latency{-1};
  std::map<std::string, std::string> attributes;  ///< annotations without a meaning here

  /// payload + ceil(payload / max payload) * header; a request without payload is one control
  /// packet.
  /// `max` overrides the class's maximum payload (copy engines send larger packets); 0 keeps it.
  std::int64_t wire_bytes(std::int64_t payload, std::int64_t max = 0) const {
    if (payload == 0) return control.count > 0 ? control.count : header.count;
    if (max == 0) max = max_payload.count;
    return payload + (payload + max - 1) / max * header.count;
  }
};

/// One direction of one physical link. Parallel links stay apart.
struct Link {
  NodeId from = 0;
  NodeId to = 0;
  std::int32_t link_class = 0;
  std::int32_t lane = 0;  ///< index among the parallel links from -> to
};

/// How two ranks reach each other.
enum class Reach : std::uint8_t { self, load_store, network, none };

/// All paths a line from one rank to another may take. Path i is links[i * hops .. (i+1) * hops).
/// Which one a request takes: select_path(), a stated function of its rank-relative address
/// (load/store fabrics spray lines over planes) or of its flow (networks: ECMP).
struct Routes {
  Reach reach = Reach::none;
  std::int32_t hops = 0;
  std::int32_t count = 0;
  std::vector<LinkId> links;
  /// Through a network: the path of switches that choose by destination (network_routing.h).
  std::int32_t by_destination = 0;

  std::span<const LinkId> path(std::int64_t index) const {
    return {links.data() + index * hops, static_cast<std::size_t>(hops)};
  }
};

/// Path index for a line: `line` is the rank-relative address divided by the line size.
/// x = line xor (line >> 9) xor (line >> 18), modulo the number of paths: consecutive lines go
/// round all planes, and the folds keep strides of a power of two from meeting on one.
constexpr std::uint64_t path_number(std::int64_t line) {
  const auto x = static_cast<std::uint64_t>(line);
  return x ^ (x >> 9) ^ (x >> 18);
}
constexpr std::int64_t select_path(std::int64_t line, std::int64_t count) {
  return static_cast<std::int64_t>(path_number(line) % static_cast<std::uint64_t>(count));
}

/// Immutable once built, except through set(). Ranks are the xpu nodes in order of their `rank`
/// annotation where given, else in file order; place() changes that.
class Machine {
 public:
  std::string name;  ///< "dgx-h100", or the file's name
  std::string description;
  std::vector<Node> nodes;
  std::vector<Link> links;
  std::vector<LinkClass> link_classes;
  std::vector<NodeId> gpus;              ///< by rank
  std::vector<std::int32_t> gpu_models;  ///< by rank: index into models
  std::vector<GpuModel> models;
  Diagnostics warnings;  ///< found while building; assumed defaults among them
  std::map<std::string, std::string> attributes;  ///< graph annotations without a meaning here

  int ranks() const { return static_cast<int>(gpus.size()); }
  const GpuModel& model(int rank) const { return models[index(gpu_models[index(rank)])]; }
  const LinkClass& class_of(LinkId link) const {
    return link_classes[index(links[index(link)].link_class)];
  }

  /// Routes between two ranks: shortest in hops, then in latency; through a NIC only where no
  /// load/store path exists; through another GPU only where its model forwards. A network path has
  /// two NICs: those nearest to the ranks (hops outside the network come first), then the shortest
  /// way between them. All shortest paths in order of their links, except that a hop keeps the lane
  /// of the one before it where both have as many lanes (planes stay apart); of more than 256 an
  /// evenly spaced 256. Cached; the cache grows with the pairs asked for and is shared by copies of
  /// the machine. References stay valid until set(), place() or forget_routes().
  const Routes& routes(int from, int to) const;
  /// By node: whether load/store paths may lead through it. Not through NICs, and through GPUs only
  /// where their model forwards; one outside the job is as the model that it names.
  std::vector<bool> forwarding_nodes() const;
  Reach reach(int from, int to) const { return routes(from, to).reach; }

  /// The switches that can multicast to every rank of the group, in node order; empty if none.
  std::vector<NodeId> multicast_switches(std::span<const int> ranks) const;
  /// The links of rank -> switch (or back), all lanes; empty if not adjacent.
  std::vector<LinkId> lanes(NodeId from, NodeId to) const;

  /// Equal for lists of ranks that do the same to a program but for the numbers of their links:
  /// GPUs of the same models in the same order, whose ways to each other have links of the same
  /// classes and share them alike. Asks for the routes of all pairs.
  std::uint64_t ways_between(std::span<const int> ranks) const;

  /// The smallest feedback latency, printed by `machine show` (rounds of the line engine last as
  /// long as whole loops of stages, docs/line_engine.md). The least of: the latency of any link,
  /// and noc.latency (noc.hop_latency on a mesh) + l2.latency of any GPU model (CU to L2 and back).
  Time smallest_feedback_latency() const;

  /// --set: "gpu.l2.size", "link.nvlink4.bandwidth" ("link.*.latency" for all), "switch.latency",
  /// "nic.mtu". Throws Failure with a suggestion.
  void set(std::string_view parameter, std::string_view value);

  /// Keeps the listed ranks in that order and renumbers them from 0 (--ranks N|LIST). Nodes and
  /// links stay. Throws Failure for an empty list, an unknown rank or one listed twice.
  void place(std::span<const int> ranks);

  /// To be called after editing nodes or links of a machine that has been asked for routes.
  void forget_routes() { route_cache = make_route_cache(); }

  struct RouteCache;
  static std::shared_ptr<RouteCache> make_route_cache();
  /// internal to routes() and lanes()
  std::shared_ptr<RouteCache> route_cache = make_route_cache();
};

/// A machine that several own together: programs that are bound to it, caches, results.
using SharedMachine = std::shared_ptr<const Machine>;
inline SharedMachine share(Machine machine) {
  return std::make_shared<const Machine>(std::move(machine));
}

/// The machine as these ranks alone see it, numbered from 0 in that order (Machine::place); the
/// same one where they are all of it in their order.
SharedMachine select_ranks(const SharedMachine& machine, std::span<const int> ranks);

struct LoadOptions {
  std::string
      gpu;  ///< --gpu NAME: device model of every xpu that names none ("" : the stated default)
  std::vector<std::pair<std::string, std::string>> set;  ///< --set, in order
};

/// A shipped machine ("dgx-h100", "dgx-h100:4", "ring:8", "mesh:4x4", ...) or a file (InfraGraph
/// YAML or JSON, NCCL topology XML, SimAI topology). Throws Failure; warnings are in the result.
Machine load(const std::string& name_or_file, const LoadOptions& options = {});
/// The built-in names with one line each, for `machine list` and suggestions.
struct BuiltIn {
  std::string name;
  std::string description;
};
std::vector<BuiltIn> built_in_machines();

/// As InfraGraph YAML that reads back to the same machine (annotations carry what InfraGraph
/// lacks). Instances of one name come to stand together, which may change the ids of nodes; links
/// and ranks keep theirs. Throws Failure for what InfraGraph cannot say: a device model that is not
/// shipped, links that do not come in pairs (one per direction), node names that are not InfraGraph
/// ids.
std::string to_infragraph(const Machine& machine);

}  // namespace hemiola::machine
