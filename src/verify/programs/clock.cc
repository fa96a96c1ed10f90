#include "verify/programs/clock.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <vector>

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
  bool even = true;         ///< knows as much of all images of an actor: no turn changes it
  // Of the pool:
  std::size_t hash = 0;
  mutable const Node* next = nullptr;  ///< in its bucket
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
  static std::size_t hash_of(const Node& node) {
    std::uint64_t hash = static_cast<std::uint64_t>(node.height);
    const auto mix = [&](std::uint64_t part) {
      hash = (hash ^ part) * 0x9e3779b97f4a7c15;
      hash ^= hash >> 32;
    };
    if (node.height == 0) {
      for (const Entry& entry : static_cast<const Leaf&>(node).entries)
        mix(static_cast<std::uint64_t>(static_cast<std::uint32_t>(entry.all)) << 32 |
            static_cast<std::uint32_t>(entry.reads));
    } else {
      for (const Share& child : static_cast<const Inner&>(node).children)
        mix(reinterpret_cast<std::uintptr_t>(child.get()));
    }
    return static_cast<std::size_t>(hash);
  }
  static bool equal(const Node& a, const Node& b) {
    if (a.hash != b.hash || a.height != b.height) return false;
    return a.height == 0
               ? static_cast<const Leaf&>(a).entries == static_cast<const Leaf&>(b).entries
               : static_cast<const Inner&>(a).children == static_cast<const Inner&>(b).children;
  }

  /// Nodes by their hash, chained through themselves: they come and go all the time.
  class Nodes {
   public:
    const Node* find(const Node& like) const {
      const Node* node = buckets_[like.hash % buckets_.size()];
      while (node != nullptr && !equal(*node, like)) node = node->next;
      return node;
    }
    void insert(const Node* node) {
      if (++count_ > buckets_.size()) grow();
      chain(buckets_, node);
    }
    void erase(const Node* node) {
      const Node** at = &buckets_[node->hash % buckets_.size()];
      while (*at != node) at = &(*at)->next;
      *at = node->next;
      --count_;
    }
    template <class Visit>
    void each(Visit visit) const {
      for (const Node* node : buckets_)
        for (; node != nullptr; node = node->next) visit(*node);
    }

   private:
    static void chain(std::vector<const Node*>& buckets, const Node* node) {
      const Node*& first = buckets[node->hash % buckets.size()];
      node->next = first;
      first = node;
    }
    void grow() {
      std::vector<const Node*> more(4 * buckets_.size());
      for (const Node* node : buckets_)
        while (node != nullptr) chain(more, std::exchange(node, node->next));
      buckets_ = std::move(more);
    }

    std::vector<const Node*> buckets_ = std::vector<const Node*>(1 << 10);
    std::size_t count_ = 0;
  };

  struct Join {
    Share mine;
    Share theirs;
    Manner manner;
    Share result;
  };

  Nodes nodes;
  std::array<Join, 256> joins;  ///< goes before the nodes that it holds
  ReachTable reaches;

  Join& join_of(const Share& mine, const Share& theirs, Manner manner) {
    const auto key = reinterpret_cast<std::uintptr_t>(mine.get()) / alignof(Node) * 31 +
                     reinterpret_cast<std::uintptr_t>(theirs.get()) / alignof(Node) +
                     static_cast<std::uintptr_t>(manner.turn);
    return joins[(key ^ key >> 12) % joins.size()];
  }
  /// Forgets functions that no clock holds any more. Not while a join is under way.
  void tidy() {
    if (!reaches.is_crowded()) return;
    nodes.each([&](const Node& node) {
      if (node.height > 0) return;
      for (const Entry& entry : static_cast<const Leaf&>(node).entries) {
        reaches.mark(entry.all);
        reaches.mark(entry.reads);
      }
    });
    reaches.sweep();
  }
  static Pool& own() {
    // On the heap: memory of threads is scarce in a module that is loaded at run time (Python's).
    static thread_local const auto pool = std::make_unique<Pool>();
    return *pool;
  }
};

