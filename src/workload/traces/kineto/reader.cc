#include "workload/traces/kineto/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "workload/traces/kineto/launches.h"
#include "workload/traces/kineto/order.h"
#include "workload/traces/pytorch_calls.h"
#include "workload/traces/pytorch_shapes.h"

namespace hemiola::workload {
namespace {

bool is_communication(std::string_view kernel) {
  for (const std::string_view part :
       {"ncclKernel", "ncclDevKernel", "ncclDev", "rcclDev", "mscclKernel"}) {
    if (kernel.find(part) != std::string_view::npos) return true;
  }
  return false;
}

class KinetoReader {
 public:
  KinetoReader(const std::string& file, const KinetoEvents& events, TraceAssembly& assembly,
               ProcessGroups& groups, const CallSizes& sizes, Tally& tally)
      : events_(events),
        assembly_(assembly),
        tally_(tally),
        calls_(assembly, groups, sizes, tally) {
    trace_.file = file;
    for (const ProcessGroup& group : events.groups) {
      if (!groups.knows(group.name)) groups.define(group, file);
    }
  }

  Trace read() {
    check_device();
    launches_ = find_launches(events_);
    std::vector<bool> communicates;
    for (const GpuEvent& event : events_.gpu)
      communicates.push_back(event.kind == GpuEvent::Kind::kernel && is_communication(event.name));
    find_product_kernels(communicates);
    const KinetoOrder order = order_events(events_, launches_, communicates);
    find_first_time(order);
    for (const KinetoStep& step : order.steps) add(step, communicates);
    calls_.finish();
    note(order);
    return assembly_.finish(std::move(trace_), tally_);
  }

 private:
  const GpuEvent& gpu(std::int32_t index) const {
    return events_.gpu[static_cast<std::size_t>(index)];
  }
  const HostEvent& host(std::int32_t index) const {
    return events_.host[static_cast<std::size_t>(index)];
  }
  const KinetoArguments& arguments(std::int32_t index) const {
    return events_.arguments[static_cast<std::size_t>(index)];
  }
  NodeOfFile at(std::string_view name) const { return {&trace_.file, trace_.nodes.size(), name}; }

  void check_device() const {
    for (const GpuEvent& event : events_.gpu) {
      if (event.device != events_.gpu.front().device)
        throw Failure(fmt::format("is a trace of several GPUs: {} and {}",
                                  events_.gpu.front().device, event.device),
                      {.file = trace_.file}, "a rank has one GPU");
    }
    if (events_.gpu.empty())
      throw Failure("has nothing that a GPU did", {.file = trace_.file},
                    "profile with ProfilerActivity.CUDA");
  }

  const KinetoSurroundings* around(std::int32_t event) const {
    const std::int32_t call = launches_.runtime_of[static_cast<std::size_t>(event)];
    return call < 0 ? nullptr : &launches_.around[static_cast<std::size_t>(call)];
  }

  /// An operator may launch several kernels: its product is the first that is named like one, or
  /// else the longest.
  void find_product_kernels(const std::vector<bool>& communicates) {
    std::unordered_map<std::int32_t, std::int32_t> kernel_of;  // by operator
    for (std::size_t e = 0; e < events_.gpu.size(); ++e) {
      const auto index = static_cast<std::int32_t>(e);
      const KinetoSurroundings* surroundings = around(index);
      if (surroundings == nullptr || surroundings->product < 0 || communicates[e]) continue;
      if (events_.gpu[e].kind != GpuEvent::Kind::kernel) continue;
      const auto [known, is_new] = kernel_of.try_emplace(surroundings->product, index);
      if (is_new) continue;
      const bool is_named = is_product_kernel(gpu(known->second).name);
      const bool would_be = is_product_kernel(events_.gpu[e].name);
      if ((would_be && !is_named) || (would_be == is_named && !is_named &&
                                      events_.gpu[e].duration > gpu(known->second).duration))
        known->second = index;
    }
    for (const auto& [op, kernel] : kernel_of) product_of_kernel_.emplace(kernel, op);
  }

