#include "program/bind/bound.h"

#include <algorithm>
#include <utility>

#include "machine/machine.h"

namespace hemiola::program {

std::int32_t Frame::own_of(int rank) const {
  if (ranks == nullptr) return rank;
  const auto found = std::ranges::find(*ranks, rank);
  return found == ranks->end() ? -1 : static_cast<std::int32_t>(found - ranks->begin());
}

std::int64_t Frame::chunk_stride(std::int32_t buffer) const {
  const Buffer& description = program->buffers.at(index(buffer));
  const std::int64_t limit = description.chunk_limit.count;
  return limit > 0 && limit < chunk_bytes ? limit : chunk_bytes;
}

std::int64_t Frame::memory_bytes(std::int32_t buffer, int rank) const {
  const Buffer& description = program->buffers.at(index(buffer));
  if (description.bytes.count > 0) return description.bytes.count;
  return program->chunks_of(buffer, rank) * chunk_stride(buffer) * (description.packets ? 2 : 1) *
         description.rotation;
}

Frame::Place Frame::resolve(std::int32_t buffer, std::int64_t offset, int rank) const {
  Place place{buffer, offset};
  const std::vector<Buffer>& buffers = program->buffers;
  // Aliases do not form cycles (checked by bind); the limit keeps what was not checked from
  // hanging.
  for (std::size_t depth = 0; depth < buffers.size(); ++depth) {
    const Buffer& description = buffers.at(index(place.buffer));
    if (description.alias < 0) break;
    place.offset += description.alias_chunk({.rank = rank}) * chunk_bytes;
    place.buffer = description.alias;
  }
  return place;
}

Bound::Bound(Frame frame, machine::SharedMachine machine, Diagnostics warnings)
    : frame_(std::move(frame)), machine_(std::move(machine)), warnings_(std::move(warnings)) {}

Bound::Bound(std::shared_ptr<const Linked> linked, machine::SharedMachine machine,
             Diagnostics warnings)
    : frame_{.program = linked->tables},
      linked_(std::move(linked)),
      machine_(std::move(machine)),
      warnings_(std::move(warnings)) {}

std::int32_t Bound::tail_of(std::int32_t buffer) const {
  if (linked_ != nullptr) return linked_->tail_of[index(buffer)];
  const std::int32_t inbound = buffer - program().fifo_buffer(0);
  return inbound >= 0 && inbound < program().inbound ? program().tail_semaphore(inbound) : -1;
}

bool Bound::crosses_network(int from, int to) const {
  return machine_ != nullptr && machine_->reach(from, to) == machine::Reach::network;
}

const RankCode& Bound::code(int rank) const {
  return codes()[index(code_of()[index(rank)])];
}

}  // namespace hemiola::program
