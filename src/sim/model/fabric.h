// The machine as servers: what a request passes on its way, in order. Built once per simulation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/modulo.h"
#include "machine/machine.h"
#include "sim/result/result.h"
#include "sim/support/growing.h"
#include "sim/support/index.h"

namespace hemiola::sim {

/// One pass through a server: then `latency` of the way on, then `node_latency` of what is passed
/// next.
struct Hop {
  std::int32_t server = 0;        ///< relative to the leg's base
  std::uint32_t tag = 0;          ///< order tag of what arrives here
  std::int64_t latency = 0;       ///< fs
  std::int64_t node_latency = 0;  ///< fs
  Reason latency_reason = Reason::noc;
  Reason node_reason = Reason::switch_;
};

/// A part of a request's way: hops, and the order tag with which it arrives at what follows.
struct Leg {
  const Hop* hops = nullptr;
  std::int32_t count = 0;
  std::int32_t base = 0;
  std::uint32_t end_tag = 0;
};

/// What servers of one kind have in common.
struct ServerKind {
  Rate rate{};
  Reason reason = Reason::noc;
  bool merges = true;        ///< several inputs meet here: requests are accepted by event
  bool counts_wire = false;  ///< a link: packets with headers
  std::int32_t link_class = -1;
};

/// A first-in first-out server: departure = max(arrival, previous departure) + service.
struct alignas(64) Server {
  std::int64_t free = 0;  ///< fs: previous departure
  std::int64_t busy = 0;
  std::int64_t max_wait = 0;  ///< longest time in the queue
  std::int64_t payload = 0;
  std::int64_t wire = 0;
  std::int64_t memo_time = 0;  ///< service time of the last size
  std::int32_t memo_bytes = -1;
  std::int32_t requests = 0;
  std::int32_t arbiter = -1;  ///< index of an Arbiter when requests queue explicitly
  std::int16_t kind = 0;
  bool last_write = false;  ///< HBM: direction of the last access
};
static_assert(sizeof(Server) == 64, "a server is one cache line");

/// Explicit queues of a server with arbitration, credits or a finite queue.
struct Arbiter {
  machine::Arbitration policy = machine::Arbitration::fifo;
  std::int64_t limit = 0;    ///< requests that fit the queue; 0 unlimited
  std::int64_t credits = 0;  ///< free slots of the far receive buffer
  bool has_credits = false;
  std::int64_t credit_latency = 0;             ///< fs for a credit to come back
  std::int64_t memory = 0;                     ///< the policy's own
  std::int64_t pick_at = -1;                   ///< time of a scheduled pick
  std::deque<std::int64_t> returns{};          ///< line engine: fs, in order: when credits are back
  std::deque<std::int32_t> control{}, data{};  ///< fifo uses `data` only
  std::deque<std::int32_t>
      input{};  ///< arrived over this link, waiting for room in their next queue
  std::deque<std::int32_t> blocked{};  ///< servers (links) whose input heads wait for room here
  std::int64_t max_queue = 0;

  std::int64_t queued() const { return static_cast<std::int64_t>(control.size() + data.size()); }
  void add(std::int32_t id, bool is_control) {
    (policy != machine::Arbitration::fifo && is_control ? control : data).push_back(id);
    max_queue = std::max(max_queue, queued());
  }
};

/// The way between two GPUs for one choice of path.
struct Path {
  Leg forward, reverse;          ///< links
  std::int32_t source_port = 0;  ///< I/O port at the source GPU
  std::int32_t destination_port = 0;
  std::span<const machine::LinkId> links;
};

// Order tags inside a GPU. Local indices only, so that they are equal on all GPUs (relative).
constexpr std::uint32_t kFromSlices = 0;      ///< all slices are one input (docs/model.md, "Order")
constexpr std::uint32_t kFromCu = 1;          ///< + CU
constexpr std::uint32_t kFromPort = 1 << 12;  ///< + port

/// The legs inside one kind of GPU, relative to the GPU's first server; shared by all GPUs alike.
class GpuLayout {
 public:
  GpuLayout(const machine::GpuModel& model, std::vector<Rate> port_rates);

  const machine::GpuModel& model;
  std::vector<Rate> port_rates;  ///< by port, each way
  std::int32_t cus, slices, channels, ports, engines;
  std::int32_t cu_out, cu_in, cu_alu, io_out, io_in, slice, msc, hbm, dma, mesh,
      proxy;             ///< first servers
  std::int32_t servers;  ///< of one GPU
  Modulo slice_of;       ///< of a line's mixed number

  Leg cu_to_slice(std::int32_t cu, std::int32_t s) const;
  Leg slice_to_cu(std::int32_t s, std::int32_t cu) const;
  /// To slices of the CU's own partition, and back.
  Leg cu_to_near(std::int32_t cu) const;
  Leg near_to_cu(std::int32_t cu) const;
  Leg cu_to_port(std::int32_t cu, std::int32_t port) const;
  Leg port_to_cu(std::int32_t port, std::int32_t cu, bool data) const;
  Leg slice_to_port(std::int32_t s, std::int32_t port) const;
  Leg port_to_slice(std::int32_t port, std::int32_t s) const;
  /// Latency of an acknowledgement of a local store: no server on its way.
  std::int64_t acknowledge_latency(std::int32_t s, std::int32_t cu) const;

