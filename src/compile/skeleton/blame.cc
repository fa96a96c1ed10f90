#include "compile/skeleton/blame.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace hemiola::compile::skeleton {
namespace {

/// What was found at `step` is the fault; what it was found by is the other side.
void accuse(Fault& fault, int step, std::string what, const char* rule = nullptr) {
  fault.other_step = std::exchange(fault.step, step);
  fault.what = std::move(what);
  if (rule != nullptr) fault.rule = rule;
}

}  // namespace

Fault Blame::stuck() {
  Fault fault{.kind = Fault::Kind::endless, .rule = "endless", .what = "this wait never ends"};
  const Runner* chosen = list_waits(fault);
  if (chosen == nullptr) return fault;
  fault.step = chosen->process.last_step;
  list_first(fault, *chosen);
  for (const Runner& one : world_.runners_) {
    if (!one.is_active || one.process.state != Process::State::blocked) continue;
    Fault explained = fault;
    explained.step = one.process.last_step;
    taken_away(explained, one);
    if (explained.rule != "endless") return explained;
  }
  lost(fault);
  if (fault.rule == "endless" && !returned(fault, *chosen) && !masked(fault, *chosen))
    teller(fault, *chosen);
  return fault;
}

bool Blame::waits_for_word(const Runner& runner) const {
  return !runner.process.watched.empty() && cell(runner.process.watched[0].first).array >= 0;
}

/// All who wait; the one that waits for a word, in the earliest call, is asked about.
const World::Runner* Blame::list_waits(Fault& fault) const {
  const Runner* chosen = nullptr;
  for (const Runner& one : world_.runners_) {
    if (!one.is_active || one.process.state != Process::State::blocked) continue;
    std::string for_what;
    for (const auto& [index, version] : one.process.watched) {
      if (!for_what.empty()) for_what += ", ";
      for_what += world_.named(cell(index));
      if (cell(index).array >= 0)
        for_what += fmt::format(" (is {})", cell(index).value.value_or(0));
    }
    fault.who.push_back(fmt::format("{} waits at line {} for {}",
                                    world_.named(one.process.index, one.call),
                                    world_.code_.span(one.process.last_step).line, for_what));
    if (chosen == nullptr || one.call < chosen->call ||
        (waits_for_word(one) && !waits_for_word(*chosen)))
      chosen = &one;
  }
  const Scene& scene = world_.scene_;
  for (int rank = 0; rank < scene.world; ++rank)
    if (world_.next_program_[rank] < scene.programs && world_.calls_[rank] < scene.calls)
      fault.who.push_back(
          fmt::format("rank {}: program {} and those behind it have not begun, "
                      "{} of {} are resident",
                      rank, world_.next_program_[rank], scene.residents, scene.programs));
  return chosen;
}

void Blame::list_first(Fault& fault, const Runner& runner) const {
  for (const auto& [index, version] : runner.process.watched) {
    const Cell& waited = cell(index);
    const bool is_first = std::ranges::none_of(world_.cells_, [&](const Cell& one) {
      return one.array == waited.array && !one.history.empty();
    });
    if (is_first && waited.array >= 0)
      fault.first.push_back({.kind = Element::Kind::address,
                             .array = waited.array,
                             .rank = waited.rank,
                             .number = waited.number});
  }
}

/// The word had the value that is awaited, and somebody took it away.
void Blame::taken_away(Fault& fault, const Runner& runner) const {
  for (const auto& [index, version] : runner.process.watched) {
    const std::vector<World::Written> history = cell(index).history;
    for (std::size_t i = history.size(); i-- > 0;) {
      if (i + 1 >= history.size()) continue;
      const World::Written &lost = history[i], &by = history[i + 1];
      if (lost.seen_by.contains(runner.process.index) || lost.call < runner.call - 1 ||
          !world_.would_pass(runner, index, lost.value))
        continue;
      const std::string place = world_.named(cell(index));
      if (by.value <= lost.value)
        return accuse(fault, by.step,
                      fmt::format("{} is set to {} when it may have been told already: that word "
                                  "is lost, and the wait for it never ends",
                                  place, by.value),
                      "reset");
      accuse(fault, fault.step,
             fmt::format(
                 "waits until {} is one value, and it may have gone on to {} when it is looked "
                 "at",
                 place, by.value),
             "overtaken");
      fault.other_step = by.step;
      return;
    }
  }
}

