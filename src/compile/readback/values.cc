#include "compile/readback/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "compile/readback/readback.h"
#include "core/index.h"

namespace hemiola::compile::readback {
namespace {

/// A value between -1 and 1 that an element has for as long as nobody writes it.
double drawn(std::int32_t tensor, std::int64_t address) {
  std::uint64_t x = static_cast<std::uint64_t>(address) * 0x9e3779b97f4a7c15U +
                    static_cast<std::uint64_t>(tensor + 1) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  x ^= x >> 31;
  return static_cast<double>(x >> 11) * 0x1p-52 - 1;
}

/// Where an element lies along the axes (count, stride) of a region, which are at positive
/// distances; nothing: it is none of its elements.
std::optional<Evaluator::Place> place_along(
    const std::vector<std::pair<std::int64_t, std::int64_t>>& axes, std::int64_t distance) {
  std::vector<std::size_t> order(axes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order,
                    [&](std::size_t a, std::size_t b) { return axes[a].second > axes[b].second; });
  Evaluator::Place place(axes.size());
  for (const std::size_t axis : order) {
    const auto [count, stride] = axes[axis];
    if (stride <= 0) continue;
    place[axis] = std::clamp<std::int64_t>(distance / stride, 0, count - 1);
    distance -= place[axis] * stride;
  }
  return distance == 0 ? std::optional(place) : std::nullopt;
}

bool has_element(const SumKey& region, std::int64_t address) {
  const auto& [tensor, offset, axes] = region;
  return place_along(axes, address - offset).has_value();
}

}  // namespace

ValueCheck::ValueCheck(Reading& reading, int rank)
    : reading_(reading),
      record_(reading.records[index(rank)]),
      formulas_(formulas_of(reading.walker, record_, unread_)),
      stores_([this](const Term& load, std::int64_t address) {
        return element(load.memory, address, load.when);
      }),
      formula_([](const Term& load, std::int64_t address) { return drawn(load.memory, address); }) {
  for (const auto& [name, region] : record_.inputs) filled_.insert(region.tensor);
  const auto fill = [&](const Region& target) {
    if (target.rank == rank) filled_.insert(target.tensor);
  };
  for (const RankRecord& other : reading.records) {
    for (const auto& stream : other.streams) {
      for (const HostOp& op : stream) {
        if (op.kind == HostOp::Kind::zero && &other == &record_)
          zeroed_.insert(op.regions[0].tensor);
        if (is_transfer(op)) fill(op.regions[0]);
        if (op.work == nullptr) continue;
        for (const WorkObject::Move& move : op.work->moves) fill(move.op.regions[0]);
        for (const WorkObject::Store& store : op.work->stores) fill(store.target);
      }
    }
  }
  moved_ = filled_;
}

void ValueCheck::begin() {
  stored_.clear();
  regions_.clear();
  unknown_.clear();
}

const Tensor& ValueCheck::tensor(std::int32_t number) const {
  return record_.tensors[index(number)];
}

std::optional<double> ValueCheck::element(std::int32_t tensor, std::int64_t address,
                                          std::int64_t stores) const {
  if (const auto known = stored_.find({tensor, address}); known != stored_.end()) {
    const auto& all = known->second;
    const auto last = std::find_if(all.rbegin(), all.rend(), [&](const Stored& one) {
      return one.program != program_ || one.number < stores;
    });
    if (last != all.rend()) return last->value;
  } else if (is_stored(tensor, address)) {
    return std::nullopt;
  }
  if (zeroed_.contains(tensor)) return 0;
  // What nobody has written the proof of the program finds, and says so better.
  return filled_.contains(tensor) ? std::optional(drawn(tensor, address)) : std::nullopt;
}

bool ValueCheck::is_stored(std::int32_t tensor, std::int64_t address) const {
  const auto regions = regions_.find(tensor);
  return regions != regions_.end() &&
         std::ranges::any_of(regions->second,
                             [&](const SumKey& region) { return has_element(region, address); });
}

void ValueCheck::store(const KernelEvent& event) {
  if (event.value == nullptr || !reading_.judges_values) return;
  const std::int32_t tensor = event.regions.front().tensor;
  for (const Sample& sample : event.samples) {
    Stored made{.program = program_, .number = event.number, .node = event.node};
    const std::optional<double> value =
        stores_.value(*event.value, place_in(*event.value, sample.place));
    if (!value) unknown_.try_emplace(tensor, stores_.why());
    made.value = value.value_or(0);
    if (event.kind == KernelEvent::Kind::add) {
      const std::optional<double> before = element(tensor, sample.address, event.number);
      if (!before) unknown_.try_emplace(tensor, "sums that do not touch the same elements");
      made.value += before.value_or(0);
    }
    stored_[{tensor, sample.address}].push_back(made);
  }
  for (const Region& region : event.regions) {
    auto& known = regions_[tensor];
    if (known.size() < kMostRegions)
      known.insert({region.tensor, region.offset, region.axes});
    else
      unknown_.try_emplace(tensor, "too many blocks");
  }
}

void ValueCheck::end() {
  for (const auto& [tensor, regions] : regions_) {
    compare(tensor);
    // What is moved there as well nobody has to add to.
    if (zeroed_.contains(tensor) && !moved_.contains(tensor) && is_result(tensor))
      added_[tensor].insert(regions.begin(), regions.end());
    filled_.insert(tensor);
  }
}

void ValueCheck::finish() const {
  for (const auto& [number, regions] : added_) {
    std::int64_t elements = 0, all = 1;
    for (const auto& [tensor, offset, axes] : regions) {
      std::int64_t of_region = 1;
      for (const auto& [count, stride] : axes) of_region *= count;
      elements += of_region;
    }
    for (const std::int64_t extent : tensor(number).shape) all *= extent;
    if (elements >= all || regions.size() >= kMostRegions) continue;
    const Module& module = reading_.walker.module();
    throw OtherValues(
        fmt::format("{} of {} elements of '{}' stay 0: no tile stores or adds to them",
                    all - elements, all, tensor(number).name),
        module.source.where(module.find("run")->node->begin), "", ExitCode::wrong_program);
  }
}

/// What a caller gets, what is moved, or what another launch reads. Of what a kernel keeps for
/// itself (the weights of attention) nothing has to be said.
bool ValueCheck::is_result(std::int32_t number) const {
  const auto is_it = [&](const Region& region) { return region.tensor == number; };
  int launches = 0;
  for (const auto& stream : record_.streams) {
    for (const HostOp& op : stream) {
      if (op.kind == HostOp::Kind::launch) ++launches;
      if (op.kind != HostOp::Kind::zero && std::ranges::any_of(op.regions, is_it)) return true;
    }
  }
  return launches > 1 ||
         std::ranges::any_of(record_.outputs, [&](const auto& one) { return is_it(one.second); });
}

void ValueCheck::unjudged(std::int32_t number, const std::string& why) {
  reading_.unjudged.insert(fmt::format("what tiles store to '{}': {}", tensor(number).name, why));
}

/// All of a tensor, or what the caller gets of it: the first elements of its rows.
Region ValueCheck::seen_of(std::int32_t number) const {
  for (const auto& [name, region] : record_.outputs)
    if (region.tensor == number) return region;
  Region all{.tensor = number, .axes = {}};
  std::int64_t stride = 1;
  for (std::size_t i = tensor(number).shape.size(); i-- > 0; stride *= tensor(number).shape[i])
    all.axes.insert(all.axes.begin(), {tensor(number).shape[i], stride});
  return all;
}

void ValueCheck::compare(std::int32_t number) {
  if (!is_result(number)) return;
  const Region seen = seen_of(number);
  const auto has_shape = [&](const Formula& one) {
    return std::ranges::equal(one.value->shape, seen.axes, {}, {},
                              [](const auto& axis) { return axis.first; });
  };
  std::vector<const Formula*> fitting;
  for (const Formula& one : formulas_)
    if (has_shape(one)) fitting.push_back(&one);
  if (const auto unknown = unknown_.find(number); unknown != unknown_.end())
    return unjudged(number, unknown->second);
  if (fitting.empty())
    return unjudged(number, unread_.empty() ? "nothing says what it has to be" : unread_);
  const Formula* const told = fitting.front();
  for (const auto& [address, all] : stored_) {
    if (address.first != number) continue;
    const Stored& stored = all.back();
    const auto at = place_along(seen.axes, address.second - seen.offset);
    if (!at) continue;  // behind the end of a row
    const Evaluator::Place place = *at;
    double expected = 0;
    std::erase_if(fitting, [&](const Formula* formula) {
      const std::optional<double> value = formula_.value(*formula->value, place);
      if (value) expected = *value;
      return !value || !are_close(*value, stored.value);
    });
    if (!fitting.empty()) continue;
    const Source& source = reading_.walker.module().source;
    throw OtherValues(
        fmt::format("what is stored to '{}' is not what reference() says: element {} is {:.6g} for "
                    "{:.6g}, with values that were drawn",
                    tensor(number).name, fmt::join(place, ", "), stored.value, expected),
        source.where(stored.node->begin),
        fmt::format("reference() says '{}', line {}", source.text(*told->node),
                    source.line(told->node->begin)),
        ExitCode::wrong_program);
  }
}

}  // namespace hemiola::compile::readback
