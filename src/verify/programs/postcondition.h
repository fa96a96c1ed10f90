// What a collective promises, compared with what the memory holds.
#pragma once

#include <optional>
#include <vector>

#include "program/promise.h"
#include "verify/programs/describe.h"

namespace hemiola::verify {

/// Bytes [begin, end) of an output: the sum over ranks first .. first + ranks - 1, and over those
/// of `more`, of the bytes of their inputs that begin at `source`.
struct OutputPostcondition {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int32_t first = 0;
  std::int32_t ranks = 1;
  std::int64_t source = 0;
  std::vector<program::RankRange> more{};  ///< behind these ranks and apart from them, in order

  /// All of the ranks, in order.
  std::vector<program::RankRange> from() const {
    std::vector<program::RankRange> all{{first, ranks}};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};
/// What the collective, or else the user (program::Promise), promises of a rank's output.
std::vector<OutputPostcondition> postconditions(const program::Bound& program, int rank);
/// Where the inputs of a rank are.
std::vector<Region> input_places(const program::Bound& program, int rank);
/// Where its result is; none if the program has neither output nor input.
std::optional<Region> output_place(const program::Bound& program, int rank);

/// Failure (bad input) for buffers that cannot be those of the collective: an output that ends
/// before the result does, an input shorter than what the collective reads.
void require_shapes(const program::Bound& program);

/// Gives every rank below the period its input. Call before the interpretation.
void initialise_inputs(const program::Bound& program, const Fold& fold, ValueTable& values,
                       Memory& memory);
/// New inputs for the present call of `values`, where the call before had its own: the caller fills
/// them in when all ranks have ended the call before.
void refill_inputs(const program::Bound& program, const Fold& fold, ValueTable& values,
                   Memory& memory);

/// Whether it is known what the program promises.
bool has_postcondition(const program::Bound& program);

/// The first byte of an output that does not hold each contribution of the present call exactly
/// once, or that may not have arrived when all kernels have ended.
std::optional<Finding> check_outputs(const Interpreter& interpreter, const Memory& memory,
                                     const ValueTable& values);

/// The first byte that a plan of elements expects at the end, and that nobody has written, or that
/// may not be there yet when all kernels have ended. What is expected there the plan's own proof
/// says, which takes every tile of a compute for stored.
std::optional<Finding> check_expected(const Interpreter& interpreter, const Memory& memory,
                                      const ValueTable& values);

/// Ranks whose kernel may end before the last stores into their output have arrived, or while
/// others still read their buffers: right at the end of all kernels, but not earlier.
void warn_of_early_ends(const Interpreter& interpreter, const Memory& memory,
                        Diagnostics& warnings);

/// Stores into inputs of a program that is not in place: the caller does not expect them.
void warn_of_overwritten_inputs(const Interpreter& interpreter, const Memory& memory,
                                Diagnostics& warnings);

}  // namespace hemiola::verify
