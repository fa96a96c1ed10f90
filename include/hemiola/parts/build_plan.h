// Small words for writing plans by hand: used by the built-in algorithms, too.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "hemiola/parts/plan.h"

namespace hemiola::plan {

/// (rank + distance + step * i) mod ranks, with i the counter of the outermost loop.
constexpr Affine around(std::int64_t ranks, std::int64_t distance, std::int64_t step = 0) {
  return {.constant = distance, .rank = 1, .loop = {step, 0}, .modulus = ranks};
}
/// first + i, with i the counter of the outermost loop.
constexpr Affine counting(std::int64_t first = 0) {
  return {.constant = first, .loop = {1, 0}};
}

/// `value` times `factor`, plus `add`.
constexpr Affine scaled(Affine value, std::int64_t factor, std::int64_t add = 0) {
  value.scale *= factor;
  value.offset = value.offset * factor + add;
  return value;
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

inline Transfer after(Transfer transfer, Dependency dependency) {
  transfer.after.push_back(std::move(dependency));
  return transfer;
}

/// The same, once all tiles of `rank` that make some of the region are done.
inline Transfer when_computed(Transfer transfer, const Affine& rank, const Region& region) {
  return after(std::move(transfer), {rank, 0, {}, region});
}
/// A collective with a sum of all ranks, which are the plan's only group.
inline Transfer collective_of(Collective collective, const Region& source,
                              const Region& destination) {
  Transfer transfer{.kind = TransferKind::collective, .source = source, .destination = destination};
  transfer.reduce = ReduceOp::sum;
  transfer.group = 0;
  transfer.collective = collective;
  return transfer;
}

/// Appends `count` iterations; nothing for count 0.
inline void repeat(Stream& stream, std::int64_t count, std::vector<Item> items) {
  if (count > 0) stream.items.push_back(Loop{count, std::move(items)});
}
inline void repeat(Stream& stream, std::int64_t count, Transfer transfer) {
  if (count > 0) stream.items.push_back(Loop{count, {std::move(transfer)}});
}

/// The dependency on a transfer, for use by any rank.
inline Dependency done(std::int64_t rank, std::int32_t stream, std::int64_t number) {
  return {constant(rank), stream, constant(number), {}};
}

/// All ranks run the only code, or each its own.
inline void run_codes(Plan& plan, std::vector<Code> codes) {
  plan.codes = std::move(codes);
  plan.code_of.clear();
  for (std::int32_t rank = 0; rank < plan.ranks; ++rank)
    plan.code_of.push_back(plan.codes.size() == 1 ? 0 : rank);
}

/// Writes plans in which every rank has a code of its own: transfers are appended one by one.
class RankByRank {
 public:
  explicit RankByRank(int ranks) : codes_(size(ranks)) {}

  /// All ranks get a stream `name`; its index.
  std::int32_t add_stream(const std::string& name) {
    for (Code& code : codes_) code.streams.push_back({name, {}, {}});
    return static_cast<std::int32_t>(codes_.front().streams.size()) - 1;
  }

  /// The dependency on what was added. What an earlier transfer of the stream waits for, and
  /// earlier copies and pulls of the stream, are not waited for again.
  Dependency add(std::int64_t rank, std::int32_t stream, Transfer transfer) {
    std::vector<Item>& items = codes_[size(rank)].streams[size(stream)].items;
    auto& waited = waited_[{rank, stream}];
    const auto number = static_cast<std::int64_t>(items.size());
    std::erase_if(transfer.after, [&](const Dependency& d) {
      return d.on_transfer() &&
             !waited.insert({d.rank.constant, d.stream, d.transfer.constant}).second;
    });
    // What stays on this rank is complete before what its stream does later.
    const std::vector<Dependency> all = transfer.after;
    std::erase_if(transfer.after, [&](const Dependency& d) {
      if (!d.on_transfer() || d.rank.constant != rank) return false;
      const bool is_local =
          waited_[{rank, d.stream}].contains({rank, d.stream, d.transfer.constant});
      return is_local && std::ranges::any_of(all, [&](const Dependency& other) {
               return other.on_transfer() && other.rank.constant == rank &&
                      other.stream == d.stream && other.transfer.constant > d.transfer.constant;
             });
    });
    const bool stays = transfer.kind == TransferKind::copy || transfer.kind == TransferKind::pull;
    if (stays) waited.insert({rank, stream, number});
    items.emplace_back(std::move(transfer));
    return done(rank, stream, number);
  }

  void finish(Plan& plan) { run_codes(plan, std::move(codes_)); }

 private:
  static std::size_t size(std::int64_t i) { return static_cast<std::size_t>(i); }
  std::vector<Code> codes_;
  /// By rank and stream: (rank, stream, transfer) that are complete when its next one starts.
  std::map<std::pair<std::int64_t, std::int32_t>,
           std::set<std::tuple<std::int64_t, std::int32_t, std::int64_t>>>
      waited_;
};

/// Every rank runs `stream`.
inline void run_everywhere(Plan& plan, Stream stream) {
  run_codes(plan, {Code{{std::move(stream)}}});
}

}  // namespace hemiola::plan
