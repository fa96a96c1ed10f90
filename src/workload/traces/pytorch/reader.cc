#include "workload/traces/pytorch/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>
#include <utility>

#include "core/checked.h"
#include "core/units.h"
#include "workload/traces/pytorch/operators.h"
#include "workload/traces/pytorch/roles.h"
#include "workload/traces/pytorch_calls.h"
#include "workload/traces/pytorch_shapes.h"

namespace hemiola::workload {
namespace {

constexpr std::string_view kCallParameters = "record_param_comms";

class TorchReader {
 public:
  TorchReader(const std::string& file, const std::vector<TorchNode>& nodes, TraceAssembly& assembly,
              ProcessGroups& groups, const CallSizes& sizes, Tally& tally)
      : nodes_(nodes),
        assembly_(assembly),
        groups_(groups),
        tally_(tally),
        calls_(assembly, groups, sizes, tally) {
    trace_.file = file;
  }

  Trace read() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const TorchNode& node = nodes_[i];
      place_.emplace(node.id, i);
      linked_ = linked_ || node.is_on_gpu;
      if (node.begin >= 0) first_ = std::min(first_, node.begin);
    }
    for (const TorchNode& node : nodes_)
      if (node.name.find("process_group:init") != std::string_view::npos) define_groups(node);
    check_callers();
    if (linked_)
      read_linked();
    else
      read_operators();
    calls_.finish();
    return assembly_.finish(std::move(trace_), tally_);
  }

 private:
  NodeOfFile at(const TorchNode& node) const { return {&trace_.file, node.id, node.name}; }

