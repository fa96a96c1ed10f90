#include "plan/plan.h"

#include <functional>
#include <numeric>

#include "core/names.h"

namespace hemiola::plan {

std::string_view name_of(Role role) {
  constexpr auto kNames =
      std::to_array<std::string_view>({"input", "output", "scratch", "transit"});
  return name_in(kNames, role);
}

std::string_view name_of(TransferKind kind) {
  constexpr auto kNames = std::to_array<std::string_view>({"push", "pull", "copy", "collective"});
  return name_in(kNames, kind);
}

std::string_view name_of(Use use) {
  constexpr auto kNames = std::to_array<std::string_view>({"read", "write", "accumulate", "add"});
  return name_in(kNames, use);
}

std::string_view name_of(Waits waits) {
  constexpr auto kNames = std::to_array<std::string_view>({"tiles", "launch"});
  return name_in(kNames, waits);
}

std::int64_t Tensor::elements() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::vector<std::int64_t> Tensor::layout() const {
  if (!strides.empty()) return strides;
  std::vector<std::int64_t> dense(shape.size(), 1);
  for (std::size_t axis = shape.size(); axis-- > 1;) dense[axis - 1] = dense[axis] * shape[axis];
  return dense;
}

std::int64_t Tensor::span() const {
  const std::vector<std::int64_t> steps = layout();
  std::int64_t last = 0;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) last += (shape[axis] - 1) * steps[axis];
  return last + 1;
}

std::int64_t Region::elements() const {
  std::int64_t total = 0;
  for (const Box& box : boxes) {
    std::int64_t product = 1;
    for (const Range& range : box) product *= range.extent;
    total += product;
  }
  return total;
}

const Code& Plan::code(int rank) const {
  return codes[static_cast<std::size_t>(code_of[static_cast<std::size_t>(rank)])];
}

const Stream& Plan::stream(int rank, std::int32_t index) const {
  return code(rank).streams[static_cast<std::size_t>(index)];
}

namespace {

std::int64_t count_items(const std::vector<Item>& items) {
  std::int64_t total = 0;
  for (const Item& item : items)
    if (const auto* loop = std::get_if<Loop>(&item))
      total += loop->count > 0 ? loop->count * count_items(loop->items) : 0;
    else
      ++total;
  return total;
}

void visit_items(const std::vector<Item>& items, Indices& at, std::size_t depth,
                 const std::function<void(const Transfer&, const Indices&)>& visit) {
  for (const Item& item : items) {
    if (const auto* transfer = std::get_if<Transfer>(&item)) {
      visit(*transfer, at);
      continue;
    }
    const Loop& loop = std::get<Loop>(item);
    if (depth >= at.loop.size()) throw Failure("loops of a plan nest too deeply (at most two)");
    for (std::int64_t i = 0; i < loop.count; ++i) {
      at.loop[depth] = i;
      visit_items(loop.items, at, depth + 1, visit);
    }
    at.loop[depth] = 0;
  }
}

}  // namespace

std::int64_t count_transfers(const Stream& stream) {
  return count_items(stream.items);
}

std::int64_t count_transfers(const Plan& plan) {
  std::int64_t transfers = 0;
  for (int rank = 0; rank < plan.ranks; ++rank)
    for (const Stream& stream : plan.code(rank).streams) transfers += count_transfers(stream);
  return transfers;
}

void for_each_transfer(const Stream& stream, int rank,
                       const std::function<void(const Transfer&, const Indices&)>& visit) {
  Indices at;
  at.rank = rank;
  visit_items(stream.items, at, 0, visit);
}

}  // namespace hemiola::plan
