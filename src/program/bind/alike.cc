// Whether what holds of an operation on one rank holds on all: it is checked once.
#include <algorithm>
#include <numeric>

#include "machine/machine.h"
#include "program/bind/check.h"

namespace hemiola::program {
namespace {

constexpr int kFewPairs = 16;  ///< ranks whose pairs are looked at one by one

/// Whether some switch reaches, and is reached from, every rank through switches alone: then all
/// load and store each other's memory, without a look at every pair.
bool joined_by_switches(const machine::Machine& machine, int ranks) {
  const auto is_switch = [&](machine::NodeId node) {
    return machine.nodes[index(node)].kind == machine::NodeKind::switch_;
  };
  // All nodes that are reached from `from`; `back`: that reach it.
  const auto reached = [&](machine::NodeId from, bool back) {
    std::vector<std::vector<machine::NodeId>> next(machine.nodes.size());
    for (const machine::Link& link : machine.links)
      next[index(back ? link.to : link.from)].push_back(back ? link.from : link.to);
    std::vector<bool> seen(machine.nodes.size(), false);
    std::vector<machine::NodeId> open{from};
    seen[index(from)] = true;
    while (!open.empty()) {
      const machine::NodeId node = open.back();
      open.pop_back();
      if (!is_switch(node)) continue;
      for (const machine::NodeId other : next[index(node)]) {
        if (!seen[index(other)]) open.push_back(other);
        seen[index(other)] = true;
      }
    }
    return seen;
  };
  const auto all = [&](const std::vector<bool>& seen) {
    return std::all_of(machine.gpus.begin(), machine.gpus.begin() + ranks,
                       [&](machine::NodeId gpu) { return seen[index(gpu)]; });
  };
  for (const machine::Link& link : machine.links) {
    if (link.from != machine.gpus.front() || !is_switch(link.to)) continue;
    return all(reached(link.to, false)) && all(reached(link.to, true));
  }
  return false;
}

bool is_rank_everywhere(const Affine& rank, int ranks) {
  if (rank == own_rank()) return true;
  return rank.modulus == ranks && rank.scale == 1 && rank.offset == 0;
}

/// Whether chunks [value, value + extent) are there whatever the rank and the counters of loops
/// are, up to those of `last`, with what the least and the largest place of a table add.
bool is_inside_everywhere(const Affine& value, std::int64_t extent, std::int64_t present,
                          const Indices& last, std::pair<std::int64_t, std::int64_t> places) {
  std::int64_t low = 0, high = 0;  // what the loops add
  for (std::size_t level = 0; level < value.loop.size(); ++level) {
    const std::int64_t most = value.loop[level] * last.loop[level];
    low += std::min<std::int64_t>(0, most);
    high += std::max<std::int64_t>(0, most);
  }
  const std::int64_t of_ranks = value.rank * last.rank;
  low += value.constant + std::min<std::int64_t>(0, of_ranks);
  high += value.constant + std::max<std::int64_t>(0, of_ranks);
  if (value.modulus > 0) {  // at most a residue, and every step of the common divisor
    std::int64_t step = std::gcd(value.rank, value.modulus);
    std::int64_t residue = (value.constant % step + step) % step;
    std::int64_t added = high - low - std::abs(of_ranks);
    residue += low - value.constant - std::min<std::int64_t>(0, of_ranks);
    if (residue < 0 || residue + added >= step) {  // loops go round
      step = std::gcd(step, std::gcd(value.loop[0], value.loop[1]));
      residue = (value.constant % step + step) % step;
      added = 0;
    }
    low = residue;
    high = value.modulus - step + residue + added;
  }
  const std::int64_t one = low * value.scale + value.offset;
  const std::int64_t other = high * value.scale + value.offset;
  return std::min(one, other) + places.first >= 0 &&
         std::max(one, other) + places.second <= present - extent;
}

bool is_alike(const Program& program, const Operand& operand, const Indices& last,
              const Op* table) {
  if (operand.column >= 0 && (table == nullptr || operand.column >= table->columns())) return false;
  if (operand.group >= 0 || !is_rank_everywhere(operand.rank, program.ranks)) return false;
  if (operand.buffer < 0 || operand.buffer >= std::ssize(program.buffers)) return false;
  const Buffer& buffer = program.buffers[index(operand.buffer)];
  if (buffer.chunks.size() != 1 || buffer.alias >= 0) return false;
  const std::int64_t extent =
      operand.run == 0 ? operand.chunks
                       : (operand.chunks / operand.run - 1) * operand.pitch + operand.run;
  const auto places =
      table != nullptr ? table->range_of(operand.column) : std::pair<std::int64_t, std::int64_t>{};
  return is_inside_everywhere(operand.chunk, extent, buffer.chunks.front(), last, places);
}

}  // namespace

bool is_alike_everywhere(const Program& program, const Op& op, const Indices& last,
                         const Op* table) {
  const auto operand = [&](const Operand& o) { return is_alike(program, o, last, table); };
  const auto semaphore = [&](const SemaphoreRef& ref) {
    return is_rank_everywhere(ref.rank, program.ranks);
  };
  const auto no_connection = [](const ConnectionRef& c) { return c.inbound < 0 && c.outbound < 0; };
  return std::ranges::all_of(op.src, operand) && std::ranges::all_of(op.dst, operand) &&
         std::ranges::all_of(op.semaphores, semaphore) && no_connection(op.send_to) &&
         no_connection(op.recv_from) && op.more_to.empty() && op.more_from.empty() &&
         op.kind != OpKind::barrier;
}

bool is_alike_in_loops(const Program& program, const Op& op, const Indices& at) {
  const auto varies = [](const Affine& value) { return value.loop[0] != 0 || value.loop[1] != 0; };
  for (const std::vector<Operand>* side : {&op.src, &op.dst}) {
    for (const Operand& operand : *side) {
      if (varies(operand.rank)) return false;
      if (operand.column >= 0) {
        if (varies(operand.chunk)) return false;
        continue;  // check_chunks() looks at the whole column
      }
      if (!varies(operand.chunk)) continue;
      const std::int64_t owner = operand.rank(at);
      if (operand.chunk.modulus <= 0 || operand.run != 0 || is_multicast(operand.access) ||
          owner < 0 || owner >= program.ranks || operand.buffer < 0 ||
          operand.buffer >= std::ssize(program.buffers))
        return false;
      const std::int64_t first = operand.chunk.offset;
      const std::int64_t last = (operand.chunk.modulus - 1) * operand.chunk.scale + first;
      const std::int64_t present = program.chunks_of(operand.buffer, static_cast<int>(owner));
      if (std::min(first, last) < 0 || std::max(first, last) > present - operand.chunks)
        return false;
    }
  }
  const auto peer_varies = [&](const ConnectionRef& one) { return varies(one.peer); };
  return std::ranges::none_of(op.semaphores,
                              [&](const SemaphoreRef& ref) { return varies(ref.rank); }) &&
         !peer_varies(op.send_to) && !peer_varies(op.recv_from) &&
         std::ranges::none_of(op.more_to, peer_varies) &&
         std::ranges::none_of(op.more_from, peer_varies);
}

std::int64_t iterations_of(const Bound& bound, const Op& loop) {
  if (loop.unit.count == 0) return loop.count;
  return (loop.unit_chunks * bound.chunk_bytes() + loop.unit.count - 1) / loop.unit.count;
}

std::vector<bool> alike_in(const Bound& bound, const std::vector<Op>& ops) {
  const Program& program = bound.program();
  std::vector<bool> alike;
  Indices last{.rank = program.ranks - 1, .loop = {}};
  std::size_t level = 0;
  const Op* table = nullptr;
  for (const Op& op : ops) {
    const bool opens = op.kind == OpKind::loop, closes = op.kind == OpKind::end_loop;
    if (closes && level > 0) --level;
    if (level < last.loop.size()) last.loop[level] = opens ? iterations_of(bound, op) - 1 : 0;
    if (level == 0) table = opens && !op.places.empty() ? &op : nullptr;
    if (opens) ++level;
    alike.push_back(!opens && !closes && is_alike_everywhere(program, op, last, table));
  }
  return alike;
}

bool all_reach_each_other(const Bound& bound) {
  const machine::Machine* machine = bound.machine();
  if (machine == nullptr) return true;
  const int ranks = bound.program().ranks;
  if (ranks > kFewPairs) return joined_by_switches(*machine, ranks);
  for (int a = 0; a < ranks; ++a) {
    for (int b = 0; b < ranks; ++b)
      if (a != b && machine->reach(a, b) != machine::Reach::load_store) return false;
  }
  return true;
}

}  // namespace hemiola::program
