// Vector clocks that share what they have in common: what an actor knows to have happened before
// it (docs/verify.md).
#pragma once

#include <cstdint>
#include <utility>

namespace hemiola::verify {

/// A workgroup of a rank, or a queue of descriptors of a rank's proxy. From 0.
using Actor = std::int32_t;
/// The part of an actor's life between two barriers of its workgroup, numbered from 0 without end.
using Segment = std::int32_t;

/// What happened before, per actor, in two strengths: segments below `all` with everything they
/// did; segments below `reads` only as far as their loads are concerned. A relaxed flag that
/// follows a load's use carries the second: the load has its value, but stores may still be on
/// their way.
///
/// A tree over actors whose nodes never change, and of which no two that are equal exist in a
/// thread: copying costs O(1), learning one thing O(log actors), joining as much as the two differ.
/// Stays in its thread, and so do its copies.
class Clock {
 public:
  Segment all(Actor actor) const { return find(actor).all; }
  Segment reads(Actor actor) const { return find(actor).reads; }

  void join(const Clock& other) { join(other, false); }
  void join_reads(const Clock& other) { join(other, true); }
  void learn(Actor actor, Segment segment);
  void learn_reads(Actor actor, Segment segment);

 private:
  struct Entry {
    Segment all = 0;
    Segment reads = 0;  ///< >= all
    bool operator==(const Entry&) const = default;
  };
  struct Node;
  struct Leaf;
  struct Inner;
  struct Pool;
  /// Owns a share of a node; null: knows nothing.
  class Share {
   public:
    Share() = default;
    explicit Share(const Node* node);  ///< one more share of it
    Share(const Share& other) : Share(other.node_) {}
    Share(Share&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
    Share& operator=(Share other) noexcept {
      std::swap(node_, other.node_);
      return *this;
    }
    ~Share();

    const Node* operator->() const { return node_; }
    const Node* get() const { return node_; }
    explicit operator bool() const { return node_ != nullptr; }
    bool operator==(const Share& other) const { return node_ == other.node_; }

   private:
    const Node* node_ = nullptr;
  };

  Entry find(Actor actor) const;
  void join(const Clock& other, bool reads_only);
  void raise(Actor actor, Entry to);
  static Share merged(const Share& mine, const Share& theirs, bool reads_only);
  static Share merged_leaves(const Share& mine, const Share& theirs, bool reads_only);
  static Share lifted(Share node, int height);
  template <class Kind>
  static Share only(Kind&& made);
  static Share with(const Share& node, int height, Actor actor, Entry to);

  Share root_;
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