  void find_first_time(const KinetoOrder& order) {
    first_ = std::numeric_limits<std::int64_t>::max();
    for (const KinetoStep& step : order.steps)
      first_ = std::min(first_, step.gpu < 0 ? step.begin : gpu(step.gpu).begin);
  }

  Time time(std::int64_t nanoseconds, std::string_view name) const {
    if (nanoseconds > std::numeric_limits<std::int64_t>::max() / 1'000'000)
      at(name).fail(" has a time beyond the 9,223 s that a time can be");
    return Time::from_ns(nanoseconds);
  }

  void add(const KinetoStep& step, const std::vector<bool>& communicates) {
    const std::string_view name = step.gpu >= 0 ? gpu(step.gpu).name : name_of_host(step);
    Node node{.id = trace_.nodes.size(), .name = assembly_.name(name)};
    if (step.gpu < 0) {
      node.kind = NodeKind::host;
      node.stream = step.runtime >= 0 ? assembly_.builder().stream("host")
                                      : assembly_.builder().stream("host, not in the trace", false);
      node.recorded_begin = time(step.begin - first_, name);
      node.recorded = time(step.duration, name);
    } else {
      const GpuEvent& event = gpu(step.gpu);
      node.stream = stream(event.stream);
      node.recorded_begin = time(event.begin - first_, name);
      node.recorded = time(event.duration, name);
      node.kind = NodeKind::compute;
      if (communicates[static_cast<std::size_t>(step.gpu)]) {
        set_call(node, step.gpu);
      } else {
        set_work(node, step.gpu);
      }
    }
    node.first_dependency = static_cast<std::uint32_t>(trace_.waits_for.size());
    node.dependencies = static_cast<std::uint32_t>(step.waits_for.size());
    trace_.waits_for.insert(trace_.waits_for.end(), step.waits_for.begin(), step.waits_for.end());
    trace_.nodes.push_back(node);
  }

  std::string_view name_of_host(const KinetoStep& step) const {
    if (step.runtime < 0) return "until a launch";
    const std::int32_t inner = launches_.around[static_cast<std::size_t>(step.runtime)].inner;
    return inner >= 0 ? host(inner).name
                      : events_.runtime[static_cast<std::size_t>(step.runtime)].name;
  }

  std::uint16_t stream(std::int64_t number) {
    const auto [known, is_new] = streams_.try_emplace(number, std::uint16_t{0});
    if (is_new) {
      if (assembly_.builder().workload().streams.size() >=
          std::numeric_limits<std::uint16_t>::max())
        throw Failure("there are more than 65,535 streams", {.file = trace_.file});
      known->second = assembly_.builder().stream(fmt::format("stream {}", number));
    }
    return known->second;
  }

  void set_work(Node& node, std::int32_t index) {
    const GpuEvent& event = gpu(index);
    if (event.kind == GpuEvent::Kind::copy) {
      node.kind = NodeKind::memory;
      if (event.bytes > 0)
        node.work = assembly_.compute({.read = event.bytes, .written = event.bytes});
      return;
    }
    if (event.kind == GpuEvent::Kind::set) {
      if (event.bytes > 0) node.work = assembly_.compute({.written = event.bytes});
      return;
    }
    const auto product = product_of_kernel_.find(index);
    if (product == product_of_kernel_.end()) return;
    const HostEvent& op = host(product->second);
    const KinetoArguments& said = arguments(op.arguments);
    const auto shapes = parse_shapes(said.dims);
    if (!shapes) return;
    if (const auto compute = product_of(op.name, *shapes, parse_types(said.types)))
      node.work = assembly_.compute(*compute);
  }

