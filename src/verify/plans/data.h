// Real memory of a plan: inputs, and what the results should be.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/index.h"
#include "verify/plans/unrolled.h"

namespace hemiola::verify {

/// Elements of an area in its order, as positions in its tensor (last axis fastest).
std::vector<std::int64_t> elements(const plan::Plan& plan, const plan::Area& area);

/// A pseudo-random number from what names it.
std::uint64_t mix(std::uint64_t a, std::uint64_t b, std::uint64_t c = 0, std::uint64_t d = 0);

class PlanData {
 public:
  /// Failure: more than `most` elements over all ranks.
  PlanData(const Unrolled& unrolled, std::int64_t most);

  float* tensor(int rank, std::int32_t tensor) {
    return memory_[index(rank)][index(tensor)].data();
  }

  /// Whether tiles write it, and nothing is there before.
  bool is_accumulator(int rank, std::int32_t tensor, std::int64_t element) const {
    const auto r = index(rank), t = index(tensor), e = index(element);
    return computes_[r][t][e] && !resident_[r][t][e];
  }

  /// Everything that nobody holds becomes NaN.
  void poison();
  /// New values where ranks hold something at the start; zeros where tiles accumulate. The rest
  /// stays as it is.
  void begin(std::uint64_t seed);
  /// Compares results with those of the data that begin() put there; the first difference in words,
  /// empty if there is none.
  std::string compare(std::int64_t& compared) const;

  /// Before the first tile of a launch: what it accumulates in is empty.
  void begin_launch(int rank, const plan::Compute& compute);
  /// Runs a tile of a compute on the memory of a rank.
  void run_tile(int rank, const plan::Compute& compute, std::int64_t tile);

 private:
  /// Ranks that hold (resident) or compute an element at the start.
  struct Owners {
    std::vector<int> ranks;
  };
  using Tensors = std::vector<std::vector<float>>;

  /// What an element should be: what its owners had, all together or one of them.
  struct Meaning {
    std::int32_t tensor = 0;
    std::int64_t element = 0;
    bool reduced = false;
    int holder = -1;  ///< this owner's; -1: anyone's
  };

  void find_residents();
  void find_owners();
  void find_meanings();
  std::vector<std::pair<std::int64_t, Meaning>> meanings(const plan::Expectation& expectation,
                                                         int rank) const;
  const std::vector<int>& owners_of(const Meaning& meaning) const {
    return owners_[index(meaning.tensor)][index(meaning.element)].ranks;
  }
  float value_of(int rank, std::int32_t tensor, std::int64_t element) const;
  float right_input(int rank, std::int32_t tensor, std::int64_t element) const;
  void compute_reference();
  void compute_reference(int rank);
  std::string compare_promises(std::int64_t& compared) const;
  std::string compare_expectations(std::int64_t& compared) const;
  std::string differs(int rank, std::int32_t tensor, std::int64_t element, float wanted) const;

  const plan::Plan& plan_;
  std::vector<Tensors> memory_;    ///< by rank and tensor
  std::vector<Tensors> initial_;   ///< NaN: nothing is there
  std::vector<Tensors> computed_;  ///< the right results of computes; NaN: none
  std::vector<std::vector<std::vector<bool>>> resident_;  ///< by rank, tensor, element
  std::vector<std::vector<std::vector<bool>>> computes_;  ///< the same: tiles write it
  std::vector<std::vector<Owners>> owners_;               ///< by tensor and element
  std::map<std::tuple<int, std::int32_t, std::int64_t>, Meaning> meanings_;  ///< by place
  std::vector<bool> reduced_, written_;  ///< by tensor: some transfer does so
};

}  // namespace hemiola::verify
