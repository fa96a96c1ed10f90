// NCCL's all-reduce through the switch, with unregistered buffers (src/device/all_reduce.h,
// NCCL_ALGO_NVLS and NCCL_ALGO_NVLS_TREE; src/graph/connect.cc, connectNvls). The data are cut into
// a part for each head, a GPU that reduces it. A channel has workgroups of four roles: scatter
// copies the input to where the switch reads, reduce lets the switch add and multicasts the sum,
// gather copies it out. Over several nodes the reducers of a head are a tree: they send the sum of
// their node towards the root, and broadcast multicasts what comes back.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "program/kernels/nccl.h"
#include "program/kernels/nccl_tree.h"
#include "program/lower/lower.h"

namespace hemiola::program {
namespace {

/// Threads of the roles, of 20 warps. Of those that scatter and of those that reduce one only posts
/// (prims_simple.h), as the last one of every workgroup does here: gathering has one more.
struct Roles {
  int scatter = 0, reduce = 0, broadcast = 0, gather = 0;
};

Roles roles_of(int ranks, bool has_parent) {
  constexpr int kWarps = 20, kWarp = 32;
  const int broadcast = has_parent ? 4 : 0;
  const int reduce = !has_parent && ranks <= 6 ? 7 : 5;
  const int left = kWarps - reduce - broadcast;
  return {(left + 1) / 2 * kWarp, reduce * kWarp, broadcast * kWarp, (left / 2 + 1) * kWarp};
}

/// Data of a part that a channel moves at a time, less where there is little to do
/// (src/enqueue.cc).
std::int64_t chunk_of(const KernelArguments& arguments, const NcclChoice& choice, int heads,
                      bool over_nodes) {
  constexpr std::int64_t kKiB = 1024;
  const std::int64_t all = std::int64_t{choice.channels} * heads;
  std::int64_t chunk = over_nodes ? choice.step.count : 128 * kKiB;
  const auto at_most = [&](std::int64_t times, std::int64_t most) {
    if (arguments.size.count < times * all * chunk) chunk = std::min(chunk, most);
  };
  if (over_nodes) {
    at_most(32, 256 * kKiB);
    at_most(16, 128 * kKiB);
    at_most(4, 64 * kKiB);
    at_most(1, 32 * kKiB);
  } else {
    at_most(64, 64 * kKiB);
    at_most(8, 32 * kKiB);
    at_most(2, 16 * kKiB);
  }
  return chunk;
}

class NvlsWriter : public ProgramWriter {
 public:
  NvlsWriter(const KernelArguments& arguments, const NcclChoice& choice)
      : NvlsWriter(arguments, choice, nccl_nodes(arguments)) {}

  Program write() {
    for (int rank = 0; rank < ranks(); ++rank) {
      if (rank == 0 || !all_alike()) write_kernel(rank);
      program_.code_of.push_back(all_alike() ? 0 : rank);
    }
    program_.finish();
    finish_nccl_kernels(program_);
    return std::move(program_);
  }

 private:
  NvlsWriter(const KernelArguments& arguments, const NcclChoice& choice, const NcclNodes& nodes)
      : ProgramWriter(arguments, Collective::all_reduce, heads_of(nodes).size(),
                      heads_of(nodes).size()),
        choice_(choice),
        nodes_(nodes),
        heads_(heads_of(nodes)),
        chunk_(chunk_of(arguments, choice, static_cast<int>(heads_.size()), nodes.count > 1)) {
    if (nccl_in_place(arguments)) share_memory();
    program_.chunks_per_size = std::ssize(heads_);
    program_.fifo = nccl_fifo(Protocol::simple);
    sends_ = scratch("to the switch", std::ssize(heads_));
    sums_ = scratch("from the switch", std::ssize(heads_));
    for (int node = 0; node < nodes.count; ++node) {
      std::vector<int>& group = program_.groups.emplace_back();
      for (int i = 0; i < nodes.size; ++i) group.push_back(node * nodes.size + i);
    }
    TreeConnections connections(ranks());
    for (int channel = 0; channel < choice.channels; ++channel) {
      roles_.push_back(tree_roles(places_of(channel), channel, connections));
      scattered_.push_back(counters(fmt::format("channel {} scattered", channel)));
      reduced_.push_back(counters(fmt::format("channel {} reduced", channel)));
    }
    program_.inbound = connections.most_inbound();
    program_.outbound = connections.most_outbound();
  }

