// Numbers of statements as expressions in the rank and the counters of loops: what several ranks
// have in common, and what the turns of a loop have.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hemiola::compile {

/// The counter of a loop around a number.
struct LoopCounter {
  std::string name;
  std::int64_t first = 0;  ///< its value in the first turn
};

/// value = ((rank + inner) mod modulus) * scale + outer, or, with modulus 0, rank * slope + outer.
/// `inner` and `outer` grow with each turn of the loops around the number, outermost first. Where
/// no such form fits, `table` has the value of each rank of the plan, and the rest means nothing.
struct Number {
  std::int64_t modulus = 0, slope = 0, scale = 1;
  bool turns_with_all =
      true;  ///< the modulus is the number of ranks, so that rank % modulus is rank
  std::int64_t inner = 0, outer = 0;
  std::vector<std::int64_t> inner_strides{}, outer_strides{};
  std::vector<std::int64_t> table{};

  /// How much further `later` is, which is of the same form: by turn of a loop. Nothing where the
  /// two differ in more.
  struct Growth {
    std::int64_t inner = 0, outer = 0;
    bool operator==(const Growth&) const = default;
  };
  std::optional<Growth> growth_to(const Number& later) const;

  /// Python. `divided_by`: the expression of value / divided_by, which is whole (divides()).
  std::string text(const std::vector<LoopCounter>& counters, std::int64_t divided_by = 1) const;
  bool divides(std::int64_t by) const;
  /// What turns of it, with these outermost loops around it: "(rank + d) % 4". Empty with modulus
  /// 0.
  std::string turning_text(const std::vector<LoopCounter>& counters) const;
  /// Of a residue, the one nearest to zero.
  static std::int64_t nearest(std::int64_t value, std::int64_t modulus);
};

/// The number that has these values on these ranks (ascending) of a plan of so many.
Number number_of(const std::vector<std::int64_t>& values, const std::vector<int>& ranks, int of);

}  // namespace hemiola::compile
