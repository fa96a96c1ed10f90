#include "verify/plans/atoms.h"

#include <algorithm>

#include "verify/plans/postconditions.h"

namespace hemiola::verify {

using plan::Area;
using plan::Rect;

namespace {

constexpr std::int64_t kMostAtoms = std::int64_t{1} << 24;
constexpr std::size_t kMostAxes = 16;

std::vector<std::size_t> long_axes(const Rect& rect) {
  std::vector<std::size_t> axes;
  for (std::size_t i = 0; i < rect.begin.size(); ++i)
    if (rect.end[i] - rect.begin[i] > 1) axes.push_back(i);
  return axes;
}

[[noreturn]] void too_fine(const plan::Plan& plan) {
  throw Failure("plan '" + plan.name + "' divides its tensors into more than " +
                    std::to_string(kMostAtoms) + " pieces over all ranks",
                {}, "fewer ranks, or regions whose borders coincide");
}

}  // namespace

bool Atoms::Axis::add(std::int64_t position) {
  if (identity || !all.insert(position).second) return false;
  cuts.push_back(position);
  return true;
}

void Atoms::Axis::sort() {
  std::ranges::sort(cuts);
  identity = pieces() == extent;
}

std::int64_t Atoms::Axis::find(std::int64_t position) const {
  if (identity) return position;
  return std::lower_bound(cuts.begin(), cuts.end(), position) - cuts.begin();
}

Atoms::Atoms(const Unrolled& unrolled, const Alignment& aligned) {
  const plan::Plan& plan = unrolled.plan();
  for (const plan::Tensor& tensor : plan.tensors) {
    std::vector<Axis>& axes = axes_.emplace_back();
    for (const std::int64_t extent : tensor.shape) {
      axes.push_back({extent, {}, {}, false});
      axes.back().add(0);
      axes.back().add(extent);
    }
    if (axes.size() > kMostAxes)
      throw Failure("tensor '" + tensor.name + "' has more than 16 axes");
  }
  cut_everything(unrolled, aligned);
  const auto sort_all = [&] {
    for (std::vector<Axis>& axes : axes_)
      for (Axis& axis : axes) axis.sort();
  };
  sort_all();
  collect_pairs(unrolled, aligned);
  for (bool changed = true; changed;) {
    changed = false;
    for (const Pair& pair : pairs_) changed = carry(pair) || changed;
    if (changed) sort_all();
    std::int64_t total = 0;
    for (const std::vector<Axis>& axes : axes_) {
      std::int64_t atoms = 1;
      for (const Axis& axis : axes) {
        atoms *= axis.pieces();
        if (atoms * plan.ranks > kMostAtoms) too_fine(plan);
      }
      total += atoms;
    }
    if (total * plan.ranks > kMostAtoms) too_fine(plan);
  }
  pairs_.clear();
  first_.push_back(0);
  for (std::vector<Axis>& axes : axes_) {
    std::int64_t atoms = 1;
    for (Axis& axis : axes) {
      atoms *= axis.pieces();
      axis.all.clear();
    }
    first_.push_back(first_.back() + static_cast<std::int32_t>(atoms));
  }
}

void Atoms::cut(const Area& area) {
  std::vector<Axis>& own = axes(area.tensor);
  for (const Rect& rect : area.rects) {
    for (std::size_t i = 0; i < own.size(); ++i) {
      own[i].add(rect.begin[i]);
      own[i].add(rect.end[i]);
    }
  }
}

// As above without a detour over areas: this is done for every transfer.
void Atoms::cut(const plan::Region& region, const Indices& at) {
  std::vector<Axis>& own = axes(region.tensor);
  for (const plan::Box& box : region.boxes) {
    for (std::size_t i = 0; i < own.size(); ++i) {
      const std::int64_t begin = box[i].begin(at);
      own[i].add(begin);
      own[i].add(begin + box[i].extent);
    }
  }
}

void Atoms::cut_everything(const Unrolled& unrolled, const Alignment& aligned) {
  const plan::Plan& plan = unrolled.plan();
  unrolled.each_transfer([&](TransferId id) {
    const plan::Transfer& transfer = unrolled.transfer(id);
    const Indices at = unrolled.at(id);
    cut(transfer.source, at);
    cut(transfer.destination, at);
    if (transfer.reduce != ReduceOp::none && transfer.group < 0) cut(transfer.operand, at);
    for (const plan::Dependency& dependency : transfer.after)
      if (dependency.computed) cut(*dependency.computed, at);
  });
  for (const Movement& movement : unrolled.movements_of_meetings()) {
    cut(movement.destination);
    for (const auto& [rank, area] : movement.sources) cut(area);
  }
  for (int rank = 0; rank < plan.ranks; ++rank) {
    const plan::Code& code = plan.code(rank);
    if (code.resident)
      for (const plan::Region& region : *code.resident) cut(region, {.rank = rank});
    for (const plan::Compute& compute : code.computes) {
      for (const plan::ComputeOperand& operand : compute.operands) {
        std::vector<Axis>& own = axes(operand.tensor);
        for (std::size_t i = 0; i < operand.axes.size(); ++i) {
          if (operand.axes[i] < 0) continue;
          const plan::ComputeAxis& axis = compute.axes[index(operand.axes[i])];
          const std::int64_t first = operand.first(i, rank);
          const std::int64_t extent = plan.tensors[index(operand.tensor)].shape[i];
          const auto place = [&](std::int64_t at) { return operand.wrapped(first + at, extent); };
          for (std::int64_t at = 0; at < axis.extent; at += axis.tile) own[i].add(place(at));
          own[i].add(place(axis.extent));
        }
      }
    }
  }
  for (const auto& [a, b] : aligned) {
    cut(a);
    cut(b);
  }
}

// Boxes of the same shape, but for axes of length one, keep their atoms' shapes; others go element
// by element.
void Atoms::pair(const Area& a, const Area& b) {
  bool alike = a.rects.size() == b.rects.size();
  for (std::size_t i = 0; alike && i < a.rects.size(); ++i) {
    const std::vector<std::size_t> x = long_axes(a.rects[i]), y = long_axes(b.rects[i]);
    alike = x.size() == y.size();
    for (std::size_t k = 0; alike && k < x.size(); ++k) {
      alike = a.rects[i].end[x[k]] - a.rects[i].begin[x[k]] ==
              b.rects[i].end[y[k]] - b.rects[i].begin[y[k]];
    }
  }
  if (alike) {
    for (std::size_t i = 0; i < a.rects.size(); ++i)
      if (a.rects[i].elements() > 1) pairs_.push_back({a.tensor, b.tensor, a.rects[i], b.rects[i]});
    return;
  }
  for (const Rect& rect : a.rects) divide(a.tensor, rect);
  for (const Rect& rect : b.rects) divide(b.tensor, rect);
}

void Atoms::collect_pairs(const Unrolled& unrolled, const Alignment& aligned) {
  const auto add = [&](const std::vector<Movement>& movements) {
    for (const Movement& movement : movements) {
      for (const auto& [rank, area] : movement.sources)
        if (area.elements() > 1) pair(area, movement.destination);
    }
  };
  unrolled.each_transfer([&](TransferId id) {
    const plan::Transfer& transfer = unrolled.transfer(id);
    if (transfer.kind != plan::TransferKind::collective && transfer.source.elements() > 1)
      add(unrolled.movements(id));
  });
  add(unrolled.movements_of_meetings());
  for (const auto& [a, b] : aligned)
    if (a.elements() > 1) pair(a, b);
  std::ranges::sort(pairs_);
  pairs_.erase(std::unique(pairs_.begin(), pairs_.end()), pairs_.end());
  for (std::vector<Axis>& axes : axes_)
    for (Axis& axis : axes) axis.sort();
}

bool Atoms::carry(const Pair& pair) {
  const std::vector<std::size_t> x = long_axes(pair.a), y = long_axes(pair.b);
  bool changed = false;
  for (std::size_t k = 0; k < x.size(); ++k) {
    changed = carry(pair.a_tensor, pair.a, x[k], pair.b_tensor, pair.b, y[k]) || changed;
    changed = carry(pair.b_tensor, pair.b, y[k], pair.a_tensor, pair.a, x[k]) || changed;
  }
  return changed;
}

bool Atoms::carry(std::int32_t from, const Rect& a, std::size_t a_axis, std::int32_t to,
                  const Rect& b, std::size_t b_axis) {
  const std::vector<std::int64_t>& cuts = axes(from)[a_axis].cuts;
  Axis& other = axes(to)[b_axis];
  bool changed = false;
  // By index: `other` may be the same axis, and adding appends to it.
  const std::size_t sorted = cuts.size();
  for (std::size_t i = 0; i < sorted; ++i) {
    if (cuts[i] <= a.begin[a_axis] || cuts[i] >= a.end[a_axis]) continue;
    changed = other.add(cuts[i] - a.begin[a_axis] + b.begin[b_axis]) || changed;
  }
  return changed;
}

void Atoms::divide(std::int32_t tensor, const Rect& rect) {
  for (std::size_t i = 0; i < rect.begin.size(); ++i) {
    if (rect.end[i] - rect.begin[i] > kMostAtoms)
      throw Failure("a transfer reshapes a region of more than 2^24 elements along one axis", {},
                    "give source and destination the same shape");
    for (std::int64_t at = rect.begin[i]; at <= rect.end[i]; ++at) axes(tensor)[i].add(at);
  }
}

void Atoms::append(std::int32_t tensor, const std::int64_t* begin, const std::int64_t* end,
                   std::vector<std::int32_t>& out) const {
  const std::vector<Axis>& own = axes(tensor);
  std::int64_t low[kMostAxes], high[kMostAxes], now[kMostAxes];
  const std::size_t count = own.size();
  for (std::size_t i = 0; i < count; ++i) {
    low[i] = now[i] = own[i].find(begin[i]);
    high[i] = own[i].find(end[i]);
  }
  while (true) {
    std::int64_t row = 0;
    for (std::size_t i = 0; i + 1 < count; ++i) row = (row + now[i]) * own[i + 1].pieces();
    const std::int64_t base = first_[index(tensor)] + row;
    for (std::int64_t k = low[count - 1]; k < high[count - 1]; ++k)
      out.push_back(static_cast<std::int32_t>(base + k));
    std::size_t axis = count - 1;
    while (axis > 0 && ++now[axis - 1] == high[axis - 1]) {
      now[axis - 1] = low[axis - 1];
      --axis;
    }
    if (axis == 0) return;
  }
}

void Atoms::append(const Area& area, std::vector<std::int32_t>& out) const {
  for (const Rect& rect : area.rects) append(area.tensor, rect.begin.data(), rect.end.data(), out);
}

void Atoms::append(const plan::Region& region, const Indices& at,
                   std::vector<std::int32_t>& out) const {
  std::int64_t begin[kMostAxes], end[kMostAxes];
  for (const plan::Box& box : region.boxes) {
    for (std::size_t i = 0; i < box.size(); ++i) {
      begin[i] = box[i].begin(at);
      end[i] = begin[i] + box[i].extent;
    }
    append(region.tensor, begin, end, out);
  }
}

std::vector<std::int32_t> Atoms::of(const Area& area) const {
  std::vector<std::int32_t> out;
  append(area, out);
  return out;
}

std::int32_t Atoms::tensor(std::int32_t atom) const {
  return static_cast<std::int32_t>(std::upper_bound(first_.begin(), first_.end(), atom) -
                                   first_.begin()) -
         1;
}

Area Atoms::area(std::int32_t atom) const {
  const std::int32_t tensor = this->tensor(atom);
  const std::vector<Axis>& own = axes(tensor);
  std::int64_t rest = atom - first_[index(tensor)];
  Rect rect{std::vector<std::int64_t>(own.size()), std::vector<std::int64_t>(own.size())};
  for (std::size_t i = own.size(); i-- > 0;) {
    const auto piece = index(rest % own[i].pieces());
    rest /= own[i].pieces();
    rect.begin[i] = own[i].cuts[piece];
    rect.end[i] = own[i].cuts[piece + 1];
  }
  return {tensor, {rect}};
}

Atoms::Alignment alignment(const plan::Plan& plan, const Postconditions& postconditions) {
  Atoms::Alignment aligned;
  // Every output part corresponds to every input part; pairs with one of them say so.
  for (const plan::Area& output : postconditions.outputs)
    aligned.emplace_back(output, postconditions.inputs.front());
  for (const plan::Area& input : postconditions.inputs)
    aligned.emplace_back(input, postconditions.inputs.front());
  for (int rank = 0; rank < plan.ranks; ++rank) {
    for (const plan::Expectation& expectation : plan.code(rank).expected) {
      const plan::Area area = evaluate(expectation.region, {.rank = rank});
      aligned.emplace_back(area, expectation.of ? evaluate(*expectation.of, {.rank = rank}) : area);
    }
  }
  return aligned;
}

}  // namespace hemiola::verify