  /// Nobody is below itself, however far. The outermost node may name itself.
  void check_callers() const {
    enum class State : std::uint8_t { unknown, open, ends };
    std::vector<State> states(nodes_.size());
    std::vector<std::size_t> path;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      path.clear();
      for (std::size_t at = i; states[at] != State::ends;) {
        if (states[at] == State::open)
          this->at(nodes_[at]).fail(" is called by itself, by way of those that it calls");
        states[at] = State::open;
        path.push_back(at);
        const auto parent = place_.find(nodes_[at].parent);
        if (parent == place_.end() || parent->second == at) break;
        at = parent->second;
      }
      for (const std::size_t at : path) states[at] = State::ends;
    }
  }

  void define_groups(const TorchNode& node) {
    const auto found = parse_process_groups(node.values);
    if (!found) return;
    for (const ProcessGroup& group : *found) {
      groups_.define(group, trace_.file);
      if (!group.alias.empty()) aliases_.emplace(group.alias, group.name);
    }
  }

  Node start(const TorchNode& node) { return {.id = node.id, .name = assembly_.name(node.name)}; }
  void wait_for(std::uint64_t id) { trace_.waits_for.push_back(id); }

  // --- Operators only ----------------------------------------------------------------------------

  void read_operators() {
    check_tensors();
    const OperatorRoles found = roles_of(nodes_);
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (nodes_[i].name == kCallParameters)
        add_call(nodes_[i]);
      else if (found.roles[i] == OperatorRole::kernel)
        add_kernel(nodes_[i], found.writes[i]);
    std::optional<OperatorCounts>& counts = assembly_.builder().workload().operators;
    if (!counts) counts.emplace();
    counts->add(found.counts);
    if (const std::int64_t left_out = found.counts.host; left_out > 0)
      assembly_.builder().workload().notices.push_back(
          {Severity::note,
           fmt::format(
               "left out: {} operations of the host, whose times such a trace does not have",
               left_out),
           {.file = trace_.file},
           {}});
  }

  void check_tensors() const {
    std::optional<std::int64_t> device;
    for (const TorchNode& node : nodes_) {
      for (const TorchTensor& tensor : tensors_of(node.output_values)) {
        if (!tensor.is_on_gpu) continue;
        if (tensor.elements < 0 || tensor.element_bytes < 0 ||
            (tensor.element_bytes > 0 && tensor.elements > kMostMemory / tensor.element_bytes))
          at(node).fail(fmt::format(" gives a tensor of {} elements of {} B", tensor.elements,
                                    tensor.element_bytes));
        if (device && *device != tensor.device)
          at(node).fail(
              fmt::format(" is on GPU {}, and operators before it on {}", tensor.device, *device),
              "a rank has one GPU");
        device = tensor.device;
      }
    }
  }

  void add_kernel(const TorchNode& node, const std::vector<std::int64_t>& writes) {
    const OperatorEffect effect = effect_of(node);
    Node out = start(node);
    const bool is_copy = is_host_copy(node);
    if (is_copy)
      tally_.add(
          "a copy between host and GPU takes the time of the GPU's memory, since the link to "
          "the host is no part of the models",
          at(node).text());
    out.kind = is_copy ? NodeKind::memory : NodeKind::compute;
    out.stream = assembly_.builder().stream("compute");
    out.work = assembly_.compute(work_of_operator(node, writes));
    for (const std::int64_t storage : effect.reads) wait_for_calls(written_by_call_, storage);
    for (const std::int64_t storage : writes) {
      wait_for_calls(written_by_call_, storage);
      wait_for_calls(read_by_call_, storage);
    }
    for (const std::int64_t storage : writes) {
      written_by_call_.erase(storage);
      read_by_call_.erase(storage);
    }
    last_kernel_ = node.id;
    trace_.add(out);
  }

  void wait_for_calls(const std::unordered_map<std::int64_t, std::uint64_t>& calls,
                      std::int64_t storage) {
    const auto call = calls.find(storage);
    if (call != calls.end()) wait_for(call->second);
  }

  void add_call(const TorchNode& node) {
    const TorchCall call = call_of(node);
    if (torch_call_kind(call.name) == TorchCallKind::none) return;
    Node out = start(node);
    out.stream = assembly_.builder().stream("compute");
    if (last_kernel_) wait_for(*last_kernel_);
    calls_.set(out, call, at(node));
    set_stream_of_call(out);
    for (const TorchTensor& tensor : tensors_of(node.values))
      if (tensor.is_on_gpu) read_by_call_[tensor.storage] = node.id;
    for (const TorchTensor& tensor : tensors_of(node.output_values))
      if (tensor.is_on_gpu) written_by_call_[tensor.storage] = node.id;
    trace_.add(out);
  }

  void set_stream_of_call(Node& node) {
    WorkloadBuilder& builder = assembly_.builder();
    if (node.kind == NodeKind::collective) {
      const auto work = index(node.work);
      node.stream = groups_.stream(builder.workload().collectives[work].family);
    } else if (node.kind == NodeKind::send || node.kind == NodeKind::receive) {
      node.stream = builder.stream(node.kind == NodeKind::send ? "send" : "receive", false);
    }
  }

  // --- Calls -------------------------------------------------------------------------------------

  TorchCall call_of(const TorchNode& node) const {
    TorchCall call = call_by_values(node);
    if (!node.said.collective.empty()) call.take(node.said);
    return call;
  }

  /// Inputs of record_param_comms: [tensors, sequence number, group, rank, name, splits, splits,
  /// (first rank, stride,) size of the group]. Calls without data have no tensors.
  TorchCall call_by_values(const TorchNode& node) const {
    TorchCall call;
    const std::vector<TorchTensor> sent = tensors_of(node.values);
    const std::vector<TorchTensor> received = tensors_of(node.output_values);
    const auto elements = [](const std::vector<TorchTensor>& tensors) {
      std::int64_t sum = 0;
      constexpr std::int64_t kMost = std::int64_t{1} << 60;
      for (const TorchTensor& tensor : tensors)
        sum = std::min(kMost, sum + std::clamp<std::int64_t>(tensor.elements, 0, kMost));
      return sum;
    };
    if (!sent.empty()) call.sent = elements(sent);
    if (!received.empty()) call.received = elements(received);
    for (const std::string& type : parse_types(node.types)) {
      const std::size_t tensor = type.find("Tensor(");
      if (tensor == std::string::npos) continue;
      call.type = type.substr(tensor, type.find(')', tensor) + 1 - tensor);
      break;
    }
    const auto values = nlohmann::json::parse(node.values, nullptr, false);
    if (!values.is_array()) return call;
    std::size_t name = 0;
    while (name < values.size() && !values[name].is_string()) ++name;
    if (name == values.size() || name < 2) return call;
    call.name = values[name].get<std::string>();
    const auto& group = values[name - 2];
    if (group.is_array() && !group.empty() && group[0].is_string()) {
      call.group = group[0].get<std::string>();
    } else if (group.is_number_integer()) {
      const auto alias = aliases_.find(group.dump());
      if (alias != aliases_.end()) call.group = alias->second;
    }
    set_splits(call, values, name + 1);
    set_group_numbers(call, values);
    set_peer(call, values[name - 1], node);
    return call;
  }

  /// Two lists behind the name.
  static void set_splits(TorchCall& call, const nlohmann::json& values, std::size_t at) {
    if (at < values.size() && values[at].is_array())
      call.sent_splits = parse_splits(values[at].dump());
    if (at + 1 < values.size() && values[at].is_array() && values[at + 1].is_array())
      call.received_splits = parse_splits(values[at + 1].dump());
  }

  static void set_group_numbers(TorchCall& call, const nlohmann::json& values) {
    std::vector<std::int64_t> numbers;
    for (auto at = values.rbegin(); at != values.rend(); ++at) {
      const std::optional<std::int64_t> number = whole_number(*at);
      if (!number) break;
      numbers.push_back(*number);
    }
    if (numbers.empty()) return;
    call.size = std::max(std::int64_t{0}, numbers[0]);
    if (numbers.size() < 3) return;
    call.stride = numbers[1];
    call.first = numbers[2];
  }

  void set_peer(TorchCall& call, const nlohmann::json& place, const TorchNode& node) const {
    const TorchCallKind kind = torch_call_kind(call.name);
    if (kind != TorchCallKind::send && kind != TorchCallKind::receive) return;
    const std::optional<std::int64_t> rank = whole_number(place);
    if (!rank) return;
    const auto peer = groups_.rank_at(call.group, *rank, at(node));
    if (peer) (kind == TorchCallKind::send ? call.destination : call.source) = *peer;
  }

  // --- Linked traces -----------------------------------------------------------------------------

  void read_linked() {
    std::unordered_map<std::uint64_t, std::vector<const TorchNode*>> launched;
    for (const TorchNode& node : nodes_)
      if (node.is_on_gpu) launched[node.parent].push_back(&node);
    for (const TorchNode& node : nodes_) {
      if (node.is_on_gpu) {
        if (!place_.contains(node.parent)) add_linked(node);
        continue;
      }
      add_linked(node);
      const auto kernels = launched.find(node.id);
      if (kernels == launched.end()) continue;
      std::ranges::stable_sort(kernels->second, [](const TorchNode* a, const TorchNode* b) {
        return a->begin < b->begin;
      });
      for (const TorchNode* kernel : kernels->second) add_linked(*kernel);
    }
  }

  void add_linked(const TorchNode& node) {
    Node out = start(node);
    if (node.begin >= 0) out.recorded_begin = at(node).time(node.begin - first_);
    if (node.duration >= 0) out.recorded = at(node).time(node.duration);
    for (const std::uint64_t id : node.waits_for) wait_for(id);
    if (!node.is_on_gpu) {
      out.kind = NodeKind::host;
      out.stream = assembly_.builder().stream("host");
      trace_.add(out);
      return;
    }
    wait_for(node.parent);
    out.kind = NodeKind::compute;
    out.stream = assembly_.builder().stream(fmt::format("stream {}", node.stream));
    if (is_communication_kernel(node.name)) {
      set_linked_call(out, node);
    } else if (is_product_kernel(node.name)) {
      const TorchNode* op =
          ancestor(node, [](const TorchNode& one) { return is_product_operator(one.name); });
      if (op != nullptr) {
        const auto product = product_of(
            op->name, parse_shapes(op->shapes).value_or(ArgumentShapes{}), parse_types(op->types));
        if (product) out.work = assembly_.compute(*product);
      }
    }
    trace_.add(out);
  }

  void set_linked_call(Node& out, const TorchNode& node) {
    const TorchNode* parameters =
        ancestor(node, [](const TorchNode& one) { return one.name == kCallParameters; });
    TorchCall call;
    if (parameters != nullptr) call = call_of(*parameters);
    if (call.name.empty()) call.name = std::string(node.name.substr(0, node.name.find('(')));
    calls_.set(out, call, at(node));
  }

  template <typename Wanted>
  const TorchNode* ancestor(const TorchNode& node, const Wanted& wanted) const {
    constexpr int kDeepest = 256;
    const TorchNode* one = &node;
    for (int depth = 0; depth < kDeepest; ++depth) {
      if (wanted(*one)) return one;
      const auto parent = place_.find(one->parent);
      if (parent == place_.end() || one->parent == one->id) return nullptr;
      one = &nodes_[parent->second];
    }
    return nullptr;
  }

  const std::vector<TorchNode>& nodes_;
  TraceAssembly& assembly_;
  ProcessGroups& groups_;
  Tally& tally_;
  TorchCalls calls_;
  FileTrace trace_;
  bool linked_ = false;
  std::int64_t first_ = std::numeric_limits<std::int64_t>::max();
  std::unordered_map<std::uint64_t, std::size_t> place_;                            ///< by id
  std::map<std::string, std::string> aliases_;                                      ///< of groups
  std::unordered_map<std::int64_t, std::uint64_t> written_by_call_, read_by_call_;  ///< by storage
  std::optional<std::uint64_t> last_kernel_;
};

}  // namespace

Trace read_pytorch(const std::string& file, const std::vector<TorchNode>& nodes,
                   TraceAssembly& assembly, ProcessGroups& groups, const CallSizes& sizes,
                   Tally& tally) {
  return TorchReader(file, nodes, assembly, groups, sizes, tally).read();
}

}  // namespace hemiola::workload
