// What a chunk does while it has a dimension: ring, direct, halving-doubling, trees.
#include <bit>

#include "core/index.h"
#include "workload/astra/collectives.h"

namespace hemiola::workload::astra {
namespace {

using Kind = AstraAlgorithm::Kind;

/// What takes the place of the endpoint delay for groups of a part of the NPUs.
constexpr std::int64_t kDelayOfParts = 10;

std::int32_t wrapped(std::int32_t place, std::int32_t ranks) {
  return (place % ranks + ranks) % ranks;
}

/// To whom the message goes and from whom the one that belongs to it comes; `distance` is not 0.
struct Peers {
  std::int32_t to, from;
  std::int32_t as_source;  ///< what this rank is to `to`
  std::int32_t source;     ///< what `from` is to this rank
};

Peers peers_of(const Pass& pass, std::int32_t place, std::int64_t number) {
  if (pass.algorithm == Kind::halving_doubling) {
    const std::int32_t distance = pass.distances[index(number)];
    const std::int32_t partner =
        wrapped(place / distance % 2 == 0 ? place + distance : place - distance, pass.ranks);
    const std::int32_t level = std::countr_zero(static_cast<std::uint32_t>(distance));
    return {partner, partner, level, level};
  }
  std::int32_t distance = 1;
  if (pass.algorithm == Kind::direct)
    distance += static_cast<std::int32_t>(number % (pass.ranks - 1));
  if (!pass.upwards) distance = -distance;
  Peers peers{wrapped(place + distance, pass.ranks), wrapped(place - distance, pass.ranks), 0, 0};
  if (pass.algorithm == Kind::direct)
    peers.as_source = peers.source = wrapped(-distance, pass.ranks) - 1;
  return peers;
}

/// A perfect binary tree of which places are the nodes in order, and a root above it at one end.
class Tree {
 public:
  explicit Tree(const Pass& pass) : pass_(pass) {}

  bool is_root(std::int32_t place) const { return number(place) == root(); }
  bool is_leaf(std::int32_t place) const { return !is_root(place) && number(place) % 2 != 0; }
  std::int32_t parent(std::int32_t place) const {
    const std::int32_t n = number(place);
    if (n == pass_.ranks / 2) return this->place(root());
    const std::int32_t step = n & -n;
    return this->place((n & (2 * step)) == 0 ? n + step : n - step);
  }
  std::int32_t left(std::int32_t place) const {
    return this->place(is_root(place) ? pass_.ranks / 2
                                      : number(place) - (number(place) & -number(place)) / 2);
  }
  std::int32_t right(std::int32_t place) const {
    return this->place(is_root(place) ? pass_.ranks / 2
                                      : number(place) + (number(place) & -number(place)) / 2);
  }

 private:
  /// From 1 to ranks - 1 within the tree.
  std::int32_t number(std::int32_t place) const { return pass_.highest_root ? place + 1 : place; }
  std::int32_t place(std::int32_t number) const { return pass_.highest_root ? number - 1 : number; }
  std::int32_t root() const { return pass_.highest_root ? pass_.ranks : 0; }

