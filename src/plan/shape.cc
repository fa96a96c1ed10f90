#include "plan/shape.h"

#include <string>

#include "hemiola/parts/build_plan.h"

namespace hemiola::plan {
namespace {

class Shaper {
 public:
  Shaper(const std::vector<std::int64_t>& shape, std::size_t axis, std::int64_t part)
      : shape_(shape), axis_(axis), part_(part) {}

  Tensor tensor(const Tensor& chunks, DataType type) const {
    std::vector<std::int64_t> shape = shape_;
    shape[axis_] = part_ * chunks.shape.front();
    return {chunks.name, chunks.role, std::move(shape), type};
  }

  void change(Region& region) const {
    for (Box& box : region.boxes) {
      const Range along{scaled(box.front().begin, part_), box.front().extent * part_};
      box.clear();
      for (const std::int64_t extent : shape_) box.push_back({{}, extent});
      box[axis_] = along;
    }
  }

  void change(std::vector<Item>& items) const {
    for (Item& item : items) {
      if (auto* loop = std::get_if<Loop>(&item)) {
        change(loop->items);
        continue;
      }
      auto& transfer = std::get<Transfer>(item);
      for (Region* region : {&transfer.source, &transfer.destination, &transfer.operand})
        change(*region);
      for (Dependency& dependency : transfer.after)
        if (dependency.computed) change(*dependency.computed);
    }
  }

 private:
  const std::vector<std::int64_t>& shape_;
  std::size_t axis_;
  std::int64_t part_;  ///< elements of a chunk along the axis
};

}  // namespace

Plan shaped(const Plan& plan, const std::vector<std::int64_t>& shape, DataType type,
            std::size_t axis) {
  if (plan.of_elements()) throw Failure("plan '" + plan.name + "' has its own shapes");
  for (const Tensor& tensor : plan.tensors) {
    if (tensor.shape.size() != 1)
      throw Failure("tensor '" + tensor.name + "' of plan '" + plan.name +
                    "' has several axes of chunks and cannot be given a shape");
  }
  if (axis >= shape.size())
    throw Failure(
        "a shape of " + std::to_string(shape.size()) + " axes has no axis " + std::to_string(axis),
        {}, "axes are numbered from 0");
  if (shape[axis] % plan.chunks_per_size != 0)
    throw Failure("axis " + std::to_string(axis) + " of " + std::to_string(shape[axis]) +
                      " elements does not divide into the " + std::to_string(plan.chunks_per_size) +
                      " chunks of '" + plan.name + "'",
                  {}, "its extent has to be a multiple of " + std::to_string(plan.chunks_per_size));
  const Shaper shaper(shape, axis, shape[axis] / plan.chunks_per_size);
  Plan result = plan;
  result.chunks_per_size = 1;
  for (Tensor& tensor : result.tensors) tensor = shaper.tensor(tensor, type);
  for (Code& code : result.codes) {
    for (Stream& stream : code.streams) shaper.change(stream.items);
    if (code.resident)
      for (Region& region : *code.resident) shaper.change(region);
    for (Expectation& expectation : code.expected) {
      shaper.change(expectation.region);
      if (expectation.of) shaper.change(*expectation.of);
    }
  }
  return result;
}

}  // namespace hemiola::plan
