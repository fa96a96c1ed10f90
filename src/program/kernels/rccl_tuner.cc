#include "program/kernels/rccl_tuner.h"

#include <algorithm>
#include <array>
#include <bit>
#include <initializer_list>
#include <string>

#include "machine/machine.h"

namespace hemiola::program {
namespace {

using PerProtocol = std::array<double, 3>;  ///< LL, LL128, Simple
/// Shares of the bandwidth at 64 B, 128 B, ... 4 GiB.
using Shares = std::array<std::array<double, 27>, 3>;

std::size_t rccl_column(Protocol protocol) {
  return protocol == Protocol::ll ? 0 : protocol == Protocol::ll128 ? 1 : 2;
}

/// Bytes per rank above which, and up to which, a protocol is taken.
struct Range {
  std::int64_t above = 0, up_to = -1;
  bool holds(std::int64_t bytes) const { return bytes > above && bytes <= up_to; }
};
/// Over several nodes. Without LL128's range the tuner decides.
struct Cutoffs {
  Collective collective = Collective::custom;
  Range ll, ll128;
  std::int64_t thread_ll = 0, thread_ll128 = 0;  ///< bytes per thread and rank; 0: as everywhere
};

constexpr PerProtocol kRcclBase{12.0, 12.0, 17.0};  // us, rings and trees
constexpr PerProtocol kRcclRingHop{0.8, 0.8, 2.1};  // over xGMI
constexpr PerProtocol kRcclTreeHop{0.9, 0.9, 2.3};
constexpr PerProtocol kRcclRingNetHop{9.5, 9.5, 320.0};  // over NICs
constexpr PerProtocol kRcclTreeNetHop{10.5, 10.5, 25.0};
constexpr PerProtocol kRingRatio{0.08, 0.08, 1.00};     // of the links' bandwidth
constexpr PerProtocol kTreeRatio{0.06, 0.06, 0.11};     // on two nodes and fewer,
constexpr PerProtocol kTreeRatioFar{0.06, 0.06, 0.59};  // on more
constexpr double kBroadcastLl = 1.65;  // more of LL in broadcast and reduce of one node
constexpr double kXgmiLink = 48.0;     // GB/s (GFX94X_XGMI_WIDTH, GFX95X_XGMI_WIDTH)
constexpr double kHostPost = 2.0;      // us, hosts of AMD (getNetOverhead)
constexpr double kLl128Far = 3.8;  // all-reduce of more than two nodes: LL128 up to this much more

}  // namespace

struct RcclModel {
  Shares tree, ring;  ///< rings: over several nodes only
  std::array<Cutoffs, 5> cutoffs;
  // On one node: LL up to so many bytes per rank.
  std::int64_t gather_ll = 0, scatter_ll = 0;
  int unroll_alone = 2, unroll = 2;
};

namespace {

constexpr RcclModel kMi300{
    .tree = {{{.1, .1, .1, .1, .1, .1, 1., 1., 1., 1., 1., .6, 1., .9,
               1., 1., .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1},
              {.1, .1, .1, .1, .1, .1, 1., 1., 1., 1., 1., .6, 1., .9,
               1., 1., .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1},
              {.1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1,
               .1, .7, 1., 1., 1., 1., 1., .7, .7, .5, .6, .6, .6}}},
    .ring = {{{.1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, 1., .2, 1.,
               .4, .4, .1, .2, .2, .1, .1, .1, .1, .1, .1, .1, .1},
              {.1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, 1., .2, 1.,
               .4, .4, .1, .2, .2, .1, .1, .1, .1, .1, .1, .1, .1},
              {.1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1,
               .1, .1, .1, .1, .1, .1, .1, .1, 1., .8, 1., 1., 1.}}},
    .cutoffs = {{{Collective::reduce_scatter, {0, 655360}, {131072, 3211264}, 16, 64},
                 {Collective::all_gather, {0, 98304}, {98304, 5046272}, 16, 64},
                 {Collective::all_reduce, {0, 1048576}, {1048576, 9437184}, 0, 0},
                 {},
                 {}}},
    .scatter_ll = 352128};

constexpr RcclModel kMi350{
    .tree = {{{.1, .1, .1, .1, .1, .1, 1., 1., 1., 1., 1., .6, 1., .9,
               1., 1., .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1},
              {.1, .1, .1, .1, .1, .1, 1., 1., 1., 1., 1., .6, 1., .9,
               1., 1., 1., 1., 1., 2., .1, .1, .1, .1, .1, .1, .1},
              {.1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1,
               .1, .7, 1., .1, .1, .1, .9, .9, .7, .8, .6, .6, .6}}},
    .ring = {{{.1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, 1., .2, 1.,
               .4, .4, .1, .2, .2, .1, .1, .1, .1, .1, .1, .1, .1},
              {.1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, 1., .2, 1.,
               .4, .4, .1, .2, .1, .1, .1, .1, .1, .1, .1, .1, .1},
              {.1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1,
               .1, .1, .1, .1, .1, .1, .1, .1, 1., .8, .8, 1., 1.}}},
    .cutoffs = {{{Collective::reduce_scatter, {0, 131071}, {131071, 4194304}, 16, 64},
                 {Collective::all_gather, {0, 7}, {7, 8388608}, 16, 64},
                 {Collective::all_reduce, {0, 131071}, {131071, 17660227}, 0, 0},
                 {Collective::reduce, {0, 16383}, {16383, 16777216}, 0, 0},
                 {Collective::broadcast, {0, 2048}, {2048, 16777216}, 0, 0}}},
    .gather_ll = 88448,
    .scatter_ll = 1048576,
    .unroll_alone = 1};

double share_at(const std::array<double, 27>& shares, std::int64_t bytes) {
  const auto powers = index(std::bit_width(static_cast<std::uint64_t>(bytes) >> 6));
  return shares[std::min(std::max<std::size_t>(powers, 1) - 1, shares.size() - 1)];
}

bool one_to_all(Collective collective) {
  return collective == Collective::broadcast || collective == Collective::reduce;
}

/// Of all links of a GPU inside its node, which is what a graph's channels share.
double links_of(const NcclNodes& nodes) {
  return nodes.size > 1 ? kXgmiLink * (nodes.size - 1) : nodes.nic_bandwidth;
}

double rccl_ring_latency(const NcclNodes& nodes, Collective collective, Protocol protocol) {
  const std::size_t at = rccl_column(protocol);
  const int ranks = nodes.count * nodes.size, steps = ring_steps(collective, ranks);
  if (one_to_all(collective)) {  // Simple as a tree's: it waits for chunks
    const bool simple = protocol == Protocol::simple;
    if (nodes.count == 1) return steps * (simple ? kRcclTreeHop : kRcclRingHop).at(at);
    return steps * (simple ? kRcclTreeNetHop : kRcclRingNetHop).at(at);
  }
  const double post = nodes.count == 1 ? 0 : kHostPost * (protocol == Protocol::simple ? 3 : 1);
  const int far = nodes.count == 1 ? 0 : ring_steps(collective, nodes.count);
  return (steps - far) * std::max(kRcclRingHop.at(at), post) +
         far * (nodes.size == 1 ? kRcclTreeNetHop : kRcclRingNetHop).at(at);
}

const Cutoffs* cutoffs_of(const RcclModel& model, Collective collective) {
  for (const Cutoffs& cutoffs : model.cutoffs)
    if (collective != Collective::custom && cutoffs.collective == collective) return &cutoffs;
  return nullptr;
}

}  // namespace

const RcclModel* rccl_model(const machine::Machine* machine) {
  if (machine == nullptr) return nullptr;
  const std::string& name = machine->model(0).name;
  if (name.starts_with("mi300") || name.starts_with("mi325")) return &kMi300;
  if (name.starts_with("mi350") || name.starts_with("mi355")) return &kMi350;
  return nullptr;
}

double rccl_time(const RcclModel& model, const NcclNodes& nodes, Collective collective,
                 NcclAlgorithm algorithm, Protocol protocol, std::int64_t bytes) {
  const std::size_t at = rccl_column(protocol);
  const bool alone = nodes.count == 1;
  const double kilobytes = static_cast<double>(bytes) / 1000;
  // LL128 only in models with NICs (ll128Enabled).
  if (is_nvls(algorithm) || (protocol == Protocol::ll128 && alone)) return -1;
  if (algorithm == NcclAlgorithm::tree) {
    if (collective != Collective::all_reduce || (alone && protocol == Protocol::simple)) return -1;
    const double bus = links_of(nodes) * (nodes.count > 2 ? kTreeRatioFar : kTreeRatio).at(at) *
                       share_at(model.tree.at(at), bytes);
    const int levels = static_cast<int>(std::bit_width(static_cast<unsigned>(nodes.count))) - 1;
    return kRcclBase.at(at) +
           2 * ((nodes.size - 1) * kRcclTreeHop.at(at) + levels * kRcclTreeNetHop.at(at)) +
           kilobytes / (bus / 2);
  }
  const int ranks = nodes.count * nodes.size;
  double bus = links_of(nodes) * kRingRatio.at(at);
  if (alone && protocol == Protocol::ll && one_to_all(collective)) bus *= kBroadcastLl;
  if (!alone) bus *= share_at(model.ring.at(at), bytes);
  return kRcclBase.at(at) + rccl_ring_latency(nodes, collective, protocol) +
         kilobytes / (bus * ranks / ring_steps(collective, ranks));
}

std::optional<Protocol> rccl_protocol(const RcclModel& model, const NcclNodes& nodes,
                                      Collective collective, std::int64_t bytes) {
  const std::int64_t each =
      collective == Collective::all_reduce ? bytes : bytes / (nodes.count * nodes.size);
  if (nodes.count == 1) {
    const std::int64_t most = collective == Collective::all_gather       ? model.gather_ll
                              : collective == Collective::reduce_scatter ? model.scatter_ll
                                                                         : 0;
    if (most > 0 && each <= most) return Protocol::ll;
    return {};
  }
  const Cutoffs* cutoffs = cutoffs_of(model, collective);
  if (cutoffs == nullptr) return {};
  Range ll128 = cutoffs->ll128;
  if (collective == Collective::all_reduce && nodes.count > 2)
    ll128.up_to = static_cast<std::int64_t>(static_cast<double>(ll128.up_to) * kLl128Far);
  if (ll128.holds(each)) return Protocol::ll128;
  return cutoffs->ll.holds(each) ? Protocol::ll : Protocol::simple;
}

// 28 rings of one node of eight, 4 for each link: fewer GPUs have fewer in proportion (assumed). 64
// over several nodes. They are duplicated where that makes no more than 64 (ncclTopoPostset of
// src/graph/connect.cc).
int rccl_channels(const NcclNodes& nodes) {
  const int channels = nodes.count > 1 ? 64 : 4 * std::max(1, nodes.size - 1);
  return 2 * channels <= 64 ? 2 * channels : channels;
}

std::int64_t rccl_least_per_thread(const RcclModel& model, const NcclNodes& nodes,
                                   Collective collective, NcclAlgorithm algorithm,
                                   Protocol protocol) {
  const int ranks = nodes.count * nodes.size;
  const Cutoffs* cutoffs = nodes.count > 1 ? cutoffs_of(model, collective) : nullptr;
  if (cutoffs != nullptr && protocol != Protocol::simple) {
    const std::int64_t tuned =
        protocol == Protocol::ll ? cutoffs->thread_ll : cutoffs->thread_ll128;
    if (tuned > 0) return tuned * ranks;
  }
  if (protocol == Protocol::simple) return 64;
  return protocol == Protocol::ll && algorithm == NcclAlgorithm::ring ? 8 * ranks : 8;
}

int rccl_unroll(const RcclModel& model, const NcclNodes& nodes) {
  return nodes.count == 1 ? model.unroll_alone : model.unroll;
}

namespace {

/// While there are fewer chunks than ..., down to so many KiB.
struct Halving {
  std::int64_t chunks = 0, least = 0;
};

Bytes halved(Bytes size, int channels, Bytes step, std::initializer_list<Halving> rules) {
  std::int64_t chunk = step.count;
  for (const Halving& rule : rules)
    while (size.count / (channels * chunk) < rule.chunks && chunk > rule.least << 10) chunk /= 2;
  return {chunk};
}

}  // namespace

Bytes rccl_tree_chunk(Bytes size, int channels, Bytes step, const NcclNodes& nodes) {
  // As far as RCCL knows: the chain of a node, and levels over nodes (src/graph/connect.cc).
  const std::int64_t depth =
      nodes.size - 1 + std::bit_width(static_cast<unsigned>(nodes.count)) - 1;
  return halved(size, channels, step, {{depth * 8, 128}, {depth * 4, 64}, {depth, 32}});
}

Bytes rccl_chain_chunk(Bytes size, int channels, Bytes step) {
  return halved(size, channels, step, {{64, 256}, {32, 128}, {16, 64}, {8, 32}});
}

}  // namespace hemiola::program
