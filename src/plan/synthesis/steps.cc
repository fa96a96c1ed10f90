#include "plan/synthesis/steps.h"

#include <algorithm>
#include <string>

#include "core/index.h"

namespace hemiola::plan {
Steps::Steps(Fabric& fabric, std::int64_t chunk_bytes, bool against)
    : into_(index(fabric.ranks())), out_of_(index(fabric.ranks())) {
  over_.resize(fabric.trunks().size());
  for (const auto& [from, to] : fabric.neighbours()) {
    const Way& way = fabric.way(from, to);
    Step step{.from = against ? to : from, .to = against ? from : to};
    for (const Way::Use& use : way.uses)
      step.loads.push_back({use.trunk, fabric.busy(way, use, chunk_bytes)});
    step.busy = fabric.busy(way, chunk_bytes);
    step.latency = fabric.handover(way);
    step.is_network = way.is_network;
    const auto number = static_cast<std::int32_t>(steps_.size());
    into_[index(step.to)].push_back(number);
    out_of_[index(step.from)].push_back(number);
    for (const Step::Load& load : step.loads) over_[index(load.trunk)].push_back(number);
    steps_.push_back(std::move(step));
  }
  std::vector<bool> reached(index(fabric.ranks()), false);
  std::vector<int> queue{0};
  reached[0] = true;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    for (const std::int32_t step : out_of_[index(queue[i])]) {
      const int next = (*this)[step].to;
      if (reached[index(next)]) continue;
      reached[index(next)] = true;
      queue.push_back(next);
    }
  }
  const auto lost = std::ranges::find(reached, false);
  if (lost != reached.end()) {
    throw Failure("machine '" + fabric.machine().name + "': rank 0 has no way to rank " +
                  std::to_string(lost - reached.begin()));
  }
}

Timetable::Timetable(Fabric& fabric, std::int64_t chunk_bytes, bool against)
    : fabric_(fabric),
      steps_(fabric, chunk_bytes, against),
      free_(fabric.trunks().size()),
      is_due_(index(fabric.ranks()), false) {
  for (int rank = 0; rank < fabric.ranks(); ++rank) next_.push_back(rank + 1);
}

bool Timetable::is_free(std::int32_t step) const {
  return std::ranges::all_of(
      steps_[step].loads, [&](const Step::Load& load) { return free_[index(load.trunk)] <= now_; });
}

int Timetable::turn(const Step& step) const {
  const int ranks = fabric_.ranks();
  return (step.from - next_[index(step.to)] + 2 * ranks) % ranks;
}

void Timetable::mark(int rank) {
  if (is_due_[index(rank)]) return;
  is_due_[index(rank)] = true;
  due_.push_back(rank);
}

void Timetable::start(std::int32_t number, std::int64_t chunk) {
  const Step& step = steps_[number];
  next_[index(step.to)] = step.from + 1;
  for (const Step::Load& load : step.loads) {
    free_[index(load.trunk)] = now_ + load.busy;
    events_.push({now_ + load.busy, load.trunk, 0, 0});
  }
  const Time end = now_ + step.busy + step.latency;
  moves_.push_back({chunk, step.from, step.to, now_, end});
  events_.push({end, -1, step.to, chunk});
}

void Timetable::go_on() {
  if (events_.empty())
    throw Failure("machine '" + fabric_.machine().name + "': not every rank has a way to all", {},
                  {}, ExitCode::internal);
  now_ = events_.top().when;
}

}  // namespace hemiola::plan
