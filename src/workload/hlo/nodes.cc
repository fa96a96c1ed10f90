#include "workload/hlo/nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "workload/hlo/attributes.h"
#include "workload/hlo/opcodes.h"

namespace hemiola::workload::hlo {
namespace {

constexpr std::int64_t kMostNodesOfModule = 1'000'000;

constexpr std::array<std::string_view, kLanes> kLaneNames{"compute", "communication", "send",
                                                          "receive", "copy",          "side"};

/// Of collectives of the GPU's backend: begun and waited for at once.
bool is_synchronous(const Module& module, const Instruction& instruction) {
  const nlohmann::json config = backend_config(module, instruction);
  if (!config.is_object()) return false;
  for (const nlohmann::json& one :
       {config, config.value("collective_backend_config", nlohmann::json::object())}) {
    if (!one.is_object()) continue;
    const auto found = one.find("is_sync");
    if (found != one.end() && found->is_boolean()) return found->get<bool>();
  }
  return false;
}

/// What marks places of memory or of partitions and runs as nothing.
bool is_mark(std::string_view target) {
  return target == "AllocateBuffer" || target == "CreateBuffer" || target == "MoveToHost" ||
         target == "MoveToDevice" || target == "annotate_device_placement" ||
         target == "AssumeGatherIndicesInBound" || target == "LayoutConstraint";
}
bool is_of_unpartitioned(std::string_view target) {
  return target == "Sharding" || target == "SPMDFullToShardShape" ||
         target == "SPMDShardToFullShape" || target.starts_with("xla.sdy.");
}

}  // namespace

ModuleWalk::ModuleWalk(const Module& module, const Devices& devices, bool lenient,
                       WorkloadBuilder& builder, Tally& tally)
    : module_(module),
      devices_(devices),
      lenient_(lenient),
      builder_(builder),
      tally_(tally),
      work_(module),
      extents_(module, work_),
      is_scheduled_(module.header_attribute("is_scheduled") == "true") {
  stream_of_.fill(-1);
}

void ModuleWalk::run() {
  constexpr std::int64_t kMostSteps = 100'000'000;
  const Extent& extent = extents_.of(module_.entry_computation());
  if (extent.nodes > kMostNodesOfModule || extent.steps > kMostSteps) refuse_length();
  visit(module_.entry_computation(), {});
}

void ModuleWalk::refuse_length() {
  // At the longest loop, which most often is what makes it long.
  const Instruction* loop = nullptr;
  std::int64_t most = 0, trips = 0;
  for (const Computation& computation : module_.computations) {
    for (const Instruction& one : computation.instructions) {
      if (one.opcode != "while") continue;
      const std::int64_t count = trip_count(module_, computation, one).value_or(1);
      const std::int64_t nodes = extents_.of(module_.called(one, "body")).nodes;
      if (loop != nullptr && static_cast<double>(count) * static_cast<double>(nodes) <=
                                 static_cast<double>(trips) * static_cast<double>(most))
        continue;
      loop = &one;
      trips = count;
      most = nodes;
    }
  }
  if (loop == nullptr)
    throw Failure(fmt::format("calls of calls make more than {} nodes", kMostNodesOfModule),
                  module_.at(module_.entry_computation().offset));
  module_.fail(*loop,
               fmt::format("the loop '{}' runs {} times with {} nodes each, and a module may have "
                           "{} nodes in all",
                           loop->name, trips, most, kMostNodesOfModule),
               "compile the program with fewer steps in the loop: its iterations are alike");
}

std::string ModuleWalk::place(const Instruction& instruction) const {
  const SourceLocation where = module_.at(instruction.offset);
  return fmt::format("'{}' at line {}", instruction.name, where.line);
}

std::int32_t ModuleWalk::add(Lane lane, NodeKind kind, std::uint32_t name, std::int32_t work,
                             const Moment& after) {
  const auto at = index(lane);
  if (stream_of_[at] < 0) stream_of_[at] = builder_.stream(kLaneNames[at]);
  // What the lane has waited for is over, and its own nodes come one after the other.
  std::array<std::uint32_t, kLanes> waits;
  std::size_t count = 0;
  for (std::size_t other = 0; other < kLanes; ++other) {
    const auto one = static_cast<Lane>(other);
    if (other == at || after[one] <= waited_[at][one]) continue;
    waits[count++] = static_cast<std::uint32_t>(after[one]);
    waited_[at][one] = after[one];
  }
  const auto stream = static_cast<std::uint16_t>(stream_of_[at]);
  return last_[lane] = static_cast<std::int32_t>(trace_.add({.id = trace_.nodes.size(),
                                                             .name = name,
                                                             .kind = kind,
                                                             .stream = stream,
                                                             .work = work},
                                                            std::span(waits).first(count)));
}

Moment ModuleWalk::operands_ready(const Instruction& instruction, const Values& values) const {
  Moment ready = controls_;
  for (const std::uint32_t operand : instruction.operands) ready |= values[operand].ready;
  return ready;
}

Value ModuleWalk::visit(const Computation& computation, const Values& arguments) {
  Values values(computation.instructions.size());
  std::unordered_map<std::string_view, std::uint32_t> places;  // for control-predecessors
  for (std::uint32_t i = 0; i < values.size(); ++i) {
    const Instruction& one = computation.instructions[i];
    const std::string_view before = module_.attribute(one, "control-predecessors");
    controls_ = {};
    if (!before.empty()) {
      if (places.empty())
        for (std::uint32_t k = 0; k < values.size(); ++k)
          places.emplace(computation.instructions[k].name, k);
      for (const std::string_view name : items_of(before)) {
        const auto at = places.find(name.starts_with('%') ? name.substr(1) : name);
        if (at == places.end() || at->second >= i)
          module_.fail(one, fmt::format("'{}' comes after '{}', which is not there before it",
                                        one.name, name));
        controls_ |= values[at->second].ready;
      }
      if (class_of(one.opcode) == OpcodeClass::calling) stall_ |= controls_;
    }
    values[i] = visit(computation, one, values, arguments);
  }
  return values[computation.root];
}

Value ModuleWalk::visit(const Computation& computation, const Instruction& instruction,
                        const Values& values, const Values& arguments) {
  const auto [opcode, phase] = phase_of(instruction.opcode);
  if (phase == Phase::done || phase == Phase::update) {
    if (instruction.operands.empty())
      module_.fail(instruction,
                   fmt::format("{} '{}' ends nothing", instruction.opcode, instruction.name));
    Value value{.ready = values[instruction.operands[0]].ready};
    // The stream of the kernels waits here.
    if (phase == Phase::done && is_scheduled_) stall_ |= value.ready;
    return value;
  }
  if (phase == Phase::start) {
    Moment after = operands_ready(instruction, values);
    // The stream of communication waits for that of the kernels, where the order of both is that
    // of the text.
    if (is_scheduled_) {
      after |= stall_;
      after |= Moment::of(Lane::compute, last_[Lane::compute]);
    }
    return start(computation, instruction, after, values);
  }
  switch (class_of(opcode)) {
    case OpcodeClass::nothing:
      return nothing(instruction, values, arguments);
    case OpcodeClass::calling: {
      if (opcode == "while") return loop(computation, instruction, values);
      if (opcode == "conditional") return conditional(instruction, values);
      Values passed;
      for (const std::uint32_t operand : instruction.operands) passed.push_back(values[operand]);
      return visit(module_.called(instruction, opcode == "call" ? "to_apply" : "calls"), passed);
    }
    default:
      return visit_plain(computation, instruction, values);
  }
}

Value ModuleWalk::visit_plain(const Computation& computation, const Instruction& instruction,
                              const Values& values) {
  const Moment after = operands_ready(instruction, values);
  switch (class_of(instruction.opcode)) {
    case OpcodeClass::communicating:
      return communicate(known_call(computation, instruction), after, true);
    case OpcodeClass::fusion: {
      const Computation& fused = module_.called(instruction, "calls");
      if (const Instruction* collective = fused_collective(fused); collective != nullptr)
        return communicate(known_call(fused, *collective), after, kernel_lane_ == Lane::compute);
      return kernel(known_kernel(computation, instruction), after, kernel_lane_);
    }
    case OpcodeClass::host: {
      if (instruction.opcode != "send" && instruction.opcode != "recv")
        return host(instruction, after);
      const bool is_send = instruction.opcode == "send";
      if (send_recv_pairs(instruction).empty()) return host(instruction, after);
      const Shape* data = &instruction.shape;
      if (data->is_tuple() && !data->elements.empty()) data = &data->elements.front();
      const Known& known = known_message(instruction, bytes_of(*data));
      const Lane lane = is_send ? Lane::send : Lane::receive;
      const NodeKind kind = is_send ? NodeKind::send : NodeKind::receive;
      Moment ready = after;
      for (const std::int32_t permute : known.permutes)
        ready |= Moment::of(lane, add(lane, kind, known.name, permute, after));
      return {ready, nullptr};
    }
    case OpcodeClass::custom: {
      const std::string_view target =
          unquoted(module_.attribute(instruction, "custom_call_target"));
      if (is_mark(target)) return {after, nullptr};
      if (is_of_unpartitioned(target) && devices_.ranks() > 1)
        module_.fail(instruction,
                     fmt::format("'{}' marks how '{}' is to be divided: the module is not yet "
                                 "partitioned",
                                 target, instruction.name),
                     "the dump *after_optimizations.txt is");
      return kernel(known_kernel(computation, instruction), after, kernel_lane_);
    }
    case OpcodeClass::unknown:
      if (!lenient_)
        module_.fail(instruction,
                     fmt::format("'{}' is no opcode that is known", instruction.opcode),
                     suggest(instruction.opcode, known_opcodes(),
                             "--lenient takes it as a kernel that reads its operands"));
      tally_.add(fmt::format("converted: '{}' is not known and taken as a kernel with its bytes",
                             instruction.opcode),
                 place(instruction));
      [[fallthrough]];
    default:
      return kernel(known_kernel(computation, instruction), after, kernel_lane_);
  }
}

Value ModuleWalk::nothing(const Instruction& instruction, const Values& values,
                          const Values& arguments) {
  if (instruction.opcode == "parameter") {
    const auto index = integer_of(instruction.literal);
    if (!index || *index < 0)
      module_.fail(instruction, fmt::format("parameter '{}' has no number", instruction.name));
    return static_cast<std::size_t>(*index) < arguments.size()
               ? arguments[static_cast<std::size_t>(*index)]
               : Value{};
  }
  if (instruction.opcode == "tuple") {
    auto elements = std::make_shared<Values>();
    elements->reserve(instruction.operands.size());
    for (const std::uint32_t operand : instruction.operands) elements->push_back(values[operand]);
    return {operands_ready(instruction, values), std::move(elements)};
  }
  if (instruction.opcode == "get-tuple-element" && instruction.operands.size() == 1) {
    const Value& tuple = values[instruction.operands[0]];
    const auto index = integer_of(module_.attribute(instruction, "index"));
    if (!index || *index < 0)
      module_.fail(instruction,
                   fmt::format("'{}' does not say which element it is", instruction.name));
    if (tuple.elements && static_cast<std::size_t>(*index) < tuple.elements->size())
      return (*tuple.elements)[static_cast<std::size_t>(*index)];
    return {tuple.ready, nullptr};
  }
  if (instruction.operands.size() == 1) return values[instruction.operands[0]];
  Value value{.ready = operands_ready(instruction, values)};
  if (instruction.opcode == "add-dependency" && !instruction.operands.empty())
    value.elements = values[instruction.operands[0]].elements;
  return value;
}

Value ModuleWalk::loop(const Computation& computation, const Instruction& instruction,
                       const Values& values) {
  const Computation& body = module_.called(instruction, "body");
  if (instruction.operands.size() != 1)
    module_.fail(instruction, fmt::format("while '{}' has {} operands, not one", instruction.name,
                                          instruction.operands.size()));
  std::optional<std::int64_t> trips = trip_count(module_, computation, instruction);
  if (!trips) {
    if (!lenient_)
      module_.fail(instruction,
                   fmt::format("nothing tells how often the loop '{}' runs", instruction.name),
                   "--lenient takes it as once");
    tally_.add("converted: loops of which nothing tells how often they run are taken as once",
               place(instruction));
    trips = 1;
  }
  const std::int64_t nodes = extents_.of(body).nodes;
  if (known_.find(&instruction) == known_.end()) {
    known_.emplace(&instruction, Known{});
    loops_.push_back(fmt::format("{} {} time{}", instruction.name, *trips, *trips == 1 ? "" : "s"));
  }
  Value state = values[instruction.operands[0]];
  // How often it runs is known before: the condition is not computed. Without nodes, once tells
  // all.
  if (nodes == 0) trips = std::min<std::int64_t>(*trips, 1);
  for (std::int64_t trip = 0; trip < *trips; ++trip) state = visit(body, Values{state});
  return state;
}

Value ModuleWalk::conditional(const Instruction& instruction, const Values& values) {
  const std::vector<const Computation*> branches = branches_of(module_, instruction);
  const Computation& taken = extents_.costliest(instruction);
  const auto index =
      static_cast<std::size_t>(std::ranges::find(branches, &taken) - branches.begin());
  if (instruction.operands.size() != branches.size() + 1)
    module_.fail(instruction,
                 fmt::format("conditional '{}' has {} branches and {} operands", instruction.name,
                             branches.size(), instruction.operands.size()));
  tally_.add("taken: of a conditional the branch that costs most",
             fmt::format("'{}' of {}", taken.name, place(instruction)));
  Value argument = values[instruction.operands[index + 1]];
  stall_ |= values[instruction.operands[0]].ready;
  return visit(taken, Values{argument});
}

Value ModuleWalk::start(const Computation& computation, const Instruction& instruction,
                        const Moment& after, const Values& values) {
  const std::string_view opcode = phase_of(instruction.opcode).opcode;
  if (opcode == "async") {
    // What is called runs beside the kernels. Most often that is one collective.
    const Computation& called = module_.called(instruction, "calls");
    Values passed;
    for (const std::uint32_t operand : instruction.operands) {
      passed.push_back(values[operand]);
      passed.back().ready |= after;
    }
    const Instruction& root = called.root_instruction();
    if (class_of(root.opcode) == OpcodeClass::communicating)
      return communicate(known_call(called, root), after, false);
    const Lane before = std::exchange(kernel_lane_, Lane::side);
    Value value = visit(called, passed);
    value.ready |= after;
    kernel_lane_ = before;
    return value;
  }
  if (class_of(opcode) == OpcodeClass::communicating)
    return communicate(known_call(computation, instruction), after,
                       is_synchronous(module_, instruction));
  const auto at = known_.find(&instruction);
  if (at != known_.end())
    return kernel(at->second, after, opcode == "copy" ? Lane::copy : Lane::side);
  if (class_of(opcode) == OpcodeClass::unknown || class_of(opcode) == OpcodeClass::calling ||
      class_of(opcode) == OpcodeClass::nothing || class_of(opcode) == OpcodeClass::host)
    module_.fail(instruction, fmt::format("'{}' is no opcode that is known", instruction.opcode),
                 suggest(opcode, known_opcodes()));
  // As the whole operation; its shape is (operands, result, ...).
  Instruction whole = instruction;
  whole.opcode = opcode;
  if (whole.shape.is_tuple() && whole.shape.elements.size() >= 2) {
    const std::size_t result = opcode == "copy" ? 0 : 1;
    const Shape shape = whole.shape.elements[result];
    whole.shape = shape;
  }
  Known known = known_kernel(computation, whole);
  known_.erase(&whole);
  if (opcode == "copy") known.kind = NodeKind::memory;
  return kernel(known_.emplace(&instruction, known).first->second, after,
                opcode == "copy" ? Lane::copy : Lane::side);
}

Value ModuleWalk::kernel(const Known& known, const Moment& after, Lane lane) {
  if (known.kind == NodeKind::nothing) return {after, nullptr};
  Moment before = after;
  if (lane == Lane::compute) {
    before |= stall_;
    stall_ = {};
  }
  return {Moment::of(lane, add(lane, known.kind, known.name, known.work, before)), nullptr};
}

Value ModuleWalk::communicate(const Known& known, const Moment& after, bool is_whole) {
  if (known.kind == NodeKind::nothing) return {after, nullptr};
  if (known.kind == NodeKind::collective)
    return kernel(known, after, is_whole ? kernel_lane_ : Lane::communication);
  Moment before = after;
  if (is_whole) {
    before |= stall_;
    before |= Moment::of(Lane::compute, last_[Lane::compute]);
  }
  Moment ready;
  for (const std::int32_t permute : known.permutes) {
    ready |= Moment::of(Lane::send, add(Lane::send, NodeKind::send, known.name, permute, before));
    ready |= Moment::of(Lane::receive,
                        add(Lane::receive, NodeKind::receive, known.name, permute, before));
  }
  if (is_whole) stall_ |= ready;
  return {ready, nullptr};
}

Value ModuleWalk::host(const Instruction& instruction, const Moment& after) {
  if (!lenient_)
    module_.fail(instruction,
                 fmt::format("{} '{}' exchanges data with the host, which is not modelled",
                             instruction.opcode, instruction.name),
                 "--lenient leaves it out");
  tally_.add(fmt::format("ignored: {}, which exchanges data with the host", instruction.opcode),
             place(instruction));
  return {after, nullptr};
}

}  // namespace hemiola::workload::hlo
