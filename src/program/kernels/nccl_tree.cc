// NCCL's tree all-reduce (src/device/all_reduce.h runTreeSplit, src/graph/trees.cc, connect.cc): a
// double binary tree over the nodes, inside a node a chain. Part of a workgroup's warps reduce
// towards the root, the others pass the sum down.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "plan/node_paths.h"
#include "plan/templates/trees.h"
#include "program/kernels/nccl.h"
#include "program/kernels/nccl_tree.h"
#include "program/kernels/rccl_tuner.h"
#include "program/lower/lower.h"

namespace hemiola::program {
namespace {

/// Places of all ranks in the tree of a channel. A node's chain begins at a GPU with a NIC, its
/// head, which speaks with the parent node and with the second child node; the next one speaks with
/// the first (connect.cc, balanced tree). In NCCL both do so over the NIC of the channel (crossNic
/// 0 of search.cc, PXN), so messages stay on one rail. Here each GPU uses its own NIC: the first
/// child begins one NIC further, which keeps messages on rails, and loads GPUs and NICs alike over
/// all channels (where chains do not allow that, it begins at the same). `paths`: chains from each
/// head, or empty, which is head, head + 1, ...
std::vector<TreePlace> rank_places(const NcclNodes& nodes, int channel, const NcclChoice& choice,
                                   const std::vector<std::vector<int>>& paths) {
  const int turn = channel % (2 * choice.trees);
  const std::vector<int> heads = nodes.heads.empty() ? std::vector{0} : nodes.heads;
  const auto at = [](const auto& list, int i) { return list[index(i)]; };
  const std::vector<TreePlace> across = node_places(nodes.count, turn >= choice.trees);
  std::vector<int> begins(index(nodes.count),
                          TreePlace::kNone);  // by node: number of a chain
  const auto inner = [&](int begin, int position) {
    if (!paths.empty()) return at(at(paths, begin % static_cast<int>(paths.size())), position);
    return (at(heads, begin % static_cast<int>(heads.size())) + position) % nodes.size;
  };
  // The chain that begins at the second GPU of each, if so every chain is the next of one: else the
  // GPUs that several lead to would carry all there is a few levels on.
  std::vector<int> next(heads.size());
  std::vector<bool> taken(heads.size());
  for (std::size_t i = 0; i < heads.size(); ++i) {
    const auto second =
        std::ranges::find(heads, nodes.size > 1 ? inner(static_cast<int>(i), 1) : heads[i]);
    next[i] =
        second == heads.end() ? static_cast<int>(i) : static_cast<int>(second - heads.begin());
    taken[index(next[i])] = true;
  }
  if (std::ranges::find(taken, false) != taken.end()) std::iota(next.begin(), next.end(), 0);
  // Of a node, once its parent has one.
  const auto begin_of = [&](const auto& self, int node) -> int {
    int& begin = begins[index(node)];
    if (begin != TreePlace::kNone) return begin;
    const TreePlace& place = across[index(node)];
    if (place.up == TreePlace::kNone) return begin = turn;
    begin = self(self, place.up);
    if (!place.second) begin = at(next, begin % static_cast<int>(next.size()));
    return begin;
  };
  const auto rank_at = [&](int node, int position) {
    return node * nodes.size + inner(begin_of(begin_of, node), position);
  };
  std::vector<TreePlace> places(index(nodes.count * nodes.size));
  const auto join = [&](int parent, int child) {
    places[index(child)].up = parent;
    places[index(parent)].down.push_back(child);
  };
  for (int node = 0; node < nodes.count; ++node)
    for (int i = 1; i < nodes.size; ++i) join(rank_at(node, i - 1), rank_at(node, i));
  for (int node = 0; node < nodes.count; ++node) {
    const TreePlace& place = across[index(node)];
    if (place.up == TreePlace::kNone) continue;
    // With the GPU on the rail of the child's head: the first of its chain, or the second.
    const int head = rank_at(node, 0);
    join(place.up * nodes.size + head % nodes.size, head);
  }
  return places;
}

/// A step, except that with LL128 (RCCL: with Simple) it is halved while there are few for the
/// depth of the tree (src/enqueue.cc, calcCollChunking).
Bytes chunk_of(const KernelArguments& arguments, const NcclNodes& nodes, const NcclChoice& choice,
               const Fifo& fifo) {
  std::int64_t chunk = fifo.step.count;
  if (choice.protocol == Protocol::simple && rccl_model(arguments.machine.get()) != nullptr)
    return rccl_tree_chunk(arguments.size, choice.channels, fifo.step, nodes);
  if (choice.protocol != Protocol::ll128) return {chunk};
  const double steps =
      1 + std::bit_width(static_cast<unsigned>(nodes.count)) - 1 + 0.1 * nodes.size;
  const auto chunks = [&] {
    return static_cast<double>(arguments.size.count / (choice.channels * chunk));
  };
  while (chunk > (128 << 10) && chunks() < steps * 64 / nodes.size) chunk /= 2;
  while (chunk > (32 << 10) && chunks() < steps * 16 / nodes.size) chunk /= 2;
  constexpr std::int64_t kGrain = 1920;  // data of a warp's iteration
  return {chunk / kGrain * kGrain};
}

class TreeWriter : public ProgramWriter {
 public:
  TreeWriter(const KernelArguments& arguments, const NcclChoice& choice)
      : ProgramWriter(arguments, Collective::all_reduce, 1, 1),
        choice_(choice),
        type_(arguments.type),
        unroll_(nccl_unroll(choice.protocol, arguments)) {
    if (nccl_in_place(arguments)) share_memory();
    program_.protocol = choice.protocol;
    program_.fifo = nccl_fifo(choice.protocol);
    program_.fifo.pulls = nccl_pulls(arguments);
    const NcclNodes nodes = nccl_nodes(arguments);
    chunk_ = chunk_of(arguments, nodes, choice, program_.fifo);
    std::vector<std::vector<int>> paths;
    if (arguments.machine != nullptr && arguments.machine->ranks() == ranks())
      paths = plan::node_paths(plan::Fabric(*arguments.machine), nodes.heads);
    TreeConnections connections(ranks());
    for (int channel = 0; channel < choice.channels; ++channel) {
      const std::vector<TreePlace> places = rank_places(nodes, channel, choice, paths);
      roles_.push_back(tree_roles(places, channel, connections));
    }
    program_.inbound = connections.most_inbound();
    program_.outbound = connections.most_outbound();
  }

