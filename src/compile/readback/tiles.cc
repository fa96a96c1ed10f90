// What a program of a kernel does, tile after tile, as operations of a workgroup.
#include <algorithm>

#include "compile/readback/tiles.h"
#include "core/index.h"

namespace hemiola::compile::readback {
namespace {

using program::Op;
using program::Operand;
using program::OpKind;

constexpr std::size_t kMostAtOnce = std::size_t{1} << 20;

/// Whether both do the same at other places; by source how far they are apart.
bool goes_on(const Op& from, const Op& to, std::vector<std::int64_t>& distances) {
  if (from.src.size() != to.src.size() || !from.dst.empty() || !to.dst.empty() ||
      from.product != to.product || from.flop != to.flop || from.where != to.where)
    return false;
  distances.clear();
  for (std::size_t i = 0; i < from.src.size(); ++i) {
    Operand moved = from.src[i];
    moved.chunk = to.src[i].chunk;
    if (moved != to.src[i]) return false;
    distances.push_back(to.src[i].chunk.constant - from.src[i].chunk.constant);
  }
  return true;
}

/// How many of the steps from `begin` on repeat in pairs at equal distances.
std::size_t repeated(const std::vector<Op>& steps, std::size_t begin) {
  std::vector<std::int64_t> first[2], distances;
  std::size_t end = begin + 2;
  for (; end < steps.size(); ++end) {
    if (!goes_on(steps[end - 2], steps[end], distances)) break;
    auto& expected = first[(end - begin) % 2];
    if (end < begin + 4)
      expected = distances;
    else if (distances != expected)
      break;
  }
  return (std::min(end, steps.size()) - begin) / 2 * 2;
}

}  // namespace

void TileWriter::add(KernelEvent& event) {
  using Kind = KernelEvent::Kind;
  node_ = event.node;
  switch (event.kind) {
    case Kind::tile: {
      flush();
      ++turn_;
      const std::int64_t tile = work_.rows[index(event.number * 4)];
      TraceEvent taken{.kind = TraceEvent::Kind::tile, .number = tile, .line = line(event)};
      for (std::size_t i = 0; i < work_.kernel->tiles.size(); ++i)
        taken.at.emplace_back(work_.kernel->tiles[i].first, work_.coordinates[index(tile)][i]);
      note(std::move(taken));
      break;
    }
    case Kind::turn:
    case Kind::reset:  // looked at by who has asked for it
      break;
    case Kind::move:
      flush();
      share_.emplace(event.number);
      break;
    case Kind::wait: {
      flush();
      wait(event.number, event.step, event.node);
      note({.kind = TraceEvent::Kind::wait,
            .number = event.number,
            .value = event.step + 1,
            .line = line(event)});
      break;
    }
    case Kind::load:
    case Kind::store:
    case Kind::add:
      if (share_)
        move(event);
      else
        access(event);
      break;
    case Kind::take:
      take(event, event.regions.front());
      break;
    case Kind::give:
      give(event, event.regions.front());
      break;
    case Kind::product:
      product(event);
      break;
    case Kind::count:
      count(event);
      break;
    case Kind::signal:
      tell(event);
      break;
    case Kind::barrier:
      flush();
      if (share_) close_share(event);
      BodyWriter::add({.kind = OpKind::sync}, event.node);
      break;
  }
}

/// It was followed before, without the numbers of its counts.
void TileWriter::refuse_other(const KernelEvent& event) const {
  target_.reading.walker.refuse(*event.node,
                                "a kernel that touches other memory, or counts otherwise, for what "
                                "a count gives it");
}

void TileWriter::access(KernelEvent& event) {
  std::vector<Operand> operands;
  for (const Region& touched : event.regions) {
    const bool is_elsewhere = touched.store >= 0;
    const Region region =
        is_elsewhere ? work_.stores[index(touched.store)].there(touched) : touched;
    for (const Strip& strip : strips_of({&region})) operands.push_back(operand(region, strip, 0));
  }
  if (event.kind == KernelEvent::Kind::load) {
    loads_.insert(loads_.end(), operands.begin(), operands.end());
    if (loads_.size() > kMostAtOnce || steps_.size() > kMostAtOnce)
      target_.reading.walker.refuse(*event.node, "a tile of too many loads and products");
    return;
  }
  if (event.kind == KernelEvent::Kind::add) return sum(event, operands);
  close_loads(event.node);
  if (steps_.empty()) steps_.push_back({.kind = OpKind::compute});
  steps_.back().where = line_of(target_.reading, *event.node);
  steps_.back().dst.insert(steps_.back().dst.end(), operands.begin(), operands.end());
}

/// Sums by atomics, and turns that programs take, come in any order. Here they come in the order of
/// the table of tiles, each behind the one before it.
void TileWriter::take(const KernelEvent& event, const Region& region) {
  flush();
  const auto found = facts_.sums.find(key_of(region));
  if (found == facts_.sums.end()) refuse_other(event);
  const auto& all = found->second;
  const auto own = std::ranges::find(all, std::pair{turn_, program_});
  const std::int32_t semaphore =
      target_.first_sum + static_cast<std::int32_t>(std::distance(facts_.sums.begin(), found));
  if (own != all.begin()) {
    Op wait{.kind = OpKind::dep_wait};
    wait.semaphores = {{own_rank(), semaphore}};
    wait.targets = {{own - all.begin(), std::ssize(all)}};
    BodyWriter::add(std::move(wait), event.node);
    BodyWriter::add({.kind = OpKind::sync}, event.node);
  }
}

void TileWriter::give(const KernelEvent& event, const Region& region) {
  flush();
  const auto found = facts_.sums.find(key_of(region));
  if (found == facts_.sums.end()) refuse_other(event);
  if (found->second.size() == 1) return;
  BodyWriter::add({.kind = OpKind::sync}, event.node);
  Op tell{.kind = OpKind::dep_signal};
  tell.semaphores = {{own_rank(), target_.first_sum + static_cast<std::int32_t>(std::distance(
                                                          facts_.sums.begin(), found))}};
  BodyWriter::add(std::move(tell), event.node);
}

void TileWriter::sum(const KernelEvent& event, const std::vector<Operand>& operands) {
  take(event, event.regions.front());
  Op made{.kind = OpKind::compute};
  made.src = made.dst = operands;
  BodyWriter::add(std::move(made), event.node);
  give(event, event.regions.front());
}

void TileWriter::product(const KernelEvent& event) {
  Op made{.kind = OpKind::compute};
  made.src = std::move(loads_);
  loads_.clear();
  made.flop = 2 * event.m * event.n * event.k;
  if (facts_.products.size() == 1) made.product = {event.m, event.n, event.k};
  made.where = line_of(target_.reading, *event.node);
  steps_.push_back(std::move(made));
}

void TileWriter::move(const KernelEvent& event) {
  if (event.kind == KernelEvent::Kind::load)
    share_->load(event);
  else
    moved_.add(share_->store(event));
}

/// What was moved so far. Others are told behind what goes to peers.
void TileWriter::close_share(const KernelEvent& event) {
  bool pushes = false;
  moved_.finish([&](const Strip& strip, const std::vector<Region>& regions) {
    pushes = pushes || regions.front().rank != target_.rank;
    BodyWriter::move(strip, regions, event.node);
  });
  if (pushes)
    BodyWriter::add({.kind = OpKind::flush, .channel = program::Channel::any}, event.node);
}

void TileWriter::count(const KernelEvent& event) {
  flush();
  if (share_) close_share(event);
  share_.reset();
  const auto counter = target_.counters.find({target_.launch, event.number});
  if (counter == target_.counters.end() || !facts_.counts.contains(event.number))
    refuse_other(event);
  Op made{.kind = OpKind::dep_signal};
  made.semaphores = {{own_rank(), counter->second}};
  BodyWriter::add(std::move(made), event.node);
  part_ = counted_part_ = event.number;
  ticket_ = event.step;
}

/// The program that counts last has seen what all others counted: it waits for them.
void TileWriter::tell(const KernelEvent& event) {
  flush();
  if (part_ >= 0) {
    const std::int64_t all = std::ssize(facts_.counts.at(part_));
    Op made{.kind = OpKind::dep_wait};
    made.semaphores = {{own_rank(), target_.counters.at({target_.launch, part_})}};
    made.targets = {{ticket_ % all + 1, all}};
    BodyWriter::add(std::move(made), event.node);
    BodyWriter::add({.kind = OpKind::sync}, event.node);
    part_ = -1;
  }
  const bool is_share = counted_part_ >= kFirstShares;
  if (is_share)
    target_.told[{event.to, event.number}].push_back({PendingWait::kOpen, body_.ops.size()});
  signal(event.to, event.number, event.node);
  target_.reading.sends[{event.to, event.number}].push_back({.rank = target_.rank,
                                                             .stream = -1,
                                                             .launch = target_.launch,
                                                             .part = counted_part_,
                                                             .step = event.step,
                                                             .node = event.node});
  note({.kind = TraceEvent::Kind::signal,
        .number = event.number,
        .value = event.step + 1,
        .rank = event.to,
        .line = line(event)});
}

/// What is loaded and not multiplied.
void TileWriter::close_loads(const Node* node) {
  if (loads_.empty()) return;
  Op made{.kind = OpKind::compute};
  made.src = std::move(loads_);
  loads_.clear();
  made.where = line_of(target_.reading, *node);
  steps_.push_back(std::move(made));
}

/// Steps that repeat become loops, in pairs: an engine takes what follows an operation for another
/// one only where its number differs.
void TileWriter::flush() {
  if (!loads_.empty()) {
    Op made{.kind = OpKind::compute};
    made.src = std::move(loads_);
    loads_.clear();
    if (!steps_.empty()) made.where = steps_.back().where;
    steps_.push_back(std::move(made));
  }
  for (std::size_t i = 0; i < steps_.size();) {
    const std::size_t count = repeated(steps_, i);
    if (count <= 4) {
      remember(steps_[i], node_);
      body_.ops.push_back(std::move(steps_[i++]));
      continue;
    }
    body_.ops.push_back({.kind = OpKind::loop,
                         .count = static_cast<std::int64_t>(count / 2),
                         .where = steps_[i].where});
    for (std::size_t k = i; k < i + 2; ++k) {
      Op step = steps_[k];
      for (std::size_t s = 0; s < step.src.size(); ++s)
        step.src[s].chunk.loop[0] =
            steps_[k + 2].src[s].chunk.constant - steps_[k].src[s].chunk.constant;
      body_.ops.push_back(std::move(step));
    }
    body_.ops.push_back({.kind = OpKind::end_loop});
    i += count;
  }
  steps_.clear();
}

}  // namespace hemiola::compile::readback
