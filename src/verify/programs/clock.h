// Vector clocks that share what they have in common: what an actor knows to have happened before
// it (docs/verify.md).
#pragma once

#include <cstdint>
#include <utility>

#include "verify/programs/reach.h"

namespace hemiola::verify {

/// A workgroup of a rank, or a queue of descriptors of a rank's proxy. From 0.
using Actor = std::int32_t;
/// The part of an actor's life between two barriers of its workgroup, numbered from 0 without end.
using Segment = std::int32_t;

/// What happened before, per actor, in two strengths: segments below `all` with everything they
/// did; segments below `reads` only as far as their loads are concerned. A relaxed flag that
/// follows a load's use carries the second: the load has its value, but stores may still be on
/// their way. Of ranks that do the same (fold.h) one speaks for all: an actor then has an image on
/// each of them, numbered from the clock's owner on.
///
/// A tree over actors whose nodes never change, and of which no two that are equal exist in a
/// thread: copying costs O(1), learning one thing O(log actors), joining as much as the two differ.
/// Stays in its thread, and so do its copies.
class Clock {
 public:
  Segment all(Actor actor, std::int32_t image = 0) const;
  Segment reads(Actor actor, std::int32_t image = 0) const;

  /// What the other knows of image i is learned of image i + turn, modulo their number; turn is
  /// below it.
  void join(const Clock& other, std::int32_t turn = 0) { join(other, turn, false); }
  void join_reads(const Clock& other, std::int32_t turn = 0) { join(other, turn, true); }
  void learn(Actor actor, Segment segment) { learn(actor, 0, 1, segment); }
  void learn_reads(Actor actor, Segment segment) { learn_reads(actor, 0, 1, segment); }
  /// The image is one of `images`.
  void learn(Actor actor, std::int32_t image, std::int32_t images, Segment segment);
  void learn_reads(Actor actor, std::int32_t image, std::int32_t images, Segment segment);
  /// What the clocks of all images know together.
  Clock of_all_images() const;

 private:
  struct Entry {
    Reach all = 0;
    Reach reads = 0;  ///< >= all
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

  /// How a join takes the other clock.
  struct Manner {
    std::int32_t turn = 0;
    bool reads_only = false;
    bool operator==(const Manner&) const = default;
  };
  /// The images of which something is raised.
  struct Images {
    std::int32_t image = 0;
    std::int32_t count = 1;
  };

  Entry find(Actor actor) const;
  void join(const Clock& other, std::int32_t turn, bool reads_only);
  void raise(Actor actor, Images images, Entry to);
  static Share merged(const Share& mine, const Share& theirs, Manner manner);
  static Share merged_leaves(const Share& mine, const Share& theirs, Manner manner);
  static Share spread(const Share& node);
  static Share lifted(Share node, int height);
  template <class Kind>
  static Share only(Kind&& made);
  static Share with(const Share& node, int height, Actor actor, Images images, Entry to);

  Share root_;
};

/// The clock of an actor at a moment: what it knew, and its own segments before `segment`; as a
/// rank sees it for which the actor is that `image`.
struct Snapshot {
  Clock clock;       ///< images counted from the actor's own rank
  Actor actor = -1;  ///< -1: none
  Segment segment = 0;
  std::int32_t image = 0;
  std::int32_t images = 1;

  void join_into(Clock& into) const;
  void join_reads_into(Clock& into) const;
  /// What was known of the loads of an actor, without those of the snapshot's own segments.
  Segment reads(Actor of, std::int32_t of_image) const {
    return clock.reads(of, (of_image - image + images) % images);
  }
  /// As a rank sees it from which those that see this one are `turn` images on.
  Snapshot turned(std::int32_t turn) const {
    Snapshot result = *this;
    result.image = (image + turn) % images;
    return result;
  }
};

}  // namespace hemiola::verify
