// Progressive filling.

#include "sim/fluid/shares.h"

#include <algorithm>
#include <limits>

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

std::int32_t Shares::start(const std::vector<Demand>& demands, std::int64_t bytes,
                           std::int64_t limit, Reason reason, std::int64_t now,
                           const LoadWindow& window, std::int64_t part) {
  std::int32_t number;
  if (free_.empty()) {
    number = static_cast<std::int32_t>(flows_.size());
    flows_.emplace_back();
  } else {
    number = free_.back();
    free_.pop_back();
  }
  Flow& flow = flows_[index(number)];
  flow.demands.clear();
  flow.left = static_cast<__int128>(bytes) * kSecond;
  flow.limit = limit > 0 ? limit : kUnlimited;
  flow.limit_reason = reason;
  flow.rate = 0;
  flow.since = now;
  flow.charged = {};
  flow.window = window;
  flow.part = part;
  for (const Demand& demand : demands) {
    const Resource& resource = resources_[index(demand.resource)];
    if (resource.capacity == 0 || demand.weight == 0) continue;
    const auto same = std::find_if(flow.demands.begin(), flow.demands.end(),
                                   [&](const Demand& d) { return d.resource == demand.resource; });
    if (same == flow.demands.end()) {
      flow.demands.push_back(demand);
    } else {
      same->weight += demand.weight;
      same->answers += demand.answers;
    }
  }
  for (const Demand& demand : flow.demands) {
    const Resource& resource = resources_[index(demand.resource)];
    const auto alone = static_cast<std::int64_t>(std::min<__int128>(
        kUnlimited, (static_cast<__int128>(resource.capacity) << kWeightBits) / demand.weight));
    if (alone < flow.limit) {
      flow.limit = std::max<std::int64_t>(1, alone);
      flow.limit_reason = resource.reason;
    }
  }
  for (const Demand& demand : flow.demands) {
    Resource& resource = resources_[index(demand.resource)];
    resource.flows.push_back(number);
    resource.potential += static_cast<__int128>(demand.weight) * flow.limit;
  }
  add_window(flow, 1);
  for (const Demand& demand : flow.demands) {
    const Resource& resource = resources_[index(demand.resource)];
    if (resource.binding || connects(resource)) mark(demand.resource);
  }
  fresh_.push_back(number);
  return number;
}

void Shares::add_window(const Flow& flow, int sign) {
  if (flow.window.bytes == 0) return;
  for (const Demand& demand : flow.demands) {
    Resource& resource = resources_[index(demand.resource)];
    if (resource.reason != Reason::link) continue;
    resource.windows += static_cast<__int128>(sign * flow.window.bytes) * demand.weight;
    resource.answers += static_cast<__int128>(sign * flow.window.bytes) * demand.answers;
  }
}

void Shares::limit_by_queues(Flow& flow) const {
  flow.present_limit = flow.limit;
  if (flow.window.bytes == 0) return;
  __int128 longest = 0;
  for (const Demand& demand : flow.demands) {
    const Resource& resource = resources_[index(demand.resource)];
    __int128 windows = resource.windows;
    if (flow.window.exchanges)
      windows = std::max(windows, 2 * resource.answers) - std::min(windows, 2 * resource.answers);
    longest = std::max(longest, windows * (kSecond >> kWeightBits) / resource.capacity);
  }
  const __int128 latency = std::max<__int128>(
      1, flow.window.latency + longest * flow.window.eighths / 8);  // links may have none
  const __int128 rate = static_cast<__int128>(flow.window.bytes) * kSecond / latency;
  flow.present_limit = static_cast<std::int64_t>(std::clamp<__int128>(rate, 1, flow.present_limit));
}

// --- The heap of ends: one entry for each flow with a rate, moved when that changes.

bool Shares::ends_before(std::int32_t a, std::int32_t b) const {
  const Flow& x = flows_[index(a)];
  const Flow& y = flows_[index(b)];
  return x.end != y.end ? x.end < y.end : x.sequence < y.sequence;
}

