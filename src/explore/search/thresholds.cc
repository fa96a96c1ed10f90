#include "explore/search/thresholds.h"

#include <fmt/format.h>

#include <cmath>

namespace hemiola::explore {
namespace {

Pick best_pick(const Exploration& found) {
  const Candidate* winner = found.winner();
  if (winner == nullptr) return {{Division::serial}, 1};
  return {winner->schedule.family, winner->schedule.degree};
}

/// Rows of the product of one GPU, which is what rules know.
double rows_of(const Exploration& found) {
  return static_cast<double>(local_product(found.op).m);
}

}  // namespace

std::optional<std::int64_t> pays_from(const std::vector<Exploration>& found) {
  std::optional<std::int64_t> from;
  for (auto one = found.rbegin(); one != found.rend() && one->winner() != nullptr; ++one)
    from = one->op.m;
  return from;
}

std::string threshold_rule(const std::vector<Exploration>& found) {
  std::vector<std::pair<double, Pick>> runs;  // from so many rows on
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Pick pick = best_pick(found[i]);
    if (!runs.empty() && runs.back().second == pick) continue;
    const double from =
        i == 0 ? 0 : std::round(std::sqrt(rows_of(found[i - 1]) * rows_of(found[i])));
    runs.emplace_back(from, pick);
  }
  std::string text = fmt::format("{}\nname thresholds\n", Rule::kHeading);
  if (!found.empty()) {
    const Operator& op = found.front().op;
    text += fmt::format("# {} with N = {}, K = {} ({}) on {} GPUs of {}\n", name_of(op.kind), op.n,
                        op.k, name_of(op.type), op.ranks, found.front().machine);
  }
  // A chain: node 2i decides whether run i is it, node 2i + 1 picks it.
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (i + 1 < runs.size())
      text += fmt::format("if m < {} then {} else {}\n", runs[i + 1].first, 2 * i + 1, 2 * i + 2);
    text += fmt::format("pick {}\n", runs[i].second.text());
  }
  return text;
}

}  // namespace hemiola::explore