  /// On one node all GPUs are heads, on several those with a NIC.
  static std::vector<int> heads_of(const NcclNodes& nodes) {
    std::vector<int> heads = nodes.heads;
    if (nodes.count == 1) {
      heads.resize(index(nodes.size));
      std::iota(heads.begin(), heads.end(), 0);
    }
    heads.resize(std::min(heads.size(), kMostNvlsHeads));
    return heads;
  }

  /// Heads of the same number on all nodes are a tree, every other channel in the other one.
  std::vector<TreePlace> places_of(int channel) const {
    std::vector<TreePlace> places(index(ranks()));
    const std::vector<TreePlace> tree = node_places(nodes_.count, channel % 2 == 1);
    for (int node = 0; node < nodes_.count; ++node) {
      const TreePlace& across = tree[index(node)];
      for (const int head : heads_) {
        const auto rank_at = [&](int other) { return other * nodes_.size + head; };
        TreePlace& place = places[index(rank_at(node))];
        if (across.up != TreePlace::kNone) place.up = rank_at(across.up);
        for (const int child : across.down) place.down.push_back(rank_at(child));
      }
    }
    return places;
  }

  /// A semaphore for each GPU of the node, by how far before it the one is that signals.
  std::int32_t counters(const std::string& name) {
    const auto first = static_cast<std::int32_t>(program_.semaphores.size());
    for (int distance = 0; distance < nodes_.size; ++distance)
      semaphore(fmt::format("{}, {} before", name, distance));
    return first;
  }

  /// All ranks run the same code, and name themselves and each other by their numbers.
  bool all_alike() const { return nodes_.count == 1 && std::ssize(heads_) == nodes_.size; }
  bool is_head(int position) const { return std::ranges::find(heads_, position) != heads_.end(); }

  void write_kernel(int rank) {
    rank_ = rank;
    kernel_ = {.name = nodes_.count > 1 ? "ncclDevKernel_AllReduce_NVLS_TREE"
                                        : "ncclDevKernel_AllReduce_NVLS",
               .threads = choice_.threads};
    kernel_.unroll = 8;
    kernel_.posts_apart = true;
    kernel_.large_code = 1;  // a workgroup here is one of a block's roles
    for (int channel = 0; channel < choice_.channels; ++channel) write_channel(channel);
    const auto number = static_cast<std::int32_t>(program_.kernels.size());
    program_.kernels.push_back(std::move(kernel_));
    program_.codes.push_back({{{StreamItem{.kind = StreamItem::Kind::kernel, .index = number}}}});
  }

  void write_channel(int channel) {
    const TreeRole& tree = roles_[index(channel)][index(rank_)];
    const bool has_parent = !tree.to_parent.empty();
    const Roles threads = roles_of(ranks(), has_parent);
    const int position = rank_ % nodes_.size;
    channel_ = channel;

    begin(threads.scatter);
    for (int head = 0; head < static_cast<int>(heads_.size()); ++head)
      add(move(OpKind::copy, {part(input(), head)}, {part(sends_, head)}));
    add({.kind = OpKind::sync});
    signal(scattered_, [&](int to) { return is_head(to); });
    end();
    if (is_head(position)) {
      begin(threads.reduce);
      wait(scattered_, [](int) { return true; });
      add({.kind = OpKind::sync});
      add(sum(tree, has_parent));
      if (!has_parent) tell_sums(tree.from_children.empty());
      end();
      if (has_parent) {
        begin(threads.broadcast);
        Op spread = move(tree.to_children.empty() ? OpKind::recv : OpKind::recv_copy_send, {},
                         {through_switch(sums_)});
        spread.channel = Channel::none;
        receive_from(spread, tree.from_parent);
        send_to(spread, tree.to_children);
        add(std::move(spread));
        tell_sums(false);
        end();
      }
    }
    begin(threads.gather);
    wait(reduced_, [&](int from) { return is_head(from); });
    add({.kind = OpKind::sync});
    for (int head = 0; head < static_cast<int>(heads_.size()); ++head)
      add(move(OpKind::copy, {part(sums_, head)}, {part(output(), head)}));
    end();
  }

