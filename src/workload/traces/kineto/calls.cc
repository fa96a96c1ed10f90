#include "workload/traces/kineto/calls.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "workload/traces/pytorch_shapes.h"

namespace hemiola::workload {
namespace {

bool is_message(std::string_view name) {
  return name.starts_with("nccl:send") || name.starts_with("nccl:recv");
}

TorchCall call_of_arguments(const KinetoArguments& said) {
  TorchCall call;
  call.take(said);
  call.ranks = parse_rank_list(said.group_ranks);
  const auto if_a_rank = [](std::optional<std::int64_t> rank) {
    return rank && *rank >= 0 ? rank : std::nullopt;
  };
  call.source = if_a_rank(said.source);
  call.destination = if_a_rank(said.destination);
  call.sent_splits = parse_splits(said.sent_splits);
  call.splits_are_cut =
      call.sent_splits.empty() && !said.sent_splits.empty() && said.sent_splits != "[]";
  if (said.received_splits == "[]")
    call.received_splits.emplace();
  else if (auto splits = parse_splits(said.received_splits); !splits.empty())
    call.received_splits = std::move(splits);
  return call;
}

/// "nccl:send 0->1", "nccl:recv 1<-0": the rank behind the arrow; -1: what stands there is none.
std::optional<std::int64_t> peer_of(std::string_view name) {
  std::size_t at = name.find("->");
  if (at == std::string_view::npos) at = name.find("<-");
  if (at == std::string_view::npos) return std::nullopt;
  std::int64_t rank = 0;
  const char* begin = name.data() + at + 2;
  const std::errc error = std::from_chars(begin, name.data() + name.size(), rank).ec;
  return error == std::errc{} ? rank : -1;
}

/// A message, whose ranks are known without a group.
bool says_its_peer(const TorchCall& call) {
  const TorchCallKind kind = torch_call_kind(call.name);
  return (kind == TorchCallKind::send && call.destination) ||
         (kind == TorchCallKind::receive && call.source);
}

std::int64_t elements_of_argument(const ArgumentShapes& shapes, std::size_t argument) {
  return argument < shapes.size() ? elements_of(shapes[argument]) : 0;
}

}  // namespace

KinetoCalls::KinetoCalls(const KinetoEvents& events, const KinetoLaunches& launches)
    : events_(events),
      launches_(launches),
      messages_(events.threads.size()),
      launched_(events.threads.size()) {
  for (std::size_t e = 0; e < events.gpu.size(); ++e) {
    const GpuEvent& event = events.gpu[e];
    communicates_.push_back(event.kind == GpuEvent::Kind::kernel &&
                            is_communication_kernel(event.name));
    const std::int32_t runtime = launches.runtime_of[e];
    if (!communicates_.back() || runtime < 0) continue;
    const RuntimeEvent& launch = events.runtime[index(runtime)];
    launched_[index(launch.thread)].push_back(launch.begin);
  }
  for (std::size_t h = 0; h < events.host.size(); ++h) {
    if (is_message(events.host[h].name))
      messages_[index(events.host[h].thread)].push_back(static_cast<std::int32_t>(h));
  }
  for (auto& list : launched_) std::ranges::sort(list);
  for (auto& list : messages_) {
    std::ranges::stable_sort(
        list, [&](std::int32_t a, std::int32_t b) { return host(a).begin < host(b).begin; });
  }
}

const KinetoArguments* KinetoCalls::arguments_of(std::int32_t host_event) const {
  if (host_event < 0 || host(host_event).arguments < 0) return nullptr;
  return &events_.arguments[index(host(host_event).arguments)];
}

/// The arguments that name a collective: the kernel's own, or those of record_param_comms.
const KinetoArguments* KinetoCalls::said_of(std::int32_t gpu_event) const {
  const GpuEvent& event = events_.gpu[index(gpu_event)];
  if (event.arguments >= 0) {
    const KinetoArguments& said = events_.arguments[index(event.arguments)];
    if (!said.collective.empty()) return &said;
  }
  const std::int32_t runtime = launches_.runtime_of[index(gpu_event)];
  if (runtime < 0) return nullptr;
  const KinetoArguments* said = arguments_of(launches_.around[index(runtime)].parameters);
  return said != nullptr && !said->collective.empty() ? said : nullptr;
}

KinetoCall KinetoCalls::call(std::int32_t gpu_event) const {
  const GpuEvent& event = events_.gpu[index(gpu_event)];
  const std::int32_t runtime = launches_.runtime_of[index(gpu_event)];
  KinetoCall found;
  if (const KinetoArguments* said = said_of(gpu_event)) {
    found.calls.push_back(call_of_arguments(*said));
  } else if (runtime >= 0) {
    const KinetoSurroundings& around = launches_.around[index(runtime)];
    if (around.call >= 0 && !is_message(host(around.call).name))
      found.calls.push_back(call_by_shapes(host(around.call), around.around_call));
    // "coalesced": what it is made of stands around it.
    if (found.calls.empty() ||
        torch_call_kind(found.calls.front().name) == TorchCallKind::unknown) {
      std::vector<TorchCall> messages = messages_around(runtime);
      if (!messages.empty()) found.calls = std::move(messages);
    }
  }
  if (found.calls.empty()) {
    found.is_told = false;
    found.calls.emplace_back().name = std::string(event.name.substr(0, event.name.find('(')));
  }
  found.is_named = !found.calls.front().group.empty() || !found.calls.front().ranks.empty() ||
                   std::ranges::all_of(found.calls, says_its_peer);
  return found;
}

/// Older traces have the shapes of what is sent, and no group.
TorchCall KinetoCalls::call_by_shapes(const HostEvent& event, std::int32_t around) const {
  TorchCall call;
  call.name = std::string(event.name);
  call.source = call.destination = peer_of(event.name);
  if (event.arguments < 0) return call;
  const KinetoArguments& said = events_.arguments[index(event.arguments)];
  const auto shapes = parse_shapes(said.dims);
  const std::vector<std::string> types = parse_types(said.types);
  if (!shapes || shapes->empty() || types.empty() || !torch_type(types.front())) return call;
  call.type = types.front();
  std::vector<TensorShape> all;
  for (const auto& argument : *shapes) all.insert(all.end(), argument.begin(), argument.end());
  call.sent = elements_of(all);
  // The operator around it has what it gives first, then what it takes.
  const KinetoArguments* outer = arguments_of(around);
  const auto both = outer == nullptr ? std::nullopt : parse_shapes(outer->dims);
  if (both && both->size() > 1 && elements_of_argument(*both, 1) == *call.sent &&
      elements_of_argument(*both, 0) > 0)
    call.received = elements_of_argument(*both, 0);
  return call;
}

/// Sends and receives that began on the launch's thread since the communication before it.
std::vector<TorchCall> KinetoCalls::messages_around(std::int32_t runtime) const {
  const RuntimeEvent& launch = events_.runtime[index(runtime)];
  const auto thread = index(launch.thread);
  const std::vector<std::int64_t>& launched = launched_[thread];
  const auto own = std::lower_bound(launched.begin(), launched.end(), launch.begin);
  const std::int64_t since =
      own == launched.begin() ? std::numeric_limits<std::int64_t>::min() : *(own - 1);
  std::vector<TorchCall> messages;
  for (const std::int32_t index : messages_[thread]) {
    const HostEvent& event = host(index);
    if (event.begin <= since) continue;
    if (event.begin > launch.begin) break;
    TorchCall call = call_by_shapes(event, -1);
    call.name = event.name.starts_with("nccl:send") ? "send" : "recv";
    messages.push_back(std::move(call));
  }
  return messages;
}

CommunicatorsOfRank KinetoCalls::communicators(int rank, int world) const {
  CommunicatorsOfRank found{.rank = rank, .world = world, .unnamed = {}, .groups = events_.groups};
  found.first = std::numeric_limits<std::int64_t>::max();
  for (const GpuEvent& event : events_.gpu) found.first = std::min(found.first, event.begin);
  for (const HostEvent& event : events_.host) found.first = std::min(found.first, event.begin);
  for (const RuntimeEvent& event : events_.runtime)
    found.first = std::min(found.first, event.begin);
  for (const auto& [stream, list] : events_of_streams(events_.gpu)) {
    Communicator one{.stream = stream, .calls = {}}, whole = one;
    for (const std::int32_t index : list) {
      if (!communicates_[static_cast<std::size_t>(index)]) continue;
      const KinetoCall known = call(index);
      const GpuEvent& event = events_.gpu[static_cast<std::size_t>(index)];
      const TorchCall& first = known.calls.front();
      const UnnamedCall unnamed{
          .kind = known.is_told ? torch_call_kind(first.name) : TorchCallKind::unknown,
          .sent = first.sent,
          .received = first.received,
          .shares = static_cast<std::int64_t>(first.sent_splits.size()),
          .size = first.size,
          .begin = event.begin,
          .end = event.begin + event.duration};
      whole.calls.push_back(unnamed);
      if (known.is_named)
        found.has_named = true;
      else
        one.calls.push_back(unnamed);
    }
    if (!whole.calls.empty()) found.all.push_back(std::move(whole));
    if (!one.calls.empty()) found.unnamed.push_back(std::move(one));
  }
  return found;
}

}  // namespace hemiola::workload
