#include "workload/costs/scene.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "core/data_type.h"
#include "core/digest.h"
#include "core/index.h"
#include "core/lists.h"
#include "workload/costs/representative_groups.h"

namespace hemiola::workload {
namespace {

std::int64_t bytes_in_situation(std::int64_t bytes) {
  constexpr std::int64_t kLeast = 64 << 10, kMost = 64 << 20;
  if (bytes <= kLeast) return bytes;
  std::int64_t power = kLeast;
  while (power * 2 <= std::min(bytes, kMost)) power *= 2;
  return power;
}

/// What a large call does to the kernels beside it is looked at on so many neighbours of `rank` in
/// its group, or of the first one: in a job all pairs of ranks count, and those of an all-to-all of
/// 128 are 16,256. With fewer it would be less: more of it goes inside a node.
std::vector<int> stand_for(const std::vector<int>& group, int rank) {
  constexpr std::ptrdiff_t kMostRanks = 64, kStandIns = 32;
  const auto size = static_cast<std::ptrdiff_t>(group.size());
  if (size <= kMostRanks) return group;
  const auto found = std::ranges::find(group, rank);
  const std::ptrdiff_t at = found == group.end() ? 0 : found - group.begin();
  const auto first = group.begin() + std::min(at / kStandIns * kStandIns, size - kStandIns);
  return {first, first + kStandIns};
}

/// All that its program depends on.
std::string key_text(const Compute& one) {
  const machine::GemmShape& product = one.product;
  switch (one.kind) {
    case Compute::Kind::product:
      return fmt::format("product {}x{}x{}x{} {} {}{}, {} flop, {}+{} B", product.batch, product.m,
                         product.n, product.k, name_of(product.type),
                         name_of(product.output.value_or(product.type)),
                         product.accumulate ? " added" : "", one.flop, one.read, one.written);
    case Compute::Kind::attention:
    case Compute::Kind::other:
      break;
  }
  return fmt::format("{}, {} flop, {}+{} B",
                     one.kind == Compute::Kind::attention ? "attention" : "kernel", one.flop,
                     one.read, one.written);
}

}  // namespace

std::vector<int> Scene::real(const std::vector<int>& group) const {
  std::vector<int> found;
  for (const int position : group) found.push_back(ranks[index(position)]);
  return found;
}

const std::vector<std::size_t>& Scenes::groups_of(std::int32_t place, int rank) {
  const auto [at, is_new] = groups_.emplace(std::pair(place, rank), std::vector<std::size_t>());
  if (is_new) at->second = representative_groups(machine_, places_.place(place), rank);
  return at->second;
}

Scene Scenes::make(int rank, const std::vector<LaunchKind>& kinds, bool is_situation) {
  std::set<int> ranks{rank};
  std::vector<ScenePart> parts;
  for (const LaunchKind& kind : kinds) {
    ScenePart part{.kind = kind};
    part.is_any_kernel = is_situation && is_kernel(kind.kind) &&
                         workload_.computes[index(kind.work)].kind == Compute::Kind::other;
    if (!is_kernel(kind.kind)) part.bytes = call_of(workload_, kind.kind, kind.work).bytes;
    if (!is_local(kind.kind)) {
      if (is_situation && !has_product(workload_, kind.kind, kind.work))
        part.bytes = bytes_in_situation(part.bytes);
      const Place& place = places_.place(kind.place);
      for (const std::size_t g : groups_of(kind.place, rank)) {
        part.groups.push_back(is_situation ? stand_for(place.groups[g], rank) : place.groups[g]);
        ranks.insert(part.groups.back().begin(), part.groups.back().end());
      }
    }
    parts.push_back(std::move(part));
  }
  // Kernels run on all of these ranks that do the same.
  for (ScenePart& part : parts) {
    if (!part.groups.empty()) continue;
    for (const int one : ranks)
      if (places_.class_of(one) == places_.class_of(rank)) part.groups.push_back({one});
  }
  Scene scene{.ranks = {ranks.begin(), ranks.end()}, .parts = std::move(parts)};
  for (ScenePart& part : scene.parts) {
    for (auto& group : part.groups) {
      for (int& one : group)
        one = static_cast<int>(std::lower_bound(scene.ranks.begin(), scene.ranks.end(), one) -
                               scene.ranks.begin());
    }
  }
  return scene;
}

std::vector<int> Scenes::representative_ranks(const LaunchKind& kind) {
  std::set<std::uint64_t> seen;
  std::vector<int> ranks;
  for (const auto& group : places_.place(kind.place).groups) {
    const std::uint64_t ways =
        group.size() > 1 ? programs_.ways_between(group)
                         : static_cast<std::uint64_t>(machine_.gpu_models[index(group.front())]);
    if (seen.insert(ways).second) ranks.push_back(group.front());
  }
  return ranks;
}

std::string Scenes::key_of(const Scene& scene) {
  std::string key = fmt::format("{} ranks", scene.ranks.size());
  for (const ScenePart& part : scene.parts) {
    key += "; ";
    if (part.is_any_kernel) {
      key += "any kernel";
    } else if (is_kernel(part.kind.kind)) {
      key += key_text(workload_.computes[index(part.kind.work)]);
    } else if (part.kind.kind == NodeKind::receive) {
      key += fmt::format("copy of {} B", part.bytes);
    } else {
      const auto [kind, type] = run_as(workload_, part.kind.kind, part.kind.work);
      key += fmt::format("{} {} {} B",
                         part.kind.kind == NodeKind::collective ? name_of(kind) : "message",
                         name_of(type), part.bytes);
      if (has_product(workload_, part.kind.kind, part.kind.work))
        key += " with " +
               key_text(
                   workload_.computes[index(workload_.collectives[index(part.kind.work)].product)]);
    }
    if (is_uneven(workload_, part.kind.kind, part.kind.work)) {
      Digest splits;
      for (const std::int64_t bytes :
           workload_.splits[index(workload_.collectives[index(part.kind.work)].splits)])
        splits.add(bytes);
      key += fmt::format(" uneven {:x}", splits.value());
    }
    for (const auto& group : part.groups)
      fmt::format_to(std::back_inserter(key), " [{} by {:x}]", fmt::join(group, " "),
                     programs_.ways_between(scene.real(group)));
  }
  return key;
}

std::string Scenes::text_of(const Scene& scene) const {
  const auto text = [&](const ScenePart& part) { return workload::text_of(workload_, part.kind); };
  return fmt::format("{} on {} GPUs", joined(scene.parts, text, " beside "), scene.ranks.size());
}

}  // namespace hemiola::workload
