#include "study/network/ns3_network.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "core/diagnostics.h"
#include "machine/network_routing.h"
#include "study/network/child_process.h"

namespace hemiola::study {
namespace {

using machine::LinkId;
using machine::Machine;
using machine::Node;
using machine::NodeKind;

constexpr std::int64_t kPacketWithoutNic = 4096;

std::string program_beside_us() {
  std::string path(PATH_MAX, '\0');
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  path.resize(length > 0 ? index(length) : 0);
  path = path.substr(0, path.rfind('/') + 1) + "hemiola-ns3";
  if (access(path.c_str(), X_OK) != 0)
    throw Failure("there is no hemiola-ns3 beside this program", {.file = "--network"},
                  "it is built with -DHEMIOLA_NS3=ON where Debian's libns3-dev is; tools/test ns3 "
                  "does so");
  return path;
}

const Node& node_at(const Machine& machine, machine::NodeId node) {
  return machine.nodes[index(node)];
}

/// Of a link beside a NIC, at most what the NIC does: its rate counts payload, a link's counts all.
std::int64_t rate_of(const Machine& machine, LinkId number) {
  const machine::Link& link = machine.links[index(number)];
  const machine::LinkClass& c = machine.class_of(number);
  std::int64_t rate = c.bandwidth.bytes_per_second;
  for (const machine::NodeId end : {link.from, link.to}) {
    const Node& node = node_at(machine, end);
    if (node.kind != NodeKind::nic || node.nic_model.rate.is_ideal()) continue;
    const std::int64_t mtu = std::max<std::int64_t>(1, node.nic_model.mtu.count);
    const auto of_nic = static_cast<std::int64_t>(
        static_cast<__int128>(node.nic_model.rate.bytes_per_second) * c.wire_bytes(mtu) / mtu);
    rate = rate == 0 ? of_nic : std::min(rate, of_nic);
  }
  return rate;
}

}  // namespace

struct Ns3Network::Implementation {
  Implementation(const Machine& of, const Ns3Options& options)
      : machine(of),
        queue(options.queue.count),
        child(options.program.empty() ? program_beside_us() : options.program),
        acknowledged(options.acknowledged) {
    child.write(fmt::format("nodes {} {}", machine.nodes.size(), kRetransmission.fs));
    for (std::size_t n = 0; n < machine.nodes.size(); ++n) {
      const Node& node = machine.nodes[n];
      const Time latency =
          node.kind == NodeKind::nic ? node.nic_model.latency : node.switch_model.latency;
      if (latency.fs > 0 && node.kind != NodeKind::xpu)
        child.write(fmt::format("node {} {}", n, latency.fs));
    }
  }

  void add_link(LinkId number) {
    if (!links.insert(number).second) return;
    const machine::Link& link = machine.links[index(number)];
    const machine::LinkClass& c = machine.class_of(number);
    const bool of_switch = node_at(machine, link.from).kind == NodeKind::switch_;
    child.write(fmt::format("link {} {} {} {} {} {} {} {} {}", number, link.from, link.to,
                            rate_of(machine, number), c.latency.fs, of_switch ? queue : 0,
                            c.max_payload.count, c.header.count, c.control.count));
  }

  /// What messages of two ranks need, made once.
  struct Way {
    std::vector<std::int64_t> paths;
    std::int64_t mtu = kPacketWithoutNic;
    Time before{};  ///< of a NIC: its work for a message
  };
  const Way& way(int from, int to) {
    const auto [at, is_new] = ways.try_emplace({from, to});
    Way& way = at->second;
    if (!is_new) return way;
    const machine::Routes& routes = machine.routes(from, to);
    if (routes.count == 0)
      throw Failure(fmt::format("rank {} has no way to rank {}", from, to), {.file = machine.name});
    const std::int32_t only = machine::path_of_messages(machine, routes, from, to);
    const std::int32_t first = std::max(only, 0), end = only < 0 ? routes.count : only + 1;
    for (std::int32_t p = first; p < end; ++p) {
      std::string line = fmt::format("path {}", paths);
      for (const LinkId link : routes.path(p)) {
        add_link(link);
        line += fmt::format(" {}", link);
      }
      child.write(line);
      way.paths.push_back(paths++);
    }
    for (const LinkId link : routes.path(first)) {
      const Node& node = node_at(machine, machine.links[index(link)].to);
      if (node.kind != NodeKind::nic) continue;
      way.mtu = std::max<std::int64_t>(1, node.nic_model.mtu.count);
      way.before = node.nic_model.message_time;
      break;
    }
    return way;
  }

