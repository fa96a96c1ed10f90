// What stands between brackets on the host: views of tensors, and one signal of many.
#include <fmt/format.h>

#include <algorithm>

#include "compile/readback/host.h"

namespace hemiola::compile::readback {

Value signal_of(const Walker& walker, const SignalsObject& signals, const std::vector<Index>& at,
                const Node& node) {
  const auto made = std::make_shared<SignalObject>();
  made->steps = signals.steps;
  bool is_there = at.size() == signals.shape.size();
  for (std::size_t i = 0; is_there && i < at.size(); ++i) {
    const std::int64_t one = walker.whole(at[i].value, node, "the number of a signal");
    is_there = !at[i].is_range && one >= 0 && one < signals.shape[i];
    made->slot = made->slot * signals.shape[i] + one;
  }
  if (!is_there) walker.wrong(node, "there is no such signal");
  made->slot += signals.first;
  return object(made);
}

Value view_of(const Walker& walker, const View& view, const std::vector<Index>& at,
              const Node& node) {
  const auto made = std::make_shared<View>(view);
  auto& axes = made->region.axes;
  axes.clear();
  for (std::size_t i = 0; i < view.region.axes.size(); ++i) {
    const auto [count, stride] = view.region.axes[i];
    if (i >= at.size()) {
      axes.emplace_back(count, stride);
      continue;
    }
    const auto bound = [&](const std::optional<Value>& value, std::int64_t otherwise) {
      return value ? walker.whole(*value, node, "where a view begins or ends") : otherwise;
    };
    const bool is_range = at[i].is_range;
    const std::int64_t begin = is_range ? bound(at[i].begin, 0) : bound(at[i].value, 0);
    const std::int64_t end = is_range ? bound(at[i].end, count) : begin + 1;
    if (begin < 0 || end > count || begin >= end)
      walker.wrong(node, fmt::format("elements {}:{} of an axis that has {}", begin, end, count));
    made->region.offset += begin * stride;
    if (is_range) axes.emplace_back(end - begin, stride);
  }
  if (at.size() > view.region.axes.size())
    walker.wrong(node, fmt::format("{} places in a tensor that has {} axes", at.size(),
                                   view.region.axes.size()));
  return object(made);
}

std::optional<DataType> type_of(std::string_view name) {
  static constexpr std::pair<std::string_view, DataType> kTypes[] = {
      {"torch.half", DataType::float16},      {"torch.float16", DataType::float16},
      {"torch.bfloat16", DataType::bfloat16}, {"torch.float", DataType::float32},
      {"torch.float32", DataType::float32},   {"torch.float64", DataType::float64},
      {"torch.int32", DataType::int32},       {"torch.int64", DataType::int64}};
  for (const auto& [word, type] : kTypes)
    if (word == name) return type;
  return std::nullopt;
}

Value around(std::int64_t first, std::int64_t count, std::int64_t size) {
  const std::int64_t before = std::min(count, size - first);
  std::vector<Value> made{list({number(first), number(before)})};
  if (before < count) made.push_back(list({number(0), number(count - before)}));
  return list(std::move(made));
}

std::int32_t store_of(const Walker& walker, WorkObject& work, const Value& to, int rank,
                      const Node& node) {
  const bool are_two = to.type == Type::list && to.more->items.size() == 2;
  const auto target = are_two ? object_of<View>(to.more->items[0]) : nullptr;
  const auto source = are_two ? object_of<View>(to.more->items[1]) : nullptr;
  if (!target || !source) walker.refuse(node, "a place of tiles that is no two views");
  if (target->region.axes != source->region.axes || source->region.rank != rank)
    walker.wrong(node, "what is stored to a peer does not lie there as in the kernel's output");
  work.stores.push_back({target->region, source->region});
  return static_cast<std::int32_t>(std::ssize(work.stores)) - 1;
}

std::vector<Need> needs_in(const Walker& walker, const Value* after, const Node& node) {
  std::vector<Need> made;
  if (after == nullptr) return made;
  if (after->type != Type::list) walker.refuse(node, "what is awaited is no list");
  for (const Value& one : after->more->items) {
    const auto signal = one.type == Type::list && one.more->items.size() == 2
                            ? object_of<SignalObject>(one.more->items[0])
                            : nullptr;
    if (!signal) walker.refuse(node, "what is awaited is no (signal, step)");
    made.push_back({signal->slot, signal->steps,
                    walker.whole(one.more->items[1], node, "a step of a signal")});
  }
  return made;
}

Value described(Walker& walker, const HostOp& launch, const View& view, const std::string& name,
                Value pointer) {
  const WorkObject& work = *launch.work;
  const KernelObject& kernel = *work.kernel;
  const Value* block = nullptr;
  if (kernel.descriptors.type == Type::dictionary)
    for (const auto& [key, value] : kernel.descriptors.more->entries)
      if (key.text == name) block = &value;
  if (block == nullptr) return pointer;
  auto axes = view.region.axes;
  if (std::ranges::find(kernel.turned, name) != kernel.turned.end()) std::ranges::reverse(axes);
  std::vector<Value> shape, strides;
  for (const auto& [count, stride] : axes) {
    shape.push_back(number(count));
    strides.push_back(number(stride));
  }
  if (axes.empty() || axes.back().second != 1)
    walker.wrong(*launch.node,
                 fmt::format("the descriptor of '{}' is of a tensor whose last axis does not lie "
                             "element by element",
                             name));
  Compound of;
  of.items = {std::move(pointer), list(std::move(shape)), list(std::move(strides)),
              walker.apply(*block, {.positional = {}, .named = work.values, .node = launch.node})};
  return {.type = Type::descriptor, .more = held(std::move(of))};
}

}  // namespace hemiola::compile::readback
