// Ranks that do the same, of which the first speaks for all.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "program/bind/bound.h"
#include "program/walk/rotation.h"
#include "verify/programs/memory.h"
#include "verify/values.h"

namespace hemiola::verify {

/// A rotation by `period` ranks that maps a bound program onto itself, and its collective's promise
/// too. Rank r + k period is then the k-th *image* of rank r < period: it does what r does, with
/// all ranks k periods further, and what r has at byte x of a buffer that turns it has k units
/// further. So only the ranks below the period are interpreted, all images of a workgroup at once:
/// whatever it does to a rank beyond the period, the image of it that many periods back does to
/// that rank's representative.
class Fold {
 public:
  /// Nothing folds: every rank is its own representative.
  explicit Fold(const program::Bound& program);
  /// The smallest period for which all of this holds; the program's ranks if there is none.
  static Fold of(const program::Bound& program);

  int period() const { return period_; }
  std::int32_t images() const { return images_; }

  /// A rank as the image of the one that stands for it.
  struct Seat {
    std::int32_t rank = 0;
    std::int32_t image = 0;
  };
  Seat seat(std::int32_t rank) const { return {rank % period_, rank / period_}; }
  std::int32_t rank(std::int32_t representative, std::int32_t image) const {
    return (representative + image * period_) % ranks_;
  }
  std::int32_t back(std::int32_t image) const { return image == 0 ? 0 : images_ - image; }

  /// What stands for a region of any rank at its representative. Both have the same number of
  /// bytes. False if it lies across two units of a buffer that turns, which no image of it could.
  bool place(Region& region) const;
  /// The bytes that a region is `by` periods further.
  Region turned(Region region, std::int32_t by) const;
  /// Values that a rank has, as those of its image `by` periods further; splits pieces where their
  /// contributions turn apart.
  void turn(std::vector<Piece>& pieces, std::int32_t by, ValueTable& values);

 private:
  struct Turned {
    Value value;
    bool as_one = false;  ///< all contributions turn by the same number of bytes
  };
  bool turns(const program::Bound& program, const program::Rotation& rotation, int period);
  void turn_apart(const Piece& piece, std::int32_t by, ValueTable& values,
                  std::vector<Piece>& out) const;
  void turn_source(const Term& term, std::int32_t by, std::vector<Term>& out) const;

  std::int32_t ranks_ = 1;
  std::int32_t period_ = 1;
  std::int32_t images_ = 1;
  std::int32_t buffers_ = 0;
  struct Turn {
    std::int64_t unit = 0;  ///< bytes of memory from one image to the next; 0: does not turn
    std::int64_t part = 0;  ///< bytes after which it comes round
  };
  std::vector<Turn> turns_;  ///< by buffer
  Turn input_;               ///< of the bytes of inputs, by which contributions are numbered
  std::unordered_map<std::uint64_t, Turned> turned_;  ///< by the value's terms and the images
  std::vector<Piece> scratch_;
};

}  // namespace hemiola::verify