  const Pass& pass_;
};

/// Sources of a rank in a tree.
enum Source : std::int32_t { kParent, kLeft, kRight };

}  // namespace

void Collectives::begin_pass(std::uint32_t stream) {
  streams_[stream].started = true;
  const Pass& pass = pass_of(streams_[stream]);
  if (pass.algorithm == Kind::double_binary_tree) return begin_tree(stream);
  for (std::int64_t i = 0; i < pass.window; ++i) prepare(stream);
}

void Collectives::on_message(std::uint32_t stream) {
  if (pass_of(streams_[stream]).algorithm == Kind::double_binary_tree)
    return on_tree_message(stream);
  ++streams_[stream].received;
  prepare(stream);
}

void Collectives::prepare(std::uint32_t stream) {
  Stream& one = streams_[stream];
  const Pass& pass = pass_of(one);
  const std::int64_t number = one.prepared++;
  const bool reduce =
      pass.reduces != Pass::Reduces::never && number % pass.cycle >= pass.unreduced &&
      (pass.reduces == Pass::Reduces::in_every_cycle || number / pass.cycle % 2 == 0);
  const bool by_number = index(number) < pass.sizes.size();
  to_endpoint(stream, by_number ? pass.sizes[index(number)] : pass.bytes, reduce);
}

void Collectives::to_endpoint(std::uint32_t stream, std::int64_t bytes, bool reduce) {
  const Stream& one = streams_[stream];
  std::uint64_t detail = 0;
  if (reduce) {
    // Two operands are read and one result is written, each rounded down.
    const double rate = configuration_.system.local_memory_bandwidth * 1e9;
    detail = 1 + 3 * static_cast<std::uint64_t>(static_cast<double>(bytes) / rate * 1e9);
  }
  const std::int64_t delay =
      pass_of(one).of_part ? kDelayOfParts : configuration_.system.endpoint_delay_ns;
  calendar_.enter_of_rank(one.rank, calendar_.now() + delay,
                          {EventKind::at_endpoint, stream, detail});
}

void Collectives::at_endpoint(std::uint32_t stream, std::uint64_t detail) {
  if (detail == 0) return on_prepared(stream);
  calendar_.enter_of_rank(streams_[stream].rank,
                          calendar_.now() + static_cast<std::int64_t>(detail - 1),
                          {EventKind::reduced, stream});
}

void Collectives::on_prepared(std::uint32_t stream) {
  Stream& one = streams_[stream];
  const Pass& pass = pass_of(one);
  if (pass.algorithm == Kind::double_binary_tree) return on_tree_prepared(stream);
  ++one.free;
  if (pass.before_second_half > 0 && pass.sends - one.sent <= pass.before_second_half) {
    if (one.received < pass.before_second_half) return;
    for (std::int64_t i = 0; i < pass.window && send_next(stream); ++i) {
    }
  } else {
    send_next(stream);
  }
  end_if_over(stream);
}

bool Collectives::send_next(std::uint32_t stream) {
  Stream& one = streams_[stream];
  const Pass& pass = pass_of(one);
  if (one.prepared == one.sent || one.sent == pass.sends || one.free == 0) return false;
  const std::int64_t number = one.sent++;
  --one.free;
  const Peers peers = peers_of(pass, one.place, number);
  const std::int64_t bytes = pass.sizes.empty() ? pass.bytes : pass.sizes[index(number)];
  send(stream, peers.to, bytes, peers.as_source);
  await(stream, peers.source);
  return true;
}

void Collectives::end_if_over(std::uint32_t stream) {
  const Pass& pass = pass_of(streams_[stream]);
  if (streams_[stream].sent == pass.sends && streams_[stream].free == pass.window) advance(stream);
}

void Collectives::begin_tree(std::uint32_t stream) {
  Stream& one = streams_[stream];
  const Pass& pass = pass_of(one);
  const Tree tree(pass);
  if (tree.is_leaf(one.place)) {
    one.step = Step::to_parent;
    return to_endpoint(stream, pass.bytes, false);
  }
  const bool root = tree.is_root(one.place);
  one.step = root ? Step::one_child : Step::two_children;
  if (!root || pass.highest_root) await(stream, kLeft);
  if (!root || !pass.highest_root) await(stream, kRight);
}

void Collectives::on_tree_message(std::uint32_t stream) {
  Stream& one = streams_[stream];
  const Pass& pass = pass_of(one);
  const Tree tree(pass);
  const bool leaf = tree.is_leaf(one.place), root = tree.is_root(one.place);
  switch (one.step) {
    case Step::two_children:
      one.step = Step::one_child;
      break;
    case Step::one_child:
      one.step = root ? Step::down : Step::to_parent;
      break;
    case Step::from_parent:
      one.step = leaf ? Step::end : Step::down;
      break;
    case Step::begin:
    case Step::to_parent:
    case Step::down:
    case Step::end:
      return;
  }
  // What comes down is reduced again on its way, but by leaves.
  to_endpoint(stream, pass.bytes, !leaf);
}

void Collectives::on_tree_prepared(std::uint32_t stream) {
  Stream& one = streams_[stream];
  const Pass& pass = pass_of(one);
  const Tree tree(pass);
  const bool inner = !tree.is_leaf(one.place) && !tree.is_root(one.place);
  if (inner && !one.reduced_once) {  // what came from the first child
    one.reduced_once = true;
    return;
  }
  if (one.step == Step::to_parent) {
    one.step = Step::from_parent;
    const std::int32_t parent = tree.parent(one.place);
    send(stream, parent, pass.bytes, one.place < parent ? kLeft : kRight);
    return await(stream, kParent);
  }
  if (one.step == Step::down) send_to_children(stream);
  advance(stream);
}

void Collectives::send_to_children(std::uint32_t stream) {
  const Stream& one = streams_[stream];
  const Pass& pass = pass_of(one);
  const Tree tree(pass);
  send(stream, tree.left(one.place), pass.bytes, kParent);
  if (!tree.is_root(one.place)) send(stream, tree.right(one.place), pass.bytes, kParent);
}

}  // namespace hemiola::workload::astra
