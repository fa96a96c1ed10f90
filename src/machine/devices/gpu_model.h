// The device model of one GPU: every number the simulator uses, by a dotted name that --set
// accepts.
//
// A model is read from data/devices/NAME.yaml (embedded into the library), where each number stands
// with its source. docs/model.md says what each parameter does.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/diagnostics.h"
#include "core/time.h"
#include "core/units.h"
#include "machine/devices/arbitration.h"

namespace hemiola::machine {

enum class NocKind : std::uint8_t { crossbar, mesh };
/// What a wavefront does until a flag has its value (docs/replay.md, "Waiting").
enum class WaitPolicy : std::uint8_t { spin, backoff, monitor, syncmon };

/// The part of C that one workgroup of a GEMM computes, in elements.
struct MatrixTile {
  int m = 0;
  int n = 0;

  friend bool operator==(MatrixTile, MatrixTile) = default;
};

/// Parameters of one GPU. Rates that are 0 are ideal; sizes that are 0 switch the part off; counts
/// of outstanding things that are 0 are unlimited. The comment gives the dotted name.
struct GpuModel {
  std::string name;         ///< "h100"
  std::string description;  ///< "NVIDIA H100 SXM5 80 GB"

  // Compute units.
  std::int64_t cu_count = 1;            ///< cu.count
  Frequency cu_clock{1'000'000'000};    ///< cu.clock
  std::int64_t cu_wavefront_size = 32;  ///< cu.wavefront_size: threads
  std::int64_t cu_max_threads = 2048;   ///< cu.max_threads: resident threads per CU
  std::int64_t cu_max_workgroups = 32;  ///< cu.max_workgroups: resident workgroups per CU
  Bytes cu_registers{};                 ///< cu.registers: of all resident threads of a CU
  Time cu_issue_interval{1};            ///< cu.issue_interval: between two requests of one CU
  std::int64_t cu_max_outstanding = 0;  ///< cu.max_outstanding: loads in flight per CU
  /// cu.max_stores: posted stores in flight per CU, until acknowledged
  std::int64_t cu_max_stores = 0;
  Rate cu_peer_rate{};  ///< cu.peer_rate: what a CU loads from peers, and what it stores to them
  /// cu.unroll: iterations of a copy loop whose loads are in flight together
  std::int64_t cu_unroll = 1;
  Rate cu_reduce_rate_4byte{};  ///< cu.reduce_rate_4byte: bytes reduced per second and CU, 4- and
                                ///< 8-byte types
  Rate cu_reduce_rate_2byte{};  ///< cu.reduce_rate_2byte
  Rate cu_reduce_rate_1byte{};  ///< cu.reduce_rate_1byte
  std::int64_t cu_matrix_rate = 0;  ///< cu.matrix_rate: dense bf16 flop per clock and CU
  /// cu.matrix_rate_4byte: the same of float32 operands (TF32 where there is such a unit)
  std::int64_t cu_matrix_rate_4byte = 0;
  std::int64_t cu_matrix_rate_1byte = 0;  ///< cu.matrix_rate_1byte: the same of fp8 and int8

  // Matrix products by the vendor's library (gemm_model.h).
  Frequency gemm_clock{1'000'000'000};            ///< gemm.clock: under a short load
  Frequency gemm_sustained_clock{1'000'000'000};  ///< gemm.sustained_clock: under the power limit
  Time gemm_burst_time{0};  ///< gemm.burst_time: of full load until the power limit holds
  Time gemm_setup{0};       ///< gemm.setup: of a kernel before its first loads
  /// gemm.stages: steps along k whose operands a CU holds, in use or on their way, as far as they
  /// fit gemm.buffer
  std::int64_t gemm_stages = 2;
  Bytes gemm_buffer{128 * 1024};  ///< gemm.buffer: operands of a CU, in use or on their way
  /// gemm.l2_rate: of all L2s to all CUs, a line that serves several CUs counted for each
  Rate gemm_l2_rate{};
  /// gemm.store_rate: results of a tile out of a CU, after its last step along k
  Rate gemm_store_rate{};
  std::int64_t gemm_tile_cus = 1;    ///< gemm.tile_cus: CUs that can compute one tile together
  std::int64_t gemm_l2_domains = 1;  ///< gemm.l2_domains: L2 caches with copies of their own
  std::vector<MatrixTile> gemm_tiles{{128, 128}};  ///< gemm.tiles: that the kernels have

  // L1 of a CU: tags of plain local loads; volatile, remote and packet loads bypass it.
  Bytes l1_size{};           ///< l1.size
  std::int64_t l1_ways = 4;  ///< l1.ways
  Time l1_latency{1};        ///< l1.latency: load to use on a hit

  // On-chip network between CUs, L2 slices and I/O ports.
  NocKind noc_kind = NocKind::crossbar;  ///< noc.kind: crossbar | mesh
  Rate noc_cu_rate{};                    ///< noc.cu_rate: from the network into a CU
  Rate noc_cu_out_rate{};                ///< noc.cu_out_rate: out of a CU: stores and requests
  Time noc_latency{1};                   ///< noc.latency: one way CU to L2, crossbar
  /// noc.partitions: L2 partitions; CUs and slices are dealt to them evenly
  std::int64_t noc_partitions = 1;
  /// noc.partition_latency: added one way when the slice is in another partition
  Time noc_partition_latency{0};
  Rate noc_io_rate{};  ///< noc.io_rate: each way between the network and one I/O port
  /// noc.io_link: the fastest link that one I/O port feeds; port_rate() says what faster ones have
  Rate noc_io_link{};
  Time noc_io_latency{1};  ///< noc.io_latency: one way between network and the wire, crossbar
  std::int64_t noc_mesh_columns = 1;  ///< noc.mesh_columns
  std::int64_t noc_mesh_rows = 1;     ///< noc.mesh_rows
  Rate noc_link_rate{};               ///< noc.link_rate: one link of the mesh, per direction
  Time noc_hop_latency{1};            ///< noc.hop_latency: router and link of the mesh
  /// noc.arbitration: fifo | data_first | control_first | fair
  Arbitration noc_arbitration = Arbitration::fifo;
  /// noc.control_size: a request, acknowledgement or flag without data on chip
  Bytes noc_control_size{16};

  // Memory hierarchy.
  Bytes line_size{128};        ///< line.size: the request unit
  Bytes sector_size{32};       ///< line.sector: unit of partial lines and flags
  Bytes l2_size{};             ///< l2.size
  std::int64_t l2_ways = 16;   ///< l2.ways
  std::int64_t l2_slices = 1;  ///< l2.slices
  /// l2.copies: a partition keeps copies of what its CUs load from the others
  bool l2_copies = false;
  Rate l2_slice_rate{};           ///< l2.slice_rate: one slice
  Time l2_latency{1};             ///< l2.latency: look-up, hit, inside the slice
  Time l2_atomic_time{1};         ///< l2.atomic_time: service of an atomic or flag update
  Bytes msc_size{};               ///< msc.size: memory-side cache; 0 none
  std::int64_t msc_ways = 16;     ///< msc.ways
  Rate msc_rate{};                ///< msc.rate: whole device
  Time msc_latency{1};            ///< msc.latency
  Bytes hbm_size{1};              ///< hbm.size: what a job may fill
  std::int64_t hbm_channels = 1;  ///< hbm.channels
  Rate hbm_rate{};                ///< hbm.rate: whole device, data-sheet peak
  std::int64_t hbm_efficiency_permille = 1000;  ///< hbm.efficiency_permille: refresh and row misses
  Time hbm_latency{1};                          ///< hbm.latency: beyond the L2 miss
  Time hbm_turnaround{0};     ///< hbm.turnaround: per switch between reads and writes of a channel
  Bytes hbm_interleave{256};  ///< hbm.interleave: bytes of one channel before the next

  // Copy engines.
  std::int64_t dma_engines = 1;      ///< dma.engines: 0 none
  Rate dma_rate{};                   ///< dma.rate: one engine
  Bytes dma_burst{4096};             ///< dma.burst: its request unit
  Bytes dma_max_payload{256};        ///< dma.max_payload: packet payload on the wire for its bursts
  std::int64_t dma_outstanding = 0;  ///< dma.outstanding: bursts in flight per engine
  /// dma.control_latency: a host thread makes the commands of a submission and puts them in a queue
  Time dma_control_latency{1};
  /// dma.schedule_latency: doorbell to first burst of the first command
  Time dma_schedule_latency{1};
  Time dma_sync_latency{1};  ///< dma.sync_latency: last acknowledgement to completion visible
  /// dma.completion_time: what a host thread that waits for many submissions takes to see that one
  /// more of them is complete
  Time dma_completion_time{0};
  /// dma.row_time: of one engine, for each row of a strided copy, besides its bytes
  Time dma_row_time{0};

  /// cu.code_fetch: until the code of an operation is there that its workgroup has not done before,
  /// in kernels larger than the instruction caches
  Time cu_code_fetch{1};
  /// cu.code_fetch_interval: of one such fetch; those of a GPU are served one after the other
  Time cu_code_fetch_interval{};

  // Launch.
  Time launch_stream_latency{1};  ///< launch.stream_latency: host call to first workgroup
  /// launch.stream_interval: least time between the starts of two kernels of a stream
  Time launch_stream_interval{1};
  /// launch.library_interval: from the end of a library's kernel to the start of its next call's
  Time launch_library_interval{1};
  Time launch_graph_latency{1};   ///< launch.graph_latency
  Time launch_graph_interval{1};  ///< launch.graph_interval: the same in a graph
  Time launch_end_latency{1};     ///< launch.end_latency: last workgroup to stream release
  Time dispatch_interval{1};      ///< dispatch.interval: between two workgroups of a kernel
  Time dispatch_latency{1};       ///< dispatch.latency: workgroup to first instruction

  // Synchronisation.
  Time sync_barrier_latency{1};  ///< sync.barrier_latency: last wavefront to release, one workgroup
  /// sync.fence_latency: fixed part of a release fence, after the drain
  Time sync_fence_latency{1};
  /// sync.system_fence_time: what a fence at system scope takes longer than one among the
  /// workgroups of a GPU
  Time sync_system_fence_time{0};
  Time sync_poll_interval{1};  ///< sync.poll_interval: from a poll's return to the next poll
  Time sync_op_overhead{1};  ///< sync.op_overhead: instructions around one operation of a workgroup
  WaitPolicy sync_wait = WaitPolicy::spin;  ///< sync.wait: spin | backoff | monitor | syncmon
  bool sync_uncached = false;               ///< sync.uncached: flags are not cached by the L2
  Bytes sync_flag_spacing{8};  ///< sync.flag_spacing: from one flag in memory to the next
  /// sync.line_time: the memory controller's time for one access to a line of uncached flags
  Time sync_line_time{1};
  Time sync_backoff_start{1};  ///< sync.backoff_start: the first sleep of a back-off, then doubled
  Time sync_backoff_limit{1};  ///< sync.backoff_limit: its longest sleep
  /// sync.monitor_entries: waits that one slice monitors at a time, 0 none
  std::int64_t sync_monitor_entries = 16;
  Time sync_wake_latency{1};   ///< sync.wake_latency: a write is done to its first wake-up leaving
  Time sync_handover_time{1};  ///< sync.handover_time: from waking one waiter to waking the next
  /// sync.thread_state: what is saved of a thread whose workgroup is switched out
  Bytes sync_thread_state{256};

  // Host proxy (port channels, network sends).
  /// proxy.fifo_latency: GPU store to host memory until the proxy sees it
  Time proxy_fifo_latency{1};
  Time proxy_request_time{1};    ///< proxy.request_time: proxy work per request to a copy engine
  Time proxy_network_time{1};    ///< proxy.network_time: proxy work per request to a NIC
  Time proxy_return_latency{1};  ///< proxy.return_latency: completion back to the GPU

  bool forwards = true;  ///< fabric.forwards: a link route may pass through this GPU

  /// What the I/O ports behind one link carry each way: as many ports as it takes, so that one link
  /// of k B is as fast as k links of B.
  Rate port_rate(Rate link) const;

  /// Where the numbers come from: dotted name -> source text ("assumed" if none). Filled by the
  /// reader.
  std::map<std::string, std::string> sources;
};

/// A shipped device model ("h100"); Failure that lists the names for an unknown one.
const GpuModel& gpu_model(std::string_view name);
/// The same, or a file in the format of data/devices/*.yaml: what --gpu takes. Throws Failure.
GpuModel load_gpu_model(const std::string& name_or_file);
std::vector<std::string> gpu_model_names();

/// Reads a model from YAML text (the format of data/devices/*.yaml). Throws Failure.
GpuModel parse_gpu_model(std::string_view yaml, const std::string& file);

}  // namespace hemiola::machine
