#include "workload/fold.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "core/index.h"

namespace hemiola::workload {
namespace {

class Folder {
 public:
  explicit Folder(Workload& workload) : workload_(workload), joined_(workload.families.size()) {
    std::iota(joined_.begin(), joined_.end(), 0);
  }

  /// Whether something was folded.
  bool run() {
    group_classes();
    if (by_text_.size() == workload_.classes.size()) return false;
    for (const auto& [text, members] : by_text_) join_slots(members);
    return make_families() && rewrite();
  }

 private:
  std::int32_t family_of(const Node& node) const {
    switch (node.kind) {
      case NodeKind::collective:
        return workload_.collectives[index(node.work)].family;
      case NodeKind::send:
      case NodeKind::receive:
        return workload_.messages[index(node.work)].family;
      default:
        return -1;
    }
  }

  /// Families of a trace in the order in which its nodes name them first.
  std::vector<std::int32_t> slots_of(const Trace& trace) const {
    std::vector<std::int32_t> slots;
    for (const Node& node : trace.nodes) {
      const std::int32_t family = family_of(node);
      if (family >= 0 && std::find(slots.begin(), slots.end(), family) == slots.end())
        slots.push_back(family);
    }
    return slots;
  }

  template <class Value>
  static void put(std::string& text, const Value& value) {
    text.append(reinterpret_cast<const char*>(&value), sizeof value);
  }

  /// Equal for traces that are equal but for their groups.
  std::string text_of(const RankClass& one) const {
    const Trace& trace = *one.trace;
    const std::vector<std::int32_t> slots = slots_of(trace);
    std::string text;
    text.reserve(trace.nodes.size() * 64);
    for (const Node& node : trace.nodes) {
      put(text, node.name);
      put(text, node.kind);
      put(text, node.stream);
      put(text, node.host.fs);
      put(text, node.recorded.fs);
      put(text, node.dependencies);
      for (std::uint32_t d = 0; d < node.dependencies; ++d)
        put(text, trace.dependencies[node.first_dependency + d]);
      const std::int32_t family = family_of(node);
      if (family < 0) {
        put(text, node.work);
        continue;
      }
      put(text, std::find(slots.begin(), slots.end(), family) - slots.begin());
      put(text, workload_.families[index(family)].groups.front().size());
      if (node.kind == NodeKind::collective) {
        const CollectiveCall& call = workload_.collectives[index(node.work)];
        put(text, call.kind);
        put(text, call.bytes);
        put(text, call.type);
      } else {
        const Message& message = workload_.messages[index(node.work)];
        put(text, message.from_first);
        put(text, message.bytes);
        put(text, message.tag);
      }
    }
    return text;
  }

  void group_classes() {
    for (std::size_t c = 0; c < workload_.classes.size(); ++c)
      by_text_[text_of(workload_.classes[c])].push_back(c);
  }

  std::int32_t root_of(std::int32_t family) {
    while (joined_[index(family)] != family) family = joined_[index(family)];
    return family;
  }

  void join_slots(const std::vector<std::size_t>& members) {
    const std::vector<std::int32_t> first = slots_of(*workload_.classes[members.front()].trace);
    for (const std::size_t c : members) {
      const std::vector<std::int32_t> slots = slots_of(*workload_.classes[c].trace);
      for (std::size_t s = 0; s < slots.size(); ++s)
        joined_[index(root_of(slots[s]))] = root_of(first[s]);
    }
  }

  /// False where groups that would be joined overlap, or where a rank would lose the difference
  /// between two of its groups.
  bool make_families() {
    number_.assign(workload_.families.size(), -1);
    for (std::size_t f = 0; f < workload_.families.size(); ++f) {
      const std::int32_t root = root_of(static_cast<std::int32_t>(f));
      std::int32_t& number = number_[index(root)];
      if (number < 0) {
        number = static_cast<std::int32_t>(families_.size());
        families_.push_back({.name = workload_.families[f].name, .groups = {}});
      }
      number_[f] = number;
      auto& groups = families_[index(number)].groups;
      for (const auto& group : workload_.families[f].groups) {
        if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
      }
    }
    for (const GroupFamily& family : families_) {
      std::set<int> seen;
      for (const auto& group : family.groups) {
        for (const int rank : group) {
          if (!seen.insert(rank).second) return false;
        }
      }
    }
    for (const auto& [text, members] : by_text_) {
      const std::vector<std::int32_t> slots =
          slots_of(*workload_.classes[members.front()].trace);
      std::set<std::int32_t> numbers;
      for (const std::int32_t slot : slots) {
        if (!numbers.insert(number_[index(slot)]).second) return false;
      }
    }
    return true;
  }

  bool rewrite() {
    // Works with the new families, each once.
    std::map<std::tuple<Collective, std::int32_t, std::int64_t, DataType>, std::int32_t> calls;
    std::map<std::tuple<std::int32_t, bool, std::int64_t, std::int32_t>, std::int32_t> messages;
    std::vector<CollectiveCall> new_calls;
    std::vector<Message> new_messages;
    std::vector<std::int32_t> call_of, message_of;
    for (CollectiveCall call : workload_.collectives) {
      call.family = number_[index(call.family)];
      const auto [at, is_new] = calls.emplace(
          std::tuple(call.kind, call.family, call.bytes, call.type),
          static_cast<std::int32_t>(new_calls.size()));
      if (is_new) new_calls.push_back(call);
      call_of.push_back(at->second);
    }
    for (Message message : workload_.messages) {
      message.family = number_[index(message.family)];
      const auto [at, is_new] = messages.emplace(
          std::tuple(message.family, message.from_first, message.bytes, message.tag),
          static_cast<std::int32_t>(new_messages.size()));
      if (is_new) new_messages.push_back(message);
      message_of.push_back(at->second);
    }
    // The class of the lowest rank comes first.
    std::vector<RankClass> classes;
    std::vector<const std::vector<std::size_t>*> order;
    for (const auto& [text, members] : by_text_) order.push_back(&members);
    std::sort(order.begin(), order.end(),
              [](const auto* a, const auto* b) { return a->front() < b->front(); });
    for (const auto* members : order) {
      RankClass one = workload_.classes[members->front()];
      auto trace = std::make_shared<Trace>(*one.trace);
      for (Node& node : trace->nodes) {
        if (node.kind == NodeKind::collective) node.work = call_of[index(node.work)];
        if (node.kind == NodeKind::send || node.kind == NodeKind::receive)
          node.work = message_of[index(node.work)];
      }
      one.trace = std::move(trace);
      one.ranks.clear();
      for (const std::size_t c : *members)
        one.ranks.insert(one.ranks.end(), workload_.classes[c].ranks.begin(),
                         workload_.classes[c].ranks.end());
      std::sort(one.ranks.begin(), one.ranks.end());
      if (members->size() > 1) one.name += " and " + std::to_string(members->size() - 1) + " more";
      classes.push_back(std::move(one));
    }
    workload_.classes = std::move(classes);
    workload_.families = std::move(families_);
    workload_.collectives = std::move(new_calls);
    workload_.messages = std::move(new_messages);
    return true;
  }

  Workload& workload_;
  std::map<std::string, std::vector<std::size_t>> by_text_;
  std::vector<std::int32_t> joined_;  ///< families that are one
  std::vector<std::int32_t> number_;  ///< by family, of families_
  std::vector<GroupFamily> families_;
};

}  // namespace

Workload fold(Workload workload) {
  Folder(workload).run();
  return workload;
}

}  // namespace hemiola::workload
