// Operations and their operands as a rank's bodies have them.
#include "program/lower/general.h"
#include "program/lower/symmetry.h"

namespace hemiola::program::general {

void OperandWriter::add_tiles(const TileGroup& group, const std::vector<std::int32_t>& tiles,
                              std::vector<Op>& ops) const {
  if (tiles.size() == 1 || group.steps == 1) {
    for (const std::int32_t tile : tiles) add_tile({group, tile}, ops);
    return;
  }
  ops.push_back({.kind = OpKind::loop, .count = std::ssize(tiles)});
  ops.back().places = places(group, tiles);
  add_tile({.group = group, .in_table = true}, ops);
  ops.push_back({.kind = OpKind::end_loop});
}

/// What it adds to is read by the first step, results are written by the last one.
void OperandWriter::add_tile(const TileOf& tile, std::vector<Op>& ops) const {
  const TileGroup& group = tile.group;
  const std::int64_t last = group.writes.empty() ? group.steps : group.steps - 1;
  std::int64_t next = 0;
  if (!group.adds.empty() && last > 0) add_step(tile, {next++, 0}, false, ops);
  add_steps(tile, next, last, ops);
  if (last < group.steps) add_step(tile, {last, 0}, true, ops);
}

/// Steps [begin, end). Two of them make an iteration, so that their numbers differ.
void OperandWriter::add_steps(const TileOf& tile, std::int64_t begin, std::int64_t end,
                              std::vector<Op>& ops) const {
  constexpr std::int64_t kFewSteps = 4;  // as they are
  const std::int64_t iterations = (end - begin) / 2;
  std::int64_t next = begin;
  if (end - begin > kFewSteps) {
    ops.push_back({.kind = OpKind::loop, .count = iterations});
    for (; next < begin + 2; ++next) add_step(tile, {next, 2}, false, ops);
    ops.push_back({.kind = OpKind::end_loop});
    next = begin + iterations * 2;
  }
  for (; next < end; ++next) add_step(tile, {next, 0}, false, ops);
}

void OperandWriter::add_step(const TileOf& tile, Steps steps, bool writes,
                             std::vector<Op>& ops) const {
  const TileGroup& group = tile.group;
  Op& op = ops.emplace_back();
  op.kind = OpKind::compute;
  op.flop = group.flop;
  op.product = group.product;
  std::int32_t column = 0;
  op.src.reserve(group.reads.size() + group.adds.size());
  for (const Touched& touched : group.reads) append(op.src, tile, touched, column++, steps);
  for (const Touched& touched : group.adds) {
    if (steps.first == 0) append(op.src, tile, touched, column, {});
    ++column;
  }
  for (const Touched& touched : group.writes) {
    if (writes) append(op.dst, tile, touched, column, {});
    ++column;
  }
}

void OperandWriter::append(std::vector<Operand>& operands, const TileOf& tile,
                           const Touched& touched, std::int32_t column, Steps steps) const {
  const Place place{rank, -1, {touched.tensor, {}}, {}};
  const std::int64_t moved = tile.in_table ? 0 : tile.group.distance(touched, tile.tile);
  for (std::size_t i = 0; i < touched.strips.size(); ++i) {
    const std::int64_t step = touched.steps.empty() ? 0 : touched.steps[i];
    Strip strip = touched.strips[i];
    strip.offset[0] += moved + steps.first * step;
    Operand made = operand(place, strip, 0);
    // Within a table the loop over steps is the inner one.
    made.chunk.loop[tile.in_table ? 1 : 0] = steps.distance * step / unit;
    if (tile.in_table) made.column = column;
    operands.push_back(made);
  }
}

std::vector<std::int64_t> OperandWriter::places(const TileGroup& group,
                                                const std::vector<std::int32_t>& tiles) const {
  std::vector<std::int64_t> places;
  places.reserve(tiles.size() * (group.reads.size() + group.adds.size() + group.writes.size()));
  for (const std::int32_t tile : tiles) {
    for (const auto* list : {&group.reads, &group.adds, &group.writes})
      for (const Touched& touched : *list) places.push_back(group.distance(touched, tile) / unit);
  }
  return places;
}

Operand OperandWriter::operand(const Place& place, const Strip& strip, std::size_t which) const {
  Operand made{.rank = symmetry.rank_seen_from(rank, place.rank), .buffer = place.area.tensor};
  made.chunk = symmetry.chunk_seen_from(rank, place.area.tensor, strip.offset[which], unit);
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
