#include <algorithm>

#include "program/walk/cursor.h"

namespace hemiola::program {
namespace {

/// The index after the end_loop that closes the loop at `begin`.
std::int32_t after_loop(const std::vector<Op>& ops, std::int32_t begin) {
  int depth = 0;
  auto at = index(begin);
  for (; at < ops.size(); ++at) {
    if (ops[at].kind == OpKind::loop) ++depth;
    if (ops[at].kind == OpKind::end_loop && --depth == 0) return static_cast<std::int32_t>(at) + 1;
  }
  return static_cast<std::int32_t>(at);
}

}  // namespace

Cursor::Cursor(const Bound& bound, int rank, std::int32_t body, std::int32_t frame)
    : bound_(&bound),
      frame_(&bound.frame(frame)),
      program_(frame_->program.get()),
      body_(&bound.bodies().at(index(body))),
      rank_(rank),
      iteration_(frame_->call) {
  indices_.rank = frame_->own_of(rank);
  networks_.fill({-1, false});
}

bool Cursor::next(Primitive& out) {
  return advance(out, nullptr);
}

bool Cursor::next(Primitive& out, ComputeSteps& steps, std::int64_t pieces) {
  steps.clear();
  return advance(out, &steps, pieces);
}

bool Cursor::advance(Primitive& out, ComputeSteps* steps, std::int64_t pieces) {
  const std::vector<Op>& ops = body_->ops;
  while (op_ < static_cast<std::int32_t>(ops.size())) {
    const bool at_start = stage_ == 0 && part_ == 0;
    if (steps != nullptr && at_start && (take_run(*steps, pieces) || take_steps(*steps))) {
      out.reset(steps->op());
      out.type = frame_->type;
      out.kind = PrimitiveKind::compute;
      out.posted = true;
      return true;
    }
    if (op_ == static_cast<std::int32_t>(ops.size())) break;  // behind a table at the end
    const Op& op = ops[index(op_)];
    if (op.kind == OpKind::loop) {
      enter_loop(op);
      continue;
    }
    if (op.kind == OpKind::end_loop) {
      leave_or_repeat_loop();
      continue;
    }
    out.reset(op_);
    out.type = frame_->type;
    if (expand(op, out)) return true;
    ++op_;
    stage_ = 0;
    part_ = 0;
  }
  if (!posted_) return false;
  posted_ = false;  // nothing is left under way at the end
  out.reset(op_ - 1);
  out.kind = PrimitiveKind::flush;
  return true;
}

void Cursor::repeat() {
  iteration_ += frame_->calls;
  rewind();
}

void Cursor::restart(std::int64_t repetition, const Totals& totals) {
  iteration_ = frame_->call + repetition * frame_->calls;
  before_ = &totals;
  counts_.clear();
  rewind();
}

void Cursor::leave(Totals& totals) const {
  for (const auto& [key, count] : counts_) totals[key] = count;
}

void Cursor::rewind() {
  op_ = 0;
  stage_ = 0;
  part_ = 0;
  depth_ = 0;
  indices_.loop = {};
}

void Cursor::enter_loop(const Op& op) {
  std::int64_t count = op.count;
  if (op.unit.count > 0) {
    const std::int64_t bytes = op.unit_chunks * frame_->chunk_bytes;
    count = (bytes + op.unit.count - 1) / op.unit.count;
  }
  if (count <= 0 || depth_ >= static_cast<std::int32_t>(loops_.size())) {
    op_ = after_loop(body_->ops, op_);
    return;
  }
  ++op_;
  loops_[index(depth_)] = {op_, count, op.unit.count, op.pieces, op.places.data(), op.columns()};
  indices_.loop[index(depth_)] = 0;
  ++depth_;
}

void Cursor::leave_or_repeat_loop() {
  if (depth_ == 0) {  // an unmatched end; bind() rejects such bodies
    ++op_;
    return;
  }
  const auto inner = index(depth_ - 1);
  if (++indices_.loop[inner] < loops_[inner].count) {
    op_ = loops_[inner].begin;
    return;
  }
  indices_.loop[inner] = 0;
  --depth_;
  ++op_;
}

std::int64_t& Cursor::count_of(std::int64_t key) {
  const auto at =
      std::lower_bound(counts_.begin(), counts_.end(), key,
                       [](const auto& entry, std::int64_t k) { return entry.first < k; });
  if (at != counts_.end() && at->first == key) return at->second;
  std::int64_t begin = 0;
  if (before_ != nullptr) {
    const auto known = before_->find(key);
    if (known != before_->end()) begin = known->second;
  }
  return counts_.insert(at, {key, begin})->second;
}

}  // namespace hemiola::program