  const Machine& machine;
  std::int64_t queue = 0;
  ChildProcess child;
  std::set<LinkId> links;
  std::map<std::pair<int, int>, Way> ways;
  std::int64_t paths = 0;
  bool acknowledged = false;
  std::map<std::int32_t, std::pair<int, int>> to_acknowledge;  ///< who sends to whom, by message
};

Ns3Network::Ns3Network(const Machine& machine, const Ns3Options& options)
    : self_(std::make_unique<Implementation>(machine, options)) {}
Ns3Network::~Ns3Network() = default;

void Ns3Network::send(std::int32_t number, Time time, const Message& message) {
  if (self_->acknowledged) self_->to_acknowledge[number] = {message.from, message.to};
  const Implementation::Way& way = self_->way(message.from, message.to);
  std::string line =
      fmt::format("send {} {} {} {}", number, (time + way.before).fs, message.bytes, way.mtu);
  for (const std::int64_t path : way.paths) line += fmt::format(" {}", path);
  self_->child.write(line);
}

std::optional<MessageNetwork::Arrival> Ns3Network::next() {
  while (true) {
    self_->child.write("run");
    std::istringstream answer(self_->child.read());
    std::string word;
    Arrival arrival;
    if (answer >> word && word == "idle") return std::nullopt;
    if (word != "done" || !(answer >> arrival.time.fs >> arrival.number))
      throw Failure("hemiola-ns3 does not answer as it should", {.file = "--network"},
                    "build it from the same source as this program");
    const auto data = self_->to_acknowledge.find(arrival.number);
    if (data == self_->to_acknowledge.end()) return arrival;
    // The answer has the number of its message.
    const auto [from, to] = data->second;
    self_->to_acknowledge.erase(data);
    const Implementation::Way& back = self_->way(to, from);
    self_->child.write(fmt::format("send {} {} 0 {} {}", arrival.number, arrival.time.fs, back.mtu,
                                   back.paths.front()));
  }
}

Ns3Network::Statistics Ns3Network::statistics() {
  self_->child.write("stats");
  std::istringstream answer(self_->child.read());
  std::string word;
  Statistics statistics;
  answer >> word >> statistics.packets >> statistics.drops;
  return statistics;
}

std::string describe(const Machine& machine, const Ns3Options& options) {
  std::set<std::int64_t> packets;
  for (const Node& node : machine.nodes)
    if (node.kind == NodeKind::nic) packets.insert(node.nic_model.mtu.count);
  if (packets.empty()) packets.insert(kPacketWithoutNic);
  std::string text = "packets of ";
  for (const std::int64_t size : packets)
    text += (size == *packets.begin() ? "" : ", ") + to_string(Bytes{size});
  text += options.queue.count == 0 ? ", queues without a limit (lossless)"
                                   : ", queues of " + to_string(options.queue) +
                                         " at switches, drop-tail, sent again after " +
                                         to_string(Ns3Network::kRetransmission);
  const bool is_spray = machine::network_routing(machine) == machine::NetworkRouting::spray;
  text += is_spray ? ", messages over all ways in turn" : ", messages over one way each";
  return text + (options.acknowledged ? ", over when acknowledged" : ", over when they are there");
}

}  // namespace hemiola::study
