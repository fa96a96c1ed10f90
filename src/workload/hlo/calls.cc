// What instructions are as nodes, found once however often they run.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "workload/hlo/attributes.h"
#include "workload/hlo/nodes.h"
#include "workload/hlo/opcodes.h"

namespace hemiola::workload::hlo {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;

Collective collective_of(std::string_view opcode) {
  if (opcode == "all-reduce") return Collective::all_reduce;
  if (opcode == "all-gather") return Collective::all_gather;
  if (opcode == "reduce-scatter") return Collective::reduce_scatter;
  if (opcode == "collective-broadcast") return Collective::broadcast;
  return Collective::all_to_all;
}

/// "2 x 4" groups of ranks side by side, "4 x 2, 4 apart".
std::string family_name(const Groups& groups) {
  const std::vector<int>& first = groups.front();
  const int stride = first.size() > 1 ? first[1] - first[0] : 1;
  std::string name =
      groups.size() == 1 ? "all" : fmt::format("{} x {}", groups.size(), first.size());
  if (stride != 1) name += fmt::format(", {} apart", stride);
  return name;
}

}  // namespace

const Instruction* ModuleWalk::fused_collective(const Computation& fused) {
  const auto at = fused_collectives_.find(&fused);
  if (at != fused_collectives_.end()) return at->second;
  const Instruction* found = nullptr;
  for (const Instruction& one : fused.instructions)
    if (class_of(one.opcode) == OpcodeClass::communicating) found = &one;
  return fused_collectives_.emplace(&fused, found).first->second;
}

const ModuleWalk::Known& ModuleWalk::known_kernel(const Computation& computation,
                                                  const Instruction& instruction) {
  const auto at = known_.find(&instruction);
  if (at != known_.end()) return at->second;
  const Compute compute = work_.of(computation, instruction);
  if (std::max(compute.read, compute.written) > kMostBytes)
    module_.fail(instruction,
                 fmt::format("'{}' moves more bytes than any machine has", instruction.name));
  Known known{.name = builder_.name(instruction.name)};
  if (compute.kind == Compute::Kind::product || compute.flop > 0 || compute.read > 0 ||
      compute.written > 0) {
    known.kind = NodeKind::compute;
    known.work = builder_.compute(compute);
  }
  if (class_of(instruction.opcode) == OpcodeClass::custom &&
      compute.kind != Compute::Kind::product) {
    tally_.add("taken: calls of which only the bytes are known, and not the flop",
               fmt::format("{} with target {}", place(instruction),
                           module_.attribute(instruction, "custom_call_target")));
  }
  return known_.emplace(&instruction, known).first->second;
}

const ModuleWalk::Known& ModuleWalk::known_call(const Computation& computation,
                                                const Instruction& instruction) {
  const auto at = known_.find(&instruction);
  if (at != known_.end()) return at->second;
  const std::string_view opcode = phase_of(instruction.opcode).opcode;
  std::int64_t bytes = 0;
  std::string_view type;
  for (const std::uint32_t operand : instruction.operands) {
    const Shape& shape = computation.instructions[operand].shape;
    bytes = std::min(kMostBytes + 1, bytes + bytes_of(shape));
    if (type.empty() && !shape.is_tuple()) type = shape.type;
  }
  if (opcode == "collective-permute") {
    // Those in place have operands (input, output, offsets, ...).
    if (!module_.attribute(instruction, "slice_sizes").empty() && !instruction.operands.empty())
      bytes = bytes_of(computation.instructions[instruction.operands[0]].shape);
    return known_message(instruction, bytes);
  }
  if (opcode == "ragged-all-to-all") {
    if (!lenient_)
      module_.fail(instruction,
                   fmt::format("how much ragged-all-to-all '{}' sends is known only when it runs",
                               instruction.name),
                   "--lenient takes it as an all-to-all of its whole operand");
    tally_.add("converted: ragged-all-to-all is taken as an all-to-all of the whole operand",
               place(instruction));
    if (!instruction.operands.empty())
      bytes = bytes_of(computation.instructions[instruction.operands[0]].shape);
  }
  Known known{.name = builder_.name(instruction.name)};
  Groups groups = groups_of_ranks(module_, instruction, devices_);
  const auto size = static_cast<std::int64_t>(groups.front().size());
  if (size > 1 && bytes > 0) {
    if (bytes > kMostBytes / size)
      module_.fail(instruction,
                   fmt::format("'{}' moves more bytes than any machine has", instruction.name));
    CollectiveCall call{.kind = collective_of(opcode), .type = data_type_of(type)};
    // What nccl-tests calls size is of an all-gather the whole result.
    call.bytes = call.kind == Collective::all_gather ? bytes * size : bytes;
    const std::string name = family_name(groups);
    call.family = builder_.family(name, std::move(groups));
    known.kind = NodeKind::collective;
    known.work = builder_.collective(call);
  }
  return known_.emplace(&instruction, known).first->second;
}

