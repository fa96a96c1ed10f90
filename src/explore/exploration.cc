#include "explore/exploration.h"

#include <algorithm>

#include "explore/first_of_each.h"

namespace hemiola::explore {

std::string_view name_of(LossesOf losses) {
  constexpr std::string_view kNames[] = {"none", "best", "all"};
  return kNames[index(losses)];
}

LossesOf losses_of(const std::string& word, const SourceLocation& where) {
  for (const LossesOf losses : {LossesOf::none, LossesOf::best, LossesOf::all})
    if (name_of(losses) == word) return losses;
  throw Failure("'" + word + "' is none of them", where, "there are: none, best, all");
}

std::string_view name_of(Loss loss) {
  constexpr std::string_view kNames[] = {"last-wave", "launches", "clock",  "caches", "chunks",
                                         "exposed",   "units",    "memory", "links"};
  return kNames[index(loss)];
}

const Candidate* Exploration::winner() const {
  if (candidates.empty()) return nullptr;
  const Candidate& first = candidates.front();
  return first.time() < serial_for(first) ? &first : nullptr;
}

Time Exploration::best() const {
  const Candidate* first = winner();
  return first != nullptr ? first->time() : serial.confirmed.value_or(serial.time);
}

Time Exploration::serial_for(const Candidate& candidate) const {
  return candidate.confirmed && serial.confirmed ? *serial.confirmed : serial.time;
}

double Exploration::speedup(const Candidate& candidate) const {
  return static_cast<double>(serial_for(candidate).fs) / static_cast<double>(candidate.time().fs);
}

std::vector<std::size_t> Exploration::fastest_of_families() const {
  return first_of_each(candidates, [](const Candidate& one) { return one.schedule.family; });
}

std::vector<std::size_t> Exploration::shown() const {
  std::vector<std::size_t> positions = fastest_of_families();
  for (std::size_t i = 0; i < std::min(kShown, candidates.size()); ++i) positions.push_back(i);
  std::ranges::sort(positions);
  positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
  return positions;
}

study::Likeness Exploration::serial_likeness() const {
  return {.device = device,
          .kind = std::string(study::kOverlapKind),
          .op = std::string(name_of(op.kind)) + ", serial",
          .ranks = op.ranks,
          .nodes = nodes,
          .amount = local_flop(op)};
}

study::Likeness Exploration::ratio_likeness() const {
  study::Likeness like = serial_likeness();
  like.kind = study::kRatioKind;
  like.op = name_of(op.kind);
  return like;
}

}  // namespace hemiola::explore
