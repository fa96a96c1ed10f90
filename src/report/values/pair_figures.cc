#include "report/values/pair_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>

namespace hemiola::report {
namespace {

using machine::LinkId;
using machine::Machine;

/// Every path carries the same share, so a link that `uses` of `count` paths share carries
/// uses/count of the traffic and limits all of it to bandwidth * count / uses.
void set_bandwidth(PairFigures& figures, const Machine& machine, const machine::Routes& routes) {
  std::map<LinkId, double> uses;
  for (const LinkId link : routes.links) uses[link] += 1;
  figures.ideal = true;
  for (const auto& [link, count] : uses) {
    const Rate rate = machine.class_of(link).bandwidth;
    if (rate.is_ideal()) continue;
    const double limit = static_cast<double>(rate.bytes_per_second) * routes.count / count;
    figures.bandwidth = figures.ideal ? limit : std::min(figures.bandwidth, limit);
    figures.ideal = false;
  }
}

Time path_latency(const Machine& machine, std::span<const LinkId> path, std::int64_t line) {
  Time latency{};
  for (std::size_t i = 0; i < path.size(); ++i) {
    const machine::LinkClass& link = machine.class_of(path[i]);
    latency += link.bandwidth.time_for(link.wire_bytes(line)) + link.latency;
    if (i + 1 == path.size()) break;
    const machine::NodeId to = machine.links[index(path[i])].to;
    const machine::Node& node = machine.nodes[index(to)];
    latency +=
        node.kind == machine::NodeKind::nic ? node.nic_model.latency : node.switch_model.latency;
  }
  return latency;
}

}  // namespace

PairFigures pair_figures(const Machine& machine, int from, int to) {
  const machine::Routes& routes = machine.routes(from, to);
  PairFigures figures;
  figures.reach = routes.reach;
  figures.hops = routes.hops;
  figures.paths = routes.count;
  if (routes.reach == machine::Reach::none || routes.count == 0) return figures;
  set_bandwidth(figures, machine, routes);
  figures.latency = path_latency(machine, routes.path(0), machine.model(from).line_size.count);
  return figures;
}

std::string reach_text(const PairFigures& figures) {
  switch (figures.reach) {
    case machine::Reach::self:
      return "self";
    case machine::Reach::load_store:
      return "load/store";
    case machine::Reach::network:
      return "network";
    case machine::Reach::none:
      return "none";
  }
  return "unknown";
}

std::string bandwidth_text(const PairFigures& figures) {
  if (figures.reach == machine::Reach::none) return "-";
  return figures.ideal ? "inf" : fmt::format("{:.1f}", figures.bandwidth / 1e9);
}

std::string latency_text(const PairFigures& figures) {
  return figures.reach == machine::Reach::none ? "-" : fmt::format("{:.1f}", figures.latency.ns());
}

std::string goodput(const machine::LinkClass& link) {
  const double packet = static_cast<double>(link.max_payload.count + link.header.count);
  if (link.bandwidth.is_ideal() || packet <= 0) return to_string(link.bandwidth);
  const double share = static_cast<double>(link.max_payload.count) / packet;
  return fmt::format("{:.1f} GB/s",
                     static_cast<double>(link.bandwidth.bytes_per_second) / 1e9 * share);
}

}  // namespace hemiola::report
