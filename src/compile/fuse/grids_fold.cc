// Plans with two axes of a tensor as one, and with numbers in the place of expressions.
#include <algorithm>
#include <utility>

#include "compile/fuse/grids.h"
#include "core/index.h"

namespace hemiola::compile {
namespace {

class Folder {
 public:
  Folder(const plan::Plan& plan, const Folds& folds) : plan_(plan), folds_(folds) {}

  plan::Plan fold() const {
    plan::Plan made = plan_;
    for (std::size_t i = 0; i < made.tensors.size(); ++i) {
      if (folds_[i] < 0) continue;
      std::vector<std::int64_t>& shape = made.tensors[i].shape;
      const auto first = shape.begin() + folds_[i];
      *first *= *(first + 1);
      shape.erase(first + 1);
    }
    made.codes.clear();
    made.code_of.clear();
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      made.code_of.push_back(rank);
      made.codes.push_back(code_of(rank));
    }
    return made;
  }

 private:
  plan::Code code_of(int rank) const {
    const plan::Code& code = plan_.code(rank);
    const Indices here{.rank = rank};
    plan::Code made;
    for (const plan::Stream& stream : code.streams) {
      plan::Stream all{stream.name, {}, stream.channel};
      plan::for_each_transfer(stream, rank, [&](const plan::Transfer& transfer, const Indices& at) {
        all.items.emplace_back(with_numbers(transfer, at));
      });
      made.streams.push_back(std::move(all));
    }
    if (code.resident) {
      made.resident.emplace();
      for (const plan::Region& region : *code.resident)
        made.resident->push_back(with_numbers(region, here));
    }
    for (const plan::Expectation& one : code.expected) {
      plan::Expectation all{with_numbers(one.region, here), one.reduced};
      if (one.of) all.of = with_numbers(*one.of, here);
      if (one.holder) all.holder = constant((*one.holder)(here));
      made.expected.push_back(std::move(all));
    }
    return made;
  }

  plan::Transfer with_numbers(const plan::Transfer& transfer, const Indices& at) const {
    plan::Transfer made = transfer;
    made.peer = constant(transfer.peer(at));
    made.source = with_numbers(transfer.source, at);
    made.destination = with_numbers(transfer.destination, at);
    if (!transfer.operand.boxes.empty()) made.operand = with_numbers(transfer.operand, at);
    made.after.clear();
    for (const plan::Dependency& dependency : transfer.after) {
      if (dependency.compute) continue;
      plan::Dependency one{.rank = constant(dependency.rank(at)),
                           .stream = dependency.stream,
                           .transfer = constant(dependency.transfer(at))};
      if (dependency.computed) one.computed = with_numbers(*dependency.computed, at);
      made.after.push_back(std::move(one));
    }
    return made;
  }

  plan::Region with_numbers(const plan::Region& region, const Indices& at) const {
    const plan::Area area = plan::evaluate(region, at);
    const std::int32_t axis = folds_[index(area.tensor)];
    plan::Region made{area.tensor, {}};
    for (const plan::Rect& rect : area.rects) {
      const std::vector<plan::Rect> rects =
          axis < 0
              ? std::vector{rect}
              : folded(rect, index(axis), plan_.tensors[index(area.tensor)].shape[index(axis) + 1]);
      for (const plan::Rect& one : rects) {
        plan::Box& box = made.boxes.emplace_back();
        for (std::size_t i = 0; i < one.begin.size(); ++i)
          box.push_back({constant(one.begin[i]), one.end[i] - one.begin[i]});
      }
    }
    return made;
  }

  const plan::Plan& plan_;
  const Folds& folds_;
};

}  // namespace

std::vector<plan::Rect> folded(const plan::Rect& rect, std::size_t axis, std::int64_t length) {
  const auto at = static_cast<std::ptrdiff_t>(axis);
  const auto box = [&](std::int64_t begin, std::int64_t end) {
    plan::Rect made = rect;
    made.begin[axis] = begin;
    made.end[axis] = end;
    made.begin.erase(made.begin.begin() + at + 1);
    made.end.erase(made.end.begin() + at + 1);
    return made;
  };
  if (rect.begin[axis + 1] == 0 && rect.end[axis + 1] == length)
    return {box(rect.begin[axis] * length, rect.end[axis] * length)};
  std::vector<plan::Rect> rects;
  for (std::int64_t block = rect.begin[axis]; block < rect.end[axis]; ++block)
    rects.push_back(
        box(block * length + rect.begin[axis + 1], block * length + rect.end[axis + 1]));
  return rects;
}

plan::Plan with_folded_tensors(const plan::Plan& plan, const Folds& folds) {
  return Folder(plan, folds).fold();
}

}  // namespace hemiola::compile
