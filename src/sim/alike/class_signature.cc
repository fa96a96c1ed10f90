// Signatures of agents.

#include "sim/alike/class_signature.h"

#include <algorithm>

#include "program/walk/rotation.h"
#include "program/walk/slices.h"
#include "sim/support/index.h"

namespace hemiola::sim {
namespace {

using program::ConnectionRef;
using program::Op;
using program::Operand;
using program::OpKind;

/// Less than mix(), for the many parts of an operation, which is then mixed as a whole.
constexpr Colour joined(Colour colour, std::uint64_t value) {
  colour = (colour ^ value) * kSplitMixStep;
  return colour ^ (colour >> 32);
}

Colour mix_affine(Colour colour, const Affine& value) {
  for (const std::int64_t part : {value.constant, value.rank, value.loop[0], value.loop[1],
                                  value.modulus, value.scale, value.offset})
    colour = mix(colour, static_cast<std::uint64_t>(part));
  return colour;
}

bool uses_loops(const Affine& value) {
  return value.loop[0] != 0 || value.loop[1] != 0;
}

/// Slices differ by one unit at most. Of a chunk that gives each of them so many units, and of a
/// rest that gives them so many, that does not make them unlike in time: sizes as they are in
/// training are multiples of nothing.
constexpr std::int64_t kManyUnits = 1024, kManyOfRest = 64;
/// So many have few classes anyway: those of a node.
constexpr int kFewRanks = 8;

/// Bytes of a slice of `bytes`, as Cursor deals them; of all slices where these are `alike`.
std::int64_t slice_bytes(std::int64_t bytes, std::int64_t unit, const Op& op, bool alike) {
  if (op.slices <= 1) return bytes;
  const std::int64_t units = (bytes + unit - 1) / unit;
  if (alike && units / op.slices >= kManyOfRest) return bytes / op.slices;
  return program::slice_begin(bytes, unit, op.slice + 1, op.slices) -
         program::slice_begin(bytes, unit, op.slice, op.slices);
}

/// Whether an iteration refers to other ranks than the next.
bool depends_on_loops(const Op& op) {
  const auto by_rank = [](const auto& reference) { return uses_loops(reference.rank); };
  const auto by_peer = [](const ConnectionRef& reference) { return uses_loops(reference.peer); };
  return std::ranges::any_of(op.src, by_rank) || std::ranges::any_of(op.dst, by_rank) ||
         std::ranges::any_of(op.semaphores, by_rank) || by_peer(op.send_to) ||
         by_peer(op.recv_from) || std::ranges::any_of(op.more_from, by_peer) ||
         std::ranges::any_of(op.more_to, by_peer);
}

/// Whether it touches memory of its own rank and nothing else, on all ranks: most of what tiles do.
bool stays_at_home(const Op& op) {
  const auto at_home = [](const Operand& operand) {
    return operand.rank == own_rank() && !program::is_multicast(operand.access);
  };
  return std::ranges::all_of(op.src, at_home) && std::ranges::all_of(op.dst, at_home) &&
         op.semaphores.empty() && op.send_to.outbound < 0 && op.recv_from.inbound < 0 &&
         op.more_from.empty() && op.more_to.empty();
}

Colour label_of(std::size_t op, std::int64_t outer, std::int64_t inner) {
  return mix(mix(static_cast<Colour>(op), static_cast<std::uint64_t>(outer)),
             static_cast<std::uint64_t>(inner));
}

}  // namespace

bool alike_slices(const program::Bound& program, std::int64_t units, std::int64_t slices) {
  return program.ranks() > kFewRanks && units / slices >= kManyUnits;
}

Signatures::Signatures(const machine::Machine& machine, const program::Bound& program, AlikeBy by)
    : machine_(machine), program_(program), by_(by) {
  if (by == AlikeBy::addresses)
    period_ = program::rotation_of(program, machine.model(0).line_size.count).period;
  for (const program::Body& body : program.bodies()) {
    Colour colour = body.ops.size();
    add_visits(body);
    std::vector<std::int64_t> piece;  // of the piece loops around
    for (const Op& op : body.ops) {
      colour = mix(colour, colour_of(op));
      if (by == AlikeBy::addresses)  // of what tiles store at others
        for (const std::int64_t place : op.places) colour = mix(colour, static_cast<Colour>(place));
      if (op.kind == OpKind::loop) {
        piece.push_back(op.unit.count);
      } else if (op.kind == OpKind::end_loop) {
        if (!piece.empty()) piece.pop_back();
      } else if (op.slices > 1 && op.bytes.count == 0) {  // else its size is no part of a chunk
        const std::int64_t unit =
            op.unit.count > 0 ? op.unit.count : program.program().alignment.count;
        const bool alike = by == AlikeBy::time && unit <= machine.model(0).line_size.count &&
                           alike_slices(program, program.chunk_bytes() / unit, op.slices);
        for (const auto* operands : {&op.src, &op.dst}) {
          for (const Operand& operand : *operands) {
            const std::int64_t chunk = program.chunk_bytes();
            colour = mix(colour, slice_bytes(operand.chunks * chunk, unit, op, alike));
            for (const std::int64_t part : piece) {
              if (part <= 0) continue;
              colour = mix(colour, slice_bytes(std::min(part, chunk), unit, op, alike));
              colour = mix(colour, slice_bytes(chunk % part, unit, op, alike));
            }
          }
        }
      }
    }
    bodies_.push_back(colour);
  }
}

Colour Signatures::colour_of(const Op& op) const {
  Colour colour = joined(static_cast<Colour>(op.kind), static_cast<std::uint64_t>(op.channel));
  const std::int64_t values[] = {static_cast<std::int64_t>(op.reduce),
                                 op.target,
                                 op.bypass_l1,
                                 op.relaxed,
                                 op.batched,
                                 op.staged,
                                 op.slices,
                                 op.barrier_id,
                                 op.workgroups,
                                 op.count,
                                 op.unit.count,
                                 op.unit_chunks,
                                 static_cast<std::int64_t>(op.pieces),
                                 op.flop,
                                 op.product.m,
                                 op.product.n,
                                 op.product.k,
                                 op.bytes.count,
                                 op.duration.fs,
                                 op.send_to.outbound >= 0,
                                 op.recv_from.inbound >= 0};
  for (const std::int64_t value : values)
    colour = joined(colour, static_cast<std::uint64_t>(value));
  for (const auto& [value, step] : op.targets)
    colour =
        joined(joined(colour, static_cast<std::uint64_t>(value)), static_cast<std::uint64_t>(step));
  for (const auto* operands : {&op.src, &op.dst}) {
    colour = joined(colour, operands->size());
    for (const Operand& operand : *operands) {
      const program::Buffer& buffer = program_.buffers()[index(operand.buffer)];
      colour = joined(colour, static_cast<std::uint64_t>(operand.access));
      colour = joined(colour, static_cast<std::uint64_t>(buffer.kind));
      // Which group it is says who its members are.
      for (const std::int64_t value : {operand.chunks, operand.run, operand.pitch})
        colour = joined(colour, static_cast<std::uint64_t>(value));
    }
  }
  return colour;
}

// Where an operand stands, as far as lines choose paths or chunks do not begin with a line.
Colour Signatures::place_of(const Op& op, const Operand& operand, int rank) const {
  Affine chunk = operand.chunk;
  chunk.constant += chunk.rank * rank;
  chunk.rank = 0;
  if (chunk.modulus > 0)
    chunk.constant = (chunk.constant % chunk.modulus + chunk.modulus) % chunk.modulus;
  return mix(mix(mix_affine(static_cast<Colour>(operand.buffer) + 1, chunk),
                 static_cast<std::uint64_t>(op.slice)),
             static_cast<std::uint64_t>(operand.column + 1));
}

namespace {

/// Memory of all members of a group, from the own one on, so that members which turn into each
/// other see the same.
void use_members(const std::vector<int>& group, int own, Colour here, std::vector<PeerUse>& out,
                 Colour& colour) {
  const auto first = std::ranges::find(group, own);
  if (first != group.end()) colour += here;
  const auto add = [&](int member) {
    if (member != own) out.push_back({here, member, -1});
  };
  std::for_each(first, group.end(), add);
  std::for_each(group.begin(), first, add);
}

}  // namespace

void Signatures::add(const Op& op, Colour label, const Indices& at, std::vector<PeerUse>& out,
                     Colour& colour) const {
  const auto own = static_cast<int>(at.rank);
  std::uint64_t position = 0;
  const auto spread = [&](int peer) {
    return by_ == AlikeBy::addresses && peer != own && machine_.routes(own, peer).count > 1;
  };
  const auto memory = [&](int peer) {
    const Colour here = mix(label, ++position);
    if (peer == own) {
      colour += here;
    } else {
      out.push_back({here, peer, -1});
    }
  };
  const auto semaphore = [&](int owner, std::int32_t number) {
    if (spread(owner)) colour += mix(mix(label, position), static_cast<std::uint64_t>(number));
    out.push_back({mix(label, ++position), owner, number});
  };
  for (const auto* operands : {&op.src, &op.dst}) {
    for (const Operand& operand : *operands) {
      if (program::is_multicast(operand.access)) {
        use_members(program_.groups()[index(operand.group)], own, mix(label, ++position), out,
                    colour);
        continue;
      }
      const auto peer = static_cast<int>(operand.rank(at));
      memory(peer);
      const bool aligned = program_.chunk_bytes() % machine_.model(0).line_size.count == 0;
      if (by_ == AlikeBy::addresses && peer != own && (spread(peer) || !aligned || op.slices > 1))
        colour += mix(mix(mix(label, position), place_of(op, operand, own)),
                      static_cast<std::uint64_t>(peer / period_));
    }
  }
  for (const program::SemaphoreRef& reference : op.semaphores)
    semaphore(static_cast<int>(reference.rank(at)), reference.index);
  const auto connection = [&](const ConnectionRef& reference, bool sends) {
    if ((sends ? reference.outbound : reference.inbound) < 0) return;
    const auto peer = static_cast<int>(reference.peer(at));
    memory(peer);
    const std::int32_t tail = program_.program().tail_semaphore(reference.inbound);
    const std::int32_t head = program_.program().head_semaphore(reference.outbound);
    semaphore(sends ? peer : own, tail);
    semaphore(sends ? own : peer, head);
  };
  connection(op.send_to, true);
  for (const ConnectionRef& reference : op.more_to) connection(reference, true);
  connection(op.recv_from, false);
  for (const ConnectionRef& reference : op.more_from) connection(reference, false);
}

void Signatures::add_visits(const program::Body& body) {
  std::vector<std::int64_t> loops;  // iterations
  std::vector<Visit>& visits = visits_.emplace_back();
  Colour& own = own_.emplace_back();
  for (std::size_t o = 0; o < body.ops.size(); ++o) {
    const Op& op = body.ops[o];
    if (op.kind == OpKind::loop) {
      loops.push_back(op.unit.count > 0
                          ? (op.unit_chunks * program_.chunk_bytes() + op.unit.count - 1) /
                                op.unit.count
                          : op.count);
    } else if (op.kind == OpKind::end_loop) {
      if (!loops.empty()) loops.pop_back();
    } else if (stays_at_home(op)) {
      for (std::uint64_t position = 1; position <= op.src.size() + op.dst.size(); ++position)
        own += mix(label_of(o, 0, 0), position);
    } else {
      const bool each = depends_on_loops(op);
      visits.push_back(
          {o, each && !loops.empty() ? loops[0] : 1, each && loops.size() > 1 ? loops[1] : 1});
    }
  }
}

bool Signatures::references(std::int32_t body, int rank, std::size_t most,
                            std::vector<PeerUse>& out, Colour& colour) const {
  const std::vector<Op>& ops = program_.bodies()[index(body)].ops;
  const std::size_t before = out.size();
  colour += own_[index(body)];
  for (const Visit& visit : visits_[index(body)]) {
    for (std::int64_t i = 0; i < visit.outer; ++i) {
      for (std::int64_t j = 0; j < visit.inner; ++j) {
        add(ops[visit.op], label_of(visit.op, i, j), {.rank = rank, .loop = {i, j}}, out, colour);
        if (out.size() - before > most) return false;
      }
    }
  }
  return true;
}

}  // namespace hemiola::sim
