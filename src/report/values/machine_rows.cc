#include "report/values/machine_rows.h"

#include <fmt/format.h>

#include <map>
#include <tuple>

#include "core/lists.h"
#include "machine/devices/parameters.h"
#include "report/values/pair_figures.h"

namespace hemiola::report {
namespace {

using machine::Machine;

std::string switch_text(const machine::SwitchModel& model) {
  std::string text = fmt::format(
      "latency {}, output queue {}", to_string(model.latency),
      model.queue > 0 ? fmt::format("{} requests", model.queue) : std::string("unlimited"));
  if (!model.multicast) return text;
  return text + fmt::format(", multicast, reduces {} after {}", to_string(model.reduce_rate),
                            to_string(model.reduce_latency));
}

std::string nic_text(const machine::NicModel& model) {
  return fmt::format("MTU {}, {} per message, latency {}, rate {}", to_string(model.mtu),
                     to_string(model.message_time), to_string(model.latency),
                     model.rate.is_ideal() ? "of its links" : to_string(model.rate));
}

}  // namespace

std::string node_counts(const Machine& machine) {
  std::map<machine::NodeKind, std::size_t> kinds;
  for (const machine::Node& node : machine.nodes) ++kinds[node.kind];
  return joined(kinds, [](const auto& one) {
    return fmt::format("{} {}", one.second, machine::name_of(one.first));
  });
}

std::vector<Row> gpu_rows(const Machine& machine) {
  std::vector<Row> rows;
  for (std::size_t model = 0; model < machine.models.size(); ++model) {
    std::vector<int> ranks;
    for (int rank = 0; rank < machine.ranks(); ++rank)
      if (index(machine.gpu_models[index(rank)]) == model) ranks.push_back(rank);
    if (ranks.empty()) continue;
    rows.push_back({(ranks.size() == 1 ? "rank " : "ranks ") + joined(runs_of(ranks)),
                    machine.models[model].name, machine.models[model].description});
  }
  return rows;
}

std::vector<Row> link_class_rows(const Machine& machine) {
  std::vector<std::size_t> links(machine.link_classes.size(), 0);
  for (const machine::Link& link : machine.links) ++links[index(link.link_class)];
  std::vector<Row> rows;
  for (std::size_t i = 0; i < links.size(); ++i) {
    const machine::LinkClass& link = machine.link_classes[i];
    rows.push_back({link.name, std::to_string(links[i]), to_string(link.bandwidth), goodput(link),
                    to_string(link.latency), to_string(link.max_payload), to_string(link.header),
                    link.credits > 0 ? std::to_string(link.credits) : "unlimited",
                    link.assumed ? "assumed" : ""});
  }
  return rows;
}

std::vector<Row> device_rows(const Machine& machine) {
  std::map<std::tuple<machine::NodeKind, std::string, std::string>, std::size_t> devices;
  for (const machine::Node& node : machine.nodes)
    if (node.kind == machine::NodeKind::switch_)
      ++devices[{node.kind, node.device, switch_text(node.switch_model)}];
    else if (node.kind == machine::NodeKind::nic)
      ++devices[{node.kind, node.device, nic_text(node.nic_model)}];
  std::vector<Row> rows;
  for (const auto& [key, count] : devices) {
    const auto& [kind, device, text] = key;
    rows.push_back({std::to_string(count), std::string(machine::name_of(kind)), device, text});
  }
  return rows;
}

PairClasses pair_classes(const Machine& machine) {
  constexpr int kAllPairs = 128;
  struct Class {
    std::size_t pairs = 0;
    int from = 0, to = 0;
  };
  std::map<std::vector<std::string>, Class> classes;
  const int sources = machine.ranks() <= kAllPairs ? machine.ranks() : 1;
  for (int from = 0; from < sources; ++from) {
    for (int to = 0; to < machine.ranks(); ++to) {
      if (from == to) continue;
      const PairFigures figures = pair_figures(machine, from, to);
      Class& entry =
          classes[{reach_text(figures), std::to_string(figures.hops), std::to_string(figures.paths),
                   bandwidth_text(figures), latency_text(figures)}];
      if (entry.pairs++ == 0) entry = {1, from, to};
    }
  }
  PairClasses result{.of_rank_0 = sources == 1};
  for (const auto& [key, entry] : classes) {
    result.rows.push_back({std::to_string(entry.pairs), key[0], key[1], key[2], key[3], key[4],
                           fmt::format("{} to {}", entry.from, entry.to)});
  }
  return result;
}

std::vector<Row> parameter_rows(const machine::GpuModel& model) {
  std::vector<Row> rows;
  for (const machine::Parameter& parameter : machine::gpu_parameters()) {
    const auto source = model.sources.find(std::string(parameter.name));
    const bool known = source != model.sources.end() && !source->second.empty();
    rows.push_back(
        {std::string(parameter.name), parameter.get(model), known ? source->second : "assumed"});
  }
  return rows;
}

}  // namespace hemiola::report
