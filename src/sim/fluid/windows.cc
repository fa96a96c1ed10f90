// What loads from other GPUs have under way at once.

#include <algorithm>

#include "sim/fluid/fluid.h"

namespace hemiola::sim {
namespace {

using program::Span;

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

/// Of a move that has begun: what it loads at once, where it waits for that behind others. Loads
/// from several GPUs, or over several planes, spread over as many links, and their bursts with
/// them; but where a single GPU loads from several and stores to them, it fills the links of one
/// direction or of the other: while most of its wavefronts wait for the last of their loads, few
/// store. (Where all do so, answers and stores of others fill the same links.)
LoadWindow Fluid::window_of(const Walker& walker) const {
  const int self = walker.agent.rank;
  const std::int64_t slots = machine_.model(self).cu_max_outstanding;
  const auto is_remote = [&](const Span& span) { return span.rank != self; };
  const std::vector<Span>& src = walker.present.src;
  const std::vector<Span>& dst = walker.present.dst;
  const auto sources = std::ranges::count_if(src, is_remote);
  if (std::ranges::any_of(src, [](const Span& span) { return span.rank < 0; })) return {};
  if (slots == 0 || sources == 0 || walker.batch.fs == 0) return {};
  const auto first = std::ranges::find_if(src, is_remote);
  const bool exchanges = sources > 1 && std::ranges::count_if(dst, is_remote) > 1;
  if (!exchanges && (sources > 1 || !shares_one_port(machine_, first->rank, self))) return {};
  const Moved moved = moved_by(walker, walker.present);
  if (exchanges) {  // its own batch; of a single one the latency comes at the end
    const bool single = walker.batches == 1;
    return {(moved.bytes + walker.batches - 1) / walker.batches, single ? 0 : walker.batch.fs,
            single ? kEighthsOfOneExchange : kEighthsOfExchanges, true};
  }
  return {std::min(moved.bytes, moved.bytes * slots / (moved.loads * walker.sharing)),
          walker.batch.fs, kEighthsOfLoads};
}

}  // namespace hemiola::sim
