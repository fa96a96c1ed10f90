#include "workload/traces/chakra/writer.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <vector>

#include "core/index.h"
#include "core/text.h"
#include "workload/traces/chakra/attributes.h"
#include "workload/traces/chakra/collective.h"
#include "workload/traces/chakra/extension.h"
#include "workload/traces/chakra/messages.h"

namespace hemiola::workload {
namespace {

using Attribute = ChakraAttribute;

chakra::AttributeProto* add_attribute(chakra::Node& message, Attribute name) {
  chakra::AttributeProto* attribute = message.add_attr();
  attribute->set_name(std::string(name_of(name)));
  return attribute;
}
void add_number(chakra::Node& message, Attribute name, std::int64_t value) {
  add_attribute(message, name)->set_int64_val(value);
}
void add_text(chakra::Node& message, Attribute name, std::string_view text) {
  add_attribute(message, name)->set_string_val(std::string(text));
}

class ChakraWriter {
 public:
  explicit ChakraWriter(const Workload& workload)
      : workload_(workload), names_(group_names(workload)) {
    for (const GroupFamily& family : workload.families) {
      auto& [first, later] = groups_of_.emplace_back();
      first.assign(index(workload.ranks), -1);
      later = first;
      for (std::size_t g = 0; g < family.groups.size(); ++g) {
        for (const int rank : family.groups[g]) {
          auto& groups = rank == family.groups[g].front() ? first : later;
          groups[index(rank)] = static_cast<std::int32_t>(g);
        }
      }
    }
  }

  std::string file_of(const RankClass& one, int rank) {
    rank_ = rank;
    trace_ = one.trace.get();
    set_ids();
    last_.assign(workload_.streams.size(), kNoNode);
    std::string out;
    chakra::GlobalMetadata metadata;
    metadata.set_version("0.0.4");
    write_extension(metadata, workload_, one.name, rank == 0);
    append(out, metadata);
    chakra::Node message;
    for (std::uint32_t i = 0; i < trace_->nodes.size(); ++i) {
      message.Clear();
      fill(message, i);
      append(out, message);
    }
    return out;
  }

  std::string groups() const {
    nlohmann::ordered_json json = nlohmann::ordered_json::object();
    for (std::size_t f = 0; f < names_.size(); ++f)
      for (std::size_t g = 0; g < names_[f].size(); ++g)
        json[names_[f][g]] = workload_.families[f].groups[g];
    return json.dump() + "\n";
  }

 private:
  template <typename Message>
  static void append(std::string& out, const Message& message) {
    append_length(out, message.ByteSizeLong());
    message.AppendToString(&out);
  }

  /// Their own, if no two are equal.
  void set_ids() {
    std::unordered_set<std::uint64_t> seen;
    own_ids_ = true;
    for (const Node& node : trace_->nodes) own_ids_ = own_ids_ && seen.insert(node.id).second;
  }
  std::uint64_t id(std::uint32_t node) const { return own_ids_ ? trace_->nodes[node].id : node; }

  void fill(chakra::Node& message, std::uint32_t place) {
    const Node& node = trace_->nodes[place];
    message.set_id(id(place));
    message.set_name(workload_.names[node.name]);
    bool waits_for_last = false;
    std::uint32_t& last = last_[node.stream];
    for (const std::uint32_t other : trace_->dependencies_of(node)) {
      message.add_data_deps(id(other));
      waits_for_last = waits_for_last || other == last;
    }
    if (workload_.streams[node.stream].in_order) {
      if (last != kNoNode && !waits_for_last) message.add_ctrl_deps(id(last));
      last = place;
    }
    fill_work(message, node);
    fill_times(message, node);
    add_number(message, Attribute::stream, node.stream);
  }

  void fill_times(chakra::Node& message, const Node& node) const {
    constexpr std::int64_t kMicrosecond = 1'000'000'000;
    const auto micros = [&](Time time) {
      return static_cast<std::uint64_t>((time.fs + kMicrosecond / 2) / kMicrosecond);
    };
    message.set_start_time_micros(micros(node.recorded_begin));
    message.set_duration_micros(micros(node.recorded));
    if (node.recorded_begin.fs % kMicrosecond != 0)
      add_number(message, Attribute::begin, node.recorded_begin.fs);
    if (node.recorded.fs % kMicrosecond != 0)
      add_number(message, Attribute::duration, node.recorded.fs);
    if (node.host.fs != 0) add_number(message, Attribute::host, node.host.fs);
  }

  void fill_work(chakra::Node& message, const Node& node) const {
    switch (node.kind) {
      case NodeKind::nothing:
        message.set_type(chakra::COMP_NODE);
        add_text(message, Attribute::kind, name_of(NodeKind::nothing));
        fill_amounts(message, {});
        break;
      case NodeKind::recorded_call:
        message.set_type(chakra::COMP_NODE);
        add_text(message, Attribute::kind,
                 fmt::format("{} {}", name_of(node.kind), workload_.names[index(node.work)]));
        fill_amounts(message, {});
        break;
      case NodeKind::host:
        message.set_type(chakra::COMP_NODE);
        fill_amounts(message, {});
        break;
      case NodeKind::compute:
        message.set_type(chakra::COMP_NODE);
        fill_compute(message, node);
        break;
      case NodeKind::memory:
        fill_memory(message, node);
        break;
      case NodeKind::collective:
        message.set_type(chakra::COMM_COLL_NODE);
        fill_collective(message, workload_.collectives[index(node.work)]);
        break;
      case NodeKind::send:
      case NodeKind::receive:
        fill_message(message, node);
        break;
    }
    add_attribute(message, Attribute::is_cpu_op)->set_bool_val(node.kind == NodeKind::host);
  }

