#include "verify/plans/data.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/index.h"
#include "plan/in_place.h"
#include "plan/launches.h"
#include "plan/tiles.h"
#include "verify/plans/postconditions.h"

namespace hemiola::verify {

using plan::Area;
using plan::Rect;

namespace {

constexpr float kNothing = std::numeric_limits<float>::quiet_NaN();

/// Calls visit(position) for the elements of a rectangle, last axis fastest.
template <class Visit>
void for_each_element(const std::vector<std::int64_t>& shape, const Rect& rect, Visit visit) {
  if (rect.empty()) return;
  plan::Coordinates at = rect.begin;
  while (true) {
    std::int64_t position = 0;
    for (std::size_t i = 0; i < shape.size(); ++i) position = position * shape[i] + at[i];
    visit(position);
    std::size_t axis = shape.size();
    while (axis > 0 && ++at[axis - 1] == rect.end[axis - 1]) {
      at[axis - 1] = rect.begin[axis - 1];
      --axis;
    }
    if (axis == 0) return;
  }
}

/// What a tile touches of an operand.
struct TileOperand {
  TileOperand(const plan::ComputeOperand& operand, const Rect& area, const Rect& box)
      : values(index(area.elements())), strides(box.begin.size()) {
    std::int64_t stride = 1;
    for (std::size_t i = area.begin.size(); i-- > 0;) {
      strides[index(operand.axes[i])] += stride;
      stride *= area.end[i] - area.begin[i];
    }
  }
  std::vector<float> values;          ///< last axis fastest; zero at first
  std::vector<std::int64_t> strides;  ///< by axis of the compute: from one point to the next
};

/// Adds to the result the product of the operands at each point of the box.
void add_products(const Rect& box, const std::vector<TileOperand>& reads, TileOperand& result) {
  if (box.empty()) return;
  const std::size_t axes = box.begin.size();
  std::vector<std::int64_t> at(axes);
  std::vector<std::int64_t> from(reads.size());
  std::int64_t to = 0;
  const auto move = [&](std::size_t axis, std::int64_t steps) {
    at[axis] += steps;
    for (std::size_t i = 0; i < reads.size(); ++i) from[i] += steps * reads[i].strides[axis];
    to += steps * result.strides[axis];
  };
  while (true) {
    float product = 1;
    for (std::size_t i = 0; i < reads.size(); ++i) product *= reads[i].values[index(from[i])];
    result.values[index(to)] += product;
    std::size_t axis = axes;
    while (axis > 0 && at[axis - 1] + 1 == box.end[axis - 1] - box.begin[axis - 1]) {
      move(axis - 1, -at[axis - 1]);
      --axis;
    }
    if (axis == 0) return;
    move(axis - 1, 1);
  }
}

/// What a tile does to memory (by tensor), with what read(tensor, position) gives it.
template <class Read>
void run(const plan::Plan& plan, const plan::Compute& compute, int rank, std::int64_t tile,
         Read read, std::vector<std::vector<float>>& memory) {
  const Rect box = tile_box(compute, tile);
  const auto store = [&](const plan::ComputeOperand& operand, std::int64_t position, float value) {
    float& place = memory[index(operand.tensor)][index(position)];
    place = operand.use == plan::Use::write ? value : place + value;
  };
  const auto shape_of = [&](const plan::ComputeOperand& operand) {
    return plan.tensors[index(operand.tensor)].shape;
  };
  const bool by_point =
      compute.kernel == "gemm" && std::ranges::all_of(compute.operands, [](const auto& operand) {
        return std::ranges::all_of(operand.axes, [](std::int32_t axis) { return axis >= 0; });
      });
  if (!by_point) {
    float sum = 0;
    for (const plan::ComputeOperand& operand : compute.operands) {
      if (operand.use != plan::Use::read) continue;
      for_each_element(shape_of(operand), operand_area(plan, operand, box, rank).rects.front(),
                       [&](std::int64_t position) { sum += read(operand.tensor, position); });
    }
    for (const plan::ComputeOperand& operand : compute.operands) {
      if (operand.use == plan::Use::read) continue;
      for_each_element(shape_of(operand), operand_area(plan, operand, box, rank).rects.front(),
                       [&](std::int64_t position) { store(operand, position, sum); });
    }
    return;
  }
  // Each operand is read once; each result is added up over the points of the tile that fall on it,
  // and stored once.
  std::vector<TileOperand> reads;
  for (const plan::ComputeOperand& operand : compute.operands) {
    if (operand.use != plan::Use::read) continue;
    const Rect area = operand_area(plan, operand, box, rank).rects.front();
    TileOperand& input = reads.emplace_back(operand, area, box);
    std::size_t next = 0;
    for_each_element(shape_of(operand), area, [&](std::int64_t position) {
      input.values[next++] = read(operand.tensor, position);
    });
  }
  for (const plan::ComputeOperand& operand : compute.operands) {
    if (operand.use == plan::Use::read) continue;
    const Rect area = operand_area(plan, operand, box, rank).rects.front();
    TileOperand result(operand, area, box);
    add_products(box, reads, result);
    std::size_t next = 0;
    for_each_element(shape_of(operand), area, [&](std::int64_t position) {
      store(operand, position, result.values[next++]);
    });
  }
}

/// Before the first tile of a compute: what all its tiles accumulate in is empty.
void clear_sums(const plan::Plan& plan, const plan::Compute& compute, int rank,
                std::vector<std::vector<float>>& memory) {
  for (const plan::ComputeOperand& operand : compute.operands) {
    if (operand.use != plan::Use::accumulate) continue;
    const Area made = operand_area(plan, operand, plan::whole_box(compute), rank);
    for (const std::int64_t element : elements(plan, made))
      memory[index(operand.tensor)][index(element)] = 0;
  }
}

}  // namespace

std::vector<std::int64_t> elements(const plan::Plan& plan, const Area& area) {
  std::vector<std::int64_t> result;
  for (const Rect& rect : area.rects)
    for_each_element(plan.tensors[index(area.tensor)].shape, rect,
                     [&](std::int64_t position) { result.push_back(position); });
  return result;
}

// The finaliser of splitmix64 (Steele, Lea, Flood 2014).
std::uint64_t mix(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d) {
  std::uint64_t x = 0;
  for (const std::uint64_t part : {a, b, c, d}) {
    x += part + 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    x ^= x >> 31;
  }
  return x;
}

PlanData::PlanData(const Unrolled& unrolled, std::int64_t most)
    : plan_(unrolled.plan()),
      reduced_(unrolled.reduced_tensors()),
      written_(unrolled.written_tensors()) {
  std::int64_t total = 0;
  Tensors nothing;
  for (const plan::Tensor& tensor : plan_.tensors) {
    total += tensor.elements();
    if (total > most / plan_.ranks)
      throw Failure("plan '" + plan_.name + "' has too many elements to be run here", {},
                    "at most " + std::to_string(most) + " over all ranks");
    nothing.emplace_back(index(tensor.elements()), kNothing);
  }
  memory_ = initial_ = computed_ = std::vector<Tensors>(index(plan_.ranks), nothing);
  find_residents();
  find_owners();
  find_meanings();
}

void PlanData::find_residents() {
  std::vector<std::vector<bool>> none;
  for (const plan::Tensor& tensor : plan_.tensors) none.emplace_back(index(tensor.elements()));
  resident_.assign(index(plan_.ranks), none);
  computes_ = resident_;
  const auto mark = [&](std::vector<std::vector<bool>>& marks, const Area& area) {
    for (const std::int64_t element : elements(plan_, area))
      marks[index(area.tensor)][index(element)] = true;
  };
  for (int rank = 0; rank < plan_.ranks; ++rank) {
    for (const Area& area : residents(plan_, rank)) mark(resident_[index(rank)], area);
    for (const plan::Compute& compute : plan_.code(rank).computes) {
      for (std::int64_t tile = 0; tile < count_tiles(compute); ++tile) {
        for (const plan::ComputeOperand& operand : compute.operands) {
          if (operand.use != plan::Use::read)
            mark(computes_[index(rank)],
                 operand_area(plan_, operand, tile_box(compute, tile), rank));
        }
      }
    }
  }
}

void PlanData::find_owners() {
  for (std::size_t t = 0; t < plan_.tensors.size(); ++t) {
    auto& owners = owners_.emplace_back(index(plan_.tensors[t].elements()));
    for (std::size_t e = 0; e < owners.size(); ++e) {
      for (std::size_t rank = 0; rank < resident_.size(); ++rank)
        if (resident_[rank][t][e] || computes_[rank][t][e])
          owners[e].ranks.push_back(static_cast<int>(rank));
    }
  }
}

void PlanData::poison() {
  for (Tensors& tensors : memory_)
    for (std::vector<float>& tensor : tensors) std::ranges::fill(tensor, kNothing);
}

void PlanData::begin(std::uint64_t seed) {
  // Odd, so that no contribution is invisible; products must stay exact.
  const bool computes = std::ranges::any_of(
      plan_.codes, [](const plan::Code& code) { return !code.computes.empty(); });
  const std::uint64_t range = computes ? 4 : 2048;
  for (std::size_t rank = 0; rank < memory_.size(); ++rank) {
    for (std::size_t t = 0; t < plan_.tensors.size(); ++t) {
      for (std::size_t e = 0; e < memory_[rank][t].size(); ++e) {
        if (resident_[rank][t][e]) {
          const std::uint64_t drawn = mix(seed, rank, t, e) % range;
          memory_[rank][t][e] = initial_[rank][t][e] = static_cast<float>(
              2 * static_cast<std::int64_t>(drawn) - static_cast<std::int64_t>(range) + 1);
        } else if (computes_[rank][t][e]) {
          memory_[rank][t][e] = 0;
        }
      }
    }
  }
  compute_reference();
}

void PlanData::begin_launch(int rank, const plan::Compute& compute) {
  clear_sums(plan_, compute, rank, memory_[index(rank)]);
}

void PlanData::run_tile(int rank, const plan::Compute& compute, std::int64_t tile) {
  Tensors& memory = memory_[index(rank)];
  const auto read = [&](std::int32_t t, std::int64_t p) { return memory[index(t)][index(p)]; };
  run(plan_, compute, rank, tile, read, memory);
}

/// What a rank held or computed at the start.
float PlanData::value_of(int rank, std::int32_t tensor, std::int64_t element) const {
  const auto r = index(rank), t = index(tensor), e = index(element);
  return computes_[r][t][e] ? computed_[r][t][e] : initial_[r][t][e];
}

/// What a tile should read: what the rank expects there; else the one owner's value, or the
/// reduction of all of a tensor that is reduced. NaN where the plan does not say.
float PlanData::right_input(int rank, std::int32_t tensor, std::int64_t element) const {
  Meaning meaning{tensor, element, reduced_[index(tensor)], -1};
  const auto found = meanings_.find({rank, tensor, element});
  if (found != meanings_.end()) meaning = found->second;
  const std::vector<int>& ranks = owners_of(meaning);
  if (meaning.holder >= 0) return value_of(meaning.holder, meaning.tensor, meaning.element);
  if (ranks.size() == 1) return value_of(ranks.front(), meaning.tensor, meaning.element);
  if (!meaning.reduced) {
    const bool everybody = std::ssize(ranks) == plan_.ranks;
    return everybody && found == meanings_.end() && !written_[index(tensor)]
               ? value_of(rank, tensor, element)
               : kNothing;
  }
  float sum = ranks.empty() ? kNothing : 0;
  for (const int owner : ranks) sum += value_of(owner, meaning.tensor, meaning.element);
  return sum;
}

/// Launches may read what others computed, on other ranks too: again until nothing changes.
void PlanData::compute_reference() {
  std::size_t rounds = 1;
  for (const plan::Code& code : plan_.codes)
    if (plan::has_launches(plan_)) rounds = std::max(rounds, code.computes.size() + 1);
  for (bool changed = true; changed && rounds > 0; --rounds) {
    changed = false;
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      const Tensors before = rounds > 1 ? computed_[index(rank)] : Tensors{};
      compute_reference(rank);
      changed = changed || before != computed_[index(rank)];
    }
  }
}