  Program write() {
    const bool simple = choice_.protocol == Protocol::simple;
    for (int rank = 0; rank < ranks(); ++rank) {
      kernel_ = {.name = "ncclDevKernel_AllReduce_TREE", .threads = choice_.threads};
      kernel_.unroll = unroll_;
      if (choice_.protocol == Protocol::ll)
        nccl_ll_accesses(kernel_, Collective::all_reduce, type_);
      kernel_.posts_apart = simple;
      kernel_.large_code = nccl_large_code(choice_.protocol);
      for (int channel = 0; channel < choice_.channels; ++channel)
        write_channel(channel, roles_[index(channel)][index(rank)]);
      program_.kernels.push_back(std::move(kernel_));
      program_.codes.push_back({{{StreamItem{.kind = StreamItem::Kind::kernel, .index = rank}}}});
      program_.code_of.push_back(rank);
    }
    program_.finish();
    finish_nccl_kernels(program_);
    return std::move(program_);
  }

 private:
  // 3 of 5 warps reduce with Simple, 7 of 10 with LL and LL128: receiving from three is more work
  // than sending to three (all_reduce.h, runTreeSplit).
  int reducing_threads() const {
    const int threads = choice_.threads;
    if (choice_.protocol != Protocol::simple)
      return threads * 7 / (10 * choice_.warp) * choice_.warp;
    const int half = threads / 2;
    return half >= 256 ? half + 64 : half;
  }

