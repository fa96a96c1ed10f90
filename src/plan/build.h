// Small words for writing plans by hand: used by the templates and by tests.
#pragma once

#include <utility>

#include "plan/plan.h"

namespace hemiola::plan {

/// (rank + distance + step * i) mod ranks, with i the counter of the outermost loop.
constexpr Affine around(std::int64_t ranks, std::int64_t distance, std::int64_t step = 0) {
  return {.constant = distance, .rank = 1, .loop = {step, 0}, .modulus = ranks};
}
/// first + i, with i the counter of the outermost loop.
constexpr Affine counting(std::int64_t first = 0) {
  return {.constant = first, .loop = {1, 0}};
}

inline Region chunks_of(std::int32_t tensor, const Affine& first, std::int64_t count) {
  return {tensor, {{{first, count}}}};
}
inline Region chunk_of(std::int32_t tensor, const Affine& chunk = {}) {
  return {tensor, {{{chunk, 1}}}};
}
inline Transfer push(const Affine& peer, const Region& source, const Region& destination) {
  return {.kind = TransferKind::push, .peer = peer, .source = source, .destination = destination};
}
inline Transfer pull(const Affine& peer, const Region& source, const Region& destination) {
  return {.kind = TransferKind::pull, .peer = peer, .source = source, .destination = destination};
}
inline Transfer copy(const Region& source, const Region& destination) {
  return {.kind = TransferKind::copy, .source = source, .destination = destination};
}
/// The same, reduced with `operand`. Sum stands for whatever operator the collective is run with.
inline Transfer reducing(Transfer transfer, const Region& operand) {
  transfer.reduce = ReduceOp::sum;
  transfer.operand = operand;
  return transfer;
}
/// The same, reduced into what its destination holds.
inline Transfer accumulating(Transfer transfer) {
  const Region destination = transfer.destination;
  return reducing(std::move(transfer), destination);
}
inline Transfer after(Transfer transfer, const Affine& rank, const Affine& number,
                      std::int32_t stream = 0) {
  transfer.after.push_back({rank, stream, number, {}});
  return transfer;
}

/// Appends `count` iterations; nothing for count 0.
inline void repeat(Stream& stream, std::int64_t count, Transfer transfer) {
  if (count > 0) stream.items.push_back(Loop{count, {std::move(transfer)}});
}

/// Every rank runs `stream`.
inline void run_everywhere(Plan& plan, Stream stream) {
  plan.codes = {Code{{std::move(stream)}}};
  plan.code_of.assign(static_cast<std::size_t>(plan.ranks), 0);
}

}  // namespace hemiola::plan