void PlanData::compute_reference(int rank) {
  Tensors& results = computed_[index(rank)];
  for (std::size_t t = 0; t < results.size(); ++t) {
    const auto& initial = initial_[index(rank)][t];
    for (std::size_t e = 0; e < results[t].size(); ++e)
      results[t][e] = std::isnan(initial[e]) ? 0 : initial[e];
  }
  const auto read = [&](std::int32_t t, std::int64_t p) { return right_input(rank, t, p); };
  const plan::Code& code = plan_.code(rank);
  std::vector<std::int32_t> order;
  for (std::size_t c = 0; c < code.computes.size(); ++c)
    if (!code.computes[c].is_launch()) order.push_back(static_cast<std::int32_t>(c));
  const plan::LaunchOrder launches(code);
  order.insert(order.end(), launches.sorted().begin(), launches.sorted().end());
  for (const std::int32_t c : order) {
    const plan::Compute& compute = code.computes[index(c)];
    if (compute.is_launch()) clear_sums(plan_, compute, rank, results);
    for (std::int64_t tile = 0; tile < count_tiles(compute); ++tile)
      run(plan_, compute, rank, tile, read, results);
  }
}

std::string PlanData::differs(int rank, std::int32_t tensor, std::int64_t element,
                              float wanted) const {
  const float held = memory_[index(rank)][index(tensor)][index(element)];
  if (held == wanted || std::isnan(wanted)) return {};
  return "element " + std::to_string(element) + " of " + plan_.tensors[index(tensor)].name +
         " of rank " + std::to_string(rank) + " is " + std::to_string(held) + ", not " +
         std::to_string(wanted);
}

