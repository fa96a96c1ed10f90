#include "workload/astra/calendar.h"

#include <algorithm>
#include <functional>

#include "core/index.h"

namespace hemiola::workload::astra {

void Calendar::give_back(Pool<List>& lists, std::uint32_t list) {
  lists[list].items.clear();
  lists[list].next = 0;
  lists.give_back(list);
}

std::uint32_t Calendar::bucket_of(std::int64_t time) {
  Recent& recent = recent_[index(time & 63)];
  if (recent.time == time) return recent.bucket;
  const auto [at, is_new] = buckets_.try_emplace(time, kNone);
  if (is_new) {
    at->second = events_.take();
    times_.emplace_back(time, at->second);
    std::push_heap(times_.begin(), times_.end(), std::greater<>());
  }
  recent = {time, at->second};
  return at->second;
}

void Calendar::enter_of_rank(std::uint32_t rank, std::int64_t time, Event event) {
  auto& open = open_[rank];
  for (std::size_t i = open.size(); i-- > 0;) {
    if (open[i].first != time) continue;
    of_ranks_[open[i].second].items.push_back(event);
    return;
  }
  const std::uint32_t list = of_ranks_.take();
  of_ranks_[list].items.push_back(event);
  open.emplace_back(time, list);
  enter(time, {EventKind::of_rank, rank, list});
}

bool Calendar::next_bucket() {
  if (current_ != kNone) {
    buckets_.erase(now_);
    recent_[index(now_ & 63)] = {};
    give_back(events_, current_);
    current_ = kNone;
  }
  if (times_.empty()) return false;
  std::pop_heap(times_.begin(), times_.end(), std::greater<>());
  std::tie(now_, current_) = times_.back();
  times_.pop_back();
  return true;
}

bool Calendar::next(Event& event) {
  for (;;) {
    if (list_ != kNone) {
      List& list = of_ranks_[list_];
      if (list.next < list.items.size()) {
        event = list.items[list.next++];
        ++handled_;
        return true;
      }
      auto& open = open_[rank_];
      open.erase(std::ranges::find(open, std::pair(now_, list_)));
      give_back(of_ranks_, list_);
      list_ = kNone;
    }
    if (current_ == kNone || events_[current_].next == events_[current_].items.size()) {
      if (!next_bucket()) return false;
      continue;
    }
    List& bucket = events_[current_];
    event = bucket.items[bucket.next++];
    if (event.kind != EventKind::of_rank) {
      ++handled_;
      return true;
    }
    rank_ = event.subject;
    list_ = static_cast<std::uint32_t>(event.detail);
  }
}

}  // namespace hemiola::workload::astra