  /// The sum of the node and of the children: to the parent, or, at the root, to all.
  Op sum(const TreeRole& tree, bool has_parent) {
    if (!has_parent && tree.from_children.empty()) {
      Op op =
          move(OpKind::group_load_reduce_store, {through_switch(sends_)}, {through_switch(sums_)});
      op.channel = Channel::switch_;
      return op;
    }
    const OpKind kind = !has_parent                  ? OpKind::recv_reduce_copy_send
                        : tree.from_children.empty() ? OpKind::send
                                                     : OpKind::recv_reduce_send;
    Op op = move(kind, {through_switch(sends_)}, {});
    if (!has_parent) op.dst = {through_switch(sums_)};
    op.channel = Channel::none;
    receive_from(op, tree.from_children);
    send_to(op, has_parent ? tree.to_parent : tree.to_children);
    return op;
  }

  /// What has come through a connection has been joined already.
  void tell_sums(bool joins) {
    if (joins) add({.kind = OpKind::sync});
    signal(reduced_, [](int) { return true; });
  }

  Operand part(std::int32_t buffer, int head) const {
    return {.buffer = buffer, .chunk = constant(head)};
  }
  /// The own part, of all GPUs of the node.
  Operand through_switch(std::int32_t buffer) const {
    const auto head = std::ranges::find(heads_, rank_ % nodes_.size);
    return {.buffer = buffer,
            .chunk = all_alike() ? own_rank() : constant(head - heads_.begin()),
            .access = Access::multicast,
            .group = rank_ / nodes_.size};
  }
  /// A GPU of the own node.
  Affine at_distance(int distance) const {
    if (all_alike()) return neighbour(distance, ranks());
    const int node = rank_ / nodes_.size;
    return constant(node * nodes_.size + (rank_ + distance) % nodes_.size);
  }

  template <class IsOne>
  void signal(const std::vector<std::int32_t>& counters, IsOne&& is_one) {
    Op op{.kind = OpKind::signal, .channel = Channel::memory};
    for (int distance = 0; distance < nodes_.size; ++distance) {
      if (!is_one((rank_ + distance) % nodes_.size)) continue;
      op.semaphores.push_back({at_distance(distance), counters[index(channel_)] + distance});
    }
    add(std::move(op));
  }
  template <class IsOne>
  void wait(const std::vector<std::int32_t>& counters, IsOne&& is_one) {
    Op op{.kind = OpKind::wait, .channel = Channel::memory};
    for (int distance = 0; distance < nodes_.size; ++distance) {
      if (!is_one((rank_ + nodes_.size - distance) % nodes_.size)) continue;
      op.semaphores.push_back({own_rank(), counters[index(channel_)] + distance});
    }
    add(std::move(op));
  }

  Op move(OpKind kind, std::vector<Operand> sources, std::vector<Operand> destinations) const {
    Op op{.kind = kind, .channel = Channel::memory};
    op.src = std::move(sources);
    op.dst = std::move(destinations);
    op.slice = channel_;
    op.slices = choice_.channels;
    return op;
  }
  void add(Op op) {
    std::vector<Op>& ops = program_.bodies.back().ops;
    op.where = fmt::format("/workgroups/{}/{}", kernel_.bodies.size() - 1, ops.size());
    ops.push_back(std::move(op));
  }
  void begin(int threads) {
    kernel_.bodies.push_back(static_cast<std::int32_t>(program_.bodies.size()));
    kernel_.threads_of.push_back(threads);
    kernel_.blocks.push_back(channel_);
    program_.bodies.emplace_back();
    Op loop{.kind = OpKind::loop};
    loop.unit = Bytes{chunk_ * choice_.channels};
    loop.unit_chunks = 1;
    add(std::move(loop));
  }
  void end() { add({.kind = OpKind::end_loop}); }

  NcclChoice choice_;
  NcclNodes nodes_;
  std::vector<int> heads_;  // positions in a node
  std::int64_t chunk_ = 0;
  std::int32_t sends_ = 0, sums_ = 0;
  std::vector<std::vector<TreeRole>> roles_;       // by channel and rank
  std::vector<std::int32_t> scattered_, reduced_;  // by channel: the first semaphore
  Kernel kernel_;
  int rank_ = 0, channel_ = 0;
};

}  // namespace

Program nccl_nvls(const KernelArguments& arguments, const NcclChoice& choice) {
  return NvlsWriter(arguments, choice).write();
}

}  // namespace hemiola::program