std::string PlanData::compare(std::int64_t& compared) const {
  return plan::states_result(plan_) ? compare_expectations(compared) : compare_promises(compared);
}

std::string PlanData::compare_promises(std::int64_t& compared) const {
  std::string reason;
  const Postconditions all = postconditions(plan_, reason);
  for (int rank = 0; rank < std::ssize(all.of); ++rank) {
    for (const plan::Postcondition& promise : all.of[index(rank)]) {
      const Area& from = all.inputs[index(promise.input)];
      const Area& to = all.outputs[index(promise.output)];
      const std::vector<std::int64_t> sources = elements(plan_, from), places = elements(plan_, to);
      for (std::size_t i = 0; i < places.size(); ++i) {
        float wanted = 0;
        for (int source = promise.first; source < promise.first + promise.ranks; ++source)
          wanted += initial_[index(source)][index(from.tensor)][index(sources[i])];
        ++compared;
        if (std::string text = differs(rank, to.tensor, places[i], wanted); !text.empty())
          return text;
      }
    }
  }
  return {};
}

std::string PlanData::compare_expectations(std::int64_t& compared) const {
  for (int rank = 0; rank < plan_.ranks; ++rank) {
    for (const plan::Expectation& expectation : plan_.code(rank).expected) {
      const std::int32_t tensor = expectation.region.tensor;
      for (const auto& [element, meaning] : meanings(expectation, rank)) {
        const std::vector<int>& ranks = owners_of(meaning);
        if (ranks.empty()) continue;
        ++compared;
        float sum = 0;
        std::string text;
        for (const int owner : ranks) {
          const float value = value_of(owner, meaning.tensor, meaning.element);
          sum += value;
          if (meaning.reduced || (meaning.holder >= 0 && meaning.holder != owner)) continue;
          text = differs(rank, tensor, element, value);
          if (text.empty()) break;  // any owner's will do
        }
        if (meaning.reduced) text = differs(rank, tensor, element, sum);
        if (!text.empty()) return text;
      }
    }
  }
  return {};
}

std::vector<std::pair<std::int64_t, PlanData::Meaning>> PlanData::meanings(
    const plan::Expectation& expectation, int rank) const {
  const Indices at{.rank = rank};
  const plan::Region& of = expectation.of ? *expectation.of : expectation.region;
  const std::vector<std::int64_t> places = elements(plan_, evaluate(expectation.region, at));
  const std::vector<std::int64_t> sources = elements(plan_, evaluate(of, at));
  Meaning meaning{of.tensor, 0, expectation.reduced, -1};
  if (expectation.holder) meaning.holder = static_cast<int>((*expectation.holder)(at));
  std::vector<std::pair<std::int64_t, Meaning>> all;
  for (std::size_t i = 0; i < places.size(); ++i) {
    meaning.element = sources[i];
    all.emplace_back(places[i], meaning);
  }
  return all;
}

void PlanData::find_meanings() {
  for (int rank = 0; rank < plan_.ranks; ++rank) {
    for (const plan::Expectation& expectation : plan_.code(rank).expected)
      for (const auto& [element, meaning] : meanings(expectation, rank))
        meanings_.emplace(std::tuple{rank, expectation.region.tensor, element}, meaning);
  }
}

}  // namespace hemiola::verify
