#include "workload/iteration/link_shares.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/index.h"

namespace hemiola::workload {
namespace {

/// Bytes per second of all links of each class, by GPU; 0: they cost no time.
std::vector<double> rates_of_gpu(const machine::Machine& machine) {
  std::vector<double> rates(machine.link_classes.size(), 0);
  for (const machine::Link& link : machine.links)
    rates[index(link.link_class)] += static_cast<double>(
        machine.link_classes[index(link.link_class)].bandwidth.bytes_per_second);
  for (double& rate : rates) rate /= std::max(1, machine.ranks());
  return rates;
}

/// Bytes from `begin` to `end`, evenly, into bins of `bin` fs.
void spread(std::vector<double>& bins, double bytes, Time begin, Time end, double bin) {
  const auto from = static_cast<double>(begin.fs), to = static_cast<double>(end.fs);
  for (auto b = static_cast<std::size_t>(from / bin); b < bins.size(); ++b) {
    const double left = std::max(from, static_cast<double>(b) * bin);
    const double right = std::min(to, static_cast<double>(b + 1) * bin);
    if (right <= left) break;
    bins[b] += bytes * (right - left) / (to - from);
  }
}

}  // namespace

std::vector<LinkShares> link_shares(const Workload& workload, Places& places, SimulatedCosts& costs,
                                    const machine::Machine& machine, const ScheduleResult& result) {
  const std::vector<double> rates = rates_of_gpu(machine);
  const double bin = static_cast<double>(result.time.fs) / kLinkBins;
  std::vector<LinkShares> rows;
  for (std::size_t c = 0; c < workload.classes.size(); ++c) {
    std::map<std::int32_t, LinkShares> of_class;
    const std::vector<Node>& nodes = workload.classes[c].trace->nodes;
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      const NodeTimes& times = result.nodes[c][n];
      if (times.meeting == kNoNode || times.end <= times.begin) continue;
      const Node& node = nodes[n];
      const NodeKind kind = node.kind == NodeKind::receive ? NodeKind::send : node.kind;
      const std::int32_t place = places.of_call(static_cast<std::int32_t>(c), node);
      for (const Traffic& traffic :
           costs.traffic({.kind = kind, .work = node.work, .place = place})) {
        const auto known =
            std::ranges::find(machine.link_classes, traffic.link_class, &machine::LinkClass::name);
        LinkShares& row = of_class[static_cast<std::int32_t>(known - machine.link_classes.begin())];
        row.shares.resize(kLinkBins, 0);
        row.wire_bytes += traffic.wire_bytes;
        spread(row.shares, traffic.wire_bytes, times.begin, times.end, bin);
      }
    }
    for (auto& [link_class, row] : of_class) {
      row.rank_class = static_cast<std::int32_t>(c);
      row.link_class = machine.link_classes[index(link_class)].name;
      const double room = rates[index(link_class)] * bin * 1e-15;
      for (double& share : row.shares) share = room > 0 ? share / room : 0;
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace hemiola::workload
