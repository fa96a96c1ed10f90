// Symbolic values of plans: which atoms of which ranks were added up.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace hemiola::verify {

/// `count` contributions of `source` (an atom, held or computed) from each of the ranks
/// first .. first + ranks - 1.
struct Contribution {
  std::int32_t source = 0;
  std::int32_t first = 0;
  std::int32_t ranks = 0;
  std::int32_t count = 0;
  bool operator==(const Contribution&) const = default;
};

/// A multiset of contributions: runs of ranks, sorted by source and rank, disjoint and as long as
/// they can be. Copies share memory. Counts saturate at 2^30.
class Contributions {
 public:
  /// Undefined: memory that nobody wrote.
  Contributions() = default;
  explicit Contributions(const Contribution& only) : only_(only) {}

  bool defined() const { return only_.ranks > 0 || many_ != nullptr; }
  std::vector<Contribution> runs() const;
  bool is(const Contribution& only) const { return many_ == nullptr && only_ == only; }
  bool operator==(const Contributions& other) const {
    return many_ == nullptr && other.many_ == nullptr ? only_ == other.only_
                                                      : runs() == other.runs();
  }
  /// Of two defined values.
  static Contributions sum(const Contributions& a, const Contributions& b);

 private:
  Contribution only_;  ///< unless there are several
  std::shared_ptr<const std::vector<Contribution>> many_;
};

}  // namespace hemiola::verify
