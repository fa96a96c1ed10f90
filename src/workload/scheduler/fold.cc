#include "workload/scheduler/fold.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "core/index.h"
#include "workload/once.h"

namespace hemiola::workload {
namespace {

/// Numbers that are joined to sets.
class Joined {
 public:
  explicit Joined(std::size_t count) : to_(count) { std::iota(to_.begin(), to_.end(), 0); }
  std::int32_t root(std::int32_t number) const {
    while (to_[index(number)] != number) number = to_[index(number)];
    return number;
  }
  void join(std::int32_t a, std::int32_t b) { to_[index(root(a))] = root(b); }

 private:
  std::vector<std::int32_t> to_;
};

class Folder {
 public:
  explicit Folder(Workload& workload)
      : workload_(workload),
        families_of_(workload.families.size()),
        streams_of_(workload.streams.size()) {}

  /// Whether something was folded.
  bool run() {
    group_classes();
    if (alike_.size() == workload_.classes.size()) return false;
    for (const auto& members : alike_) join_slots(members);
    return make_families() && rewrite();
  }

 private:
  /// -1: it communicates with nobody.
  std::int32_t family_of(const Node& node) const {
    return is_call(node.kind) ? call_of(workload_, node.kind, node.work).family : -1;
  }

  /// Families and streams of a trace in the order in which its nodes name them first.
  struct Slots {
    std::vector<std::int32_t> families, streams;
  };
  Slots slots_of(const Trace& trace) const {
    Slots slots;
    const auto add = [](std::vector<std::int32_t>& list, std::int32_t number) {
      if (number >= 0 && std::ranges::find(list, number) == list.end()) list.push_back(number);
    };
    for (const Node& node : trace.nodes) {
      add(slots.families, family_of(node));
      add(slots.streams, node.stream);
    }
    return slots;
  }
  static std::int64_t slot(const std::vector<std::int32_t>& list, std::int32_t number) {
    return std::ranges::find(list, number) - list.begin();
  }

  template <class Value>
  static void put(std::string& text, const Value& value) {
    text.append(reinterpret_cast<const char*>(&value), sizeof value);
  }

  /// Equal for traces that are equal but for their groups.
  std::string text_of(const RankClass& one) const {
    const Trace& trace = *one.trace;
    const Slots slots = slots_of(trace);
    std::string text;
    text.reserve(trace.nodes.size() * 64);
    for (const Node& node : trace.nodes) {
      put(text, node.name);
      put(text, node.kind);
      put(text, slot(slots.streams, node.stream));
      put(text, workload_.streams[node.stream].in_order);
      put(text, node.host.fs);
      put(text, node.recorded.fs);
      put(text, node.dependencies);
      for (const std::uint32_t before : trace.dependencies_of(node)) put(text, before);
      const std::int32_t family = family_of(node);
      if (family < 0) {
        put(text, node.work);
        continue;
      }
      put(text, slot(slots.families, family));
      put(text, workload_.families[index(family)].groups.front().size());
      if (node.kind == NodeKind::collective) {
        const CollectiveCall& call = workload_.collectives[index(node.work)];
        put(text, call.kind);
        put(text, call.bytes);
        put(text, call.type);
        put(text, call.splits);
      } else {
        const Message& message = workload_.messages[index(node.work)];
        put(text, message.from_first);
        put(text, message.bytes);
        put(text, message.tag);
      }
    }
    return text;
  }

  /// Whom a class sends messages to and receives them from: family's slot, whether it is the first
  /// of the pair, class of the other.
  using Peers = std::set<std::tuple<std::int64_t, bool, std::size_t>>;
  std::vector<Peers> peers_of_classes() const {
    const std::vector<std::int32_t> class_of = classes_of_ranks(workload_);
    std::vector<Peers> peers(workload_.classes.size());
    for (std::size_t c = 0; c < workload_.classes.size(); ++c) {
      const Trace& trace = *workload_.classes[c].trace;
      const Slots slots = slots_of(trace);
      std::set<std::pair<std::int32_t, bool>> sides;
      for (const Node& node : trace.nodes)
        if (node.kind == NodeKind::send || node.kind == NodeKind::receive)
          sides.insert({family_of(node), (node.kind == NodeKind::send) ==
                                             workload_.messages[index(node.work)].from_first});
      for (const auto& [family, is_first] : sides)
        for (const auto& pair : workload_.families[index(family)].groups)
          if (index(class_of[index(is_first ? pair.front() : pair.back())]) == c)
            peers[c].insert({slot(slots.families, family), is_first,
                             index(class_of[index(is_first ? pair.back() : pair.front())])});
    }
    return peers;
  }

