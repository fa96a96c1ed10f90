#include "workload/traces/kineto/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "study/support/known_names.h"
#include "workload/traces/kineto/calls.h"
#include "workload/traces/kineto/launches.h"
#include "workload/traces/kineto/order.h"
#include "workload/traces/pytorch_calls.h"
#include "workload/traces/pytorch_shapes.h"

namespace hemiola::workload {
namespace {

class KinetoReader {
 public:
  KinetoReader(const std::string& file, const KinetoEvents& events, const InferredGroups& inferred,
               TraceAssembly& assembly, ProcessGroups& groups, const CallSizes& sizes, Tally& tally)
      : events_(events),
        inferred_(inferred),
        assembly_(assembly),
        groups_(groups),
        tally_(tally),
        calls_(assembly, groups, sizes, tally),
        launches_(find_launches(events)),
        said_(events, launches_) {
    trace_.file = file;
    for (const ProcessGroup& group : events.groups) groups.define(group, file);
    if (events.has_unread_groups)
      assembly.builder().workload().notices.push_back(
          {Severity::warning,
           "pg_config of distributedInfo is no list of process groups, and was not read",
           {.file = file},
           "--groups FILE says which ranks they have"});
  }

  Trace read() {
    check_device();
    find_library_calls();
    std::vector<bool> communicates = said_.communicates();
    for (const auto& [event, name] : library_calls_) communicates[index(event)] = true;
    find_product_kernels(communicates);
    find_operator_times(communicates);
    const KinetoOrder order = order_events(events_, launches_, communicates, inferred_.start);
    find_first_time(order);
    extra_id_ = order.steps.size();
    for (const KinetoStep& step : order.steps) add(step);
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
  NodeOfFile at(std::string_view name) const {
    return {&trace_.file, next_id_ - (next_id_ > 0 ? 1 : 0), name};
  }

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
    const std::int32_t call = launches_.runtime_of[index(event)];
    return call < 0 ? nullptr : &launches_.around[index(call)];
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

  void add(const KinetoStep& step) {
    const std::string_view name = step.gpu >= 0 ? gpu(step.gpu).name : name_of_host(step);
    Node node{.id = next_id_++, .name = assembly_.name(name)};
    std::vector<std::uint64_t> waits(step.waits_for.begin(), step.waits_for.end());
    if (step.gpu < 0) {
      node.kind = NodeKind::host;
      node.stream = step.runtime >= 0 ? assembly_.builder().stream("host")
                                      : assembly_.builder().stream("host, not in the trace", false);
      node.recorded_begin = at(name).time(step.begin - first_);
      node.recorded = at(name).time(step.duration);
      return push(node, waits);
    }
    const GpuEvent& event = gpu(step.gpu);
    node.stream = stream(event.stream);
    const bool is_call = said_.communicates()[index(step.gpu)];
    const std::int64_t dispatch = is_call || library_calls_.contains(step.gpu) ? 0 : step.dispatch;
    node.recorded_begin = at(name).time(std::max<std::int64_t>(0, event.begin - dispatch - first_));
    node.recorded = at(name).time(event.duration + dispatch);
    node.kind = NodeKind::compute;
    StreamEnd& end = ends_[event.stream];
    const std::optional<std::uint64_t> before = std::exchange(end.last, node.id);
    for (const std::uint64_t id : std::exchange(end.beside, {})) waits.push_back(id);
    if (is_call) {
      set_call(node, step.gpu, waits, before);
    } else if (const auto call = library_calls_.find(step.gpu); call != library_calls_.end()) {
      node.kind = NodeKind::recorded_call;
      node.work = static_cast<std::int32_t>(assembly_.name(call->second));
    } else {
      set_work(node, step.gpu);
    }
    push(node, waits);
  }

  void push(Node node, const std::vector<std::uint64_t>& waits) {
    trace_.waits_for.insert(trace_.waits_for.end(), waits.begin(), waits.end());
    trace_.add(node);
  }

  std::string_view name_of_host(const KinetoStep& step) const {
    if (step.runtime < 0) return "until a launch";
    const std::int32_t inner = launches_.around[index(step.runtime)].inner;
    return inner >= 0 ? host(inner).name : events_.runtime[index(step.runtime)].name;
  }

  std::uint16_t stream(std::int64_t number) {
    const auto [known, is_new] = streams_.try_emplace(number, std::uint16_t{0});
    if (is_new) known->second = assembly_.builder().stream(fmt::format("stream {}", number));
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
    if (product == product_of_kernel_.end()) return set_bytes(node, index);
    const HostEvent& op = host(product->second);
    const KinetoArguments& said = arguments(op.arguments);
    const auto shapes = parse_shapes(said.dims);
    if (!shapes) return;
    if (const auto compute = product_of(op.name, *shapes, parse_types(said.types)))
      node.work = assembly_.compute(*compute);
  }

  /// Of a kernel that is no product: bytes of its operator's arguments, shared out by time.
  void set_bytes(Node& node, std::int32_t index) {
    const std::int32_t op = operator_of_kernel(index);
    if (op < 0) return;
    const KinetoArguments& said = arguments(host(op).arguments);
    const auto shapes = parse_shapes(said.dims);
    if (!shapes) return;
    std::optional<Compute> compute =
        bytes_of_operator(host(op).name, *shapes, parse_types(said.types));
    if (!compute) return;
    const std::int64_t all = std::max<std::int64_t>(1, time_of_operator_[op]);
    const auto share = [&](std::int64_t bytes) {
      return static_cast<std::int64_t>(static_cast<__int128>(bytes) *
                                       std::max<std::int64_t>(1, gpu(index).duration) / all);
    };
    compute->read = share(compute->read);
    compute->written = share(compute->written);
    if (compute->read + compute->written > 0) node.work = assembly_.compute(*compute);
  }

  /// The innermost operator around the launch, if it says its arguments; -1: none.
  std::int32_t operator_of_kernel(std::int32_t index) const {
    const KinetoSurroundings* surroundings = around(index);
    if (surroundings == nullptr || surroundings->inner < 0) return -1;
    const HostEvent& op = host(surroundings->inner);
    return op.arguments >= 0 ? surroundings->inner : -1;
  }

  void find_operator_times(const std::vector<bool>& communicates) {
    for (std::size_t e = 0; e < events_.gpu.size(); ++e) {
      const auto index = static_cast<std::int32_t>(e);
      if (communicates[e] || events_.gpu[e].kind != GpuEvent::Kind::kernel) continue;
      if (const std::int32_t op = operator_of_kernel(index); op >= 0)
        time_of_operator_[op] += std::max<std::int64_t>(1, events_.gpu[e].duration);
    }
  }

  void find_library_calls() {
    std::unordered_map<std::string_view, std::optional<std::string>> by_name;
    for (std::size_t e = 0; e < events_.gpu.size(); ++e) {
      if (events_.gpu[e].kind != GpuEvent::Kind::kernel || said_.communicates()[e]) continue;
      const auto [at, is_new] = by_name.try_emplace(events_.gpu[e].name);
      if (is_new) at->second = study::library_call(events_.gpu[e].name);
      if (at->second) library_calls_.emplace(static_cast<std::int32_t>(e), *at->second);
    }
    if (!library_calls_.empty())
      tally_.add("communication of a library's own kernel takes the time that was recorded",
                 at(gpu(library_calls_.begin()->first).name).text(),
                 static_cast<std::int64_t>(library_calls_.size()));
  }

  /// The first of its calls is the node itself. Others begin when it does and are over before what
  /// follows on its stream.
  void set_call(Node& node, std::int32_t index, const std::vector<std::uint64_t>& waits,
                std::optional<std::uint64_t> before) {
    const GpuEvent& event = gpu(index);
    KinetoCall found = said_.call(index);
    if (!find_group(node, found, event)) return;
    if (!found.is_told && torch_call_kind(found.calls.front().name) == TorchCallKind::all_to_all)
      tally_.add(
          "taken as an all-to-all: a kernel that sends and receives, of which nothing tells more",
          at(event.name).text());
    calls_.set(node, found.calls.front(), at(event.name));
    for (std::size_t c = 1; c < found.calls.size(); ++c) {
      Node beside = node;
      beside.id = extra_id_++;
      beside.kind = NodeKind::compute;
      beside.work = -1;
      beside.stream =
          assembly_.builder().stream(fmt::format("messages of stream {}", event.stream), false);
      calls_.set(beside, found.calls[c], at(event.name));
      std::vector<std::uint64_t> own = waits;
      if (before) own.push_back(*before);
      ends_[event.stream].beside.push_back(beside.id);
      push(beside, own);
    }
  }

  /// False: nothing says the ranks, and the node takes its time (lenient).
  bool find_group(Node& node, KinetoCall& found, const GpuEvent& event) {
    const std::string by_stream = group_of_stream(event.stream);
    if (found.is_named) {
      if (groups_.is_given(by_stream) && !found.calls.front().group.empty())
        at(event.name)
            .fail(fmt::format(" is on stream {}, and the trace names its group: '{}'", event.stream,
                              found.calls.front().group),
                  "leave the stream out of the file of --groups, or name the group");
      return true;
    }
    const auto known = inferred_.known.find(event.stream);
    std::string group;
    if (groups_.is_given(by_stream)) {
      group = by_stream;
    } else if (known != inferred_.known.end()) {
      group = known->second.name;
      if (!groups_.knows(group)) {
        groups_.define(known->second, trace_.file);
        assembly_.builder().workload().notices.push_back(
            {Severity::warning,
             fmt::format("the group of {} is inferred: {}", by_stream, known->second.inferred),
             {.file = trace_.file},
             fmt::format("--groups FILE says otherwise: {{\"{}\": [0, 1]}}", by_stream)});
      }
    } else {
      if (!assembly_.lenient())
        at(event.name)
            .fail(fmt::format(": {}", inferred_.problem.value_or("nothing says its ranks")),
                  fmt::format(
                      "--groups FILE says it: {{\"{}\": [0, 1]}}, or \"all\"; --lenient keeps the "
                      "time that was recorded",
                      by_stream));
      tally_.add("ignored: a call of which nothing says the ranks takes the time that was recorded",
                 at(event.name).text());
      node.kind = NodeKind::recorded_call;
      node.work = static_cast<std::int32_t>(assembly_.name("NCCL, among unknown ranks"));
      return false;
    }
    for (TorchCall& call : found.calls) call.group = group;
    return true;
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
               "in all: these gaps are kept",
               order.late, to_string(at({}).time(order.lateness))),
           {.file = trace_.file},
           {}});
    if (!order.has_stream_waits && streams_.size() > 1)
      assembly_.builder().workload().notices.push_back(
          {Severity::warning,
           "the trace has no cudaStreamWaitEvent: no kernel waits for a communication",
           {.file = trace_.file},
           "traces that were cut down to launches do not say what waits for what"});
  }

