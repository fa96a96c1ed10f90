#include "workload/astra/collectives.h"

#include <algorithm>

#include "core/index.h"

namespace hemiola::workload::astra {

Collectives::Collectives(const Workload& workload, const AstraConfiguration& configuration,
                         bool folded, Calendar& calendar, Fabric& fabric, Listener& listener)
    : workload_(workload),
      configuration_(configuration),
      folded_(folded),
      calendar_(calendar),
      fabric_(fabric),
      listener_(listener),
      dimensions_(configuration.network.dimensions.size()),
      places_(workload.families.size()) {
  const std::size_t ranks = folded_ ? 1 : index(workload.ranks);
  queues_.resize(ranks * dimensions_);
  priorities_.resize(ranks);
  chunks_done_.resize(ranks);
}

Place Collectives::place_of(std::int32_t family, std::uint32_t rank) const {
  const std::vector<std::vector<int>>& groups = workload_.families[index(family)].groups;
  if (groups.size() == 1 && groups.front().size() == index(workload_.ranks)) return {0, rank};
  auto& places = places_[index(family)];
  if (places.empty()) {
    for (std::uint32_t g = 0; g < groups.size(); ++g)
      for (std::uint32_t m = 0; m < groups[g].size(); ++m) places[groups[g][m]] = {g, m};
  }
  return places.at(static_cast<int>(rank));
}

std::uint32_t Collectives::make_instance(Calls& calls, std::int32_t call, std::uint32_t group) {
  const CollectiveCall& what = workload_.collectives[index(call)];
  const std::vector<int>& ranks = workload_.families[index(what.family)].groups[group];
  std::shared_ptr<const Plan>& plan = plans_[{call, ranks.size()}];
  if (plan == nullptr)
    plan = std::make_shared<const Plan>(
        make_plan(what, static_cast<std::int64_t>(ranks.size()), configuration_));
  const std::uint32_t number = instances_.take();
  Instance& one = instances_[number];
  one.plan = plan;
  one.calls = &calls;
  one.group = &ranks;
  one.whole = ranks.size() == index(workload_.ranks);
  one.members = folded_ ? 1 : static_cast<std::uint32_t>(ranks.size());
  one.first_source.clear();
  one.sources = 0;
  for (const Pass& pass : plan->passes) {
    one.first_source.push_back(one.sources);
    one.sources += pass.sources;
  }
  const std::size_t streams = index(plan->chunks) * one.members;
  one.streams.assign(streams, kNone);
  one.expected.assign(streams * index(one.sources), 0);
  one.nodes.assign(one.members, kNone);
  one.chunks_left.assign(one.members, plan->chunks);
  one.streams_left = static_cast<std::int64_t>(streams);
  return number;
}

std::uint32_t Collectives::join(std::int32_t call, const Place& place) {
  Calls& calls = calls_[{call, place.group}];
  if (calls.begun.empty()) {
    const CollectiveCall& what = workload_.collectives[index(call)];
    const auto& groups = workload_.families[index(what.family)].groups;
    calls.begun.resize(folded_ ? 1 : groups[place.group].size());
  }
  const std::uint32_t which = calls.begun[place.member]++ - calls.first;
  if (which == calls.instances.size())
    calls.instances.push_back(make_instance(calls, call, place.group));
  return calls.instances[which];
}

std::int64_t Collectives::next_priority(std::uint32_t rank) {
  switch (configuration_.system.order) {
    case AstraSystem::Order::last_first:
      return priorities_[rank]++;
    case AstraSystem::Order::first_first:
      return priorities_[rank]--;
    case AstraSystem::Order::given:
      return 0;
  }
  return 0;
}

void Collectives::start(std::uint32_t rank, std::uint32_t node, std::int32_t call) {
  const CollectiveCall& what = workload_.collectives[index(call)];
  const Place place = place_of(what.family, rank);
  const std::uint32_t number = join(call, place);
  instances_[number].nodes[place.member] = node;
  const std::shared_ptr<const Plan> plan = instances_[number].plan;
  if (plan->passes.empty())
    return calendar_.enter_of_rank(rank, calendar_.now(), {EventKind::over, rank, node});
  const std::int64_t priority = next_priority(rank);
  std::int64_t& done = chunks_done_[rank][index(what.kind)];
  for (std::uint32_t chunk = 0; chunk < plan->chunks; ++chunk)
    add_stream(number, rank, place.member, chunk, priority, plan->passes_of(chunk, done));
  done += plan->chunks;
}

void Collectives::add_stream(std::uint32_t instance, std::uint32_t rank, std::uint32_t member,
                             std::uint32_t chunk, std::int64_t priority,
                             const std::vector<Pass>& passes) {
  const std::uint32_t stream = streams_.take();
  streams_[stream] = {.instance = instance,
                      .rank = rank,
                      .member = member,
                      .chunk = chunk,
                      .priority = priority,
                      .passes = &passes};
  Instance& one = instances_[instance];
  one.streams[std::size_t{chunk} * one.members + member] = stream;
  advance(stream);
}

/// Behind all that run, and behind those of at least its priority.
void Collectives::insert(Queue& queue, std::uint32_t stream) {
  auto at = queue.streams.begin();
  while (at != queue.streams.end() &&
         (streams_[*at].started || streams_[*at].priority >= streams_[stream].priority))
    ++at;
  queue.streams.insert(at, stream);
}

void Collectives::start_waiting(std::uint32_t rank, std::int32_t dimension) {
  Queue& queue = queue_of(rank, dimension);
  while (index(queue.running) < queue.streams.size() &&
         queue.running < configuration_.system.active_chunks)
    begin_pass(queue.streams[index(queue.running++)]);
}

void Collectives::advance(std::uint32_t stream) {
  const bool first = streams_[stream].pass < 0;
  const std::int32_t before = first ? -1 : pass_of(streams_[stream]).dimension;
  const bool last = index(streams_[stream].pass + 1) == streams_[stream].passes->size();
  const std::uint32_t rank = streams_[stream].rank;
  // What comes after the collective is issued while its last chunk still has the dimension.
  if (last) finish(stream);
  if (!first) {
    Queue& queue = queue_of(rank, before);
    queue.streams.erase(std::ranges::find(queue.streams, stream));
  }
  if (last) {
    streams_.give_back(stream);
    --queue_of(rank, before).running;
    return start_waiting(rank, before);
  }
  Stream& one = streams_[stream];
  ++one.pass;
  const Pass& pass = pass_of(one);
  one.started = false;
  one.step = Step::begin;
  one.reduced_once = false;
  one.place = static_cast<std::int32_t>(one.member) / pass.stride % pass.ranks;
  one.prepared = one.sent = one.received = one.free = 0;
  insert(queue_of(rank, pass.dimension), stream);
  if (!first) {
    --queue_of(rank, before).running;
    start_waiting(rank, before);
  }
  start_waiting(rank, pass.dimension);
}

/// The chunk is over; so may be the node, and the whole collective.
void Collectives::finish(std::uint32_t stream) {
  const Stream one = streams_[stream];
  Instance& instance = instances_[one.instance];
  instance.streams[std::size_t{one.chunk} * instance.members + one.member] = kNone;
  const bool node_over = --instance.chunks_left[one.member] == 0;
  const std::uint32_t node = instance.nodes[one.member];
  if (--instance.streams_left == 0) {
    Calls& calls = *instance.calls;
    *std::ranges::find(calls.instances, one.instance) = kNone;
    while (!calls.instances.empty() && calls.instances.front() == kNone) {
      calls.instances.erase(calls.instances.begin());
      ++calls.first;
    }
    instances_.give_back(one.instance);
  }
  if (node_over) listener_.over(one.rank, node);
}

void Collectives::message(std::uint32_t number, std::uint64_t detail) {
  Instance& instance = instances_[number];
  const std::uint64_t stream = detail >> 32, source = detail & 0xffffffffU;
  if (instance.expected[stream * index(instance.sources) + source]-- > 0)
    on_message(instance.streams[stream]);
}

void Collectives::send(std::uint32_t stream, std::int32_t place, std::int64_t bytes,
                       std::int32_t source) {
  const Stream& one = streams_[stream];
  const Instance& instance = instances_[one.instance];
  const std::int32_t member =
      static_cast<std::int32_t>(one.member) + (place - one.place) * pass_of(one).stride;
  const std::int32_t to = instance.whole ? member : (*instance.group)[index(member)];
  // Folded, what this rank sends is what another one sends to it.
  const std::size_t at = folded_ ? 0 : index(member);
  const std::uint64_t target = std::uint64_t{one.chunk} * instance.members + at;
  const auto number = static_cast<std::uint64_t>(instance.first_source[index(one.pass)] + source);
  fabric_.send(static_cast<std::int32_t>(one.rank), to, bytes,
               {EventKind::message, one.instance, target << 32 | number});
}

void Collectives::await(std::uint32_t stream, std::int32_t source) {
  const Stream& one = streams_[stream];
  Instance& instance = instances_[one.instance];
  const std::size_t own = std::size_t{one.chunk} * instance.members + one.member;
  const std::size_t number = index(instance.first_source[index(one.pass)] + source);
  if (instance.expected[own * index(instance.sources) + number]++ < 0)
    calendar_.enter(calendar_.now(), {EventKind::received, stream});
}

Unfinished Collectives::unfinished(std::uint32_t rank, std::int32_t call) const {
  const CollectiveCall& what = workload_.collectives[index(call)];
  const Place place = place_of(what.family, rank);
  Unfinished result;
  result.group = &workload_.families[index(what.family)].groups[place.group];
  const auto calls = calls_.find({call, place.group});
  if (calls == calls_.end()) return result;
  const std::vector<std::uint32_t>& begun = calls->second.begun;
  for (std::uint32_t m = 0; m < begun.size(); ++m) {
    const bool whole = result.group->size() == index(workload_.ranks);
    if (begun[m] < begun[place.member])
      result.absent.push_back(whole ? static_cast<int>(m) : (*result.group)[m]);
  }
  std::ranges::sort(result.absent);
  return result;
}

}  // namespace hemiola::workload::astra
