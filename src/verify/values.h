// Symbolic values: which inputs of which ranks were added up in a place of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/index.h"

namespace hemiola::verify {

/// `count` contributions from each of the ranks source .. source + sources - 1. In programs it is
/// the input byte that stands `delta` bytes after the byte's own place, as it was in one call;
/// sources below 0 are memory that nobody wrote, far below what a rank computed. In plans `delta`
/// is the atom, held or computed.
struct Term {
  std::int32_t source = 0;
  std::int32_t sources = 1;
  std::int64_t delta = 0;
  std::int64_t count = 1;
  std::int32_t call = 0;
  bool operator==(const Term&) const = default;
};

/// "rank 2", "ranks 2 to 5"
std::string sources_of(const Term& term);

/// A multiset of contributions, the same for every byte of an interval. Values of a table are equal
/// exactly if their fields are; moving bytes up by d is `shift - d`.
struct Value {
  std::int32_t terms = 0;  ///< in its table
  std::int64_t shift = 0;  ///< added to the delta of every term
  bool operator==(const Value&) const = default;
  bool defined() const { return terms >= 0; }
};

/// That of memory which nobody wrote, where memory is not told apart.
inline constexpr Value kUndefined{-1, 0};

/// Interns multisets, so that values are cheap to copy, compare and add. A count saturates at 2^30,
/// far beyond the 1 that is right.
class ValueTable {
 public:
  ValueTable() = default;
  ValueTable(const ValueTable&) = delete;
  ValueTable& operator=(const ValueTable&) = delete;

  /// From now on inputs are those of this call, 0 the first.
  void begin_call(std::int32_t call) {
    call_ = call;
    inputs_.clear();
  }
  std::int32_t call() const { return call_; }
  Value input(std::int32_t rank, std::int64_t delta) {
    if (index(rank) >= inputs_.size()) inputs_.resize(index(rank) + 1, kUndefined);
    Value& first = inputs_[index(rank)];
    if (!first.defined()) first = intern({{rank, 1, 0, 1, call_}});
    return {first.terms, delta};
  }
  /// One contribution from each of several ranks, of the first call.
  Value contributions(std::int32_t first_rank, std::int32_t ranks, std::int64_t delta);
  /// Memory that nobody wrote; `memory` is any number >= 0 that names it.
  Value unwritten(std::int32_t memory, std::int64_t delta);
  static bool is_unwritten(const Term& term) { return term.source < 0 && !is_computed(term); }
  /// What a rank computed: of any two bytes it is not known whether they are equal.
  Value computed(std::int32_t rank) { return contributions(kComputed + 2 * rank, 1, 0); }
  static bool is_computed(const Term& term) { return term.source < kComputed / 2; }
  static std::int32_t computed_by(const Term& term) { return (term.source - kComputed) / 2; }
  static std::int32_t unwritten_memory(const Term& term) { return -term.source / 2 - 1; }

  /// Of what is undefined and a value: that value.
  Value sum(Value a, Value b);
  /// Any terms, in any order.
  Value of(std::vector<Term> terms);
  /// The terms with the shift applied, in order of (delta, call, source).
  std::vector<Term> terms(Value value) const;

 private:
  struct SumKey {
    std::int32_t a = 0;
    std::int32_t b = 0;
    std::int64_t shift = 0;
    bool operator==(const SumKey&) const = default;
  };
  struct Hash {
    std::size_t operator()(const SumKey& key) const;
    std::size_t operator()(const std::vector<Term>& terms) const;
  };
  Value intern(std::vector<Term> terms);
  static constexpr std::int32_t kComputed = INT32_MIN + 2;

  std::int32_t call_ = 0;
  std::vector<Value> inputs_;  ///< by rank, of this call: byte 0
  std::vector<const std::vector<Term>*> by_index_;
  std::unordered_map<std::vector<Term>, std::int32_t, Hash> interned_;
  std::unordered_map<SumKey, Value, Hash> sums_;
};

}  // namespace hemiola::verify