void Shares::put(std::size_t at, std::int32_t flow) {
  ends_[at] = flow;
  flows_[index(flow)].at = static_cast<std::int32_t>(at);
}

/// Moves the flow at a place to where it belongs.
void Shares::sift(std::size_t at) {
  const std::int32_t flow = ends_[at];
  for (; at > 0 && ends_before(flow, ends_[(at - 1) / 2]); at = (at - 1) / 2)
    put(at, ends_[(at - 1) / 2]);
  while (true) {
    std::size_t child = 2 * at + 1;
    if (child >= ends_.size()) break;
    if (child + 1 < ends_.size() && ends_before(ends_[child + 1], ends_[child])) ++child;
    if (!ends_before(ends_[child], flow)) break;
    put(at, ends_[child]);
    at = child;
  }
  put(at, flow);
}

void Shares::advance(Flow& flow, std::int64_t now) {
  const std::int64_t passed = now - flow.since;
  flow.left -= static_cast<__int128>(flow.rate) * passed;
  flow.charged[static_cast<std::size_t>(flow.reason)] += passed;
  flow.since = now;
}

std::int64_t Shares::left(std::int32_t number, std::int64_t now) const {
  const Flow& flow = flows_[index(number)];
  const __int128 left = flow.left - static_cast<__int128>(flow.rate) * (now - flow.since);
  return static_cast<std::int64_t>(std::max<__int128>(0, left) / kSecond);
}

void Shares::set_rate(std::int32_t number, std::int64_t rate, Reason reason, std::int64_t now) {
  Flow& flow = flows_[index(number)];
  ++updates_;
  advance(flow, now);
  flow.reason = reason;
  if (rate == flow.rate) return;  // it still ends when it was to end
  flow.rate = rate;
  std::int64_t end = now;
  if (rate != kUnlimited && flow.left > 0)
    end = static_cast<std::int64_t>(
        std::min<__int128>(kUnlimited - 1, now + (flow.left + rate - 1) / rate));
  flow.end = end;
  flow.sequence = sequence_++;
  if (flow.at < 0) {
    flow.at = static_cast<std::int32_t>(ends_.size());
    ends_.push_back(number);
  }
  sift(index(flow.at));
}

void Shares::visit(std::int32_t number) {
  Flow& flow = flows_[index(number)];
  if (flow.visited) return;
  flow.visited = true;
  flow.frozen = false;
  touched_flows_.push_back(number);
  for (const Demand& demand : flow.demands) {
    Resource& resource = resources_[index(demand.resource)];
    if (resource.visited || !connects(resource)) continue;
    resource.visited = true;
    touched_resources_.push_back(demand.resource);
  }
}

// The flows that can notice the change, and the resources that they may fill.
void Shares::collect() {
  touched_flows_.clear();
  touched_resources_.clear();
  for (const std::int32_t number : fresh_) visit(number);
  for (const std::int32_t number : dirty_) {
    Resource& resource = resources_[index(number)];
    resource.dirty = false;
    // One that can not be filled any more still held its flows back until now.
    if (!connects(resource)) {
      for (const std::int32_t flow : resource.flows) visit(flow);
      resource.binding = false;
    } else if (!resource.visited) {
      resource.visited = true;
      touched_resources_.push_back(number);
    }
  }
  for (std::size_t next = 0; next < touched_resources_.size(); ++next) {
    for (const std::int32_t flow : resources_[index(touched_resources_[next])].flows) visit(flow);
  }
  dirty_.clear();
  fresh_.clear();
}

