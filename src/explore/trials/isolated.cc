#include "explore/trials/isolated.h"

#include <algorithm>

namespace hemiola::explore {
namespace {

void drop_computed(std::vector<plan::Item>& items) {
  for (plan::Item& item : items) {
    if (auto* loop = std::get_if<plan::Loop>(&item))
      drop_computed(loop->items);
    else
      std::erase_if(std::get<plan::Transfer>(item).after,
                    [](const plan::Dependency& after) { return !after.on_transfer(); });
  }
}

std::int64_t bytes_of(const plan::Plan& plan, std::int32_t tensor, std::int64_t elements) {
  const plan::Tensor& of = plan.tensors[index(tensor)];
  return elements * (of.type ? size_of(*of.type) : 1);
}

}  // namespace

plan::Plan only_computes(const plan::Plan& plan) {
  plan::Plan alone = plan;
  for (plan::Code& code : alone.codes) {
    for (plan::Stream& stream : code.streams) stream.items.clear();
    for (plan::Compute& compute : code.computes)
      std::erase_if(compute.after,
                    [](const plan::Dependency& after) { return after.on_transfer(); });
    code.expected.clear();
  }
  return alone;
}

plan::Plan only_transfers(const plan::Plan& plan) {
  plan::Plan alone = plan;
  for (plan::Code& code : alone.codes) {
    for (plan::Stream& stream : code.streams) drop_computed(stream.items);
    code.computes.clear();
    code.expected.clear();
  }
  return alone;
}

Bytes extra_traffic(const plan::Plan& plan) {
  std::int64_t bytes = 0;
  const plan::Code& code = plan.code(0);
  for (const plan::Stream& stream : code.streams) {
    plan::for_each_transfer(stream, 0, [&](const plan::Transfer& transfer, const Indices&) {
      if (transfer.kind != plan::TransferKind::copy) return;
      const int times = transfer.reduce == ReduceOp::none ? 2 : 3;
      bytes += times * bytes_of(plan, transfer.destination.tensor, transfer.destination.elements());
    });
  }
  for (const plan::Compute& compute : code.computes) {
    for (const plan::ComputeOperand& operand : compute.operands) {
      if (operand.use != plan::Use::add) continue;
      std::int64_t elements = 1;
      const auto& shape = plan.tensors[index(operand.tensor)].shape;
      for (std::size_t axis = 0; axis < operand.axes.size(); ++axis) {
        const std::int32_t follows = operand.axes[axis];
        elements *= follows < 0 ? shape[axis] : compute.axes[index(follows)].extent;
      }
      bytes += 2 * bytes_of(plan, operand.tensor, elements);
    }
  }
  return {bytes};
}

Bytes buffers(const plan::Plan& plan) {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < plan.tensors.size(); ++i)
    if (plan.tensors[i].role == plan::Role::scratch)
      bytes += bytes_of(plan, static_cast<std::int32_t>(i), plan.tensors[i].span());
  return {bytes};
}

KernelTimes::KernelTimes(const plan::Plan& plan) : plan_(plan.name) {
  // As lowering names kernels (program/lower/launches.h).
  std::int64_t most = -1;
  for (int rank = 0; rank < (plan.codes.size() > 1 ? plan.ranks : 1); ++rank) {
    std::int64_t points = 0;
    for (const plan::Compute& compute : plan.code(rank).computes) {
      std::int64_t of_one = 1;
      for (const plan::ComputeAxis& axis : compute.axes) of_one *= axis.extent;
      points += of_one;
    }
    if (points > most) rank_ = rank;
    most = std::max(most, points);
  }
  for (const plan::Compute& compute : plan.code(rank_).computes)
    names_.insert(plan.name + " " + compute.name);
}

void KernelTimes::stream(int rank, int, std::string_view name, Time begin, Time end) {
  if (rank != rank_) return;
  if (names_.contains(name)) computes_.emplace_back(begin, end);
  if (name == plan_) moves_.emplace_back(begin, end);
}

void KernelTimes::engine(int rank, std::string_view, std::string_view, Time begin, Time end,
                         const sim::FlowEnds&) {
  if (rank == rank_) moves_.emplace_back(begin, end);
}

Time KernelTimes::together(Spans spans) {
  std::ranges::sort(spans);
  Time sum{}, until{};
  for (const auto& [begin, end] : spans) {
    if (end <= until) continue;
    sum += end - std::max(begin, until);
    until = end;
  }
  return sum;
}

}  // namespace hemiola::explore
