#include "sim/fluid/traffic.h"

#include <algorithm>

#include "program/semantics/costs.h"
#include "sim/alike/class_signature.h"

namespace hemiola::sim::fluid {
namespace {

using program::Access;
using program::Primitive;
using program::Span;

std::int64_t memory_of(const Span& span, std::int64_t bytes) {
  return program::memory_size(bytes, span.access);
}

/// Time that the ports of a compute unit, its issue and its arithmetic need at least, fs.
std::int64_t unit_time(const machine::GpuModel& model, const Moved& moved) {
  const std::int64_t time = issue_time(model, moved.loads, moved.stores, moved.in, moved.out);
  if (moved.sources <= 1) return time;
  return std::max(time, program::reduce_time(model, moved.type, moved.bytes, moved.sources).fs);
}

/// Of what all windows of its links hold, in eighths: behind so much a line of a move that loads
/// from one other GPU waits on average, and of one that exchanges with several, in one batch and in
/// more. The first is fitted to 1 to 8 workgroups of an MI300X that load from one other, the others
/// to 1 and 16 MiB of all-reduce/partitioned (docs/fluid.md).
constexpr int kEighthsOfLoads = 6;
constexpr int kEighthsOfOneExchange = 12;
constexpr int kEighthsOfExchanges = 10;

/// Whether all lines on the way there take turns at one port: there is one way, and its link into
/// `to` is no faster than a port carries, or else it stands for several.
bool shares_one_port(const machine::Machine& machine, int from, int to) {
  const machine::Routes& routes = machine.routes(from, to);
  if (routes.count != 1 || routes.hops == 0) return false;
  const machine::Link& last = machine.links[index(routes.path(0).back())];
  const Rate link = machine.link_classes[index(last.link_class)].bandwidth;
  const machine::GpuModel& model = machine.model(to);
  return model.port_rate(link).bytes_per_second <= model.noc_io_rate.bytes_per_second;
}

}  // namespace

void limit(std::int64_t& least, __int128 other) {
  const auto value =
      static_cast<std::int64_t>(std::clamp<__int128>(other, 1, std::int64_t{1} << 60));
  if (least == 0 || value < least) least = value;
}

// Members of a class may have slices that differ by a unit (Signatures): they begin inside lines
// where the first one begins with a line.
Slices Traffic::slices_of(const Walker& walker, const program::Primitive& primitive) const {
  if (!run_.fold.folded() || run_.program.linked() != nullptr || primitive.op < 0) return {};
  const program::Op& op = run_.op_of(walker, primitive);
  if (op.slices <= 1 || op.unit.count > 0 || op.bytes.count > 0) return {};
  const auto& operands = op.src.empty() ? op.dst : op.src;
  if (operands.empty()) return {};
  const std::int64_t unit = run_.program.program().alignment.count;
  const std::int64_t units = operands.front().chunks * run_.program.chunk_bytes() / unit;
  const Slices slices{op.slices, units, unit, op.slice};
  const bool whole = slices.begin(op.slice + 1) - slices.begin(op.slice) == primitive.bytes;
  return whole && alike_slices(run_.program, units, op.slices) && units % op.slices != 0 ? slices
                                                                                         : Slices{};
}

std::int64_t Traffic::wave_of(const Walker& walker, const Primitive& primitive) const {
  return program::data_per_thread(primitive, walker.grain) * run_.model(walker).cu_wavefront_size;
}

LoadLatency Traffic::demands_of(const Walker& walker, const Primitive& primitive, bool operands) {
  run_.demands.clear();
  Latency longest;
  __int128 kept = 0;  // loads times latency
  std::int64_t loads = 0;
  const int rank = walker.agent.rank;
  const machine::GpuModel& model = run_.machine.model(rank);
  const std::int64_t total = primitive.bytes, members = walker.members;
  const std::int64_t wave = wave_of(walker, primitive);
  const Slices slices = slices_of(walker, primitive);
  const int repetition = streams_.repetition(walker.rank_class);
  for (const Span& span : primitive.src) {
    const std::int64_t bytes = memory_of(span, total);
    const Requests requests = requests_of(span, total, wave, model, slices);
    Latency latency;
    if (!operands && walker.move.again == MoveState::Again::in_l1) {
      latency.add(Reason::l1, model.l1_latency.fs);
    } else if (span.rank < 0) {
      const Depth depth = run_.ways.depth_of(rank, span.buffer, true, repetition);
      run_.ways.over_group(rank, span.group, bytes, requests.count, true, depth, total, members,
                           run_.demands);
      latency = run_.ways.group(rank, span.group, true, depth);
    } else {
      const bool again = !operands && walker.move.again == MoveState::Again::in_l2;
      const Depth depth =
          again ? Depth::l2 : run_.ways.depth_of(span.rank, span.buffer, true, repetition);
      if (operands && span.rank == rank)
        run_.ways.at_operands(span.rank, bytes, depth, total, members, run_.demands);
      else
        run_.ways.at_memory(span.rank, bytes, depth, total, members, run_.demands);
      if (span.rank != rank)
        run_.ways.over_links(span.rank, rank, requests.bytes, requests.count, 0, true, total,
                             members, run_.demands);
      latency = run_.ways.load(rank, span.rank, depth);
      // The threads that see the flags of LL128 lines load the lines again.
      if (span.access == Access::ll128) latency += latency;
    }
    kept += static_cast<__int128>(requests.count) * latency.fs;
    loads += requests.count;
    if (latency.fs > longest.fs) longest = latency;
  }
  for (const Span& span : primitive.dst) {
    const std::int64_t bytes = memory_of(span, total);
    const Requests requests = requests_of(span, total, wave, model, slices);
    if (span.rank < 0) {
      const Depth depth = run_.ways.depth_of(rank, span.buffer, false, repetition);
      run_.ways.over_group(rank, span.group, bytes, requests.count, false, depth, total, members,
                           run_.demands);
      continue;
    }
    const Depth depth = walker.move.results_stay
                            ? Depth::l2
                            : run_.ways.depth_of(span.rank, span.buffer, false, repetition);
    run_.ways.at_memory(span.rank, bytes, depth, total, members, run_.demands);
    if (span.rank != rank)
      run_.ways.over_links(rank, span.rank, requests.bytes, requests.count, 0, false, total,
                           members, run_.demands);
  }
  if (walker.unit.resource >= 0) {
    const __int128 time = unit_time(model, moved_by(walker, primitive));
    run_.demands.push_back(
        {walker.unit.resource,
         static_cast<std::int64_t>((time * walker.sharing * members << kWeightBits) /
                                   (static_cast<__int128>(total) * walker.unit.blocks))});
  }
  return {longest, loads > 0 ? static_cast<std::int64_t>(kept / loads) : 0};
}

Moved Traffic::moved_by(const Walker& walker, const Primitive& primitive) const {
  const machine::GpuModel& model = run_.model(walker);
  const std::int64_t wave = wave_of(walker, primitive);
  const Slices slices = slices_of(walker, primitive);
  Moved moved{
      .bytes = primitive.bytes, .sources = std::ssize(primitive.src), .type = primitive.type};
  for (const Span& span : primitive.src) {
    const std::int64_t bytes = memory_of(span, primitive.bytes);
    if (walker.move.again != MoveState::Again::in_l1) moved.in += bytes;
    if (span.rank != walker.agent.rank) moved.from_peers += bytes;
    moved.loads += requests_of(span, primitive.bytes, wave, model, slices).count;
  }
  for (const Span& span : primitive.dst) {
    const std::int64_t bytes = memory_of(span, primitive.bytes);
    moved.out += bytes;
    if (span.rank != walker.agent.rank) moved.to_peers += bytes;
    moved.stores += requests_of(span, primitive.bytes, wave, model, slices).count;
  }
  return moved;
}

std::int64_t Traffic::limit_of(const Walker& walker, const Moved& moved,
                               std::int64_t load_fs) const {
  const machine::GpuModel& model = run_.model(walker);
  const __int128 total = moved.bytes;
  std::int64_t least = 0;
  const auto shared = [&](__int128 rate) { limit(least, rate / walker.sharing); };
  if (const std::int64_t time = unit_time(model, moved); time > 0) shared(total * kSecond / time);
  for (const std::int64_t bytes : {moved.from_peers, moved.to_peers})
    if (bytes > 0 && !model.cu_peer_rate.is_ideal())
      shared(total * model.cu_peer_rate.bytes_per_second / bytes);
  if (model.cu_max_outstanding > 0 && moved.loads > 0 && load_fs > 0)
    shared(total * kSecond * model.cu_max_outstanding /
           (static_cast<__int128>(load_fs) * moved.loads));
  return least;
}

/// Of a move that has begun: what it loads at once, where it waits for that behind others. Loads
/// from several GPUs, or over several planes, spread over as many links, and their bursts with
/// them; but where a single GPU loads from several and stores to them, it fills the links of one
/// direction or of the other: while most of its wavefronts wait for the last of their loads, few
/// store. (Where all do so, answers and stores of others fill the same links.)
LoadWindow Traffic::window_of(const Walker& walker) const {
  const int self = walker.agent.rank;
  const std::int64_t slots = run_.machine.model(self).cu_max_outstanding;
  const auto is_remote = [&](const Span& span) { return span.rank != self; };
  const std::vector<Span>& src = walker.place.present.src;
  const std::vector<Span>& dst = walker.place.present.dst;
  const auto sources = std::ranges::count_if(src, is_remote);
  if (std::ranges::any_of(src, [](const Span& span) { return span.rank < 0; })) return {};
  if (slots == 0 || sources == 0 || walker.batch.fs == 0) return {};
  const auto first = std::ranges::find_if(src, is_remote);
  const bool exchanges = sources > 1 && std::ranges::count_if(dst, is_remote) > 1;
  if (!exchanges && (sources > 1 || !shares_one_port(run_.machine, first->rank, self))) return {};
  const Moved moved = moved_by(walker, walker.place.present);
  if (exchanges) {  // its own batch; of a single one the latency comes at the end
    const bool single = walker.move.batches == 1;
    return {(moved.bytes + walker.move.batches - 1) / walker.move.batches,
            single ? 0 : walker.batch.fs, single ? kEighthsOfOneExchange : kEighthsOfExchanges,
            true};
  }
  return {std::min(moved.bytes, moved.bytes * slots / (moved.loads * walker.sharing)),
          walker.batch.fs, kEighthsOfLoads};
}

}  // namespace hemiola::sim::fluid
