// What one agent does, as a number, and whom it refers to: the input of the refinement in
// classes.cc.
#pragma once

#include <cstdint>
#include <vector>

#include "core/random.h"
#include "machine/machine.h"
#include "program/bind/bound.h"
#include "sim/alike/classes.h"

namespace hemiola::sim {

using Colour = std::uint64_t;

/// Mixes a value into a colour.
constexpr Colour mix(Colour colour, std::uint64_t value) {
  return splitmix64(colour * kSplitMixStep + value);
}

/// Whether slices of a chunk of so many units are alike in time though some have one more. Not
/// among few ranks: workgroups that are not alike come apart, as they do line by line.
bool alike_slices(const program::Bound& program, std::int64_t units, std::int64_t slices);

/// One use of somebody's memory or semaphore. `label` says which operation and iteration it is of.
struct PeerUse {
  Colour label = 0;
  std::int32_t rank = 0;
  std::int32_t semaphore = -1;  ///< -1: memory of the rank
};

/// Reads signatures off the operations of bodies, without walking loops whose iterations refer to
/// the same ranks.
class Signatures {
 public:
  Signatures(const machine::Machine& machine, const program::Bound& program, AlikeBy by);

  /// Of everything that is the same on all ranks that run the body: kinds, sizes, slices, counts.
  Colour body(std::int32_t body) const { return bodies_[index(body)]; }
  /// What an agent of `rank` refers to, in program order, into `out`; and the colour of the rest of
  /// what depends on its rank. Adds at most `most` references; false if there are more.
  bool references(std::int32_t body, int rank, std::size_t most, std::vector<PeerUse>& out,
                  Colour& colour) const;

 private:
  Colour colour_of(const program::Op& op) const;
  Colour place_of(const program::Op& op, const program::Operand& operand, int rank) const;
  void add_visits(const program::Body& body);
  void add(const program::Op& op, Colour label, const Indices& at, std::vector<PeerUse>& out,
           Colour& colour) const;

  const machine::Machine& machine_;
  const program::Bound& program_;
  AlikeBy by_;
  /// Of the rotation by which buffers turn (sim/model/addresses.h): their places differ from one to
  /// the next.
  int period_ = 1;
  std::vector<Colour> bodies_;
  /// An operation that may refer to others, and the iterations of loops around it that differ in
  /// whom.
  struct Visit {
    std::size_t op = 0;
    std::int64_t outer = 1, inner = 1;
  };
  std::vector<std::vector<Visit>> visits_;  ///< by body
  std::vector<Colour> own_;  ///< by body: of all other operations, as of references()
};

}  // namespace hemiola::sim