  void write_channel(int channel, const TreeRole& role) {
    const int up = reducing_threads();
    if (role.to_parent.empty()) {
      Op op = local(OpKind::recv_reduce_copy_send, channel, true, true);
      receive_from(op, role.from_children);
      send_to(op, role.to_children);
      return workgroup(choice_.threads, std::move(op));
    }
    const bool leaf = role.from_children.empty();
    Op reduce = local(leaf ? OpKind::send : OpKind::recv_reduce_send, channel, true, false);
    receive_from(reduce, role.from_children);
    send_to(reduce, role.to_parent);
    workgroup(up, std::move(reduce));
    Op broadcast = local(leaf ? OpKind::recv : OpKind::recv_copy_send, channel, false, true);
    receive_from(broadcast, role.from_parent);
    send_to(broadcast, role.to_children);
    workgroup(choice_.threads - up, std::move(broadcast));
  }

  Op local(OpKind kind, int channel, bool reads, bool writes) const {
    Op op{.kind = kind};
    op.slice = channel;
    op.slices = choice_.channels;
    if (reads) op.src = {{.buffer = input()}};
    if (writes) op.dst = {{.buffer = output()}};
    return op;
  }

  void workgroup(int threads, Op op) {
    Op loop{.kind = OpKind::loop};
    loop.unit = chunk_ * choice_.channels;
    loop.unit_chunks = 1;
    op.where = fmt::format("/workgroups/{}", kernel_.bodies.size());
    kernel_.bodies.push_back(static_cast<std::int32_t>(program_.bodies.size()));
    kernel_.threads_of.push_back(threads);
    kernel_.blocks.push_back(op.slice);
    program_.bodies.push_back({{loop, std::move(op), {.kind = OpKind::end_loop}}});
  }

  NcclChoice choice_;
  DataType type_;
  int unroll_ = 1;
  Bytes chunk_{};
  std::vector<std::vector<TreeRole>> roles_;  // by channel and rank
  Kernel kernel_;
};

}  // namespace

std::vector<TreePlace> node_places(int nodes, bool second) {
  const plan::Tree tree = plan::binary_tree(nodes);
  const auto node_at = [&](int place) {
    return second ? plan::place_in_second_tree(place, nodes) : place;
  };
  std::vector<TreePlace> places(tree.size());
  for (int place = 1; place < nodes; ++place) {
    TreePlace& child = places[index(node_at(place))];
    child.up = node_at(tree[index(place)]);
    child.second = place > tree[index(place)];
    places[index(child.up)].down.push_back(node_at(place));
  }
  return places;
}

std::vector<TreeRole> tree_roles(const std::vector<TreePlace>& places, int channel,
                                 TreeConnections& connections) {
  std::vector<TreeRole> roles(places.size());
  for (int rank = 0; rank < static_cast<int>(places.size()); ++rank) {
    TreeRole& parent = roles[index(rank)];
    for (const int child : places[index(rank)].down) {
      TreeRole& other = roles[index(child)];
      const auto [up_out, up_in] = connections.connect(child, rank, channel);
      other.to_parent = {up_out};
      parent.from_children.push_back(up_in);
      const auto [down_out, down_in] = connections.connect(rank, child, channel);
      parent.to_children.push_back(down_out);
      other.from_parent = {down_in};
    }
  }
  return roles;
}

void receive_from(Op& op, const std::vector<ConnectionRef>& connections) {
  if (connections.empty()) return;
  op.recv_from = connections.front();
  op.more_from.assign(connections.begin() + 1, connections.end());
}

void send_to(Op& op, const std::vector<ConnectionRef>& connections) {
  if (connections.empty()) return;
  op.send_to = connections.front();
  op.more_to.assign(connections.begin() + 1, connections.end());
}

Program nccl_tree(const KernelArguments& arguments, const NcclChoice& choice) {
  return TreeWriter(arguments, choice).write();
}

}  // namespace hemiola::program
