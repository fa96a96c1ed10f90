// How the bytes of a plan are cut: into units that its operations count in, and into shares of
// workgroups.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "program/lower/rows.h"
#include "program/lower/symmetry.h"

namespace hemiola::program::general {

bool is_cut_alike(const plan::Plan& plan, const Movements& movements) {
  using Cut = std::pair<std::vector<Strip>, std::vector<std::int64_t>>;  // rows, strips
  struct Range {
    std::int64_t begin, end;
  };
  std::map<std::pair<int, std::int32_t>, std::set<Cut>> cuts;
  std::map<std::pair<int, std::int32_t>, std::vector<Range>> ranges;
  const DistinctRows distinct(plan, movements);
  const auto note = [&](const Place& place, const Movement& movement) {
    Cut cut{place.rows, {}};
    for (const Strip& strip : movement.strips) cut.second.push_back(strip.units());
    each_rank(plan, place, [&](int rank) {
      if (!cuts[{rank, place.area.tensor}].insert(cut).second) return;
      distinct.each(place, [&](std::int64_t begin, std::int64_t end) {
        ranges[{rank, place.area.tensor}].push_back({begin, end});
      });
    });
  };
  each_movement(movements, [&](const MovementId&, const Movement& movement) {
    for (const Place* place : movement.places()) note(*place, movement);
  });
  for (auto& [memory, list] : ranges) {
    std::ranges::sort(list, {}, &Range::begin);
    std::int64_t end = 0;
    for (const Range& range : list) {
      if (range.begin < end) return false;  // two cuts share bytes
      end = range.end;
    }
  }
  return true;
}

std::int64_t unit_of(const plan::Plan& plan, const Movements& movements, const Tiles& all_tiles,
                     const Symmetry& symmetry) {
  if (!plan.of_elements()) return 1;
  std::int64_t unit = 0;
  for (const TensorTurn& turn : symmetry.turns) unit = std::gcd(unit, turn.unit / symmetry.period);
  for (const plan::Tensor& tensor : plan.tensors)
    unit = std::gcd(unit, tensor.span() * size_of(*tensor.type));
  each_movement(movements, [&](const MovementId&, const Movement& movement) {
    for (const Place* place : movement.places()) {
      for (const Strip& strip : place->rows)
        unit = std::gcd(std::gcd(std::gcd(unit, strip.offset[0]), strip.run), strip.pitch[0]);
    }
    for (const Strip& strip : movement.strips) {
      unit = std::gcd(unit, strip.run);
      for (const std::int64_t pitch : strip.pitch) unit = std::gcd(unit, pitch);
    }
  });
  for (const RankTiles& tiles : all_tiles) {
    for (const TileGroup& group : tiles.groups) {
      for (const auto* list : {&group.reads, &group.adds, &group.writes}) {
        for (const Touched& touched : *list) {
          for (const Strip& strip : touched.strips) {
            unit = std::gcd(std::gcd(unit, strip.offset[0]), strip.run);
            if (strip.rows > 1) unit = std::gcd(unit, strip.pitch[0]);
          }
          for (const std::int64_t step : touched.steps) unit = std::gcd(unit, step);
          for (std::size_t a = 0; a < group.counts.size(); ++a)
            if (group.counts[a] > 1) unit = std::gcd(unit, touched.apart[a]);
        }
      }
    }
  }
  return unit;
}

void fix_size(const plan::Plan& plan, Program& program, std::int64_t unit) {
  program.alignment = {std::gcd(unit, std::int64_t{16})};
  for (const plan::Tensor& tensor : plan.tensors) {
    const bool fits =
        unit % std::lcm(program.alignment.count, std::int64_t{size_of(*tensor.type)}) == 0;
    if (fits && !program.fixed_type) program.fixed_type = tensor.type;
  }
  program.fixed_size = own_size(plan).value_or(Bytes{unit});
  program.chunks_per_size = program.fixed_size.count / unit;
}

}  // namespace hemiola::program::general

namespace hemiola::program {

std::optional<Bytes> own_size(const plan::Plan& plan) {
  if (!plan.of_elements()) return std::nullopt;
  const plan::Role counted =
      plan.collective == Collective::all_gather ? plan::Role::output : plan::Role::input;
  std::int64_t size = 0;
  for (const plan::Tensor& tensor : plan.tensors)
    if (tensor.role == counted) size += tensor.span() * size_of(*tensor.type);
  return size > 0 ? std::optional(Bytes{size}) : std::nullopt;
}

void require_size(const std::string& name, Bytes own, Bytes size) {
  if (size == own) return;
  throw Failure(fmt::format("{} has the size {} in itself and cannot take {}", name, to_string(own),
                            to_string(size)),
                kOption, "leave --size out");
}

void require_own_size(const plan::Plan& plan, const std::optional<Bytes>& size) {
  const std::optional<Bytes> own = own_size(plan);
  if (own && size) require_size(plan.name, *own, *size);
}

}  // namespace hemiola::program
