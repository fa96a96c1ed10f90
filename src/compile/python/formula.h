// Whole numbers that a text of Python says, once its names have values: sizes, blocks, coordinates
// of tiles, heuristics.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hemiola::compile {

/// By name. `tl.program_id(0)` and `tl.num_programs(0)` are names as they stand there.
using Names = std::map<std::string, std::int64_t, std::less<>>;

/// An expression of + - * // % comparisons, and, or, not, conditions, min, max, cdiv, where. Floor
/// division and remainder are Python's. `args["M"]` is the name M.
class Formula {
 public:
  /// Any text; one that is no such expression has no value.
  explicit Formula(std::string_view text);

  bool is_known() const { return !steps_.empty(); }
  /// In the order in which values() wants them.
  const std::vector<std::string>& names() const { return names_; }
  /// Nothing: a name has no value, something is divided by zero, or the text is no such expression.
  std::optional<std::int64_t> value(const Names& values) const;
  std::optional<std::int64_t> value(const std::vector<std::int64_t>& values) const;

 private:
  friend class FormulaReader;

  enum class Operation : std::uint8_t {
    number,
    name,
    negate,
    no,
    infix,  ///< of two: an operator, min, max or cdiv
    choose  ///< condition, then, else
  };
  struct Step {
    Operation operation = Operation::number;
    std::int64_t number = 0;  ///< or the index of the name, or of the operator
  };

  std::vector<Step> steps_;  ///< operands before what is done with them
  std::vector<std::string> names_;
};

/// a OP b of whole numbers. Nothing: the result has more than 64 bits, or something is divided by
/// zero.
using Infix = std::optional<std::int64_t> (*)(std::int64_t a, std::int64_t b);
/// As Python has it, for an operator, "min", "max" or "cdiv"; `and` and `or` give one of the two.
/// Null: there is no such operator.
Infix infix_named(std::string_view op);
/// Nothing also where there is no such operator.
std::optional<std::int64_t> infix(std::string_view op, std::int64_t a, std::int64_t b);

/// tl.swizzle2d(i, j, size_i, size_j, size_g) as Triton has it (language/standard.py): groups of
/// rows, column by column. compute(op, a, b) is a OP b of numbers of any kind.
template <class Number, class Compute>
std::pair<Number, Number> swizzled(const std::vector<Number>& of, const Compute& compute) {
  const Number id = compute("+", compute("*", of[0], of[3]), of[1]);
  const Number in_group = compute("*", of[4], of[3]);
  const Number first = compute("*", compute("//", id, in_group), of[4]);
  const Number rows = compute("min", compute("-", of[2], first), of[4]);
  const Number inside = compute("%", id, in_group);
  return {compute("+", first, compute("%", inside, rows)), compute("//", inside, rows)};
}

/// A literal: "12", "1_000", "0x1F"; nothing for anything else.
std::optional<std::int64_t> integer_in(std::string_view literal);
/// What stands in the quotes of a literal, without its prefix; escapes are as they are written.
std::string content_of(std::string_view literal);

/// Value of a text without names of its own beyond these; nothing where it has none.
std::optional<std::int64_t> number_in(std::string_view text, const Names& names = {});

}  // namespace hemiola::compile