  /// Stages of a pipeline may have one text, and each is at its own time: a class of them would
  /// wait for itself. So members of a class have their messages with members of one class.
  void group_classes() {
    std::map<std::string, std::size_t> texts;
    std::vector<std::size_t> group_of;  // by class
    for (const RankClass& one : workload_.classes)
      group_of.push_back(texts.emplace(text_of(one), texts.size()).first->second);
    const std::vector<Peers> peers = peers_of_classes();
    std::size_t groups = 0;
    do {
      groups = alike_.size();
      std::map<std::pair<std::size_t, Peers>, std::vector<std::size_t>> parts;
      for (std::size_t c = 0; c < peers.size(); ++c) {
        Peers seen;
        for (const auto& [slot, is_first, other] : peers[c])
          seen.insert({slot, is_first, group_of[other]});
        parts[{group_of[c], std::move(seen)}].push_back(c);
      }
      alike_.clear();
      for (auto& [key, members] : parts) alike_.push_back(std::move(members));
      for (std::size_t g = 0; g < alike_.size(); ++g)
        for (const std::size_t c : alike_[g]) group_of[c] = g;
    } while (alike_.size() != groups);
  }

  void join_slots(const std::vector<std::size_t>& members) {
    const Slots first = slots_of(*workload_.classes[members.front()].trace);
    for (const std::size_t c : members) {
      const Slots slots = slots_of(*workload_.classes[c].trace);
      for (std::size_t s = 0; s < slots.families.size(); ++s)
        families_of_.join(slots.families[s], first.families[s]);
      for (std::size_t s = 0; s < slots.streams.size(); ++s)
        streams_of_.join(slots.streams[s], first.streams[s]);
    }
  }

  /// False where groups that would be joined overlap, or where a rank would lose the difference
  /// between two of its groups or streams. Pairs of messages may be a ring: then a rank is the
  /// first of one and the second of another.
  bool make_families() {
    number_.assign(workload_.families.size(), -1);
    for (std::size_t f = 0; f < workload_.families.size(); ++f) {
      const std::int32_t root = families_of_.root(static_cast<std::int32_t>(f));
      std::int32_t& number = number_[index(root)];
      if (number < 0) {
        number = static_cast<std::int32_t>(families_.size());
        families_.push_back({.name = workload_.families[f].name, .groups = {}});
      }
      number_[f] = number;
      auto& groups = families_[index(number)].groups;
      for (const auto& group : workload_.families[f].groups)
        if (std::ranges::find(groups, group) == groups.end()) groups.push_back(group);
    }
    std::set<std::int32_t> of_calls;
    for (const CollectiveCall& call : workload_.collectives)
      of_calls.insert(number_[index(call.family)]);
    for (std::size_t f = 0; f < families_.size(); ++f) {
      const bool may_be_ring = of_calls.count(static_cast<std::int32_t>(f)) == 0;
      std::set<std::pair<int, bool>> seen;
      for (const auto& group : families_[f].groups) {
        for (const int rank : group) {
          const bool is_first = may_be_ring && group.size() == 2 && rank == group.front();
          if (!seen.insert({rank, is_first}).second) return false;
        }
      }
    }
    for (const auto& members : alike_) {
      const Slots slots = slots_of(*workload_.classes[members.front()].trace);
      std::set<std::int32_t> families, streams;
      for (const std::int32_t family : slots.families) {
        // What a rank does as the first of a pair and as the second stays apart.
        const std::int32_t number = number_[index(family)];
        if (!families.insert(number).second && of_calls.count(number) != 0) return false;
      }
      for (const std::int32_t stream : slots.streams)
        if (!streams.insert(streams_of_.root(stream)).second) return false;
    }
    return true;
  }

  bool rewrite() {
    // Works with the new families, each once.
    OnceList<CollectiveCall> calls;
    OnceList<Message> messages;
    std::vector<CollectiveCall> new_calls;
    std::vector<Message> new_messages;
    std::vector<std::int32_t> call_of, message_of;
    for (CollectiveCall call : workload_.collectives) {
      call.family = number_[index(call.family)];
      call_of.push_back(calls.find(new_calls, call));
    }
    for (Message message : workload_.messages) {
      message.family = number_[index(message.family)];
      message_of.push_back(messages.find(new_messages, message));
    }
    // The class of the lowest rank comes first.
    std::vector<RankClass> classes;
    std::vector<const std::vector<std::size_t>*> order;
    for (const auto& members : alike_) order.push_back(&members);
    std::ranges::sort(order, [](const auto* a, const auto* b) { return a->front() < b->front(); });
    for (const auto* members : order) {
      RankClass one = workload_.classes[members->front()];
      auto trace = std::make_shared<Trace>(*one.trace);
      for (Node& node : trace->nodes) {
        node.stream = static_cast<std::uint16_t>(streams_of_.root(node.stream));
        if (node.kind == NodeKind::collective) node.work = call_of[index(node.work)];
        if (node.kind == NodeKind::send || node.kind == NodeKind::receive)
          node.work = message_of[index(node.work)];
      }
      one.trace = std::move(trace);
      one.ranks.clear();
      for (const std::size_t c : *members)
        one.ranks.insert(one.ranks.end(), workload_.classes[c].ranks.begin(),
                         workload_.classes[c].ranks.end());
      std::ranges::sort(one.ranks);
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
  std::vector<std::vector<std::size_t>> alike_;  ///< classes that become one
  Joined families_of_, streams_of_;              ///< those that are one
  std::vector<std::int32_t> number_;             ///< by family, of families_
  std::vector<GroupFamily> families_;
};

}  // namespace

Workload fold(Workload workload) {
  Folder(workload).run();
  return workload;
}

}  // namespace hemiola::workload
