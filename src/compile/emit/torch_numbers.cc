#include "compile/emit/torch_numbers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <set>

namespace hemiola::compile {
namespace {

std::int64_t residue(std::int64_t value, std::int64_t modulus) {
  const std::int64_t rest = value % modulus;
  return rest < 0 ? rest + modulus : rest;
}

/// "+ 3 * step", "- d", "+ 2"
void add_term(std::string& text, std::int64_t factor, const std::string& name) {
  if (factor == 0) return;
  const std::int64_t size = std::abs(factor);
  const std::string term = name.empty() ? std::to_string(size)
                           : size == 1  ? name
                                        : fmt::format("{} * {}", size, name);
  if (text.starts_with('-') && factor > 0)
    text = term + " - " + text.substr(1);
  else if (text.empty())
    text = factor < 0 ? "-" + term : term;
  else
    text += (factor < 0 ? " - " : " + ") + term;
}

bool fits(const Number& number, const std::vector<std::int64_t>& values,
          const std::vector<int>& ranks) {
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const std::int64_t value =
        number.modulus > 0
            ? residue(ranks[i] + number.inner, number.modulus) * number.scale + number.outer
            : ranks[i] * number.slope + number.outer;
    if (value != values[i]) return false;
  }
  return true;
}

std::optional<Number> turning(const std::vector<std::int64_t>& values,
                              const std::vector<int>& ranks, std::int64_t modulus) {
  const std::set<std::int64_t> distinct(values.begin(), values.end());
  if (std::ssize(distinct) != modulus) return std::nullopt;
  const std::int64_t least = *distinct.begin(), scale = *std::next(distinct.begin()) - least;
  if ((values.front() - least) % scale != 0) return std::nullopt;
  Number number{.modulus = modulus, .scale = scale, .outer = least};
  number.inner = residue((values.front() - least) / scale - ranks.front(), modulus);
  if (!fits(number, values, ranks)) return std::nullopt;
  return number;
}

}  // namespace

std::int64_t Number::nearest(std::int64_t value, std::int64_t modulus) {
  const std::int64_t rest = residue(value, modulus);
  return rest > modulus / 2 ? rest - modulus : rest;
}

std::optional<Number::Growth> Number::growth_to(const Number& later) const {
  if (table != later.table) return std::nullopt;
  if (!table.empty()) return Growth{};
  if (modulus != later.modulus || slope != later.slope || scale != later.scale ||
      inner_strides != later.inner_strides || outer_strides != later.outer_strides)
    return std::nullopt;
  return Growth{modulus > 0 ? nearest(later.inner - inner, modulus) : 0, later.outer - outer};
}

bool Number::divides(std::int64_t by) const {
  if (!table.empty()) return by == 1;
  const std::int64_t of_rank = modulus > 0 ? scale : slope;
  const auto whole = [&](std::int64_t value) { return value % by == 0; };
  return whole(of_rank) && whole(outer) && std::ranges::all_of(outer_strides, whole);
}

std::string Number::turning_text(const std::vector<LoopCounter>& counters) const {
  if (modulus == 0 || !table.empty()) return {};
  std::string sum = "rank";
  std::int64_t constant = inner;
  for (std::size_t i = 0; i < std::min(inner_strides.size(), counters.size()); ++i) {
    const std::int64_t stride = nearest(inner_strides[i], modulus);
    constant -= stride * counters[i].first;
    add_term(sum, stride, counters[i].name);
  }
  add_term(sum, nearest(constant, modulus), "");
  if (sum == "rank") return turns_with_all ? sum : fmt::format("rank % {}", modulus);
  return fmt::format("({}) % {}", sum, modulus);
}

std::string Number::text(const std::vector<LoopCounter>& counters, std::int64_t divided_by) const {
  if (!table.empty()) return fmt::format("({})[rank]", fmt::join(table, ", "));
  std::string sum;
  const std::string turning = turning_text(counters);
  if (modulus > 0)  // % binds as * does, from the left
    sum = scale == divided_by ? turning : fmt::format("{} * {}", turning, scale / divided_by);
  else
    add_term(sum, slope / divided_by, "rank");
  std::int64_t constant = outer;
  for (std::size_t i = 0; i < outer_strides.size(); ++i) {
    constant -= outer_strides[i] * counters[i].first;
    add_term(sum, outer_strides[i] / divided_by, counters[i].name);
  }
  add_term(sum, constant / divided_by, "");
  return sum.empty() ? "0" : sum;
}

Number number_of(const std::vector<std::int64_t>& values, const std::vector<int>& ranks, int of) {
  const bool same = std::ranges::all_of(values, [&](auto value) { return value == values[0]; });
  if (same) return {.outer = values.front()};
  // Of two ranks, rank and (rank + 1) % 2 are both linear: what turns in one loop turns in all.
  if (std::ssize(ranks) == of) {
    for (std::int64_t modulus = of; modulus > 1; --modulus) {
      if (of % modulus != 0) continue;
      auto number = turning(values, ranks, modulus);
      if (!number) continue;
      number->turns_with_all = modulus == of;
      return *number;
    }
  }
  const std::int64_t apart = ranks[1] - ranks[0];
  if ((values[1] - values[0]) % apart == 0) {
    Number number{.slope = (values[1] - values[0]) / apart};
    number.outer = values[0] - number.slope * ranks[0];
    if (fits(number, values, ranks)) return number;
  }
  Number number;
  number.table.assign(static_cast<std::size_t>(of), 0);
  for (std::size_t i = 0; i < ranks.size(); ++i)
    number.table[static_cast<std::size_t>(ranks[i])] = values[i];
  return number;
}

}  // namespace hemiola::compile