  void set_call(Node& node, std::int32_t index) {
    const GpuEvent& event = gpu(index);
    const KinetoSurroundings* surroundings = around(index);
    TorchCall call;
    if (event.arguments >= 0 && !arguments(event.arguments).collective.empty()) {
      call = call_of(arguments(event.arguments));
    } else if (surroundings != nullptr && surroundings->parameters >= 0 &&
               host(surroundings->parameters).arguments >= 0 &&
               !arguments(host(surroundings->parameters).arguments).collective.empty()) {
      call = call_of(arguments(host(surroundings->parameters).arguments));
    } else if (surroundings != nullptr && surroundings->call >= 0) {
      call = call_by_shapes(host(surroundings->call));
    } else {
      call.name = std::string(event.name.substr(0, event.name.find('(')));
      if (call.name.find("SendRecv") != std::string::npos)
        tally_.add(
            "taken as an all-to-all: a kernel that sends and receives, of which nothing tells more",
            at(event.name).text());
    }
    calls_.set(node, call, at(event.name));
  }

  static TorchCall call_of(const KinetoArguments& said) {
    TorchCall call;
    call.name = std::string(said.collective);
    call.sent = said.sent;
    call.received = said.received;
    call.type = std::string(said.type);
    call.group = std::string(said.group);
    call.ranks = parse_rank_list(said.group_ranks);
    call.size = said.group_size.value_or(0);
    call.first = said.first.value_or(-1);
    call.stride = said.stride.value_or(-1);
    call.source = said.source;
    call.destination = said.destination;
    return call;
  }

  /// Older traces have the shapes of what is sent, and no group: it is taken as all ranks.
  TorchCall call_by_shapes(const HostEvent& event) {
    TorchCall call;
    call.name = std::string(event.name);
    tally_.add("taken as a call of all ranks: a communication that does not say its group",
               at(event.name).text());
    if (event.arguments < 0) return call;
    const KinetoArguments& said = arguments(event.arguments);
    const auto shapes = parse_shapes(said.dims);
    const std::vector<std::string> types = parse_types(said.types);
    if (!shapes || shapes->empty() || types.empty() || !torch_type(types.front())) return call;
    call.type = types.front();
    std::vector<TensorShape> all;
    for (const auto& argument : *shapes) all.insert(all.end(), argument.begin(), argument.end());
    call.sent = elements_of(all);
    return call;
  }

  void note(const KinetoOrder& order) {
    if (order.without_launch > 0)
      tally_.add("has no launch in the trace and waits for its stream only: something the GPU did",
                 fmt::format("'{}'", shorten(gpu(order.first_without_launch).name)),
                 order.without_launch);
    if (order.late > 0)
      assembly_.builder().workload().notices.push_back(
          {Severity::warning,
           fmt::format(
               "{} kernels and copies began later than anything in the trace explains, by {} "
               "in all: they begin when what they wait for is over",
               order.late, to_string(time(order.lateness, {}))),
           {.file = trace_.file},
           {}});
    if (!order.has_stream_waits && streams_.size() > 1)
      assembly_.builder().workload().notices.push_back(
          {Severity::warning,
           "the trace has no cudaStreamWaitEvent: no kernel waits for a communication",
           {.file = trace_.file},
           "traces that were cut down to launches do not say what waits for what"});
  }

  const KinetoEvents& events_;
  TraceAssembly& assembly_;
  Tally& tally_;
  TorchCalls calls_;
  FileTrace trace_;
  KinetoLaunches launches_;
  std::unordered_map<std::int32_t, std::int32_t> product_of_kernel_;
  std::map<std::int64_t, std::uint16_t> streams_;
  std::int64_t first_ = 0;
};

}  // namespace

Trace read_kineto(const std::string& file, const KinetoEvents& events, TraceAssembly& assembly,
                  ProcessGroups& groups, const CallSizes& sizes, Tally& tally) {
  return KinetoReader(file, events, assembly, groups, sizes, tally).read();
}

}  // namespace hemiola::workload
