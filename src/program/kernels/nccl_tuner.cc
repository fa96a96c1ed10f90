// NCCL's tuner: a latency and a bandwidth for every algorithm and protocol; the least time wins.
// Numbers without another source: NVIDIA/nccl 2.30, src/graph/tuning.cc.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

#include "machine/machine.h"
#include "machine/network_routing.h"
#include "program/kernels/nccl.h"
#include "program/kernels/rccl_tuner.h"

namespace hemiola::program {
namespace {

/// What NCCL finds on a node of such GPUs behind NVSwitches.
struct Generation {
  double ring_bandwidth;  ///< GB/s of all rings (src/graph/search.cc: channels x speed)
  int channels;           ///< in use, and in the graph half as many (src/graph/connect.cc)
  std::array<double, 3> ll_bandwidth;  ///< cap of LL: one node; by the hosts' CPUs two, more
  double ll128_channel;                ///< cap of LL128 per channel of the graph
  std::array<double, 3> tree_channel;  ///< cap of trees per channel: one node, two, more
  std::array<double, 3> tree_ll128_channel;
  double host_post;  ///< us that a host takes for a message (getNetOverhead)
  double nvls_efficiency;
  int nvls_channels;   ///< src/transport/nvls.cc
  bool pulls = false;  ///< src/graph/paths.cc: "Enable P2P Read for Ampere/NVLink only"
  std::array<double, 2> nvls_tree_channel{};  ///< cap of NVLSTree per head: two nodes, more
  bool sm100 = false;  ///< NVLSTree has channels and chunks by the NICs (src/transport/nvls.cc)
  bool nvls_tree_sags = false;  ///< its bandwidth is that of kTreeShare: on x86 hosts
};

// Hosts as DGX have them: of AMD with A100, of Intel else.
constexpr Generation kVolta{
    240, 24, {39.0, 39.0, 20.4}, 20.0, {26.5, 18.5, 10.0}, {20.0, 20.0, 20.0}, 1, 0, 0};
constexpr Generation kAmpere{
    // 12 x 20
    240, 24, {87.7, 22.5, 19.0}, 20.0, {24.0, 23.6, 17.8}, {20.0, 20.0, 20.0}, 2, 0, 0, true};
constexpr Generation kHopper{
    // 12 x 30
    360, 24,    {141.0, 39.0, 20.4}, 36.7, {38.7, 41.4, 36.0}, {36.7, 36.7, 29.0}, 1, 0.85,
    16,  false, {57.7, 45.5}};
// Rings of 16 x 45.
constexpr Generation kBlackwell{720,
                                32,
                                {282.0, 39.0, 20.4},
                                40.0,
                                {70.0, 42.8, 24.0},
                                {55.6, 31.67, 20.0},
                                1,
                                0.74,
                                24,
                                false,
                                {96.0, 80.0},
                                true,
                                true};
constexpr Generation kGraceBlackwell = [] {
  Generation grace = kBlackwell;
  grace.nvls_tree_sags = false;
  return grace;
}();

/// Null: a GPU that NCCL's tuner does not know.
const Generation* known_generation(const std::string& gpu) {
  if (gpu == "v100") return &kVolta;
  if (gpu == "a100") return &kAmpere;
  if (gpu == "h100" || gpu == "h100-500w" || gpu == "h200") return &kHopper;
  if (gpu == "b200") return &kBlackwell;
  if (gpu == "gb200") return &kGraceBlackwell;
  return nullptr;
}

/// Hopper's where no machine is known, or its GPUs are not: see tuner_warnings().
const Generation& generation(const machine::Machine* machine) {
  const Generation* known = machine == nullptr ? nullptr : known_generation(machine->model(0).name);
  return known == nullptr ? kHopper : *known;
}

// LL, LL128, Simple.
constexpr std::array<double, 3> kRingBase{6.6, 14.0, 8.4};  // us
constexpr std::array<double, 3> kRingHop{0.6, 1.9, 3.4};    // us, over NVLink
constexpr std::array<double, 3> kNetHop{2.7, 4.0, 14.0};    // us, over NICs
constexpr std::array<double, 3> kTreeBase{6.8, 14.0, 8.4};
constexpr std::array<double, 3> kTreeHop{0.6, 1.25, 4.0};
constexpr std::array<double, 3> kTreeNetHop{5.0, 8.5, 14.0};
// "Trees are not perfectly sticking to the model for medium sizes": of their bandwidth at 64 B, 128
// B, ... 256 MiB.
constexpr std::array<std::array<double, 23>, 3> kTreeShare{
    {{1., 1., 1., 1., .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1., 1., 1., 1.},
     {1., 1., 1., 1., 1., .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1., 1.},
     {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9}}};
constexpr double kSimplePlateau = 1.4;  // latency of Simple over several nodes
constexpr double kNvlsHop = 25;         // us
constexpr double kNvlsNetHop = 20.9;    // us
constexpr std::array<Protocol, 3> kTunedProtocols{Protocol::ll, Protocol::ll128, Protocol::simple};
constexpr std::array<std::string_view, 3> kTunedProtocolNames{"ll", "ll128", "simple"};

constexpr std::array<std::pair<NcclAlgorithm, std::string_view>, 4> kAlgorithms{
    {{NcclAlgorithm::ring, "ring"},
     {NcclAlgorithm::tree, "tree"},
     {NcclAlgorithm::nvls, "nvls"},
     {NcclAlgorithm::nvls_tree, "nvlstree"}}};

std::size_t column(Protocol protocol) {
  return index(std::ranges::find(kTunedProtocols, protocol) - kTunedProtocols.begin());
}

/// Whether the switch of every node can multicast, among more than two ranks.
bool has_nvls(const KernelArguments& arguments, const NcclNodes& nodes) {
  if (arguments.ranks <= 2 || generation(arguments.machine.get()).nvls_channels == 0) return false;
  if (arguments.machine == nullptr || arguments.machine->ranks() < arguments.ranks) return false;
  for (int node = 0; node < nodes.count; ++node) {
    std::vector<int> all(index(nodes.size));
    std::iota(all.begin(), all.end(), node * nodes.size);
    if (nodes.size == 1 || arguments.machine->multicast_switches(all).empty()) return false;
  }
  return nodes.count == 1 || nodes.heads.size() >= 2;
}

/// Rings and trees of the search graph: a node's own, or so many for each of its NICs as it carries
/// at the highest speed of one (the speed arrays of src/graph/search.cc), at least one.
int graph_channels(const Generation& found, const NcclNodes& nodes) {
  if (nodes.count == 1) return found.channels / 2;
  constexpr int kMost = 32;  // half of MAXCHANNELS
  const int heads = static_cast<int>(nodes.heads.size());
  const double speed = found.sm100 ? 96 : 48;
  const int each = std::max(1, static_cast<int>(nodes.nic_bandwidth / heads / speed));
  return std::max(heads, std::min(kMost, heads * each));
}

/// Twice as many are used; over several nodes from Hopper on at least 16.
int channels_of(const Generation& found, const NcclNodes& nodes) {
  const int channels = 2 * graph_channels(found, nodes);
  if (nodes.count == 1) return channels;
  return found.nvls_channels > 0 && channels < 16 ? 2 * channels : channels;
}

/// Of the channels in use those with the first tree. RCCL has as many with the second where it has
/// too many to duplicate them, too (connectTrees of its src/graph/connect.cc).
int first_trees(const KernelArguments& arguments, const NcclNodes& nodes) {
  return rccl_model(arguments.machine.get()) != nullptr
             ? rccl_channels(nodes) / 2
             : graph_channels(generation(arguments.machine.get()), nodes);
}

int channels_of(const KernelArguments& arguments, const NcclNodes& nodes) {
  return rccl_model(arguments.machine.get()) != nullptr
             ? rccl_channels(nodes)
             : channels_of(generation(arguments.machine.get()), nodes);
}

std::size_t scale_of(const NcclNodes& nodes) {
  return index(std::min(nodes.count, 3) - 1);
}

double bus_bandwidth(const Generation& found, const NcclNodes& nodes) {
  return nodes.count > 1 ? std::min(found.ring_bandwidth, nodes.nic_bandwidth)
                         : found.ring_bandwidth;
}

double ring_bandwidth(const Generation& found, const NcclNodes& nodes, Protocol protocol) {
  const double bus = bus_bandwidth(found, nodes);
  if (protocol == Protocol::ll) return std::min(found.ll_bandwidth.at(scale_of(nodes)), bus / 2);
  if (protocol == Protocol::ll128)
    return std::min(bus * 0.92, found.ll128_channel * graph_channels(found, nodes));
  return bus;
}

/// `far`: steps from node to node.
double ring_latency(const Generation& found, const NcclNodes& nodes, Protocol protocol, int steps,
                    int far) {
  const std::size_t at = column(protocol);
  const double post = found.host_post * (protocol == Protocol::simple ? 3 : 1);
  const double hop = nodes.count == 1 ? kRingHop.at(at) : std::max(kRingHop.at(at), post);
  // With a rank per node nothing hides the network.
  const double net = nodes.size == 1 ? kTreeNetHop.at(at) : kNetHop.at(at);
  return kRingBase.at(at) + (steps - far) * hop + far * net;
}

/// The share of trees at a size, as far as `sizes` powers of two from 64 B go; then all.
double tree_share(std::int64_t size, Protocol protocol, std::size_t sizes) {
  const auto power = index(std::bit_width(static_cast<std::uint64_t>(size) >> 6));
  const auto& shares = kTreeShare.at(column(protocol));
  return power >= 1 && power <= sizes ? shares.at(std::min(power, shares.size()) - 1) : 1;
}

double tree_time(const KernelArguments& arguments, const Generation& found, const NcclNodes& nodes,
                 Protocol protocol) {
  const std::size_t at = column(protocol);
  const int graph = graph_channels(found, nodes);
  double bus =
      std::min(bus_bandwidth(found, nodes) * 0.92, graph * found.tree_channel.at(scale_of(nodes)));
  if (protocol == Protocol::ll) bus = std::min(bus / 3.8, found.ll_bandwidth.at(scale_of(nodes)));
  if (protocol == Protocol::ll128)
    bus = std::min(bus * (nodes.count == 1 ? 7.0 / 9 : 120.0 / 128),
                   graph * found.tree_ll128_channel.at(scale_of(nodes)));
  if (nodes.size == 1) bus *= 0.85;  // up and down through one GPU
  const std::int64_t size = arguments.size.count;
  bus *= tree_share(size, protocol, kTreeShare.at(at).size());
  const int levels = std::bit_width(static_cast<unsigned>(nodes.count)) - 1;
  const double latency =
      kTreeBase.at(at) + 2 * ((nodes.size - 1) * kTreeHop.at(at) + levels * kTreeNetHop.at(at));
  return latency + static_cast<double>(size) / 1000 / (bus / 2);
}

double nvls_time(const KernelArguments& arguments, const Generation& found,
                 const NcclNodes& nodes) {
  const double ratio =
      static_cast<double>(arguments.ranks) / ring_steps(Collective::all_reduce, arguments.ranks);
  const auto heads = static_cast<double>(nodes.count == 1 ? nodes.size : nodes.heads.size());
  const double switched = 2 * found.nvls_efficiency * (heads - 1) / heads;
  const double kilobytes = static_cast<double>(arguments.size.count) / 1000;
  if (nodes.count == 1) return kNvlsHop + kilobytes / (found.ring_bandwidth * switched * ratio);
  const double nic = nodes.nic_bandwidth / heads;
  const bool two = nodes.count == 2;
  double bus =
      std::min(heads, static_cast<double>(kMostNvlsHeads)) *
      std::min({nic * switched, nic * (two ? 2 : 1), found.nvls_tree_channel.at(two ? 0 : 1)});
  const std::int64_t size = arguments.size.count;
  if (found.nvls_tree_sags) bus *= tree_share(size, Protocol::simple, kTreeShare[0].size() + 1);
  const int levels = std::bit_width(static_cast<unsigned>(nodes.count)) - 1;
  return kNvlsHop + 2 * levels * kNvlsNetHop + kilobytes / (bus * ratio);
}

/// Channels of NVLS over nodes, and the data of a chunk at most (src/transport/nvls.cc). NICs and
/// GPUs are at one PCIe switch.
void choose_nvls_tree(NcclChoice& choice, const Generation& found, const NcclNodes& nodes) {
  choice.channels = found.nvls_channels;
  std::int64_t most = nodes.count >= 4 ? 64 : 128;  // KiB
  if (found.sm100) {
    const double nic = nodes.nic_bandwidth / static_cast<double>(nodes.heads.size());
    choice.channels = 32;
    if (nodes.count == 2 && nic >= 48) {
      most = nodes.size <= 4 ? 256 : nodes.size >= 16 || (nodes.size <= 8 && nic < 96) ? 64 : 128;
    } else if (nic >= 96) {
      choice.channels = nodes.size <= 8 ? 24 : 32;
      most = nodes.size <= 8 ? 256 : nodes.size < 32 ? 128 : 64;
    } else if (nic >= 48) {
      choice.channels = 24;
      most = 64;
    }
  }
  choice.step = KiB(most);
}

// topoGetAlgoInfo (src/enqueue.cc): fewer channels, then fewer threads, until every thread has
// enough to do.
void shrink(NcclChoice& choice, const KernelArguments& arguments, Collective collective) {
  const std::int64_t size = arguments.size.count;
  if (const RcclModel* rccl = rccl_model(arguments.machine.get())) {  // fewer channels, all threads
    const std::int64_t enough =
        choice.threads * rccl_least_per_thread(*rccl, nccl_nodes(arguments), collective,
                                               choice.algorithm, choice.protocol);
    while (choice.channels > 1 && size < choice.channels * enough) --choice.channels;
    return;
  }
  const std::int64_t least =
      choice.protocol == Protocol::simple ? 64
      : choice.protocol == Protocol::ll && choice.algorithm == NcclAlgorithm::ring
          ? 8 * arguments.ranks
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

NcclNodes nccl_nodes(const KernelArguments& arguments) {
  const machine::Machine* machine = arguments.machine.get();
  const int ranks = arguments.ranks;
  if (machine == nullptr || machine->ranks() < ranks) return {.size = ranks};
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
  NcclNodes nodes{.count = ranks / size, .size = size};
  if (nodes.count > 1) nodes.heads = machine::nic_owners(*machine, size);
  for (const int head : nodes.heads) {
    Rate slowest{INT64_MAX};
    for (const machine::LinkId link : machine->routes(head, size + head).path(0)) {
      const Rate rate = machine->class_of(link).bandwidth;
      if (!rate.is_ideal()) slowest = std::min(slowest, rate);
    }
    nodes.nic_bandwidth += static_cast<double>(slowest.bytes_per_second) / 1e9;
  }
  return nodes;
}

bool nccl_pulls(const KernelArguments& arguments) {
  return arguments.machine != nullptr && generation(arguments.machine.get()).pulls;
}

Diagnostics tuner_warnings(const machine::Machine* machine) {
  Diagnostics warnings;
  if (machine == nullptr || rccl_model(machine) != nullptr) return warnings;
  const std::string& gpu = machine->model(0).name;
  if (known_generation(gpu) == nullptr)
    warnings.warning(
        fmt::format("neither NCCL's tuner nor RCCL's knows the GPU '{}'", gpu), {},
        "algorithm, protocol and channels are chosen as on an H100; --param protocol=..., "
        "--param channels=... and --param threads=... choose them");
  return warnings;
}

double nccl_time(const KernelArguments& arguments, Collective collective, NcclAlgorithm algorithm,
                 Protocol protocol) {
  if (const RcclModel* rccl = rccl_model(arguments.machine.get()))
    return rccl_time(*rccl, nccl_nodes(arguments), collective, algorithm, protocol,
                     arguments.size.count);
  const Generation& found = generation(arguments.machine.get());
  const NcclNodes nodes = nccl_nodes(arguments);
  const int steps = ring_steps(collective, arguments.ranks);
  const double share = static_cast<double>(arguments.ranks) / steps;
  const double kilobytes = static_cast<double>(arguments.size.count) / 1000;
  if (is_nvls(algorithm)) {
    const bool is_tree = algorithm == NcclAlgorithm::nvls_tree;
    if (protocol != Protocol::simple || collective != Collective::all_reduce ||
        is_tree != (nodes.count > 1) || !has_nvls(arguments, nodes))
      return -1;
    return nvls_time(arguments, found, nodes);
  }
  if (algorithm == NcclAlgorithm::tree)
    return collective == Collective::all_reduce ? tree_time(arguments, found, nodes, protocol) : -1;
  const int far = nodes.count == 1 ? 0 : ring_steps(collective, nodes.count);
  double latency = ring_latency(found, nodes, protocol, steps, far);
  const bool plateau = nodes.count > 1 && protocol == Protocol::simple &&
                       collective == Collective::all_reduce &&
                       arguments.size.count >= 64LL * channels_of(found, nodes) * arguments.ranks;
  if (plateau) latency *= kSimplePlateau;
  return latency + kilobytes / (ring_bandwidth(found, nodes, protocol) * share);
}

NcclChoice choose_nccl(const KernelArguments& arguments, Collective collective) {
  const RcclModel* rccl = rccl_model(arguments.machine.get());
  const std::string& protocol = arguments.word("protocol");
  const std::string& algorithm =
      collective == Collective::all_reduce ? arguments.word("algorithm") : "auto";
  NcclChoice choice;
  double best = -1;
  for (const auto& [a, name] : kAlgorithms) {
    if (algorithm != "auto" && algorithm != name) continue;
    for (const Protocol p : kTunedProtocols) {
      if (protocol != "auto" && protocol != kTunedProtocolNames.at(column(p))) continue;
      const double time = nccl_time(arguments, collective, a, p);
      if (time < 0 || (best >= 0 && time >= best)) continue;
      best = time;
      choice.algorithm = a;
      choice.protocol = p;
    }
  }
  if (best < 0)
    throw Failure(fmt::format("NCCL has no algorithm {} for {} ranks here with protocol {}",
                              algorithm, arguments.ranks, protocol),
                  kOption,
                  "nvls needs one node, nvlstree several with two NICs and more; both more than 2 "
                  "ranks, switches that can multicast, and protocol simple");
  const NcclNodes nodes = nccl_nodes(arguments);
  choice.channels = channels_of(arguments, nodes);
  choice.trees = first_trees(arguments, nodes);
  if (rccl != nullptr) {
    choice.threads = kRcclThreads;
    choice.warp = kRcclWarp;
    if (protocol == "auto")
      choice.protocol =
          rccl_protocol(*rccl, nodes, collective, arguments.size.count).value_or(choice.protocol);
    shrink(choice, arguments, collective);
    limit_to_cells(choice, arguments, collective);
  } else if (is_nvls(choice.algorithm)) {
    const Generation& found = generation(arguments.machine.get());
    choice.channels = found.nvls_channels;
    if (nodes.count > 1) choose_nvls_tree(choice, found, nodes);
    choice.threads = 640;
  } else {
    choice.threads = choice.protocol == Protocol::ll128 ? 640 : 512;
    shrink(choice, arguments, collective);
    limit_to_cells(choice, arguments, collective);
    if (choice.algorithm == NcclAlgorithm::tree)
      choice.threads = 640;  // always
    else if (choice.protocol == Protocol::simple)
      choice.threads += 32;  // the warp that posts
  }
  choice.channels = given_or(choice.channels, arguments, "channels", 1, 64);  // MAXCHANNELS
  choice.threads = given_or(choice.threads, arguments, "threads", 64, 1024);
  return choice;
}

NcclChoice choose_nccl_peer(const KernelArguments& arguments, Bytes bytes) {
  const NcclNodes nodes = nccl_nodes(arguments);
  const auto ranks = static_cast<unsigned>(arguments.ranks);
  const unsigned all = std::bit_ceil(static_cast<unsigned>(channels_of(arguments, nodes)));
  const bool rccl = rccl_model(arguments.machine.get()) != nullptr;
  NcclChoice choice;
  if (rccl) choice.warp = kRcclWarp;
  choice.step = nodes.count > 1 ? KiB(128) : KiB(512);  // P2P_NET_CHUNKSIZE, P2P_NVL_CHUNKSIZE
  // src/graph/paths.cc: over nodes a channel for each 14 GB/s of the GPU's NIC, so many that a
  // workgroup has no more than 8 peers.
  unsigned most = all;
  if (nodes.count > 1) {
    const double nic = nodes.nic_bandwidth / static_cast<double>(nodes.heads.size());
    most = std::bit_ceil(static_cast<unsigned>(std::ceil(std::floor(nic) / 14)));
    while (most > 1 && most * ((ranks + 7) / 8) > all) most /= 2;
  }
  unsigned least = most;  // src/enqueue.cc: halved until all peers have theirs
  while (least > 1 && least * ranks > all) least /= 2;
  if (nodes.count == 1) most = least;
  const std::int64_t least_part = choice.step.count / (nodes.count > 1 ? 2 : 8);
  const std::int64_t most_part = choice.step.count * (nodes.count > 1 ? 1 : 32);
  const std::int64_t parts = (bytes.count + least_part - 1) / least_part;
  choice.channels = static_cast<int>(std::clamp<std::int64_t>(parts, 1, least));
  while (choice.channels <= static_cast<int>(most / 2) && bytes.count > choice.channels * most_part)
    choice.channels *= 2;
  choice.channels = given_or(choice.channels, arguments, "channels", 1, most);
  const std::string& protocol = arguments.word("protocol");
  const bool small = bytes.count <= choice.channels * (16LL << 10);
  choice.protocol =
      protocol == "ll" || (protocol == "auto" && small) ? Protocol::ll : Protocol::simple;
  if (choice.protocol == Protocol::ll)
    choice.step = KiB(32);
  else if (nodes.count > 1 && bytes < choice.step * 8)
    choice.step = bytes < choice.step ? KiB(32) : KiB(64);
  // A workgroup of 640 threads (RCCL: 256) serves a send and a receive at once, of each of its
  // peers.
  const unsigned peers =
      nodes.count == 1 ? 1 : (ranks * static_cast<unsigned>(choice.channels) + all - 1) / all;
  const auto warp = static_cast<unsigned>(choice.warp);
  const unsigned half = rccl ? kRcclThreads / 2 : 320;
  choice.threads = static_cast<int>(std::max(warp, half / peers / warp * warp));
  return choice;
}

}  // namespace hemiola::program
