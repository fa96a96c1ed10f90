// Proofs that were found, for programs that are the same.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "program/bind/bound.h"
#include "study/laboratory/cache.h"
#include "study/laboratory/identity.h"
#include "verify/programs/sizes.h"
#include "verify/verify.h"

namespace hemiola::study {

/// Thread-safe. Two threads that ask for the same proof at once may both find it.
class Verdicts {
 public:
  /// All that a proof depends on but the size (Laboratory says why).
  struct Family {
    Identity program, machine;
    DataType type;
    ReduceOp op;
    int calls;
    bool fold;
    auto operator<=>(const Family&) const = default;
  };
  Family family_of(const program::Bound& bound, const verify::CheckOptions& options);

  using Proof = std::shared_ptr<const verify::Proof>;
  struct Found {
    Proof proof;
    Bytes at{};
  };

  /// Of this very size.
  Proof of_size(const program::Bound& bound, const verify::CheckOptions& options);
  static Proof of_job(const program::Bound& bound, const verify::CheckOptions& options);
  /// Of this size or another one of its class.
  Found of_class(const program::Bound& bound, const verify::CheckOptions& options);

  std::int64_t proofs() const;
  void clear();

 private:
  /// Sizes of one family.
  struct Members {
    std::map<Bytes, Proof> by_size;
    struct Class {
      verify::SizeClass sizes;
      Found found;
    };
    std::vector<Class> classes;
    /// Proven last, whose class nobody has asked for yet.
    std::optional<program::Bound> latest;
    int asked = 0, served = 0;  ///< classes that were worked out, and proofs that they saved
    std::list<Family>::iterator place{};
  };
  using Lock = std::unique_lock<std::mutex>;

  Members& members_of(const Family& family);
  Proof prove(const Family& family, const program::Bound& bound,
              const verify::CheckOptions& options);
  std::optional<Found> in_a_class(const Family& family, Bytes size);
  void work_out_a_class(const Family& family);

  /// By address of the program, which the copy of the binding keeps alive.
  struct Known {
    program::Bound bound;
    Identity identity;
  };
  Cache<const program::Program*, std::shared_ptr<const Known>> identities_{32};

  mutable std::mutex mutex_;
  std::map<Family, Members> families_;
  std::list<Family> order_;  ///< the one that was asked for last first
  std::int64_t proofs_ = 0;
};

}  // namespace hemiola::study
