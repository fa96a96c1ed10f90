#include "verify/clock.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <type_traits>
#include <unordered_set>

namespace hemiola::verify {
namespace {

constexpr int kBits = 4;
constexpr std::size_t kWidth = 1 << kBits;

std::size_t slot(Actor actor, int height) {
  return static_cast<std::size_t>(actor >> (kBits * height)) % kWidth;
}

}  // namespace

/// Never changed once it is shared.
struct Clock::Node {
  mutable std::int32_t shares = 0;
  std::int32_t height = 0;  ///< 0: a Leaf
};

struct Clock::Leaf : Node {
  std::array<Entry, kWidth> entries;  ///< by the lowest bits of the actor
};

struct Clock::Inner : Node {
  std::array<Share, kWidth> children;
};

/// The nodes of a thread, each once, and its last joins: workgroups that left one barrier together
/// know and learn the same.
struct Clock::Pool {
  struct Hash {
    std::size_t operator()(const Node* node) const {
      std::uint64_t hash = static_cast<std::uint64_t>(node->height);
      const auto mix = [&](std::uint64_t part) {
        hash = (hash ^ part) * 0x9e3779b97f4a7c15;
        hash ^= hash >> 32;
      };
      if (node->height == 0) {
        for (const Entry& entry : static_cast<const Leaf*>(node)->entries)
          mix(static_cast<std::uint64_t>(static_cast<std::uint32_t>(entry.all)) << 32 |
              static_cast<std::uint32_t>(entry.reads));
      } else {
        for (const Share& child : static_cast<const Inner*>(node)->children)
          mix(reinterpret_cast<std::uintptr_t>(child.get()));
      }
      return static_cast<std::size_t>(hash);
    }
  };
  struct Equal {
    bool operator()(const Node* a, const Node* b) const {
      if (a->height != b->height) return false;
      return a->height == 0
                 ? static_cast<const Leaf*>(a)->entries == static_cast<const Leaf*>(b)->entries
                 : static_cast<const Inner*>(a)->children == static_cast<const Inner*>(b)->children;
    }
  };
  struct Join {
    Share mine;
    Share theirs;
    bool reads_only = false;
    Share result;
  };

  std::unordered_set<const Node*, Hash, Equal> nodes;
  std::array<Join, 256> joins;  ///< goes before the nodes that it holds

