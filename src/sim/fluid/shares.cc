// Progressive filling.

#include "sim/fluid/shares.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "core/random.h"
#include "sim/support/index.h"

namespace hemiola::sim {
namespace {

constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

/// Of a flow of this part: how fast its use of a resource rises.
__int128 rise(std::int64_t weight, std::int64_t part) {
  return static_cast<__int128>(weight) * part / kEvenPart;
}

/// The level at which it has this rate.
std::int64_t level_of(std::int64_t rate, std::int64_t part) {
  if (part == kEvenPart) return rate;
  return static_cast<std::int64_t>(
      std::min<__int128>(kUnlimited, static_cast<__int128>(rate) * kEvenPart / part));
}

}  // namespace

std::int32_t Shares::add_resource(Rate capacity, Reason reason) {
  resources_.push_back({.capacity = capacity.bytes_per_second, .reason = reason});
  return static_cast<std::int32_t>(resources_.size()) - 1;
}

bool Shares::full_possible(const Resource& resource) {
  return resource.potential > static_cast<__int128>(resource.capacity) << kWeightBits;
}

void Shares::mark(std::int32_t number) {
  Resource& resource = resources_[index(number)];
  if (resource.dirty) return;
  resource.dirty = true;
  dirty_.push_back(number);
}

namespace {

/// Of what makes flows alike.
std::uint64_t mixed(std::uint64_t hash, std::int64_t value) {
  return splitmix64(hash * kSplitMixStep + static_cast<std::uint64_t>(value));
}

bool same(const Demand& a, const Demand& b) {
  return a.resource == b.resource && a.weight == b.weight && a.answers == b.answers;
}

bool same(const LoadWindow& a, const LoadWindow& b) {
  return a.bytes == b.bytes && a.latency == b.latency && a.eighths == b.eighths &&
         a.exchanges == b.exchanges;
}

}  // namespace

/// The kind that is as the wanted one; a new one where there is none.
std::int32_t Shares::kind_of(Kind& wanted) {
  std::uint64_t hash = static_cast<std::uint64_t>(wanted.limit_reason);
  for (const std::int64_t value :
       {wanted.limit, wanted.part, wanted.window.bytes, wanted.window.latency,
        std::int64_t{wanted.window.eighths}, std::int64_t{wanted.window.exchanges}})
    hash = mixed(hash, value);
  for (const Demand& demand : wanted.demands)
    hash = mixed(mixed(mixed(hash, demand.resource), demand.weight), demand.answers);
  const auto [begin, end] = kinds_by_hash_.equal_range(hash);
  for (auto known = begin; known != end; ++known) {
    const Kind& kind = kinds_[index(known->second)];
    if (kind.limit == wanted.limit && kind.limit_reason == wanted.limit_reason &&
        kind.part == wanted.part && same(kind.window, wanted.window) &&
        std::equal(kind.demands.begin(), kind.demands.end(), wanted.demands.begin(),
                   wanted.demands.end(),
                   [](const Demand& a, const Demand& b) { return same(a, b); }))
      return known->second;
  }
  std::int32_t number;
  if (free_kinds_.empty()) {
    number = static_cast<std::int32_t>(kinds_.size());
    kinds_.emplace_back();
  } else {
    number = free_kinds_.back();
    free_kinds_.pop_back();
  }
  Kind& kind = kinds_[index(number)];
  kind.demands.assign(wanted.demands.begin(), wanted.demands.end());
  kind.limit = wanted.limit;
  kind.limit_reason = wanted.limit_reason;
  kind.window = wanted.window;
  kind.part = wanted.part;
  kind.hash = hash;
  kind.rate = 0;
  kind.served = 0;
  kind.charged = {};
  kind.since = wanted.since;
  kinds_by_hash_.emplace(hash, number);
  for (const Demand& demand : kind.demands)
    resources_[index(demand.resource)].kinds.push_back(number);
  return number;
}

void Shares::leave_resources(std::int32_t number) {
  Kind& kind = kinds_[index(number)];
  for (const Demand& demand : kind.demands) {
    std::vector<std::int32_t>& kinds = resources_[index(demand.resource)].kinds;
    kinds.erase(std::ranges::find(kinds, number));
  }
  const auto [begin, end] = kinds_by_hash_.equal_range(kind.hash);
  kinds_by_hash_.erase(
      std::find_if(begin, end, [&](const auto& known) { return known.second == number; }));
  free_kinds_.push_back(number);
}

std::int32_t Shares::start(const std::vector<Demand>& demands, std::int64_t bytes,
                           std::int64_t limit, Reason reason, std::int64_t now,
                           const LoadWindow& window, std::int64_t part) {
  Kind& wanted = wanted_;
  wanted.demands.clear();
  wanted.limit = limit > 0 ? limit : kUnlimited;
  wanted.limit_reason = reason;
  wanted.window = window;
  wanted.part = part;
  wanted.since = now;
  for (const Demand& demand : demands) {
    const Resource& resource = resources_[index(demand.resource)];
    if (resource.capacity == 0 || demand.weight == 0) continue;
    const auto same = std::ranges::find(wanted.demands, demand.resource, &Demand::resource);
    if (same == wanted.demands.end()) {
      wanted.demands.push_back(demand);
    } else {
      same->weight += demand.weight;
      same->answers += demand.answers;
    }
  }
  for (const Demand& demand : wanted.demands) {
    const Resource& resource = resources_[index(demand.resource)];
    const auto alone = static_cast<std::int64_t>(std::min<__int128>(
        kUnlimited, (static_cast<__int128>(resource.capacity) << kWeightBits) / demand.weight));
    if (alone < wanted.limit) {
      wanted.limit = std::max<std::int64_t>(1, alone);
      wanted.limit_reason = resource.reason;
    }
  }
  const std::int32_t kind_number = kind_of(wanted);
  std::int32_t number;
  if (free_flows_.empty()) {
    number = static_cast<std::int32_t>(flows_.size());
    flows_.emplace_back();
  } else {
    number = free_flows_.back();
    free_flows_.pop_back();
  }
  Kind& kind = kinds_[index(kind_number)];
  advance(kind, now);
  flows_[index(number)] = {kind_number, kind.served + static_cast<__int128>(bytes) * kSecond,
                           order_of_starts_++, kind.charged};
  kind.flows.push_back(number);
  std::push_heap(kind.flows.begin(), kind.flows.end(),
                 [this](std::int32_t a, std::int32_t b) { return ends_later(a, b); });
  for (const Demand& demand : kind.demands)
    resources_[index(demand.resource)].potential +=
        static_cast<__int128>(demand.weight) * kind.limit;
  add_window(kind, 1);
  for (const Demand& demand : kind.demands) {
    const Resource& resource = resources_[index(demand.resource)];
    if (resource.binding || connects(resource)) mark(demand.resource);
  }
  fresh_.push_back(kind_number);
  return number;
}

/// Of one flow that comes or goes.
void Shares::add_window(const Kind& kind, int sign) {
  if (kind.window.bytes == 0) return;
  for (const Demand& demand : kind.demands) {
    Resource& resource = resources_[index(demand.resource)];
    if (resource.reason != Reason::link) continue;
    resource.windows += static_cast<__int128>(sign * kind.window.bytes) * demand.weight;
    resource.answers += static_cast<__int128>(sign * kind.window.bytes) * demand.answers;
  }
}

void Shares::limit_by_queues(Kind& kind) const {
  kind.present_limit = kind.limit;
  if (kind.window.bytes == 0) return;
  __int128 longest = 0;
  for (const Demand& demand : kind.demands) {
    const Resource& resource = resources_[index(demand.resource)];
    __int128 windows = resource.windows;
    if (kind.window.exchanges)
      windows = std::max(windows, 2 * resource.answers) - std::min(windows, 2 * resource.answers);
    longest = std::max(longest, windows * (kSecond >> kWeightBits) / resource.capacity);
  }
  const __int128 latency = std::max<__int128>(
      1, kind.window.latency + longest * kind.window.eighths / 8);  // links may have none
  const __int128 rate = static_cast<__int128>(kind.window.bytes) * kSecond / latency;
  kind.present_limit = static_cast<std::int64_t>(std::clamp<__int128>(rate, 1, kind.present_limit));
}

// --- The heap of ends: one entry for each kind with a rate, moved when that changes.

/// Flows of one kind.
bool Shares::ends_later(std::int32_t a, std::int32_t b) const {
  const Flow& x = flows_[index(a)];
  const Flow& y = flows_[index(b)];
  return x.target != y.target ? x.target > y.target : x.order > y.order;
}

bool Shares::ends_before(std::int32_t a, std::int32_t b) const {
  const Kind& x = kinds_[index(a)];
  const Kind& y = kinds_[index(b)];
  if (x.end != y.end) return x.end < y.end;
  return flows_[index(x.flows.front())].order < flows_[index(y.flows.front())].order;
}

void Shares::put(std::size_t at, std::int32_t kind) {
  ends_[at] = kind;
  kinds_[index(kind)].at = static_cast<std::int32_t>(at);
}

/// Moves the kind at a place to where it belongs.
void Shares::sift(std::size_t at) {
  const std::int32_t kind = ends_[at];
  for (; at > 0 && ends_before(kind, ends_[(at - 1) / 2]); at = (at - 1) / 2)
    put(at, ends_[(at - 1) / 2]);
  while (true) {
    std::size_t child = 2 * at + 1;
    if (child >= ends_.size()) break;
    if (child + 1 < ends_.size() && ends_before(ends_[child + 1], ends_[child])) ++child;
    if (!ends_before(ends_[child], kind)) break;
    put(at, ends_[child]);
    at = child;
  }
  put(at, kind);
}

void Shares::advance(Kind& kind, std::int64_t now) {
  const std::int64_t passed = now - kind.since;
  kind.since = now;
  if (kind.rate == 0) return;
  kind.served += static_cast<__int128>(kind.rate) * passed;
  kind.charged[index(kind.reason)] += passed;
}

std::int64_t Shares::left(std::int32_t number, std::int64_t now) const {
  const Flow& flow = flows_[index(number)];
  const Kind& kind = kinds_[index(flow.kind)];
  const __int128 left =
      flow.target - kind.served - static_cast<__int128>(kind.rate) * (now - kind.since);
  return static_cast<std::int64_t>(std::max<__int128>(0, left) / kSecond);
}

/// When the first flow of a kind ends, if its rate stays.
void Shares::find_end(std::int32_t number) {
  Kind& kind = kinds_[index(number)];
  const __int128 left = flows_[index(kind.flows.front())].target - kind.served;
  kind.end = kind.since;
  if (kind.rate != kUnlimited && left > 0)
    kind.end = static_cast<std::int64_t>(
        std::min<__int128>(kUnlimited - 1, kind.since + (left + kind.rate - 1) / kind.rate));
  if (kind.at < 0) {
    kind.at = static_cast<std::int32_t>(ends_.size());
    ends_.push_back(number);
  }
  sift(index(kind.at));
}

void Shares::set_rate(std::int32_t number, std::int64_t now) {
  Kind& kind = kinds_[index(number)];
  ++updates_;
  advance(kind, now);
  kind.rate = kind.given;
  kind.reason = kind.given_reason;
  find_end(number);
}

void Shares::visit(std::int32_t number) {
  Kind& kind = kinds_[index(number)];
  if (kind.visited || kind.flows.empty()) return;
  kind.visited = true;
  kind.frozen = false;
  touched_kinds_.push_back(number);
  for (const Demand& demand : kind.demands) {
    Resource& resource = resources_[index(demand.resource)];
    if (resource.visited || !connects(resource)) continue;
    resource.visited = true;
    touched_resources_.push_back(demand.resource);
  }
}

// The flows that can notice the change, and the resources that they may fill.
void Shares::collect() {
  touched_kinds_.clear();
  touched_resources_.clear();
  for (const std::int32_t number : fresh_) visit(number);
  for (const std::int32_t number : dirty_) {
    Resource& resource = resources_[index(number)];
    resource.dirty = false;
    // One that can not be filled any more still held its flows back until now.
    if (!connects(resource)) {
      for (const std::int32_t kind : resource.kinds) visit(kind);
      resource.binding = false;
    } else if (!resource.visited) {
      resource.visited = true;
      touched_resources_.push_back(number);
    }
  }
  for (std::size_t next = 0; next < touched_resources_.size(); ++next)
    for (const std::int32_t kind : resources_[index(touched_resources_[next])].kinds) visit(kind);
  dirty_.clear();
  fresh_.clear();
}

void Shares::freeze(Kind& kind, std::int64_t rate, Reason reason) {
  kind.frozen = true;
  kind.given = rate;
  kind.given_reason = reason;
  for (const Demand& demand : kind.demands) {
    Resource& resource = resources_[index(demand.resource)];
    if (!resource.visited) continue;
    resource.left -= static_cast<__int128>(demand.weight) * rate * kind.members();
    resource.active -= rise(demand.weight, kind.part) * kind.members();
  }
}

void Shares::push_full(std::size_t place) {
  const Resource& resource = resources_[index(touched_resources_[place])];
  if (resource.active <= 0) return;
  fulls_.push_back({resource.left / resource.active, place});
  std::push_heap(fulls_.begin(), fulls_.end(), std::greater<>());
}

void Shares::fill() {
  for (const std::int32_t number : touched_resources_) {
    Resource& resource = resources_[index(number)];
    resource.binding = true;
    resource.left = static_cast<__int128>(resource.capacity) << kWeightBits;
    resource.active = 0;
  }
  for (const std::int32_t number : touched_kinds_) {
    Kind& kind = kinds_[index(number)];
    limit_by_queues(kind);
    kind.last_level = level_of(kind.present_limit, kind.part);
    for (const Demand& demand : kind.demands)
      resources_[index(demand.resource)].active += rise(demand.weight, kind.part) * kind.members();
  }
  fulls_.clear();
  for (std::size_t place = 0; place < touched_resources_.size(); ++place) push_full(place);
  // Kinds in the order of their own limits: those below the level have stopped.
  std::vector<std::int32_t>& order = order_;
  order = touched_kinds_;
  std::ranges::sort(order, [this](std::int32_t a, std::int32_t b) {
    const std::int64_t x = kinds_[index(a)].last_level, y = kinds_[index(b)].last_level;
    return x != y ? x < y : a < b;
  });
  // The lowest level at which a resource is full. Those levels rise as flows stop.
  const auto lowest = [this]() -> const Full* {
    while (!fulls_.empty()) {
      const Full top = fulls_.front();
      const Resource& resource = resources_[index(touched_resources_[top.place])];
      if (resource.active > 0 && resource.left / resource.active == top.level)
        return &fulls_.front();
      std::pop_heap(fulls_.begin(), fulls_.end(), std::greater<>());
      fulls_.pop_back();
      push_full(top.place);
    }
    return nullptr;
  };
  std::size_t next = 0;
  while (true) {
    while (next < order.size() && kinds_[index(order[next])].frozen) ++next;
    if (next == order.size()) return;
    const Full* first = lowest();
    const auto level = static_cast<std::int64_t>(
        std::clamp<__int128>(first != nullptr ? first->level : kUnlimited, 1, kUnlimited));
    if (kinds_[index(order[next])].last_level <= level) {
      for (; next < order.size() && kinds_[index(order[next])].last_level <= level; ++next) {
        Kind& kind = kinds_[index(order[next])];
        if (kind.frozen) continue;
        freeze(kind, kind.present_limit,
               kind.present_limit < kind.limit ? Reason::link : kind.limit_reason);
      }
      continue;
    }
    for (; first != nullptr && first->level <= level; first = lowest()) {
      const Resource& resource = resources_[index(touched_resources_[first->place])];
      std::pop_heap(fulls_.begin(), fulls_.end(), std::greater<>());
      fulls_.pop_back();
      for (const std::int32_t number : resource.kinds) {
        Kind& stopped = kinds_[index(number)];
        if (stopped.frozen) continue;
        const std::int64_t rate = level * stopped.part / kEvenPart;
        freeze(stopped, std::max<std::int64_t>(1, rate), resource.reason);
      }
    }
  }
}

void Shares::settle(std::int64_t now) {
  if (settled()) return;
  collect();
  fill();
  for (const std::int32_t number : touched_kinds_) {
    kinds_[index(number)].visited = false;
    set_rate(number, now);
  }
  for (const std::int32_t number : touched_resources_) resources_[index(number)].visited = false;
}

std::int64_t Shares::next() {
  return ends_.empty() ? kUnlimited : kinds_[index(ends_.front())].end;
}

std::int32_t Shares::finish(Attribution& charged) {
  const std::int32_t kind_number = ends_.front();
  Kind& kind = kinds_[index(kind_number)];
  advance(kind, kind.end);
  std::pop_heap(kind.flows.begin(), kind.flows.end(),
                [this](std::int32_t a, std::int32_t b) { return ends_later(a, b); });
  const std::int32_t number = kind.flows.back();
  kind.flows.pop_back();
  const Attribution& before = flows_[index(number)].before;
  for (std::size_t r = 0; r < charged.size(); ++r) charged[r] = kind.charged[r] - before[r];
  for (const Demand& demand : kind.demands) {
    Resource& resource = resources_[index(demand.resource)];
    resource.potential -= static_cast<__int128>(demand.weight) * kind.limit;
    if (resource.binding) mark(demand.resource);
  }
  add_window(kind, -1);
  free_flows_.push_back(number);
  if (!kind.flows.empty()) {
    find_end(kind_number);
    return number;
  }
  const std::int32_t last = ends_.back();
  ends_.pop_back();
  kind.at = -1;
  if (last != kind_number) {
    put(0, last);
    sift(0);
  }
  leave_resources(kind_number);
  return number;
}

}  // namespace hemiola::sim
