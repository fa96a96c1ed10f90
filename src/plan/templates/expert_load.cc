#include "plan/templates/expert_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string_view>

#include "core/checked.h"
#include "core/index.h"

namespace hemiola::plan {
namespace {

/// A positive number, all of the text.
std::optional<double> weight_of(std::string_view text) {
  const std::optional<double> value = finite_number(text);
  return value > 0.0 && *value <= 1e6 ? value : std::nullopt;
}

std::vector<double> weights_of(const std::string& load, int ranks, const SourceLocation& where) {
  const auto refuse = [&](const std::string& what) -> Failure {
    return Failure(what, where,
                   fmt::format("'{}', 'zipf/1.2', or a weight above 0 for each of the {} ranks, as "
                               "'4/2/1/...'",
                               kEvenLoad, ranks));
  };
  std::vector<double> weights;
  constexpr std::string_view kZipf = "zipf/";
  if (load.starts_with(kZipf)) {
    const std::optional<double> exponent = weight_of(std::string_view(load).substr(kZipf.size()));
    if (!exponent || *exponent > 8)
      throw refuse(
          fmt::format("'{}' is not the load of experts: its exponent is a number above 0 "
                      "and at most 8",
                      load));
    for (int rank = 0; rank < ranks; ++rank) weights.push_back(std::pow(rank + 1, -*exponent));
    return weights;
  }
  for (std::size_t begin = 0; begin <= load.size();) {
    const std::size_t end = std::min(load.find('/', begin), load.size());
    const std::optional<double> weight =
        weight_of(std::string_view(load).substr(begin, end - begin));
    if (!weight) throw refuse(fmt::format("'{}' is not the load of experts", load));
    weights.push_back(*weight);
    begin = end + 1;
  }
  if (std::ssize(weights) != ranks)
    throw refuse(
        fmt::format("'{}' has the load of {} ranks, not of {}", load, weights.size(), ranks));
  return weights;
}

}  // namespace

std::vector<std::int64_t> expert_rows(const std::string& load, int ranks, std::int64_t rows,
                                      const SourceLocation& where) {
  if (load == kEvenLoad) {
    if (rows % ranks != 0)
      throw Failure(fmt::format("{} tokens of a rank cannot be divided by {} ranks", rows, ranks),
                    where);
    return std::vector<std::int64_t>(index(ranks), rows / ranks);
  }
  const std::vector<double> weights = weights_of(load, ranks, where);
  if (rows < ranks)
    throw Failure(fmt::format("{} tokens of a rank are fewer than its {} ranks", rows, ranks),
                  where);
  std::int64_t unit = 16;
  while (rows % unit != 0 || rows / unit < ranks) unit /= 2;
  // Each rank has one unit; the rest is divided by weight.
  const std::int64_t rest = rows / unit - ranks;
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<std::int64_t> units;
  std::vector<double> remainders;
  std::int64_t left = rest;
  for (const double weight : weights) {
    const double share = std::max(0.0, weight / all * static_cast<double>(rest + ranks) - 1);
    units.push_back(static_cast<std::int64_t>(std::floor(share)));
    remainders.push_back(share - std::floor(share));
    left -= units.back();
  }
  std::vector<std::size_t> order(units.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return remainders[a] > remainders[b]; });
  // Ranks that weigh less than one unit have more than their share, which the heaviest give.
  for (std::size_t i = 0; left > 0; i = (i + 1) % order.size(), --left) ++units[order[i]];
  for (; left < 0; ++left) --*std::ranges::max_element(units);
  for (std::int64_t& one : units) one = (one + 1) * unit;
  return units;
}

}  // namespace hemiola::plan