/// A word that is set, or set back, when others told there already.
void Blame::lost(Fault& fault) const {
  for (const Cell& one : world_.cells_)
    for (std::size_t i = 1; i < one.history.size(); ++i) {
      const World::Written &lost = one.history[i - 1], &by = one.history[i];
      if (!by.replaces || lost.value == 0 || lost.value == by.value || lost.thread == by.thread ||
          lost.call != by.call || !lost.seen_by.empty())
        continue;
      accuse(fault, by.step,
             fmt::format("{} is set to {} when others may have told there already: that is lost",
                         world_.named(one), by.value),
             by.value == 0 ? "reset" : "shared-word");
      fault.other_step = lost.step;
      return;
    }
}

/// A program that returned before it told anything, where others told such words.
bool Blame::returned(Fault& fault, const Runner& runner) const {
  for (const Runner& one : world_.runners_) {
    if (one.left_step < 0 || world_.rank_of(one.process.index) == runner.process.rank) continue;
    accuse(fault, one.left_step,
           "a program may return here, and others wait for what it does not tell");
    return true;
  }
  return false;
}

bool Blame::masked(Fault& fault, const Runner& runner) const {
  for (const auto& [index, version] : runner.process.watched) {
    const auto mask = world_.masked_.find(index);
    if (mask == world_.masked_.end() || !all_began()) continue;
    accuse(fault, mask->second,
           fmt::format("{} is waited for, and a mask keeps this from telling it",
                       world_.named(cell(index))));
    return true;
  }
  return false;
}

bool Blame::all_began() const {
  for (int rank = 0; rank < world_.scene_.world; ++rank)
    if (world_.next_program_[rank] < world_.scene_.programs &&
        world_.calls_[rank] < world_.scene_.calls)
      return false;
  return true;
}

/// A word that nobody ever told, of an array whose other words were: who tells has the wrong place,
/// or does not go through all, unless the rank was told by all others, or the place is told
/// elsewhere.
void Blame::teller(Fault& fault, const Runner& runner) const {
  if (!all_began()) return;
  const int world = world_.scene_.world, programs = world_.scene_.programs;
  for (const auto& [index, version] : runner.process.watched) {
    const Cell& waited = cell(index);
    if (waited.array < 0 || !waited.history.empty()) continue;
    int told_here = 0;
    bool is_elsewhere = false;
    const Cell* told = nullptr;
    for (const Cell& other : world_.cells_) {
      if (other.array != waited.array || other.history.empty()) continue;
      is_elsewhere = is_elsewhere || other.number == waited.number;
      if (other.rank == waited.rank) ++told_here;
      told = &other;
    }
    const bool by_all = told_here > 0 && (told_here % programs == 0 || programs == 1) &&
                        (told_here / programs == world || told_here / programs == world - 1);
    const bool by_few = told_here == world || told_here == world - 1;
    if (told == nullptr || (told_here > 0 && (by_all || by_few || is_elsewhere))) return;
    return accuse(fault, told->history.back().step,
                  fmt::format("{} is waited for and nobody tells it; this tells {}",
                              world_.named(waited), world_.named(*told)));
  }
}

void Blame::stale_word(Fault& fault, const World::Point& reader, const std::string& place) const {
  if (reader.thread >= world_.scene_.world * world_.scene_.programs) return;
  const Runner& runner = world_.runners_[reader.thread];
  if (runner.stale_step < 0 || runner.reset_step < 0 || runner.call != reader.call) return;
  accuse(fault, runner.reset_step,
         fmt::format("nothing orders this before others look at the word: one of them saw what the "
                     "call before told, and {} was read too early",
                     place),
         "reset");
  fault.other_step = runner.stale_step;
}

/// The word that was awaited before the store is of somebody else.
void Blame::word_back(Fault& fault, const World::Point& write, const World::Point& read) const {
  const int programs = world_.scene_.world * world_.scene_.programs;
  if (read.thread >= programs || write.thread >= programs) return;
  const World::Seen& seen = write.seen;
  const int reader = world_.rank_of(read.thread), rank = world_.rank_of(write.thread);
  if (seen.of == reader && seen.is_zero)
    return accuse(fault, seen.step, "this gives memory back before it was read: " + fault.what);
  if (seen.array < 0 || seen.of == reader) return;
  const World::Written* back = nullptr;
  const Cell* told = nullptr;
  for (const Cell& one : world_.cells_)
    for (const World::Written& by : one.history) {
      if (one.array != seen.array || world_.rank_of(by.thread) != reader) continue;
      if (one.rank == rank) return;
      back = &by;
      told = &one;
    }
  if (back != nullptr)
    accuse(fault, back->step,
           fmt::format("{}; rank {} tells {}, and rank {} stores", fault.what, reader,
                       world_.named(*told), rank));
}

}  // namespace hemiola::compile::skeleton
