#include "compile/readback/moves.h"

#include <fmt/format.h>

#include "core/index.h"

namespace hemiola::compile::readback {

std::vector<Region> Share::store(const KernelEvent& event) {
  std::vector<Region> all = event.regions;
  all.insert(all.end(), loads_.begin(), loads_.end());
  loads_.clear();
  return all;
}

ShareCheck::ShareCheck(const Walker& walker, const WorkObject& work)
    : walker_(walker), work_(work), done_(work.moves.size()) {
  for (const WorkObject::Move& move : work.moves) {
    std::vector<const Region*> regions;
    for (const Region& region : move.op.regions) regions.push_back(&region);
    strips_.push_back(strips_of(regions).front());
  }
}

void ShareCheck::move(const KernelEvent& event) {
  if (event.number != next_)
    walker_.wrong(*event.node,
                  fmt::format("movement {} comes where {} should", event.number, next_));
  ++next_;
}

void ShareCheck::store(const Share& share, const std::vector<Region>& regions,
                       const KernelEvent& event) {
  const HostOp& op = work_.moves[index(share.move())].op;
  const Strip& strip = strips_[index(share.move())];
  const auto is_of = [&](const Region& region, const Region& whole) {
    return region.tensor == whole.tensor && region.rank == whole.rank && region.axes.size() <= 1 &&
           (region.axes.empty() || region.axes[0].second == 1);
  };
  const Region& target = regions.front();
  const std::int64_t count = target.elements();
  const std::int64_t at = target.offset - strip.offsets[0];
  const std::int64_t row = at / strip.pitches[0], column = at % strip.pitches[0];
  bool is_right = regions.size() == op.regions.size() && at >= 0 && row < strip.rows &&
                  column + count <= strip.run;
  for (std::size_t i = 0; is_right && i < regions.size(); ++i)
    is_right = is_of(regions[i], op.regions[i]) && regions[i].elements() == count &&
               regions[i].offset == strip.offsets[i] + row * strip.pitches[i] + column;
  if (!is_right)
    walker_.wrong(
        *event.node,
        fmt::format("a share of movement {} stores what the host did not ask for", share.move()));
  if (!done_[index(share.move())].insert({target.offset, count}).second)
    walker_.wrong(*event.node, fmt::format("two shares of movement {} are the same", share.move()));
}

void ShareCheck::end(const Node& node) const {
  if (next_ != std::ssize(work_.moves))
    walker_.wrong(node, fmt::format("a program has no share in movement {}", next_));
}

void ShareCheck::finish() const {
  for (std::size_t i = 0; i < done_.size(); ++i) {
    std::int64_t elements = 0, end = -1;
    for (const auto& [offset, count] : done_[i]) {
      if (offset < end)
        walker_.wrong(*work_.moves[i].op.node, fmt::format("two shares of movement {} overlap", i));
      end = offset + count;
      elements += count;
    }
    if (elements != work_.moves[i].op.regions.front().elements())
      walker_.wrong(*work_.moves[i].op.node,
                    fmt::format("the shares of movement {} are {} elements of {}", i, elements,
                                work_.moves[i].op.regions.front().elements()));
  }
}

void ShareWriter::add(std::vector<Region> regions) {
  Strip strip{.offsets = {}, .pitches = {}, .run = regions.front().elements(), .rows = 1};
  for (const Region& region : regions) strip.offsets.push_back(region.offset);
  strip.pitches.assign(regions.size(), strip.run);
  if (!made_.empty() && made_.back().first.run == strip.run) {
    Strip& before = made_.back().first;
    std::vector<std::int64_t> distances;
    for (std::size_t i = 0; i < regions.size(); ++i)
      distances.push_back(strip.offsets[i] - before.offsets[i] -
                          (before.rows - 1) * before.pitches[i]);
    bool goes_on = true;
    for (std::size_t i = 0; i < regions.size(); ++i)
      goes_on = goes_on && distances[i] >= strip.run &&
                (before.rows == 1 || distances[i] == before.pitches[i]);
    if (goes_on) {
      before.pitches = std::move(distances);
      ++before.rows;
      return;
    }
  }
  made_.emplace_back(std::move(strip), std::move(regions));
}

}  // namespace hemiola::compile::readback
