#include "compile/readback/body.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/index.h"

namespace hemiola::compile::readback {
namespace {

using program::Op;
using program::OpKind;

/// By axis, from the slowest: how many, and the stride of each region.
struct JointAxis {
  std::int64_t count = 1;
  std::vector<std::int64_t> strides;
};

std::vector<std::pair<std::int64_t, std::int64_t>> axes_of(const Region& region) {
  std::vector<std::pair<std::int64_t, std::int64_t>> made;
  for (const auto& axis : region.axes)
    if (axis.first > 1) made.push_back(axis);
  return made;
}

/// One axis where all elements lie in a row.
bool is_row(const Region& region) {
  std::int64_t stride = 1;
  const auto axes = axes_of(region);
  for (std::size_t i = axes.size(); i-- > 0;) {
    if (axes[i].second != stride) return false;
    stride *= axes[i].first;
  }
  return true;
}

std::vector<JointAxis> joint(const std::vector<const Region*>& regions) {
  std::vector<JointAxis> made;
  const auto first = axes_of(*regions.front());
  for (const auto& [count, stride] : first) made.push_back({count, {stride}});
  for (std::size_t r = 1; r < regions.size(); ++r) {
    const auto axes = axes_of(*regions[r]);
    bool is_same = axes.size() == first.size();
    for (std::size_t i = 0; is_same && i < axes.size(); ++i) {
      is_same = axes[i].first == first[i].first;
      made[i].strides.push_back(axes[i].second);
    }
    if (is_same) continue;
    const bool are_rows =
        std::ranges::all_of(regions, [](const Region* one) { return is_row(*one); });
    if (!are_rows || regions[r]->elements() != regions.front()->elements()) return {};
    return {{regions.front()->elements(), std::vector<std::int64_t>(regions.size(), 1)}};
  }
  // Neighbours that lie behind each other are one.
  for (std::size_t i = made.size(); i-- > 1;) {
    bool is_one = true;
    for (std::size_t r = 0; r < regions.size(); ++r)
      is_one = is_one && made[i - 1].strides[r] == made[i].strides[r] * made[i].count;
    if (!is_one) continue;
    made[i - 1].count *= made[i].count;
    made[i - 1].strides = made[i].strides;
    made.erase(made.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (made.empty()) made.push_back({1, std::vector<std::int64_t>(regions.size(), 1)});
  return made;
}

}  // namespace

std::vector<Strip> strips_of(const std::vector<const Region*>& given) {
  std::vector<const Region*> regions = given;
  Region sorted;
  if (regions.size() == 1) {
    sorted = *regions.front();
    std::ranges::stable_sort(sorted.axes,
                             [](const auto& a, const auto& b) { return a.second > b.second; });
    regions = {&sorted};
  }
  std::vector<JointAxis> axes = joint(regions);
  if (axes.empty()) return {};
  Strip strip;
  for (const Region* region : regions) strip.offsets.push_back(region->offset);
  const auto& last = axes.back().strides;
  if (std::ranges::all_of(last, [](std::int64_t stride) { return stride == 1; })) {
    strip.run = axes.back().count;
    axes.pop_back();
  }
  strip.pitches.assign(regions.size(), strip.run);
  if (!axes.empty()) {
    strip.rows = axes.back().count;
    strip.pitches = axes.back().strides;
    axes.pop_back();
  }
  std::vector<Strip> made{std::move(strip)};
  std::int64_t strips = 1;
  for (const JointAxis& axis : axes) strips = times(strips, axis.count);
  if (strips > kMostStrips) return {};
  for (std::size_t i = axes.size(); i-- > 0;) {
    std::vector<Strip> more;
    for (std::int64_t k = 0; k < axes[i].count; ++k) {
      for (Strip one : made) {
        for (std::size_t r = 0; r < regions.size(); ++r) one.offsets[r] += k * axes[i].strides[r];
        more.push_back(std::move(one));
      }
    }
    made = std::move(more);
  }
  return made;
}

std::string BodyWriter::line_of(const Reading& reading, const Node& node) {
  return fmt::format("line {}", reading.walker.module().source.line(node.begin));
}

void BodyWriter::add(Op op, const Node* node) {
  remember(op, node);
  op.where = line_of(target_.reading, *node);
  body_.ops.push_back(std::move(op));
}

void BodyWriter::remember(const Op& op, const Node* node) {
  constexpr std::size_t kWord = 8;
  const std::size_t words = sizeof op / kWord +
                            (op.src.size() + op.dst.size()) * (sizeof(program::Operand) / kWord) +
                            (op.semaphores.size() + op.targets.size()) * 4;
  target_.reading.walker.remember(*node, static_cast<std::int64_t>(words));
}

program::Operand BodyWriter::operand(const Region& region, const Strip& strip,
                                     std::size_t which) const {
  const Tensor& tensor = target_.reading.records.front().tensors[index(region.tensor)];
  const std::int64_t size = size_of(tensor.type);
  bool is_whole = true;
  const auto chunks = [&](std::int64_t elements) {
    is_whole = is_whole && elements * size % target_.unit == 0;
    return elements * size / target_.unit;
  };
  program::Operand made{.rank = region.rank == target_.rank ? own_rank() : constant(region.rank),
                        .buffer = region.tensor,
                        .chunk = constant(chunks(strip.offsets[which])),
                        .chunks = chunks(strip.run * strip.rows)};
  if (strip.rows > 1 && strip.pitches[which] != strip.run) {
    made.run = chunks(strip.run);
    made.pitch = chunks(strip.pitches[which]);
  }
  if (!is_whole)
    target_.reading.walker.refuse(target_.reading.walker.module().source.root(),
                                  "a kernel that touches other memory for what a count gives it");
  return made;
}

std::vector<Strip> BodyWriter::paired(const HostOp& op) const {
  std::vector<const Region*> regions;
  for (const Region& region : op.regions) regions.push_back(&region);
  for (const Region* region : regions)
    if (region->elements() != regions.front()->elements())
      target_.reading.walker.wrong(*op.node,
                                   fmt::format("{} elements are moved to {}", region->elements(),
                                               regions.front()->elements()));
  const std::vector<Strip> strips = strips_of(regions);
  if (strips.empty())
    target_.reading.walker.refuse(*op.node,
                                  "a movement between views of different shapes, of "
                                  "which one is no row of memory, or of too many pieces");
  return strips;
}

void BodyWriter::transfer(const HostOp& op, std::int64_t slice, std::int64_t slices) {
  for (const Strip& strip : paired(op)) move(strip, op.regions, op.node, slice, slices);
}

void BodyWriter::move(const Strip& strip, const std::vector<Region>& regions, const Node* node,
                      std::int64_t slice, std::int64_t slices) {
  const bool pushes = regions[0].rank != target_.rank;
  const bool pulls = std::any_of(regions.begin() + 1, regions.end(),
                                 [&](const Region& region) { return region.rank != target_.rank; });
  const bool adds = regions.size() > 2;
  if (pushes && pulls && !adds)
    target_.reading.walker.refuse(*node, "a copy from one peer to another");
  Op made{.kind = adds     ? pulls ? (pushes ? OpKind::read_reduce_send : OpKind::read_reduce)
                                   : (pushes ? OpKind::reduce_send : OpKind::reduce)
                  : pushes ? OpKind::put
                  : pulls  ? OpKind::get
                           : OpKind::copy,
          .channel = pushes || pulls ? program::Channel::any : program::Channel::none};
  if (adds) made.reduce = ReduceOp::sum;
  made.dst = {operand(regions[0], strip, 0)};
  for (std::size_t i = 1; i < regions.size(); ++i)
    made.src.push_back(operand(regions[i], strip, i));
  made.slice = static_cast<std::int32_t>(slice);
  made.slices = static_cast<std::int32_t>(slices);
  add(std::move(made), node);
}

void BodyWriter::through_switch(const HostOp& op, std::int32_t group, std::int64_t slice,
                                std::int64_t slices) {
  const bool stores = op.kind == HostOp::Kind::to_all;
  for (const Strip& strip : paired(op)) {
    Op made{.kind = stores ? OpKind::group_store : OpKind::group_load_reduce,
            .channel = program::Channel::switch_};
    if (!stores) made.reduce = ReduceOp::sum;
    made.dst = {operand(op.regions[0], strip, 0)};
    made.src = {operand(op.regions[1], strip, 1)};
    program::Operand& shared = stores ? made.dst.front() : made.src.front();
    shared.access = program::Access::multicast;
    shared.group = group;
    made.slice = static_cast<std::int32_t>(slice);
    made.slices = static_cast<std::int32_t>(slices);
    add(std::move(made), op.node);
  }
}

void BodyWriter::zero(const HostOp& op) {
  for (const Strip& strip : paired(op)) {
    Op made{.kind = OpKind::compute};
    made.dst = {operand(op.regions[0], strip, 0)};
    add(std::move(made), op.node);
  }
}

void BodyWriter::signal(int to, std::int64_t slot, const Node* node) {
  Op made{.kind = OpKind::dep_signal,
          .channel = to == target_.rank ? program::Channel::none : program::Channel::any};
  made.semaphores = {
      {to == target_.rank ? own_rank() : constant(to), static_cast<std::int32_t>(slot)}};
  add(std::move(made), node);
}

void BodyWriter::wait(std::int64_t slot, std::int64_t step, const Node* node) {
  Op made{.kind = OpKind::dep_wait};
  made.semaphores = {{own_rank(), static_cast<std::int32_t>(slot)}};
  target_.waits.push_back({.rank = target_.rank,
                           .slot = slot,
                           .step = step,
                           .body = PendingWait::kOpen,
                           .op = body_.ops.size()});
  add(std::move(made), node);
}

std::int64_t Region::elements() const {
  std::int64_t made = 1;
  for (const auto& [count, stride] : axes) made *= count;
  return made;
}

std::int64_t processors_beside(const RankRecord& record, std::int64_t processors) {
  if (processors <= 0) return processors;  // as many as there are tiles
  for (const Movers& movers : record.movers) processors -= movers.workgroups;
  return std::max<std::int64_t>(processors, 1);
}

}  // namespace hemiola::compile::readback
