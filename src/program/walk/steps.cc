// The steps of a tile taken together.
#include <algorithm>
#include <optional>
#include <utility>

#include "program/walk/cursor.h"

namespace hemiola::program {
namespace {

bool is_step(const Op& op) {
  return op.kind == OpKind::compute && !op.src.empty();
}

/// Spans that differ in their offsets alone, which are sorted, as one if they lie side by side or
/// below each other; else none.
std::optional<std::pair<Span, std::int64_t>> joined(const Span& like, std::int64_t bytes,
                                                    const std::vector<std::int64_t>& offsets) {
  const auto count = std::ssize(offsets);
  Span span = like;
  span.offset = offsets.front();
  if (count == 1) return std::pair{span, bytes};
  const std::int64_t apart = offsets[1] - offsets[0];
  for (std::size_t i = 1; i < offsets.size(); ++i)
    if (offsets[i] - offsets[i - 1] != apart) return std::nullopt;
  const std::int64_t run = span.run > 0 ? span.run : bytes;
  const std::int64_t rows = bytes / run;
  if (apart <= 0 || span.skip != 0 || rows * run != bytes || is_packet(span.access))
    return std::nullopt;
  if (rows == 1 && apart != run) {
    span.run = run;
    span.pitch = apart;
  } else if (apart == run && (rows == 1 || run * count <= span.pitch)) {
    span.run = rows == 1 ? 0 : run * count;
  } else if (apart != rows * span.pitch) {
    return std::nullopt;
  }
  if (span.run == span.pitch) span.run = 0;
  return std::pair{span, bytes * count};
}

bool differ_in_place_only(const ComputeSteps::Read& a, const ComputeSteps::Read& b) {
  const Span &x = a.first, &y = b.first;
  return a.operand == b.operand && a.bytes == b.bytes && x.rank == y.rank && x.buffer == y.buffer &&
         x.access == y.access && x.run == y.run && x.pitch == y.pitch && x.skip == y.skip &&
         x.group == y.group;
}

}  // namespace

std::vector<std::pair<Span, std::int64_t>> ComputeSteps::loads() const {
  std::vector<std::pair<Span, std::int64_t>> all;
  std::vector<bool> done(reads.size(), false);
  std::vector<std::int64_t> offsets;
  for (std::size_t r = 0; r < reads.size(); ++r) {
    if (done[r]) continue;
    offsets.clear();
    for (std::size_t other = r; other < reads.size(); ++other) {
      if (done[other] || !differ_in_place_only(reads[r], reads[other])) continue;
      done[other] = true;
      for (std::int64_t i = 0; i < reads[other].times; ++i)
        offsets.push_back(reads[other].first.offset + i * reads[other].distance);
    }
    std::ranges::sort(offsets);
    if (const auto one = joined(reads[r].first, reads[r].bytes, offsets)) {
      all.push_back(*one);
      continue;
    }
    Span span = reads[r].first;
    for (const std::int64_t offset : offsets) {
      span.offset = offset;
      all.emplace_back(span, reads[r].bytes);
    }
  }
  return all;
}

/// One operation, in each iteration of the innermost loop if that is being taken.
bool Cursor::add_step(std::int32_t number, std::int64_t times, ComputeSteps& out) {
  const Op& op = body_->ops[index(number)];
  for (std::size_t s = 0; s < op.src.size(); ++s) {
    const Region all = region(op, op.src[s], 0);
    const Span first = span(op.src[s], all);
    ComputeSteps::Read read{first,
                            all.bytes,
                            times,
                            0,
                            static_cast<std::int32_t>(s),
                            {op.src[s].column, frame_->chunk_stride(op.src[s].buffer)}};
    if (times > 1) {
      std::int64_t& iteration = indices_.loop[index(depth_ - 1)];
      iteration = 1;
      const Span second = span(op.src[s], all);
      iteration = times - 1;
      const Span last = span(op.src[s], all);
      iteration = 0;
      read.distance = second.offset - first.offset;
      const bool regular = second.rank == first.rank && second.buffer == first.buffer &&
                           last.rank == first.rank && last.buffer == first.buffer &&
                           last.offset - first.offset == read.distance * (times - 1);
      if (!regular) return false;
    }
    out.reads.push_back(read);
  }
  out.parts.push_back({number, times});
  out.steps += times;
  return true;
}

/// The loop that begins at `loop`, if it holds steps alone that store nothing.
bool Cursor::add_loop(std::int32_t loop, ComputeSteps& out) {
  const std::vector<Op>& ops = body_->ops;
  const Op& head = ops[index(loop)];
  if (head.unit.count > 0 || head.count <= 0 || !head.places.empty() ||
      depth_ >= std::ssize(loops_))
    return false;
  std::int32_t end = loop + 1;
  const auto plain = [](const Op& op) { return is_step(op) && op.dst.empty(); };
  while (end < std::ssize(ops) && plain(ops[index(end)])) ++end;
  if (end == loop + 1 || end == std::ssize(ops) || ops[index(end)].kind != OpKind::end_loop)
    return false;
  const std::size_t reads = out.reads.size(), parts = out.parts.size();
  const std::int64_t steps = out.steps;
  loops_[index(depth_)] = {loop + 1, head.count, 0, head.pieces};
  indices_.loop[index(depth_)] = 0;
  ++depth_;
  bool taken = true;
  for (std::int32_t op = loop + 1; op < end && taken; ++op) taken = add_step(op, head.count, out);
  --depth_;
  if (taken) {
    op_ = end + 1;
  } else {  // as it was
    out.reads.resize(reads);
    out.parts.resize(parts);
    out.steps = steps;
  }
  return taken;
}

bool Cursor::take_steps(ComputeSteps& out) {
  out.clear();
  const std::vector<Op>& ops = body_->ops;
  if (piece_loop() >= 0) return false;
  while (op_ < std::ssize(ops)) {
    const Op& op = ops[index(op_)];
    // Tiles that store nothing go on into each other, also from one iteration of a table to the
    // next.
    if (op.kind == OpKind::loop && !op.places.empty()) {
      enter_loop(op);
      continue;
    }
    if (op.kind == OpKind::end_loop && depth_ == 1 && loops_[0].places != nullptr) {
      leave_or_repeat_loop();
      continue;
    }
    if (op.kind == OpKind::loop && add_loop(op_, out)) continue;
    if (!is_step(op) || !add_step(op_, 1, out)) break;
    if (op.dst.empty()) {
      ++op_;
      continue;
    }
    for (const Operand& operand : op.dst) out.stored += region(op, operand, 0).bytes;
    part_ = static_cast<std::int64_t>(op.src.size());
    stage_ = 1;  // it has computed
    break;
  }
  return out.steps > 0;
}

/// The end of the table that it is in; -1: it is in none, or not at its beginning.
std::int32_t Cursor::end_of_table() const {
  if (depth_ != 1 || loops_[0].places == nullptr || op_ != loops_[0].begin || stage_ != 0 ||
      part_ != 0)
    return -1;
  std::int32_t end = op_;
  for (int depth = 1; depth > 0; ++end) {
    const OpKind kind = body_->ops[index(end)].kind;
    depth += kind == OpKind::loop ? 1 : kind == OpKind::end_loop ? -1 : 0;
  }
  return end - 1;
}

std::int64_t Cursor::iterations_left() {
  if (op_ >= std::ssize(body_->ops)) return 0;
  const Op& present = body_->ops[index(op_)];
  // The last operation of an iteration may be over without that being known yet.
  const bool is_over = present.kind == OpKind::compute && depth_ == 1 &&
                       part_ == std::ssize(present.src) + std::ssize(present.dst) && stage_ > 0 &&
                       loops_[0].places != nullptr &&
                       body_->ops[index(op_) + 1].kind == OpKind::end_loop;
  if (is_over) {
    ++op_;
    stage_ = 0;
    part_ = 0;
    leave_or_repeat_loop();
  }
  const std::int32_t end = end_of_table();
  for (std::int32_t i = op_; i < end; ++i) {
    const Op& op = body_->ops[index(i)];
    const auto is_own = [](const Operand& operand) { return operand.rank == own_rank(); };
    const bool computes =
        op.kind == OpKind::compute || op.kind == OpKind::loop || op.kind == OpKind::end_loop;
    if (!computes || !std::ranges::all_of(op.src, is_own) || !std::ranges::all_of(op.dst, is_own))
      return 0;
  }
  return end < 0 ? 0 : loops_[0].count - indices_.loop[0];
}

bool Cursor::take_run(ComputeSteps& out, std::int64_t pieces) {
  if (pieces <= 0) return false;
  const Op& head = body_->ops[index(op_)];
  if (head.kind == OpKind::loop && !head.places.empty()) enter_loop(head);
  const std::int32_t end = end_of_table();
  if (end < 0 || body_->ops[index(end) - 1].dst.empty()) return false;
  const std::int64_t first = indices_.loop[0];
  const std::int64_t tiles = std::min(loops_[0].count - first, loops_[0].count / pieces);
  if (tiles < 2) return false;
  const std::int32_t begin = op_;
  if (!take_steps(out) || op_ != end - 1) {  // something else is in it
    out.clear();
    op_ = begin;
    stage_ = 0;
    part_ = 0;
    return false;
  }
  const Op& last = body_->ops[index(op_)];
  for (const Operand& operand : last.dst) {
    const Region all = region(last, operand, 0);
    out.writes.push_back(
        {span(operand, all), all.bytes, {operand.column, frame_->chunk_stride(operand.buffer)}});
  }
  out.tiles = tiles;
  out.columns = loops_[0].columns;
  out.table = loops_[0].places + first * out.columns;
  stage_ = 0;
  part_ = 0;
  op_ = end;
  indices_.loop[0] += tiles - 1;
  leave_or_repeat_loop();
  return true;
}

bool Cursor::skip_to_steps(ComputeSteps& out) {
  const auto count = static_cast<std::int32_t>(body_->ops.size());
  stage_ = 0;
  if (std::exchange(part_, 0) > 0) ++op_;
  while (op_ < count) {
    out.clear();
    if (take_run(out, 1) || take_steps(out)) return true;
    const Op& op = body_->ops[index(op_)];
    if (op.kind == OpKind::loop)
      enter_loop(op);
    else if (op.kind == OpKind::end_loop)
      leave_or_repeat_loop();
    else
      ++op_;
  }
  return false;
}

}  // namespace hemiola::program