const ModuleWalk::Known& ModuleWalk::known_message(const Instruction& instruction,
                                                   std::int64_t bytes) {
  const auto at = known_.find(&instruction);
  if (at != known_.end()) return at->second;
  Known known{.name = builder_.name(instruction.name)};
  if (bytes > 0) known.permutes = permutes_of(instruction, bytes);
  if (!known.permutes.empty()) known.kind = NodeKind::send;
  return known_.emplace(&instruction, known).first->second;
}

std::vector<std::pair<int, int>> ModuleWalk::send_recv_pairs(const Instruction& instruction) const {
  const std::string_view pairs = field_of(module_.attribute(instruction, "frontend_attributes"),
                                          "_xla_send_recv_source_target_pairs");
  if (pairs.empty() || module_.attribute(instruction, "is_host_transfer") == "true") return {};
  std::vector<std::pair<int, int>> found;
  for (const std::string_view item : items_of(unquoted(pairs))) {
    const std::vector<std::int64_t> pair = integers_in(item);
    const bool is_pair = pair.size() == 2 && std::min(pair[0], pair[1]) >= 0 &&
                         std::max(pair[0], pair[1]) < devices_.partitions;
    if (!is_pair)
      module_.fail(instruction, fmt::format("'{}' goes from source to target {}, which is no pair "
                                            "of {} partitions",
                                            instruction.name, item, devices_.partitions));
    found.emplace_back(static_cast<int>(pair[0]), static_cast<int>(pair[1]));
  }
  return found;
}

std::vector<std::int32_t> ModuleWalk::permutes_of(const Instruction& instruction,
                                                  std::int64_t bytes) {
  const bool is_permute = phase_of(instruction.opcode).opcode == "collective-permute";
  std::vector<std::pair<int, int>> pairs;
  std::int32_t tag = 0;
  if (is_permute) {
    pairs = pairs_of_ranks(module_, instruction, devices_);
  } else {
    for (const auto& [from, to] : send_recv_pairs(instruction)) {
      for (int replica = 0; replica < devices_.replicas; ++replica)
        pairs.emplace_back(replica * devices_.partitions + from,
                           replica * devices_.partitions + to);
    }
    // Sends meet receives of their channel.
    const auto channel = integer_of(module_.attribute(instruction, "channel_id")).value_or(0);
    tag = static_cast<std::int32_t>(
        std::clamp<std::int64_t>(channel, 0, std::numeric_limits<std::int32_t>::max()));
  }
  const auto ranks = index(devices_.ranks());
  constexpr std::size_t kMostPlaces = std::size_t{1} << 26;
  if (permutes_.size() > kMostPlaces / ranks)
    module_.fail(instruction, fmt::format("{} permutes among {} devices are more than can be kept",
                                          permutes_.size(), ranks));
  std::vector<std::int32_t> found;
  for (const auto& set : disjoint_pairs(pairs)) {
    std::vector<std::vector<int>> groups;
    for (const auto& [from, to] : set) groups.push_back({std::min(from, to), std::max(from, to)});
    std::ranges::sort(groups);
    const std::string name = fmt::format("pairs from {}-{}", groups.front()[0], groups.front()[1]);
    const std::int32_t family = builder_.family(name, std::move(groups));
    Permute permute{std::vector<std::int32_t>(ranks, -1), std::vector<std::int32_t>(ranks, -1)};
    for (const auto& [from, to] : set) {
      const std::int32_t message =
          builder_.message({.family = family, .from_first = from < to, .bytes = bytes, .tag = tag});
      permute.sends[index(from)] = message;
      permute.receives[index(to)] = message;
    }
    found.push_back(static_cast<std::int32_t>(permutes_.size()));
    permutes_.push_back(std::move(permute));
  }
  return found;
}

}  // namespace hemiola::workload::hlo