void Shares::fill() {
  for (const std::int32_t number : touched_resources_) {
    Resource& resource = resources_[index(number)];
    resource.binding = true;
    resource.left = static_cast<__int128>(resource.capacity) << kWeightBits;
    resource.active = 0;
  }
  for (const std::int32_t number : touched_flows_) {
    Flow& flow = flows_[index(number)];
    limit_by_queues(flow);
    flow.last_level = level_of(flow.present_limit, flow.part);
    for (const Demand& demand : flow.demands)
      resources_[index(demand.resource)].active += rise(demand.weight, flow.part);
  }
  // Flows in the order of their own limits: those below the level have stopped.
  std::vector<std::int32_t>& order = order_;
  order = touched_flows_;
  std::sort(order.begin(), order.end(), [this](std::int32_t a, std::int32_t b) {
    const std::int64_t x = flows_[index(a)].last_level, y = flows_[index(b)].last_level;
    return x != y ? x < y : a < b;
  });
  std::size_t next = 0;
  const auto freeze = [this](Flow& flow, std::int64_t rate, Reason reason) {
    flow.frozen = true;
    given_[index(flow.place)] = {rate, reason};
    for (const Demand& demand : flow.demands) {
      Resource& resource = resources_[index(demand.resource)];
      if (!resource.visited) continue;
      resource.left -= static_cast<__int128>(demand.weight) * rate;
      resource.active -= rise(demand.weight, flow.part);
    }
  };
  while (true) {
    while (next < order.size() && flows_[index(order[next])].frozen) ++next;
    if (next == order.size()) return;
    __int128 level = kUnlimited;
    for (const std::int32_t number : touched_resources_) {
      const Resource& resource = resources_[index(number)];
      if (resource.active > 0) level = std::min(level, resource.left / resource.active);
    }
    level = std::max<__int128>(level, 1);
    if (flows_[index(order[next])].last_level <= level) {
      for (; next < order.size() && flows_[index(order[next])].last_level <= level; ++next) {
        Flow& flow = flows_[index(order[next])];
        if (flow.frozen) continue;
        freeze(flow, flow.present_limit,
               flow.present_limit < flow.limit ? Reason::link : flow.limit_reason);
      }
      continue;
    }
    for (const std::int32_t number : touched_resources_) {
      const Resource& resource = resources_[index(number)];
      if (resource.active <= 0 || resource.left / resource.active > level) continue;
      for (const std::int32_t flow : resource.flows) {
        Flow& stopped = flows_[index(flow)];
        if (stopped.frozen) continue;
        const auto rate = static_cast<std::int64_t>(level) * stopped.part / kEvenPart;
        freeze(stopped, std::max<std::int64_t>(1, rate), resource.reason);
      }
    }
  }
}

void Shares::settle(std::int64_t now) {
  if (settled()) return;
  collect();
  given_.assign(touched_flows_.size(), {0, Reason::issue});
  for (std::size_t f = 0; f < touched_flows_.size(); ++f)
    flows_[index(touched_flows_[f])].place = static_cast<std::int32_t>(f);
  fill();
  for (std::size_t f = 0; f < touched_flows_.size(); ++f) {
    flows_[index(touched_flows_[f])].visited = false;
    set_rate(touched_flows_[f], given_[f].first, given_[f].second, now);
  }
  for (const std::int32_t number : touched_resources_) resources_[index(number)].visited = false;
}

std::int64_t Shares::next() {
  return ends_.empty() ? kUnlimited : flows_[index(ends_.front())].end;
}

std::int32_t Shares::finish(Attribution& charged) {
  const std::int32_t number = ends_.front();
  const std::int32_t last = ends_.back();
  ends_.pop_back();
  Flow& flow = flows_[index(number)];
  flow.at = -1;
  if (last != number) {
    put(0, last);
    sift(0);
  }
  advance(flow, flow.end);
  charged = flow.charged;
  for (const Demand& demand : flow.demands) {
    Resource& resource = resources_[index(demand.resource)];
    resource.potential -= static_cast<__int128>(demand.weight) * flow.limit;
    resource.flows.erase(std::find(resource.flows.begin(), resource.flows.end(), number));
    if (resource.binding) mark(demand.resource);
  }
  add_window(flow, -1);
  free_.push_back(number);
  return number;
}

}  // namespace hemiola::sim