  Join& join_of(const Share& mine, const Share& theirs) {
    const auto key = reinterpret_cast<std::uintptr_t>(mine.get()) / alignof(Node) * 31 +
                     reinterpret_cast<std::uintptr_t>(theirs.get()) / alignof(Node);
    return joins[(key ^ key >> 12) % joins.size()];
  }
  static Pool& own() {
    static thread_local Pool pool;
    return pool;
  }
};

/// The one node that equals it.
template <class Kind>
Clock::Share Clock::only(Kind&& made) {
  auto& nodes = Pool::own().nodes;
  const auto found = nodes.find(&made);
  if (found != nodes.end()) return Share(*found);
  auto* node = new std::decay_t<Kind>(std::forward<Kind>(made));
  node->shares = 0;
  nodes.insert(node);
  return Share(node);
}

Clock::Share::Share(const Node* node) : node_(node) {
  if (node_ != nullptr) ++node_->shares;
}

Clock::Share::~Share() {
  if (node_ == nullptr || --node_->shares > 0) return;
  Pool::own().nodes.erase(node_);
  if (node_->height == 0) {
    delete static_cast<const Leaf*>(node_);
  } else {
    delete static_cast<const Inner*>(node_);
  }
}

Clock::Entry Clock::find(Actor actor) const {
  const Node* node = root_.get();
  if (node == nullptr || actor >> kBits >> (kBits * node->height) != 0) return {};
  for (int height = node->height; height > 0; --height) {
    node = static_cast<const Inner*>(node)->children[slot(actor, height)].get();
    if (node == nullptr) return {};
  }
  return static_cast<const Leaf*>(node)->entries[slot(actor, 0)];
}

Clock::Share Clock::merged_leaves(const Share& mine, const Share& theirs, bool reads_only) {
  static const Leaf nothing;
  const Leaf& a = mine ? *static_cast<const Leaf*>(mine.get()) : nothing;
  const Leaf& b = *static_cast<const Leaf*>(theirs.get());
  Leaf result;
  bool same_a = true;
  bool same_b = true;
  for (std::size_t i = 0; i < kWidth; ++i) {
    Entry& entry = result.entries[i];
    entry.all = reads_only ? a.entries[i].all : std::max(a.entries[i].all, b.entries[i].all);
    entry.reads = std::max(a.entries[i].reads, b.entries[i].reads);
    same_a = same_a && entry.all == a.entries[i].all && entry.reads == a.entries[i].reads;
    same_b = same_b && entry.all == b.entries[i].all && entry.reads == b.entries[i].reads;
  }
  if (same_a) return mine;
  if (same_b) return theirs;
  return only(std::move(result));
}

/// Both of one height. A node that is alike is shared, so that later joins end there.
Clock::Share Clock::merged(const Share& mine, const Share& theirs, bool reads_only) {
  if (!theirs || mine == theirs) return mine;
  if (!mine && !reads_only) return theirs;
  if (theirs->height == 0) return merged_leaves(mine, theirs, reads_only);
  const Inner* a = static_cast<const Inner*>(mine.get());
  const Inner* b = static_cast<const Inner*>(theirs.get());
  Inner result;
  bool same_a = a != nullptr;
  bool same_b = true;
  for (std::size_t i = 0; i < kWidth; ++i) {
    static const Share none;
    const Share& own = a != nullptr ? a->children[i] : none;
    result.children[i] = merged(own, b->children[i], reads_only);
    same_a = same_a && result.children[i] == own;
    same_b = same_b && result.children[i] == b->children[i];
  }
  if (same_a) return mine;
  if (same_b) return theirs;
  result.height = theirs->height;
  return only(std::move(result));
}

/// The same knowledge under a root of at least this height.
Clock::Share Clock::lifted(Share node, int height) {
  while (node && node->height < height) {
    Inner above;
    above.height = node->height + 1;
    above.children[0] = std::move(node);
    node = only(std::move(above));
  }
  return node;
}

void Clock::join(const Clock& other, bool reads_only) {
  if (!other.root_ || other.root_ == root_) return;
  const int height = std::max(root_ ? root_->height : 0, other.root_->height);
  root_ = lifted(std::move(root_), height);
  const Share theirs = lifted(other.root_, height);
  Pool::Join& last = Pool::own().join_of(root_, theirs);
  const bool known = last.mine == root_ && last.theirs == theirs && last.reads_only == reads_only;
  if (!known) last = {root_, theirs, reads_only, merged(root_, theirs, reads_only)};
  root_ = last.result;
}

Clock::Share Clock::with(const Share& node, int height, Actor actor, Entry to) {
  if (height == 0) {
    Leaf leaf = node ? *static_cast<const Leaf*>(node.get()) : Leaf{};
    Entry& entry = leaf.entries[slot(actor, 0)];
    entry = {std::max(entry.all, to.all), std::max(entry.reads, to.reads)};
    return only(std::move(leaf));
  }
  Inner inner = node ? *static_cast<const Inner*>(node.get()) : Inner{};
  inner.height = height;
  Share& child = inner.children[slot(actor, height)];
  child = with(child, height - 1, actor, to);
  return only(std::move(inner));
}

void Clock::raise(Actor actor, Entry to) {
  int height = root_ ? root_->height : 0;
  while (actor >> kBits >> (kBits * height) != 0) ++height;
  root_ = with(lifted(std::move(root_), height), height, actor, to);
}

void Clock::learn(Actor actor, Segment segment) {
  if (all(actor) < segment) raise(actor, {segment, segment});
}

void Clock::learn_reads(Actor actor, Segment segment) {
  if (reads(actor) < segment) raise(actor, {0, segment});
}

// Who knows a later segment of the actor has joined its clock of then, which only grows.

void Snapshot::join_into(Clock& into) const {
  if (actor < 0 || into.all(actor) > segment) return;
  into.join(clock);
  into.learn(actor, segment);
}

void Snapshot::join_reads_into(Clock& into) const {
  if (actor < 0 || into.reads(actor) > segment) return;
  into.join_reads(clock);
  into.learn_reads(actor, segment);
}

}  // namespace hemiola::verify
