// `hemiola machine show`: what the simulator will use, with its sources.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <set>
#include <tuple>

#include "report/columns.h"
#include "report/pair_figures.h"
#include "report/report.h"

namespace hemiola::report {
namespace {

using machine::Machine;
using machine::Node;
using machine::NodeKind;

std::string plural(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

/// "0-3, 8": ranks in ascending order.
std::string ranges(const std::vector<int>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", ranks[i]);
    if (last > i) text += fmt::format("-{}", ranks[last]);
    i = last + 1;
  }
  return text;
}

void print_nodes(std::ostream& out, const Machine& machine) {
  std::map<NodeKind, std::size_t> kinds;
  for (const Node& node : machine.nodes) ++kinds[node.kind];
  out << "nodes: ";
  std::string separator;
  for (const auto& [kind, count] : kinds) {
    out << separator << count << ' ' << machine::name_of(kind);
    separator = ", ";
  }
  out << "; " << plural(machine.links.size(), "directed link") << "\n\nGPUs\n";
  Columns columns({Align::left, Align::left, Align::left});
  for (std::size_t model = 0; model < machine.models.size(); ++model) {
    std::vector<int> ranks;
    for (int rank = 0; rank < machine.ranks(); ++rank) {
      if (static_cast<std::size_t>(machine.gpu_models[static_cast<std::size_t>(rank)]) == model) {
        ranks.push_back(rank);
      }
    }
    if (ranks.empty()) continue;
    columns.add({(ranks.size() == 1 ? "rank " : "ranks ") + ranges(ranks),
                 machine.models[model].name, machine.models[model].description});
  }
  columns.print(out, "  ");
}

void print_link_classes(std::ostream& out, const Machine& machine) {
  std::vector<std::size_t> links(machine.link_classes.size(), 0);
  for (const machine::Link& link : machine.links) {
    ++links[static_cast<std::size_t>(link.link_class)];
  }
  const auto right = Align::right;
  out << "\nlink classes (per direction)\n";
  Columns columns({Align::left, right, right, right, right, right, right, right, Align::left});
  columns.add(
      {"class", "links", "bandwidth", "goodput", "latency", "payload", "header", "credits"});
  for (std::size_t i = 0; i < links.size(); ++i) {
    const machine::LinkClass& link = machine.link_classes[i];
    columns.add({link.name, std::to_string(links[i]), to_string(link.bandwidth), goodput(link),
                 to_string(link.latency), to_string(link.max_payload), to_string(link.header),
                 link.credits > 0 ? std::to_string(link.credits) : "unlimited",
                 link.assumed ? "assumed" : ""});
  }
  columns.print(out, "  ");
  out << "  goodput = bandwidth x payload / (payload + header)\n";
}

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

/// Switches and NICs, equal ones of a device together.
void print_devices(std::ostream& out, const Machine& machine) {
  std::map<std::tuple<NodeKind, std::string, std::string>, std::size_t> devices;
  for (const Node& node : machine.nodes) {
    if (node.kind == NodeKind::switch_) {
      ++devices[{node.kind, node.device, switch_text(node.switch_model)}];
    } else if (node.kind == NodeKind::nic) {
      ++devices[{node.kind, node.device, nic_text(node.nic_model)}];
    }
  }
  if (devices.empty()) return;
  out << "\nswitches and NICs\n";
  Columns columns({Align::right, Align::left, Align::left, Align::left});
  for (const auto& [key, count] : devices) {
    const auto& [kind, device, text] = key;
    columns.add({std::to_string(count), std::string(machine::name_of(kind)), device, text});
  }
  columns.print(out, "  ");
}

void print_matrix(std::ostream& out, const Machine& machine, std::string_view title,
                  std::string (*cell)(const PairFigures&)) {
  out << '\n' << title << '\n';
  Columns columns(std::vector<Align>(static_cast<std::size_t>(machine.ranks()) + 1, Align::right));
  std::vector<std::string> heading{""};
  for (int to = 0; to < machine.ranks(); ++to) heading.push_back(std::to_string(to));
  columns.add(heading);
  for (int from = 0; from < machine.ranks(); ++from) {
    std::vector<std::string> row{std::to_string(from)};
    for (int to = 0; to < machine.ranks(); ++to) {
      row.push_back(from == to ? "-" : cell(pair_figures(machine, from, to)));
    }
    columns.add(row);
  }
  columns.print(out, "  ");
}

/// Pairs with equal figures on one line. Beyond `kAllPairs` ranks the pairs of rank 0 stand for
/// all: the number of pairs grows with the square.
void print_pair_classes(std::ostream& out, const Machine& machine) {
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
  out << "\nbandwidth and latency between GPUs" << (sources == 1 ? ", from rank 0" : "")
      << " (pairs with equal figures together)\n";
  const auto right = Align::right;
  Columns columns({right, Align::left, right, right, right, right, Align::left});
  columns.add({"pairs", "by", "hops", "paths", "GB/s", "ns", "such as"});
  for (const auto& [key, entry] : classes) {
    columns.add({std::to_string(entry.pairs), key[0], key[1], key[2], key[3], key[4],
                 fmt::format("{} to {}", entry.from, entry.to)});
  }
  columns.print(out, "  ");
}

void print_pairs(std::ostream& out, const Machine& machine) {
  constexpr int kMatrix = 16;
  if (machine.ranks() < 2) return;
  if (machine.ranks() <= kMatrix) {
    print_matrix(out, machine, "bandwidth between GPUs (GB/s, raw, over all paths; row to column)",
                 bandwidth_text);
    print_matrix(out, machine, "latency of one line between GPUs (ns, unloaded, outside the GPUs)",
                 latency_text);
  } else {
    print_pair_classes(out, machine);
  }
}

void print_parameters(std::ostream& out, const machine::GpuModel& model) {
  out << "\nparameters of " << model.name << " (--set gpu.NAME=VALUE)\n";
  Columns columns({Align::left, Align::right, Align::left});
  for (const machine::Parameter& parameter : machine::gpu_parameters()) {
    const auto source = model.sources.find(std::string(parameter.name));
    const bool known = source != model.sources.end() && !source->second.empty();
    columns.add(
        {std::string(parameter.name), parameter.get(model), known ? source->second : "assumed"});
  }
  columns.print(out, "  ");
}

}  // namespace

void print_machine(std::ostream& out, const Machine& machine) {
  out << machine.name << (machine.description.empty() ? "" : ": ") << machine.description << '\n';
  print_nodes(out, machine);
  print_link_classes(out, machine);
  print_devices(out, machine);
  print_pairs(out, machine);
  const std::set<std::int32_t> used(machine.gpu_models.begin(), machine.gpu_models.end());
  for (const std::int32_t model : used) {
    print_parameters(out, machine.models[static_cast<std::size_t>(model)]);
  }
  out << "\nwindow (smallest feedback latency): " << to_string(machine.smallest_feedback_latency())
      << '\n';
  if (!machine.warnings.empty()) out << '\n' << machine.warnings.render() << '\n';
}

}  // namespace hemiola::report
