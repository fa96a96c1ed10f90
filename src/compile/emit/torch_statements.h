// Statements of a rank, and what becomes of those of all ranks: one list with expressions, in which
// repetitions are loops.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compile/emit/torch_numbers.h"

namespace hemiola::compile {

/// A line of Python on one rank: "{}" in the text is the next of the numbers, "{:16}" a slice of 16
/// from it on; "{{" and "}}" are brackets. Two ranks do the same if their texts are equal.
struct Statement {
  std::string text;
  std::vector<std::int64_t> numbers{};

  Statement& add(const std::string& more, std::vector<std::int64_t> of_it = {}) {
    text += more;
    numbers.insert(numbers.end(), of_it.begin(), of_it.end());
    return *this;
  }
  Statement& add(const Statement& other) { return add(other.text, other.numbers); }
};

/// A line, or a loop over lines and loops.
struct Emitted {
  std::string text;  ///< empty: a loop
  std::vector<Number> numbers{};
  std::int64_t turns = 0;
  std::vector<Emitted> body{};

  bool is_loop() const { return text.empty(); }
};

/// Ranks whose statements have the same texts, in the order of their first ranks.
std::vector<std::vector<int>> alike_ranks(const std::vector<std::vector<Statement>>& by_rank);

/// The statements of these ranks of a plan with so many, as expressions in the rank.
std::vector<Emitted> joined_ranks(const std::vector<std::vector<Statement>>& by_rank,
                                  const std::vector<int>& ranks);

/// What repeats as loops; the same statements in the same order.
std::vector<Emitted> with_loops(std::vector<Emitted> nodes);

/// Python, each line behind so many spaces and with its end.
std::string python_of(const std::vector<Emitted>& nodes, std::size_t indent);

}  // namespace hemiola::compile
