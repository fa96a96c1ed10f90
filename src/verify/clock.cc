#include "verify/clock.h"

#include <algorithm>

namespace hemiola::verify {

Clock::Entry Clock::find(Actor actor) const {
  if (!entries_) return {actor, 0, 0};
  const auto at = std::lower_bound(entries_->begin(), entries_->end(), actor,
                                   [](const Entry& entry, Actor a) { return entry.actor < a; });
  if (at == entries_->end() || at->actor != actor) return {actor, 0, 0};
  return *at;
}

Segment Clock::all(Actor actor) const {
  return find(actor).all;
}
Segment Clock::reads(Actor actor) const {
  return find(actor).reads;
}

void Clock::merge(const Entries& other, bool reads_only) {
  static const Entries none;
  const Entries& own = entries_ ? *entries_ : none;
  auto result = std::make_shared<Entries>();
  result->reserve(own.size() + other.size());
  bool changed = false;
  auto mine = own.begin();
  for (const Entry& theirs : other) {
    while (mine != own.end() && mine->actor < theirs.actor) result->push_back(*mine++);
    Entry entry{theirs.actor, 0, 0};
    if (mine != own.end() && mine->actor == theirs.actor) entry = *mine++;
    const Segment all = reads_only ? entry.all : std::max(entry.all, theirs.all);
    const Segment reads = std::max(entry.reads, theirs.reads);
    changed = changed || all != entry.all || reads != entry.reads;
    result->push_back({theirs.actor, all, reads});
  }
  if (!changed) return;
  result->insert(result->end(), mine, own.end());
  entries_ = std::move(result);
}

void Clock::join(const Clock& other) {
  if (!other.entries_ || other.entries_ == entries_) return;
  if (!entries_) {
    entries_ = other.entries_;
  } else {
    merge(*other.entries_, false);
  }
}

void Clock::join_reads(const Clock& other) {
  if (!other.entries_ || other.entries_ == entries_) return;
  merge(*other.entries_, true);
}

void Clock::learn(Actor actor, Segment segment) {
  if (all(actor) < segment) merge({{actor, segment, segment}}, false);
}

void Clock::learn_reads(Actor actor, Segment segment) {
  if (reads(actor) < segment) merge({{actor, 0, segment}}, true);
}

void Snapshot::join_into(Clock& into) const {
  if (actor < 0) return;
  into.join(clock);
  into.learn(actor, segment);
}

void Snapshot::join_reads_into(Clock& into) const {
  if (actor < 0) return;
  into.join_reads(clock);
  into.learn_reads(actor, segment);
}

}  // namespace hemiola::verify
