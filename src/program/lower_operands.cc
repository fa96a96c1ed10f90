// Operations and their operands as a rank's bodies have them.
#include "core/index.h"
#include "program/lower_general.h"
#include "program/lower_symmetry.h"

namespace hemiola::program::general {

Op OperandWriter::step(const Tile& tile, std::int64_t first, std::int64_t distance,
                       bool writes) const {
  Op op{.kind = OpKind::compute};
  op.flop = tile.flop;
  op.product = tile.product;
  for (std::size_t r = 0; r < tile.reads.size(); ++r) {
    const plan::Area& next = tile.steps > 1 ? tile.next_reads[r] : tile.reads[r];
    append(op.src, tile.reads[r], next, first, distance);
  }
  if (first == 0) {
    for (const plan::Area& area : tile.adds) append(op.src, area, area, 0, 0);
  }
  if (writes) {
    for (const plan::Area& area : tile.writes) append(op.dst, area, area, 0, 0);
  }
  return op;
}

void OperandWriter::append(std::vector<Operand>& operands, const plan::Area& area,
                           const plan::Area& next, std::int64_t first,
                           std::int64_t distance) const {
  const Place place{rank, -1, area, {}};
  const plan::Tensor& tensor = plan.tensors[index(area.tensor)];
  std::vector<Strip> strips = strips_of(tensor, area);
  const std::vector<Strip> later = strips_of(tensor, next);
  for (std::size_t i = 0; i < strips.size(); ++i) {
    const std::int64_t step = later[i].offset[0] - strips[i].offset[0];
    strips[i].offset[0] += first * step;
    operands.push_back(operand(place, strips[i], 0, distance * step));
  }
}

Operand OperandWriter::operand(const Place& place, const Strip& strip, std::size_t which,
                               std::int64_t each) const {
  Operand made{.rank = symmetry.rank_seen_from(rank, place.rank), .buffer = place.area.tensor};
  made.chunk = symmetry.chunk_seen_from(rank, place.area.tensor, strip.offset[which], unit, each);
  made.chunks = strip.units() / unit;
  if (strip.rows > 1 && strip.pitch[which] != strip.run) {
    made.run = strip.run / unit;
    made.pitch = strip.pitch[which] / unit;
  }
  if (place.packets) {
    made.access = protocol == Protocol::ll128 ? Access::ll128 : Access::packet;
  } else if (place.group >= 0) {
    made.access = Access::multicast;
    made.group = place.group;
  }
  return made;
}

}  // namespace hemiola::program::general