  struct StreamEnd {
    std::optional<std::uint64_t> last;    ///< node
    std::vector<std::uint64_t> beside{};  ///< other messages of the same kernel
  };

  const KinetoEvents& events_;
  const InferredGroups& inferred_;
  TraceAssembly& assembly_;
  ProcessGroups& groups_;
  Tally& tally_;
  TorchCalls calls_;
  FileTrace trace_;
  KinetoLaunches launches_;
  KinetoCalls said_;
  std::uint64_t next_id_ = 0, extra_id_ = 0;  ///< steps have the first ids, by their place
  std::map<std::int64_t, StreamEnd> ends_;
  std::map<std::int32_t, std::string> library_calls_;                ///< by GPU event
  std::unordered_map<std::int32_t, std::int64_t> time_of_operator_;  ///< of its kernels, ns
  std::unordered_map<std::int32_t, std::int32_t> product_of_kernel_;
  std::map<std::int64_t, std::uint16_t> streams_;
  std::int64_t first_ = 0;
};

}  // namespace

Trace read_kineto(const std::string& file, const KinetoEvents& events,
                  const InferredGroups& inferred, TraceAssembly& assembly, ProcessGroups& groups,
                  const CallSizes& sizes, Tally& tally) {
  return KinetoReader(file, events, inferred, assembly, groups, sizes, tally).read();
}

}  // namespace hemiola::workload
