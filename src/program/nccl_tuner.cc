// NCCL's tuner: a latency and a bandwidth for every algorithm and protocol; the least time wins.
// Numbers without another source: NVIDIA/nccl 2.30, src/graph/tuning.cc.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <optional>
#include <set>

#include "machine/machine.h"
#include "program/kernel_nccl.h"

namespace hemiola::program {
namespace {

const SourceLocation kOption{.file = "<option>"};

/// What NCCL finds on a node of such GPUs behind NVSwitches.
struct Generation {
  double ring_bandwidth;  ///< GB/s of all rings (src/graph/search.cc: channels x speed)
  int channels;           ///< in use, and in the graph half as many (src/graph/connect.cc)
  std::array<double, 3> ll_bandwidth;  ///< cap of LL: one node, two, more
  double ll128_channel;                ///< cap of LL128 per channel of the graph
  double nvls_efficiency;
  int nvls_channels;  ///< src/transport/nvls.cc
};

constexpr Generation kVolta{240, 24, {39.0, 39.0, 20.4}, 20.0, 0, 0};
constexpr Generation kAmpere{240, 24, {87.7, 22.5, 19.0}, 20.0, 0, 0};          // 12 x 20
constexpr Generation kHopper{360, 24, {141.0, 45.0, 35.0}, 36.7, 0.85, 16};     // 12 x 30
constexpr Generation kBlackwell{720, 32, {282.0, 90.0, 70.0}, 40.0, 0.74, 24};  // 16 x 45

const Generation& generation(const machine::Machine* machine) {
  const std::string name = machine == nullptr ? "h100" : machine->model(0).name;
  if (name == "v100") return kVolta;
  if (name == "a100") return kAmpere;
  if (name == "b200" || name == "gb200") return kBlackwell;
  return kHopper;
}

// LL, LL128, Simple.
constexpr std::array<double, 3> kRingBase{6.6, 14.0, 8.4};  // us
constexpr std::array<double, 3> kRingHop{0.6, 1.9, 3.4};    // us, over NVLink
constexpr std::array<double, 3> kNetHop{2.7, 4.0, 14.0};    // us, over NICs
constexpr double kLlNextToNet = 1.8;                        // LL inside a node of several
constexpr double kSimplePlateau = 1.4;                      // latency of Simple over several nodes
constexpr double kNvlsHop = 25;                             // us
constexpr std::array<Protocol, 3> kProtocols{Protocol::ll, Protocol::ll128, Protocol::simple};
constexpr std::array<std::string_view, 3> kProtocolNames{"ll", "ll128", "simple"};

std::size_t column(Protocol protocol) {
  return static_cast<std::size_t>(std::find(kProtocols.begin(), kProtocols.end(), protocol) -
                                  kProtocols.begin());
}

int ring_steps(Collective collective, int ranks) {
  switch (collective) {
    case Collective::all_reduce:
      return 2 * (ranks - 1);
    case Collective::all_gather:
    case Collective::reduce_scatter:
      return ranks - 1;
    default:
      return ranks;
  }
}

/// Ranks that reach each other without a NIC are a node.
struct Nodes {
  int count = 1;
  int nics = 0;              ///< of a node, in use
  double nic_bandwidth = 0;  ///< GB/s of all of them
};

Nodes nodes_of(const KernelArguments& arguments) {
  const machine::Machine* machine = arguments.machine;
  const int ranks = arguments.ranks;
  if (machine == nullptr || machine->ranks() < ranks) return {};
  int size = 1;
  while (size < ranks && machine->reach(0, size) != machine::Reach::network) ++size;
  const auto alike = [&](int rank) {
    const int first = rank / size * size;
    return (rank == first || machine->reach(first, rank) != machine::Reach::network) &&
           (first == 0 || machine->reach(0, rank) == machine::Reach::network);
  };
  for (int rank = 0; rank < ranks; ++rank) {
    if (ranks % size != 0 || !alike(rank))
      throw Failure(fmt::format("'{}' takes nodes of equally many ranks, one after the other",
                                arguments.name),
                    kOption, "--ranks chooses and orders them");
  }
  Nodes nodes{.count = ranks / size};
  std::set<machine::NodeId> seen;
  for (int rank = 0; nodes.count > 1 && rank < size; ++rank) {
    Rate slowest{INT64_MAX};
    std::optional<machine::NodeId> nic;
    for (const machine::LinkId link : machine->routes(rank, size + rank).path(0)) {
      const machine::NodeId to = machine->links[static_cast<std::size_t>(link)].to;
      const Rate rate = machine->class_of(link).bandwidth;
      if (!rate.is_ideal()) slowest = std::min(slowest, rate);
      if (!nic && machine->nodes[static_cast<std::size_t>(to)].kind == machine::NodeKind::nic)
        nic = to;
    }
    if (!nic || !seen.insert(*nic).second) continue;
    ++nodes.nics;
    nodes.nic_bandwidth += static_cast<double>(slowest.bytes_per_second) / 1e9;
  }
  return nodes;
}

bool has_nvls(const KernelArguments& arguments) {
  if (arguments.ranks <= 2 || generation(arguments.machine).nvls_channels == 0) return false;
  if (arguments.machine == nullptr || arguments.machine->ranks() < arguments.ranks) return false;
  std::vector<int> all;
  for (int rank = 0; rank < arguments.ranks; ++rank) all.push_back(rank);
  return !arguments.machine->multicast_switches(all).empty();
}

double ring_bandwidth(const Generation& found, const Nodes& nodes, Protocol protocol) {
  const double bus =
      nodes.count > 1 ? std::min(found.ring_bandwidth, nodes.nic_bandwidth) : found.ring_bandwidth;
  if (protocol == Protocol::ll)
    return std::min(found.ll_bandwidth.at(static_cast<std::size_t>(std::min(nodes.count, 3) - 1)),
                    bus / 2);
  if (protocol == Protocol::ll128)
    return std::min(bus * 0.92, found.ll128_channel * found.channels / 2);
  return bus;
}

/// Rings of a node's own channels, or two for each of its NICs, from Hopper on at least 16.
int channels_of(const Generation& found, const Nodes& nodes) {
  if (nodes.count == 1) return found.channels;
  const int channels = 2 * nodes.nics;
  return found.nvls_channels > 0 && channels < 16 ? 2 * channels : channels;
}

// topoGetAlgoInfo (src/enqueue.cc): fewer channels, then fewer threads, until every thread has
// enough to do.
void shrink(NcclChoice& choice, const KernelArguments& arguments) {
  const std::int64_t size = arguments.size.count;
  const std::int64_t least = choice.protocol == Protocol::simple ? 64
                             : choice.protocol == Protocol::ll   ? 8 * arguments.ranks
                                                                 : 8;  // src/include/comm.h
  while (choice.channels > 1 && size < choice.channels * choice.threads * least) --choice.channels;
  while (choice.threads % 128 == 0 && size < choice.channels * choice.threads * least)
    choice.threads /= 2;
  choice.threads = std::max(choice.threads, 96);
}

// scheduleCollTasksToPlan (src/enqueue.cc): a channel has a cell of 32 KiB of traffic at least.
void limit_to_cells(NcclChoice& choice, const KernelArguments& arguments, Collective collective) {
  const std::int64_t traffic =
      (collective == Collective::all_reduce ? 2 : 1) * (choice.protocol == Protocol::ll ? 4 : 1);
  const std::int64_t cell = 32 * 1024 / traffic;
  const std::int64_t cells = (arguments.size.count + cell - 1) / cell;
  choice.channels = static_cast<int>(std::min<std::int64_t>(choice.channels, cells));
}

int given_or(int chosen, const KernelArguments& arguments, const std::string& parameter,
             std::int64_t least, std::int64_t most) {
  const std::int64_t given = arguments.number(parameter);
  if (given == 0) return chosen;
  if (given < least || given > most)
    throw Failure(fmt::format("parameter '{}' cannot be {}", parameter, given), kOption,
                  fmt::format("it is a number from {} to {}, or 0", least, most));
  return static_cast<int>(given);
}

}  // namespace

double nccl_time(const KernelArguments& arguments, Collective collective, NcclAlgorithm algorithm,
                 Protocol protocol) {
  const Generation& found = generation(arguments.machine);
  const Nodes nodes = nodes_of(arguments);
  const int steps = ring_steps(collective, arguments.ranks);
  const double share = static_cast<double>(arguments.ranks) / steps;
  const double kilobytes = static_cast<double>(arguments.size.count) / 1000;
  if (algorithm == NcclAlgorithm::nvls) {
    if (protocol != Protocol::simple || collective != Collective::all_reduce ||
        !has_nvls(arguments))
      return -1;
    const double heads = arguments.ranks;
    const double bus =
        found.ring_bandwidth * found.nvls_efficiency * (heads - 1) / heads * 2 * share;
    return kNvlsHop + kilobytes / bus;
  }
  const std::size_t at = column(protocol);
  const int far = nodes.count == 1 ? 0 : ring_steps(collective, nodes.count);
  const double hop =
      kRingHop.at(at) * (nodes.count > 1 && protocol == Protocol::ll ? kLlNextToNet : 1);
  double latency = kRingBase.at(at) + (steps - far) * hop + far * kNetHop.at(at);
  const bool plateau = nodes.count > 1 && protocol == Protocol::simple &&
                       collective == Collective::all_reduce &&
                       arguments.size.count >= 64LL * channels_of(found, nodes) * arguments.ranks;
  if (plateau) latency *= kSimplePlateau;
  return latency + kilobytes / (ring_bandwidth(found, nodes, protocol) * share);
}

NcclChoice choose_nccl(const KernelArguments& arguments, Collective collective) {
  const Generation& found = generation(arguments.machine);
  const std::string& protocol = arguments.word("protocol");
  const std::string& algorithm =
      collective == Collective::all_reduce ? arguments.word("algorithm") : "auto";
  NcclChoice choice;
  double best = -1;
  for (const NcclAlgorithm a : {NcclAlgorithm::ring, NcclAlgorithm::nvls}) {
    if (algorithm != "auto" && (algorithm == "nvls") != (a == NcclAlgorithm::nvls)) continue;
    for (const Protocol p : kProtocols) {
      if (protocol != "auto" && protocol != kProtocolNames.at(column(p))) continue;
      const double time = nccl_time(arguments, collective, a, p);
      if (time < 0 || (best >= 0 && time >= best)) continue;
      best = time;
      choice.algorithm = a;
      choice.protocol = p;
    }
  }
  if (best < 0)
    throw Failure(fmt::format("NCCL has no NVLS for {} ranks here with protocol {}",
                              arguments.ranks, protocol),
                  kOption,
                  "NVLS needs more than 2 ranks, a machine whose switch can multicast, and "
                  "protocol simple");
  choice.channels = channels_of(found, nodes_of(arguments));
  if (choice.algorithm == NcclAlgorithm::nvls) {
    choice.channels = found.nvls_channels;
    choice.threads = 640;
  } else {
    choice.threads = choice.protocol == Protocol::ll128 ? 640 : 512;
    shrink(choice, arguments);
    limit_to_cells(choice, arguments, collective);
    if (choice.protocol == Protocol::simple) choice.threads += 32;  // the warp that posts
  }
  choice.channels = given_or(choice.channels, arguments, "channels", 1, 64);  // MAXCHANNELS
  choice.threads = given_or(choice.threads, arguments, "threads", 64, 1024);
  return choice;
}

NcclChoice choose_nccl_peer(const KernelArguments& arguments, Bytes bytes) {
  if (nodes_of(arguments).count > 1)
    throw Failure(fmt::format("'{}' is NCCL inside one node", arguments.name), kOption,
                  "give fewer ranks, or name the algorithm: all-to-all/direct");
  const auto all = static_cast<unsigned>(generation(arguments.machine).channels);
  unsigned most = std::bit_ceil(all);  // src/graph/paths.cc: halved until all peers have theirs
  while (most > 1 && most * static_cast<unsigned>(arguments.ranks) > std::bit_ceil(all)) most /= 2;
  const std::int64_t parts = (bytes.count + 64 * 1024 - 1) / (64 * 1024);
  NcclChoice choice;
  choice.channels = static_cast<int>(std::clamp<std::int64_t>(parts, 1, most));
  while (choice.channels < static_cast<int>(most) && bytes.count > choice.channels * (16LL << 20))
    choice.channels *= 2;
  choice.channels = given_or(choice.channels, arguments, "channels", 1, most);
  const std::string& protocol = arguments.word("protocol");
  const bool small = bytes.count <= choice.channels * (16LL << 10);
  choice.protocol =
      protocol == "ll" || (protocol == "auto" && small) ? Protocol::ll : Protocol::simple;
  // A workgroup of 640 threads serves a send and a receive at once.
  choice.threads = 320;
  return choice;
}

}  // namespace hemiola::program