/// The one node that equals it.
template <class Kind>
Clock::Share Clock::only(Kind&& made) {
  auto& nodes = Pool::own().nodes;
  made.hash = Pool::hash_of(made);
  if (const Node* known = nodes.find(made)) return Share(known);
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
  if (node_->height == 0)
    delete static_cast<const Leaf*>(node_);
  else
    delete static_cast<const Inner*>(node_);
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

Segment Clock::all(Actor actor, std::int32_t image) const {
  return Pool::own().reaches.at(find(actor).all, image);
}

Segment Clock::reads(Actor actor, std::int32_t image) const {
  return Pool::own().reaches.at(find(actor).reads, image);
}

Clock::Share Clock::merged_leaves(const Share& mine, const Share& theirs, Manner manner) {
  static const Leaf nothing;
  const Leaf& a = mine ? *static_cast<const Leaf*>(mine.get()) : nothing;
  const Leaf& b = *static_cast<const Leaf*>(theirs.get());
  ReachTable& reaches = Pool::own().reaches;
  Leaf result;
  bool same_a = true;
  bool same_b = manner.turn == 0;
  for (std::size_t i = 0; i < kWidth; ++i) {
    Entry& entry = result.entries[i];
    const Entry& own = a.entries[i];
    const Entry& other = b.entries[i];
    entry.all = manner.reads_only
                    ? own.all
                    : reaches.highest(own.all, reaches.turned(other.all, manner.turn));
    entry.reads = other.reads == other.all && own.reads == own.all && !manner.reads_only
                      ? entry.all
                      : reaches.highest(own.reads, reaches.turned(other.reads, manner.turn));
    same_a = same_a && entry == own;
    same_b = same_b && entry == other;
    result.even = result.even && entry.all >= 0 && entry.reads >= 0;
  }
  if (same_a) return mine;
  if (same_b) return theirs;
  return only(std::move(result));
}

/// Both of one height. A node that is alike is shared, so that later joins end there.
Clock::Share Clock::merged(const Share& mine, const Share& theirs, Manner manner) {
  if (!theirs) return mine;
  if (theirs->even) manner.turn = 0;
  if (manner.turn == 0 && mine == theirs) return mine;
  if (!mine && !manner.reads_only && manner.turn == 0) return theirs;
  if (theirs->height == 0) return merged_leaves(mine, theirs, manner);
  const Inner* a = static_cast<const Inner*>(mine.get());
  const Inner* b = static_cast<const Inner*>(theirs.get());
  Inner result;
  bool same_a = a != nullptr;
  bool same_b = manner.turn == 0;
  for (std::size_t i = 0; i < kWidth; ++i) {
    static const Share none;
    const Share& own = a != nullptr ? a->children[i] : none;
    Share& child = result.children[i];
    child = merged(own, b->children[i], manner);
    same_a = same_a && child == own;
    same_b = same_b && child == b->children[i];
    result.even = result.even && (!child || child->even);
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
    above.even = node->even;
    above.children[0] = std::move(node);
    node = only(std::move(above));
  }
  return node;
}

void Clock::join(const Clock& other, std::int32_t turn, bool reads_only) {
  if (!other.root_) return;
  const Manner manner{other.root_->even ? 0 : turn, reads_only};
  if (manner.turn == 0 && other.root_ == root_) return;
  Pool& pool = Pool::own();
  pool.tidy();
  const int height = std::max(root_ ? root_->height : 0, other.root_->height);
  root_ = lifted(std::move(root_), height);
  const Share theirs = lifted(other.root_, height);
  Pool::Join& last = pool.join_of(root_, theirs, manner);
  const bool known = last.mine == root_ && last.theirs == theirs && last.manner == manner;
  if (!known) last = {root_, theirs, manner, merged(root_, theirs, manner)};
  root_ = last.result;
}

Clock::Share Clock::with(const Share& node, int height, Actor actor, Images images, Entry to) {
  if (height == 0) {
    Leaf leaf = node ? *static_cast<const Leaf*>(node.get()) : Leaf{};
    Entry& entry = leaf.entries[slot(actor, 0)];
    ReachTable& reaches = Pool::own().reaches;
    entry = {reaches.raised(entry.all, images.image, images.count, to.all),
             reaches.raised(entry.reads, images.image, images.count, to.reads)};
    leaf.even = leaf.even && entry.all >= 0 && entry.reads >= 0;
    return only(std::move(leaf));
  }
  Inner inner = node ? *static_cast<const Inner*>(node.get()) : Inner{};
  inner.height = height;
  Share& child = inner.children[slot(actor, height)];
  child = with(child, height - 1, actor, images, to);
  inner.even = inner.even && child->even;
  return only(std::move(inner));
}

void Clock::raise(Actor actor, Images images, Entry to) {
  Pool::own().tidy();
  int height = root_ ? root_->height : 0;
  while (actor >> kBits >> (kBits * height) != 0) ++height;
  root_ = with(lifted(std::move(root_), height), height, actor, images, to);
}

void Clock::learn(Actor actor, std::int32_t image, std::int32_t images, Segment segment) {
  if (all(actor, image) < segment) raise(actor, {image, images}, {segment, segment});
}

void Clock::learn_reads(Actor actor, std::int32_t image, std::int32_t images, Segment segment) {
  if (reads(actor, image) < segment) raise(actor, {image, images}, {0, segment});
}

Clock::Share Clock::spread(const Share& node) {
  if (!node || node->even) return node;
  if (node->height == 0) {
    const ReachTable& reaches = Pool::own().reaches;
    Leaf leaf = *static_cast<const Leaf*>(node.get());
    leaf.even = true;
    for (Entry& entry : leaf.entries)
      entry = {reaches.maximum(entry.all), reaches.maximum(entry.reads)};
    return only(std::move(leaf));
  }
  Inner inner = *static_cast<const Inner*>(node.get());
  inner.even = true;
  for (Share& child : inner.children) child = spread(child);
  return only(std::move(inner));
}

Clock Clock::of_all_images() const {
  Clock result;
  result.root_ = spread(root_);
  return result;
}

// Who knows a later segment of the actor has joined its clock of then, which only grows.

void Snapshot::join_into(Clock& into) const {
  if (actor < 0 || into.all(actor, image) > segment) return;
  into.join(clock, image);
  into.learn(actor, image, images, segment);
}

void Snapshot::join_reads_into(Clock& into) const {
  if (actor < 0 || into.reads(actor, image) > segment) return;
  into.join_reads(clock, image);
  into.learn_reads(actor, image, images, segment);
}

}  // namespace hemiola::verify
