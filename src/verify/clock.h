// Sparse vector clocks: what an actor knows to have happened before it (docs/verify.md).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace hemiola::verify {

/// A workgroup of a rank, or a queue of descriptors of a rank's proxy.
using Actor = std::int32_t;
/// The part of an actor's life between two barriers of its workgroup, numbered from 0 without end.
using Segment = std::int32_t;

/// What happened before, per actor, in two strengths: segments below `all` with everything they
/// did; segments below `reads` only as far as their loads are concerned. A relaxed flag that
/// follows a load's use carries the second: the load has its value, but stores may still be on
/// their way.
class Clock {
 public:
  Segment all(Actor actor) const;
  Segment reads(Actor actor) const;

  void join(const Clock& other);
  void join_reads(const Clock& other);
  void learn(Actor actor, Segment segment);
  void learn_reads(Actor actor, Segment segment);

 private:
  struct Entry {
    Actor actor = 0;
    Segment all = 0;
    Segment reads = 0;  ///< >= all
  };
  using Entries = std::vector<Entry>;  ///< in order of actor

  Entry find(Actor actor) const;
  void merge(const Entries& other, bool reads_only);

  std::shared_ptr<const Entries>
      entries_;  ///< shared by copies; never changed; null: knows nothing
};

/// The clock of an actor at a moment: what it knew, and its own segments before `segment`.
struct Snapshot {
  Clock clock;
  Actor actor = -1;  ///< -1: none
  Segment segment = 0;

  void join_into(Clock& into) const;
  void join_reads_into(Clock& into) const;
};

}  // namespace hemiola::verify
