// What repeats in a list of statements becomes a loop, the shortest repetitions first.
#include <algorithm>
#include <map>
#include <optional>

#include "compile/emit/torch_statements.h"

namespace hemiola::compile {
namespace {

/// Longer bodies are not looked for.
constexpr std::size_t kLongestBody = 256;

using Growths = std::vector<Number::Growth>;

/// Whether `later` is the same node but for numbers that have grown; adds by how much.
bool grows(const Emitted& node, const Emitted& later, Growths& growths) {
  if (node.text != later.text || node.turns != later.turns ||
      node.numbers.size() != later.numbers.size() || node.body.size() != later.body.size())
    return false;
  for (std::size_t i = 0; i < node.numbers.size(); ++i) {
    const auto growth = node.numbers[i].growth_to(later.numbers[i]);
    if (!growth) return false;
    growths.push_back(*growth);
  }
  for (std::size_t i = 0; i < node.body.size(); ++i)
    if (!grows(node.body[i], later.body[i], growths)) return false;
  return true;
}

std::optional<Growths> growth_of(const std::vector<Emitted>& nodes, std::size_t at,
                                 std::size_t by) {
  Growths growths;
  for (std::size_t i = at; i < at + by; ++i)
    if (!grows(nodes[i], nodes[i + by], growths)) return std::nullopt;
  return growths;
}

/// How often the `period` nodes from `at` on stand there, each time grown by the same.
std::size_t repetitions(const std::vector<Emitted>& nodes, std::size_t at, std::size_t period) {
  if (at + 2 * period > nodes.size()) return 1;
  const std::optional<Growths> first = growth_of(nodes, at, period);
  if (!first) return 1;
  std::size_t turns = 2;
  while (at + (turns + 1) * period <= nodes.size() &&
         growth_of(nodes, at + (turns - 1) * period, period) == first)
    ++turns;
  return turns;
}

void add_strides(Emitted& node, const Growths& growths, std::size_t& next) {
  for (Number& number : node.numbers) {
    const Number::Growth growth = growths[next++];
    number.inner_strides.insert(number.inner_strides.begin(), growth.inner);
    number.outer_strides.insert(number.outer_strides.begin(), growth.outer);
  }
  for (Emitted& inner : node.body) add_strides(inner, growths, next);
}

Emitted loop_of(const std::vector<Emitted>& nodes, std::size_t at, std::size_t period,
                std::size_t turns) {
  const Growths growths = *growth_of(nodes, at, period);
  Emitted loop{.turns = static_cast<std::int64_t>(turns)};
  std::size_t next = 0;
  for (std::size_t i = at; i < at + period; ++i) {
    loop.body.push_back(nodes[i]);
    add_strides(loop.body.back(), growths, next);
  }
  return loop;
}

/// A few lines that stand there twice are read faster than a loop.
bool is_worth_it(const std::vector<Emitted>& nodes, std::size_t at, std::size_t period,
                 std::size_t turns) {
  if (turns < 2) return false;  // near the end there may be fewer than `period` nodes
  const bool has_loop = std::any_of(nodes.begin() + static_cast<std::ptrdiff_t>(at),
                                    nodes.begin() + static_cast<std::ptrdiff_t>(at + period),
                                    [](const Emitted& node) { return node.is_loop(); });
  return turns >= (has_loop || period >= 3 ? 2 : 3);
}

bool is_product(const Emitted& node) {
  return node.text.find(".mm(") != node.text.npos || node.text.find(".addmm(") != node.text.npos;
}

/// Whether a loop had better begin a few nodes later, so that its products stand behind what they
/// wait for and the first one, which waits for nothing, stands alone.
bool begins_later(const std::vector<Emitted>& nodes, std::size_t at, std::size_t period,
                  std::size_t turns) {
  if (!is_product(nodes[at])) return false;
  std::size_t first = at + 1;
  while (first < at + period && is_product(nodes[first])) ++first;
  return first < at + period && repetitions(nodes, first, period) >= turns;
}

bool make_loops(std::vector<Emitted>& nodes, std::size_t period) {
  std::vector<Emitted> made;
  bool changed = false;
  for (std::size_t at = 0; at < nodes.size();) {
    const std::size_t turns = repetitions(nodes, at, period);
    if (is_worth_it(nodes, at, period, turns) && !begins_later(nodes, at, period, turns)) {
      made.push_back(loop_of(nodes, at, period, turns));
      at += turns * period;
      changed = true;
    } else {
      made.push_back(nodes[at++]);
    }
  }
  if (changed) nodes = std::move(made);
  return changed;
}

}  // namespace

std::vector<Emitted> with_loops(std::vector<Emitted> nodes) {
  for (std::size_t period = 1; period <= std::min(kLongestBody, nodes.size() / 2);)
    period = make_loops(nodes, period) ? 1 : period + 1;
  return nodes;
}

std::vector<std::vector<int>> alike_ranks(const std::vector<std::vector<Statement>>& by_rank) {
  std::vector<std::vector<int>> groups;
  std::map<std::string, std::size_t> known;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    std::string all;
    for (const Statement& statement : by_rank[rank]) all += statement.text + '\n';
    const auto [group, is_new] = known.try_emplace(std::move(all), groups.size());
    if (is_new) groups.emplace_back();
    groups[group->second].push_back(static_cast<int>(rank));
  }
  return groups;
}

std::vector<Emitted> joined_ranks(const std::vector<std::vector<Statement>>& by_rank,
                                  const std::vector<int>& ranks) {
  std::vector<Emitted> nodes;
  const auto of = static_cast<int>(by_rank.size());
  const std::vector<Statement>& first = by_rank[static_cast<std::size_t>(ranks.front())];
  for (std::size_t i = 0; i < first.size(); ++i) {
    Emitted node{.text = first[i].text};
    for (std::size_t number = 0; number < first[i].numbers.size(); ++number) {
      std::vector<std::int64_t> values;
      for (const int rank : ranks)
        values.push_back(by_rank[static_cast<std::size_t>(rank)][i].numbers[number]);
      node.numbers.push_back(number_of(values, ranks, of));
    }
    nodes.push_back(std::move(node));
  }
  return nodes;
}

}  // namespace hemiola::compile