 private:
  struct Stored {
    std::int32_t begin;
    std::int32_t count;
    std::uint32_t end_tag;
  };
  using Table = std::vector<Stored>;
  Leg leg(const Table& table, std::size_t index) const {
    const Stored& stored = table[index];
    return {hops_.data() + stored.begin, stored.count, 0, stored.end_tag};
  }
  Stored store(std::vector<Hop> hops, std::uint32_t end_tag);
  void build_crossbar();
  void build_mesh();
  std::vector<Hop> mesh_walk(std::int32_t from_router, std::int32_t to_router,
                             std::uint32_t first_tag) const;
  std::int64_t partition_latency(std::int32_t cu, std::int32_t s) const;

  std::vector<Hop> hops_;
  Table cu_slice_, slice_cu_, cu_near_, near_cu_, cu_port_, port_cu_, port_cu_ack_, slice_port_,
      port_slice_;
};

/// All servers of a machine.
class Fabric {
 public:
  /// Links, NICs and switches; GPUs come with add_gpus().
  explicit Fabric(const machine::Machine& machine);
  /// The first `period` GPUs; the others are those a period before (sim/alike/fold.h), and with a
  /// `link_of` so are links.
  /// GPUs of ranks for which `simulated` is false have no servers.
  void add_gpus(int ranks, int period, const std::vector<machine::LinkId>& link_of,
                const std::function<bool(int)>& simulated);

  const machine::Machine& machine;
  std::vector<ServerKind> kinds;
  std::vector<Server> servers;
  std::vector<Arbiter> arbiters;
  std::vector<std::int32_t> gpu_base;    ///< by rank: first server
  std::vector<const GpuLayout*> layout;  ///< by rank
  std::int32_t link_base =
      0;  ///< server of link l is link_base + l, or of the link that stands for l
  std::int32_t nic_base = 0;             ///< server of NIC node n is nic_base + nic_index[n]
  std::int32_t reduce_base = 0;          ///< in-network reduction unit of a switch
  std::vector<std::int32_t> node_index;  ///< by node: NIC or switch number, else -1
  std::vector<machine::LinkId> reverse;  ///< the other direction of the same lane

  /// The paths from one rank to another, by number; made when first asked for: of one `from` by
  /// one thread at a time.
  struct Paths {
    std::int32_t first = 0;
    std::int32_t count = 0;
    std::int32_t flow = -1;  ///< machine::path_of_messages()
  };
  Paths paths(int from, int to) {
    const std::vector<Paths>& row = paths_between_[index(from)];
    const auto column = index(to);
    return column < row.size() && row[column].count > 0 ? row[column] : find_paths(from, to);
  }
  const Path& path(std::int32_t number) const { return paths_[index(number)]; }
  /// A single link as a leg, arriving from `upstream` (-1: from the node itself).
  Leg link_leg(machine::LinkId link, machine::LinkId upstream);
  /// I/O port of a GPU's outgoing link (or of the reverse of its incoming one).
  std::int32_t port_of(machine::LinkId outgoing) const { return port_[index(outgoing)]; }
  int rank_of(machine::NodeId node) const { return rank_of_[index(node)]; }

  /// Service time of `bytes` (payload; wire bytes are added for links) and accounting.
  std::int64_t service(Server& server, std::int64_t payload, std::int64_t packet) {
    const ServerKind& kind = kinds[index(server.kind)];
    std::int64_t bytes = payload;
    if (kind.counts_wire) {
      bytes = machine.link_classes[index(kind.link_class)].wire_bytes(payload, packet);
      server.wire += bytes;
    }
    ++server.requests;
    server.payload += payload;
    if (bytes != server.memo_bytes) {
      server.memo_bytes = static_cast<std::int32_t>(bytes);
      server.memo_time = kind.rate.time_for(bytes).fs;
    }
    server.busy += server.memo_time;
    return server.memo_time;
  }

 private:
  Paths find_paths(int from, int to);
  Hop link_hop(machine::LinkId link, machine::LinkId upstream) const;
  std::int32_t add_kind(ServerKind kind);
  void number_ports();
  void find_nics(const std::vector<std::vector<machine::LinkId>>& out);
  void add_gpu_servers(int rank, bool simulated);
  void add_links();

  std::vector<std::unique_ptr<GpuLayout>> layouts_;
  /// By model, and what its ports carry (B/s).
  std::map<std::pair<std::int32_t, std::vector<std::int64_t>>, std::int32_t> layout_of_;
  std::vector<std::vector<std::int32_t>> gpu_kinds_;  ///< by layout: kind of every server
  std::vector<std::int32_t> port_;
  std::vector<std::int32_t> in_index_;  ///< by link: its place among the links into its node
  std::vector<int> rank_of_;
  std::vector<int>
      rank_at_;  ///< by node: of a GPU, or of the one GPU that it is the NIC of; else -1
  std::vector<std::vector<Rate>> ports_of_;  ///< by rank: what each port carries
  std::vector<machine::LinkId> link_of_;     ///< by link; empty: each stands for itself
  Growing<Path> paths_;
  std::int32_t path_count_ = 0;
  std::mutex finding_;                             ///< of who makes paths
  std::vector<std::vector<Paths>> paths_between_;  ///< by rank, then rank
  std::deque<std::vector<Hop>> leg_pool_;
  std::unordered_map<std::uint64_t, Leg> link_legs_;
};

}  // namespace hemiola::sim
