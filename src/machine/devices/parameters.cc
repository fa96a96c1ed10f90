// The table of device parameters: names, descriptions, ranges, and how each is read and written as
// text.
#include "machine/devices/parameters.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/lists.h"
#include "core/names.h"
#include "machine/devices/arbitration_names.h"
#include "machine/devices/parameter_text.h"

namespace hemiola::machine {
namespace {

// Limits that keep a typing error from asking for more memory than a host has, and sums of
// latencies far from overflow. Hardware stays far below them.
constexpr std::int64_t kMostUnits = 2048;
constexpr std::int64_t kMostBytes = std::int64_t{16} << 30;
constexpr std::int64_t kLongestTime = 1'000'000'000'000'000;  // 1 s
constexpr std::int64_t kAnyCount = 1'000'000'000;
constexpr std::int64_t kLargestTile = 4096;

constexpr std::array<std::string_view, 2> kNocKinds{"crossbar", "mesh"};
constexpr std::array<std::string_view, 4> kWaitPolicies{"spin", "backoff", "monitor", "syncmon"};

using machine::store, machine::text_of;  // beside which there are
std::string text_of(const std::vector<MatrixTile>& tiles) {
  std::string text;
  for (const MatrixTile tile : tiles)
    text += (text.empty() ? "" : " ") + std::to_string(tile.m) + "x" + std::to_string(tile.n);
  return text;
}
std::string text_of(NocKind value) {
  return std::string(name_in(kNocKinds, value));
}
std::string text_of(WaitPolicy value) {
  return std::string(name_in(kWaitPolicies, value));
}

/// "256x128 128x128"
bool store(std::vector<MatrixTile>& field, std::string_view text, std::int64_t least,
           std::int64_t most) {
  std::vector<MatrixTile> tiles;
  for (const std::string_view word : words_of(text)) {
    const auto by = word.find('x');
    if (by == std::string_view::npos) return false;
    std::int64_t m = 0, n = 0;
    if (!store(m, word.substr(0, by), least, most) || !store(n, word.substr(by + 1), least, most))
      return false;
    tiles.push_back({static_cast<int>(m), static_cast<int>(n)});
  }
  if (tiles.empty()) return false;
  field = std::move(tiles);
  return true;
}

bool store(NocKind& field, std::string_view text, std::int64_t, std::int64_t) {
  return store_if(field, value_named<NocKind>(kNocKinds, trimmed(text)));
}
bool store(WaitPolicy& field, std::string_view text, std::int64_t, std::int64_t) {
  return store_if(field, value_named<WaitPolicy>(kWaitPolicies, trimmed(text)));
}

template <auto member, std::int64_t least, std::int64_t most>
bool set(GpuModel& model, std::string_view text) {
  return store(model.*member, text, least, most);
}
template <auto member>
bool set_line(GpuModel& model, std::string_view text) {
  Bytes size;
  if (!store(size, text, 8, 4096) || (size.count & (size.count - 1)) != 0) return false;
  model.*member = size;
  return true;
}

/// What one parameter is: how it is read and written, and what a good value looks like.
template <auto member, std::int64_t least = 0, std::int64_t most = kAnyCount>
constexpr Parameter parameter(std::string_view name, std::string_view kind,
                              std::string_view description, std::string_view hint) {
  return {name,
          kind,
          description,
          [](const GpuModel& model) { return text_of(model.*member); },
          set<member, least, most>,
          hint};
}
/// A number of things that must exist.
template <auto member, std::int64_t most = kMostUnits>
constexpr Parameter count(std::string_view name, std::string_view description) {
  return parameter<member, 1, most>(
      name, "count", description,
      "a whole number of 1 or more, up to what hardware of this decade has");
}
/// A number of which 0 means "unlimited" or "none".
template <auto member>
constexpr Parameter limit(std::string_view name, std::string_view description) {
  return parameter<member>(name, "count", description, "a whole number, 0 or more");
}
template <auto member, std::int64_t least = 0>
constexpr Parameter bytes(std::string_view name, std::string_view description) {
  return parameter<member, least, kMostBytes>(
      name, "bytes", description,
      least > 0 ? "a size of at least 1 B such as 256 B (at most 16 GiB)"
                : "a size such as 50 MiB, or 0 B for none (at most 16 GiB)");
}
template <auto member>
constexpr Parameter line(std::string_view name, std::string_view description) {
  Parameter made = parameter<member>(name, "bytes", description,
                                     "a power of two from 8 B to 4 KiB such as 128 B");
  made.set = set_line<member>;
  return made;
}
/// Every hop takes strictly positive time, so that 1 fs is the least.
template <auto member, std::int64_t least = 1>
constexpr Parameter time(std::string_view name, std::string_view description) {
  return parameter<member, least, kLongestTime>(
      name, "time", description,
      least > 0 ? "a time of 1 fs to 1 s such as 150 ns" : "a time of 0 ns to 1 s such as 40 ns");
}
template <auto member>
constexpr Parameter rate(std::string_view name, std::string_view description) {
  return parameter<member>(name, "rate", description,
                           "a rate from 1 MB/s such as 3.35 TB/s, or inf for ideal");
}
template <auto member>
constexpr Parameter frequency(std::string_view name, std::string_view description) {
  return parameter<member>(name, "frequency", description, "a frequency such as 1.755 GHz");
}
template <auto member>
constexpr Parameter flag(std::string_view name, std::string_view description) {
  return parameter<member>(name, "flag", description, "true or false");
}

using M = GpuModel;

constexpr std::array kParameters{
    count<&M::cu_count>("cu.count", "compute units (SMs)"),
    frequency<&M::cu_clock>("cu.clock", "clock of the compute units"),
    count<&M::cu_wavefront_size, 128>("cu.wavefront_size", "threads of a wavefront (warp)"),
    count<&M::cu_max_threads, 65536>("cu.max_threads", "resident threads per compute unit"),
    count<&M::cu_max_workgroups>("cu.max_workgroups", "resident workgroups per compute unit"),
    bytes<&M::cu_registers>("cu.registers", "registers of a compute unit, 0 unlimited"),
    time<&M::cu_issue_interval>("cu.issue_interval", "between two requests of one compute unit"),
    limit<&M::cu_max_outstanding>("cu.max_outstanding",
                                  "loads in flight per compute unit, 0 unlimited"),
    limit<&M::cu_max_stores>("cu.max_stores",
                             "unacknowledged stores per compute unit, 0 unlimited"),
    rate<&M::cu_peer_rate>("cu.peer_rate",
                           "what a compute unit loads from other GPUs, and what it stores to them"),
    count<&M::cu_unroll, 1024>("cu.unroll",
                               "iterations of a copy loop whose loads are in flight together"),
    rate<&M::cu_reduce_rate_4byte>("cu.reduce_rate_4byte",
                                   "bytes reduced per compute unit, 4- and 8-byte types"),
    rate<&M::cu_reduce_rate_2byte>("cu.reduce_rate_2byte",
                                   "bytes reduced per compute unit, 2-byte types"),
    rate<&M::cu_reduce_rate_1byte>("cu.reduce_rate_1byte",
                                   "bytes reduced per compute unit, 1-byte types"),
    limit<&M::cu_matrix_rate>("cu.matrix_rate", "dense bf16 flop per clock and compute unit"),
    limit<&M::cu_matrix_rate_4byte>("cu.matrix_rate_4byte", "the same of float32 (TF32), 0 none"),
    limit<&M::cu_matrix_rate_1byte>("cu.matrix_rate_1byte", "the same of fp8 and int8, 0 none"),

    frequency<&M::gemm_clock>("gemm.clock", "clock of a matrix product, short load"),
    frequency<&M::gemm_sustained_clock>("gemm.sustained_clock", "the same under the power limit"),
    time<&M::gemm_burst_time, 0>("gemm.burst_time", "full load until the power limit holds"),
    time<&M::gemm_setup, 0>("gemm.setup", "of a matrix product's kernel before its first loads"),
    count<&M::gemm_stages, 64>("gemm.stages", "steps along k whose operands a compute unit holds"),
    bytes<&M::gemm_buffer, 1>("gemm.buffer", "operands of a compute unit, in use or on their way"),
    rate<&M::gemm_l2_rate>("gemm.l2_rate", "operands from the L2, counted at each compute unit"),
    rate<&M::gemm_store_rate>("gemm.store_rate", "results of a tile out of a compute unit"),
    count<&M::gemm_tile_cus, 64>("gemm.tile_cus", "compute units that can share one tile"),
    count<&M::gemm_l2_domains>("gemm.l2_domains", "L2 caches with copies of their own"),
    parameter<&M::gemm_tiles, 1, kLargestTile>("gemm.tiles", "tiles",
                                               "tiles that the library's kernels have",
                                               "tiles such as 256x128 128x128"),

    bytes<&M::l1_size>("l1.size", "L1 data cache of a compute unit, 0 none"),
    count<&M::l1_ways>("l1.ways", "associativity of the L1"),
    time<&M::l1_latency>("l1.latency", "load to use on an L1 hit"),

    parameter<&M::noc_kind>("noc.kind", "choice", "shape of the network on chip",
                            "crossbar or mesh"),
    rate<&M::noc_cu_rate>("noc.cu_rate", "from the network into a compute unit"),
    rate<&M::noc_cu_out_rate>("noc.cu_out_rate", "out of a compute unit: stores, requests"),
    time<&M::noc_latency>("noc.latency", "one way between compute unit and L2, crossbar"),
    count<&M::noc_partitions, 64>("noc.partitions", "L2 partitions"),
    time<&M::noc_partition_latency, 0>("noc.partition_latency",
                                       "added one way to a slice of another partition"),
    rate<&M::noc_io_rate>("noc.io_rate", "each way between the network and one I/O port"),
    rate<&M::noc_io_link>("noc.io_link",
                          "fastest link that one I/O port feeds: a faster one has several ports"),
    time<&M::noc_io_latency>("noc.io_latency", "one way between the network and the wire"),
    count<&M::noc_mesh_columns, 64>("noc.mesh_columns", "routers in a row of the mesh"),
    count<&M::noc_mesh_rows, 64>("noc.mesh_rows", "rows of the mesh"),
    rate<&M::noc_link_rate>("noc.link_rate", "one link of the mesh, per direction"),
    time<&M::noc_hop_latency>("noc.hop_latency", "router and link of the mesh"),
    parameter<&M::noc_arbitration>("noc.arbitration", "choice",
                                   "who goes first where control meets data", kArbitrationHint),
    bytes<&M::noc_control_size, 1>("noc.control_size",
                                   "a request, acknowledgement or flag without data, on chip"),

    line<&M::line_size>("line.size", "the request unit: a cache line"),
    line<&M::sector_size>("line.sector", "unit of partial lines and flags"),
    bytes<&M::l2_size>("l2.size", "L2 cache, 0 none"),
    count<&M::l2_ways>("l2.ways", "associativity of the L2"),
    count<&M::l2_slices>("l2.slices", "L2 slices"),
    flag<&M::l2_copies>("l2.copies", "a partition keeps copies of lines of the others"),
    rate<&M::l2_slice_rate>("l2.slice_rate", "one L2 slice"),
    time<&M::l2_latency>("l2.latency", "look-up inside a slice, on a hit"),
    time<&M::l2_atomic_time>("l2.atomic_time", "service of an atomic or flag update"),
    bytes<&M::msc_size>("msc.size", "memory-side cache, 0 none"),
    count<&M::msc_ways>("msc.ways", "associativity of the memory-side cache"),
    rate<&M::msc_rate>("msc.rate", "memory-side cache, whole device"),
    time<&M::msc_latency>("msc.latency", "memory-side cache, beyond the L2 miss"),
    parameter<&M::hbm_size, 1, std::int64_t{1} << 50>(
        "hbm.size", "bytes", "memory, whole device: searches of workloads keep within it",
        "a size such as 80 GiB (at most 1 PiB)"),
    count<&M::hbm_channels>("hbm.channels", "memory channels"),
    rate<&M::hbm_rate>("hbm.rate", "memory, whole device, data-sheet peak"),
    parameter<&M::hbm_efficiency_permille, 1, 1000>("hbm.efficiency_permille", "count",
                                                    "what refresh and row misses leave of hbm.rate",
                                                    "a whole number of thousandths from 1 to 1000"),
    time<&M::hbm_latency>("hbm.latency", "memory, beyond the last cache miss"),
    time<&M::hbm_turnaround, 0>("hbm.turnaround",
                                "per switch of a channel between reads and writes"),
    bytes<&M::hbm_interleave, 1>("hbm.interleave", "bytes of one channel before the next"),

    parameter<&M::dma_engines, 0, 256>("dma.engines", "count", "copy engines, 0 none",
                                       "a whole number from 0 to 256"),
    rate<&M::dma_rate>("dma.rate", "one copy engine"),
    bytes<&M::dma_burst, 1>("dma.burst", "request unit of a copy engine"),
    bytes<&M::dma_max_payload, 1>("dma.max_payload", "packet payload on the wire for its bursts"),
    limit<&M::dma_outstanding>("dma.outstanding", "bursts in flight per engine, 0 unlimited"),
    time<&M::dma_control_latency>("dma.control_latency",
                                  "a host thread makes and enqueues the commands of a submission"),
    time<&M::dma_schedule_latency>("dma.schedule_latency",
                                   "doorbell to first burst of a submission"),
    time<&M::dma_sync_latency>("dma.sync_latency", "last acknowledgement to completion visible"),
    time<&M::dma_completion_time, 0>(
        "dma.completion_time", "one host thread for all GPUs: to see one more submission complete"),
    time<&M::dma_row_time, 0>("dma.row_time", "for each row of a strided copy, besides its bytes"),

    time<&M::cu_code_fetch>("cu.code_fetch",
                            "until the code of a kind of operation is fetched, large kernels"),
    time<&M::cu_code_fetch_interval, 0>(
        "cu.code_fetch_interval",
        "of one such fetch; those of a GPU are served one after the other"),
    time<&M::launch_stream_latency>("launch.stream_latency",
                                    "host call to first workgroup, stream"),
    time<&M::launch_stream_interval>(
        "launch.stream_interval",
        "least time from the start of a kernel to that of the next, stream"),
    time<&M::launch_library_interval>(
        "launch.library_interval",
        "from the end of a communication library's kernel to the start of its next, stream"),
    time<&M::launch_graph_latency>("launch.graph_latency", "host call to first workgroup, graph"),
    time<&M::launch_graph_interval>(
        "launch.graph_interval",
        "least time from the start of a kernel to that of the next, graph"),
    time<&M::launch_end_latency>("launch.end_latency", "last workgroup to stream release"),
    time<&M::dispatch_interval>("dispatch.interval", "between two workgroups of a kernel"),
    time<&M::dispatch_latency>("dispatch.latency", "workgroup to first instruction"),

    time<&M::sync_barrier_latency>("sync.barrier_latency",
                                   "last wavefront to release, barrier of a workgroup"),
    time<&M::sync_fence_latency>("sync.fence_latency",
                                 "fixed part of a release fence, after the drain"),
    time<&M::sync_system_fence_time, 0>("sync.system_fence_time",
                                        "what a fence at system scope takes longer"),
    time<&M::sync_poll_interval>("sync.poll_interval", "from a poll's return to the next poll"),
    time<&M::sync_op_overhead>("sync.op_overhead",
                               "instructions around one operation of a workgroup"),
    parameter<&M::sync_wait>("sync.wait", "choice",
                             "what a wavefront does until a flag has its value",
                             "spin, backoff, monitor or syncmon"),
    flag<&M::sync_uncached>("sync.uncached", "flags are not cached by the L2"),
    line<&M::sync_flag_spacing>("sync.flag_spacing", "from one flag in memory to the next"),
    time<&M::sync_line_time>("sync.line_time",
                             "of one access to a line of uncached flags, at the memory controller"),
    time<&M::sync_backoff_start>("sync.backoff_start",
                                 "the first sleep of a back-off, doubled from poll to poll"),
    time<&M::sync_backoff_limit>("sync.backoff_limit", "the longest sleep of a back-off"),
    limit<&M::sync_monitor_entries>("sync.monitor_entries",
                                    "waits that one slice monitors at a time, 0 none"),
    time<&M::sync_wake_latency>("sync.wake_latency",
                                "from the end of a write to the first wake-up that leaves"),
    time<&M::sync_handover_time>("sync.handover_time",
                                 "from waking one waiter to waking the next, where one is woken"),
    bytes<&M::sync_thread_state, 1>("sync.thread_state",
                                    "saved of a thread whose workgroup is switched out"),

    time<&M::proxy_fifo_latency>("proxy.fifo_latency",
                                 "store to host memory until the proxy thread sees it"),
    time<&M::proxy_request_time>("proxy.request_time",
                                 "work of the proxy thread per request to a copy engine"),
    time<&M::proxy_network_time>("proxy.network_time",
                                 "work of the proxy thread per request to a NIC"),
    time<&M::proxy_return_latency>("proxy.return_latency", "completion back to the GPU"),

    flag<&M::forwards>("fabric.forwards", "a link route may pass through this GPU"),
};

const Parameter* find_parameter(std::string_view name) {
  const auto found = std::ranges::find(kParameters, name, &Parameter::name);
  return found == kParameters.end() ? nullptr : &*found;
}

std::vector<std::string> parameter_names() {
  std::vector<std::string> names;
  for (const Parameter& parameter : kParameters) names.emplace_back(parameter.name);
  return names;
}

/// A cache must hold at least one set in every slice.
void check_cache(Diagnostics& found, const SourceLocation& where, std::string_view name, Bytes size,
                 std::int64_t ways, std::int64_t slices, Bytes line_size) {
  const Bytes least{ways * slices * line_size.count};
  if (size.count == 0 || size >= least) return;
  found.error(
      std::string(name) + ".size of " + to_string(size) + " is less than one set in each slice",
      where, "at least " + to_string(least) + " (ways x slices x line), or 0 B for none");
}

}  // namespace

std::span<const Parameter> gpu_parameters() {
  return kParameters;
}

Diagnostics check_gpu_model(const GpuModel& model, const SourceLocation& where) {
  Diagnostics found;
  if (model.sector_size > model.line_size) {
    found.error("line.sector of " + to_string(model.sector_size) + " is larger than line.size of " +
                    to_string(model.line_size),
                where, "a sector is a part of a line, such as 32 B of 128 B");
  }
  if (model.hbm_interleave.count % model.line_size.count != 0) {
    found.error("hbm.interleave of " + to_string(model.hbm_interleave) +
                    " is not a multiple of line.size, " + to_string(model.line_size),
                where, "one line is in one channel");
  }
  if (model.cu_wavefront_size > model.cu_max_threads) {
    found.error("cu.wavefront_size is larger than cu.max_threads", where,
                "a compute unit must hold one wavefront");
  }
  check_cache(found, where, "l1", model.l1_size, model.l1_ways, 1, model.line_size);
  check_cache(found, where, "l2", model.l2_size, model.l2_ways, model.l2_slices, model.line_size);
  check_cache(found, where, "msc", model.msc_size, model.msc_ways, 1, model.line_size);
  return found;
}

void set_parameter(GpuModel& model, std::string_view name, std::string_view value,
                   const SourceLocation& where) {
  const Parameter* parameter = find_parameter(name);
  if (!parameter) {
    throw Failure("unknown device parameter '" + std::string(name) + "'", where,
                  suggest(name, parameter_names()));
  }
  GpuModel changed = model;
  if (!parameter->set(changed, value)) {
    throw Failure("'" + std::string(value) + "' is not a value of " + std::string(name), where,
                  "expected " + std::string(parameter->hint));
  }
  const Diagnostics found = check_gpu_model(changed, where);
  if (found.has_errors()) throw Failure(found);
  changed.sources[std::string(name)] = where.file.empty()           ? "set by the caller"
                                       : where.file == kOption.file ? "set by an option"
                                                                    : "set in " + where.file;
  model = std::move(changed);
}

}  // namespace hemiola::machine