  static void fill_amounts(chakra::Node& message, const Amounts& amounts) {
    add_number(message, Attribute::num_ops, amounts.flop);
    add_number(message, Attribute::tensor_size, amounts.bytes);
  }

  static void fill_numbers(chakra::Node& message, const Compute& compute) {
    auto* list = add_attribute(message, Attribute::compute)->mutable_int64_list();
    for (const std::int64_t number : numbers_of(compute)) list->add_values(number);
  }

  void fill_compute(chakra::Node& message, const Node& node) const {
    if (node.work < 0) return fill_amounts(message, {});
    const Compute& compute = workload_.computes[index(node.work)];
    Amounts amounts = amounts_of(compute);
    // ASTRA-sim's roofline divides by both: one operation for all bytes takes as long as these do.
    if (amounts.bytes > 0 && amounts.flop == 0) amounts.flop = 1;
    fill_amounts(message, amounts);
    const Compute plain{.flop = amounts.flop, .read = amounts.bytes};
    const bool is_nothing = amounts.flop == 0 && amounts.bytes == 0;
    if (is_nothing || plain != compute) fill_numbers(message, compute);
  }

  void fill_memory(chakra::Node& message, const Node& node) const {
    message.set_type(chakra::MEM_LOAD_NODE);
    if (node.work < 0) return add_number(message, Attribute::tensor_size, 0);
    const Compute& compute = workload_.computes[index(node.work)];
    if (compute.read == 0) message.set_type(chakra::MEM_STORE_NODE);
    add_number(message, Attribute::tensor_size, amounts_of(compute).bytes);
    const Compute plain{.read = compute.read, .written = compute.written};
    const bool is_one_way = (compute.read == 0) != (compute.written == 0);
    if (!is_one_way || plain != compute) fill_numbers(message, compute);
  }

  /// Of the families' groups: the rank's own. Of a ring the one in which it is the first, or the
  /// second.
  std::size_t group_of(std::int32_t family, bool as_first = true) const {
    const auto& [first, later] = groups_of_[index(family)];
    const std::int32_t group = (as_first ? first : later)[index(rank_)];
    return index(group >= 0 ? group : (as_first ? later : first)[index(rank_)]);
  }

  void fill_collective(chakra::Node& message, const CollectiveCall& call) const {
    add_number(message, Attribute::comm_type, comm_type_of(call.kind));
    std::int64_t size = call.bytes;
    if (call.kind == Collective::all_gather) {
      // Of one rank.
      const auto ranks = static_cast<std::int64_t>(
          workload_.families[index(call.family)].groups[group_of(call.family)].size());
      size = call.bytes / ranks + (call.bytes % ranks != 0 ? 1 : 0);
      if (call.bytes % ranks != 0) add_number(message, Attribute::bytes, call.bytes);
    }
    add_number(message, Attribute::comm_size, size);
    add_text(message, Attribute::pg_name, names_[index(call.family)][group_of(call.family)]);
    if (call.type != CollectiveCall{}.type) add_text(message, Attribute::type, name_of(call.type));
    if (call.splits >= 0) add_number(message, Attribute::splits, call.splits);
  }

  void fill_message(chakra::Node& message, const Node& node) const {
    const Message& work = workload_.messages[index(node.work)];
    const std::size_t group =
        group_of(work.family, (node.kind == NodeKind::send) == work.from_first);
    const std::vector<int>& pair = workload_.families[index(work.family)].groups[group];
    if (pair.size() != 2)
      throw Failure(fmt::format("a message of '{}' is in a group of {} ranks",
                                workload_.families[index(work.family)].name, pair.size()));
    message.set_type(node.kind == NodeKind::send ? chakra::COMM_SEND_NODE : chakra::COMM_RECV_NODE);
    add_number(message, Attribute::comm_src, pair[work.from_first ? 0 : 1]);
    add_number(message, Attribute::comm_dst, pair[work.from_first ? 1 : 0]);
    add_number(message, Attribute::comm_tag, work.tag);
    add_number(message, Attribute::comm_size, work.bytes);
    add_text(message, Attribute::pg_name, names_[index(work.family)][group]);
  }

  const Workload& workload_;
  /// By rank: the group in which it is the first, and that in which it is another; -1: none.
  struct GroupsOfRanks {
    std::vector<std::int32_t> first, later;
  };
  std::vector<std::vector<std::string>> names_;  ///< of groups, by family
  std::vector<GroupsOfRanks> groups_of_;         ///< by family
  int rank_ = 0;
  const Trace* trace_ = nullptr;
  bool own_ids_ = true;
  std::vector<std::uint32_t> last_;  ///< node of each stream
};

}  // namespace

void write_chakra(const Workload& workload, const std::string& path) {
  namespace fs = std::filesystem;
  check(workload);
  std::error_code error;
  std::string prefix = path;
  if (fs::is_directory(path, error))
    prefix = (fs::path(path) / (workload.name.empty() ? "trace" : workload.name)).string();
  ChakraWriter writer(workload);
  for (const RankClass& one : workload.classes)
    for (const int rank : one.ranks)
      write_file(fmt::format("{}.{}.et", prefix, rank), writer.file_of(one, rank));
  write_file(prefix + ".json", writer.groups());
}

}  // namespace hemiola::workload
