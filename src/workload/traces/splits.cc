// What all ranks of a group send in an uneven all-to-all, from what each of them says.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "core/index.h"
#include "workload/traces/assembly.h"
#include "workload/traces/groups.h"

namespace hemiola::workload {
namespace {

/// The n-th all-to-all of a group: family, group, n.
using UnevenCall = std::tuple<std::int32_t, std::size_t, std::int64_t>;

struct GroupOfRankIndex {
  std::size_t group = 0, place = 0;
};

std::optional<GroupOfRankIndex> find_rank(const GroupFamily& family, int rank) {
  for (std::size_t g = 0; g < family.groups.size(); ++g) {
    const auto at = std::ranges::find(family.groups[g], rank);
    if (at != family.groups[g].end())
      return GroupOfRankIndex{g, index(at - family.groups[g].begin())};
  }
  return std::nullopt;
}

/// Amounts of an all-to-all from each place of the group to each; none where all are even.
class SplitJoiner {
 public:
  using Said = std::map<std::pair<int, std::uint64_t>, AllToAllParts>;

  SplitJoiner(WorkloadBuilder& builder, const Said& said)
      : builder_(builder), workload_(builder.workload()), said_(said) {}

  void run() {
    for_all([&](const Caller& caller) { find_uneven(caller); });
    for_all([&](const Caller& caller) { collect(caller); });
    for_all([&](const Caller& caller) { compare(caller); });
    for (auto& [key, amounts] : calls_) complete(amounts);
    for (RankClass& one : workload_.classes) rewrite(one);
  }

 private:
  struct Caller {
    const RankClass* of = nullptr;
    std::size_t node = 0;
    int rank = 0;
    UnevenCall key;
    std::size_t place = 0;  ///< of the rank in its group
  };
  struct Amounts {
    bool is_uneven = false;
    std::int64_t bytes = 0;          ///< of whoever was looked at first
    std::vector<std::int64_t> even;  ///< by place: to each rank, if all of them get as much
    Splits splits;                   ///< -1: nobody has said it yet
  };

  /// All-to-alls of a rank, in its order.
  template <typename Visit>
  void each(const RankClass& one, int rank, const Visit& visit) {
    std::map<std::int32_t, std::int64_t> turns;
    for (std::size_t n = 0; n < one.trace->nodes.size(); ++n) {
      const Node& node = one.trace->nodes[n];
      if (node.kind != NodeKind::collective) continue;
      const CollectiveCall& call = workload_.collectives[index(node.work)];
      if (call.kind != Collective::all_to_all) continue;
      const auto where = find_rank(workload_.families[index(call.family)], rank);
      if (!where) continue;
      visit({&one, n, rank, UnevenCall{call.family, where->group, turns[call.family]++},
             where->place});
    }
  }
  template <typename Visit>
  void for_all(const Visit& visit) {
    for (const RankClass& one : workload_.classes)
      for (const int rank : one.ranks) each(one, rank, visit);
  }

  const Node& node_of(const Caller& caller) const { return caller.of->trace->nodes[caller.node]; }
  const CollectiveCall& call_of(const Caller& caller) const {
    return workload_.collectives[index(node_of(caller).work)];
  }
  const std::vector<int>& group_of(const UnevenCall& key) const {
    return workload_.families[index(std::get<0>(key))].groups[std::get<1>(key)];
  }
  const AllToAllParts* said_of(const Caller& caller) const {
    const auto said = said_.find({caller.rank, node_of(caller).id});
    return said == said_.end() ? nullptr : &said->second;
  }

  void find_uneven(const Caller& caller) {
    const CollectiveCall& call = call_of(caller);
    const auto [at, is_new] = calls_.try_emplace(caller.key);
    Amounts& amounts = at->second;
    if (is_new) amounts.bytes = call.bytes;
    // Of calls in other formats, which have one size, two sizes are an error.
    const AllToAllParts* said = said_of(caller);
    if (call.splits >= 0 ||
        (said != nullptr && (said->sends_are_cut || call.bytes != amounts.bytes)))
      amounts.is_uneven = true;
  }

  void collect(const Caller& caller) {
    Amounts& amounts = calls_.at(caller.key);
    if (!amounts.is_uneven) return;
    const CollectiveCall& call = call_of(caller);
    const std::size_t ranks = group_of(caller.key).size();
    if (amounts.splits.empty()) {
      amounts.splits.assign(ranks * ranks, -1);
      amounts.even.assign(ranks, 0);
    }
    amounts.even[caller.place] = call.bytes / static_cast<std::int64_t>(ranks);
    const AllToAllParts* said = said_of(caller);
    if (said != nullptr && said->sends_are_cut) return;
    for (std::size_t to = 0; to < ranks; ++to)
      amounts.splits[caller.place * ranks + to] =
          call.splits >= 0 ? workload_.splits[index(call.splits)][caller.place * ranks + to]
                           : amounts.even[caller.place];
  }

  /// NCCL copies what is sent into what is there, or waits for ever for what is not.
  void compare(const Caller& caller) {
    const AllToAllParts* said = said_of(caller);
    if (said == nullptr || !said->says_received) return;
    Amounts& amounts = calls_.at(caller.key);
    const std::vector<int>& group = group_of(caller.key);
    for (std::size_t from = 0; from < group.size(); ++from) {
      const std::int64_t received = said->received.empty() ? said->of_each : said->received[from];
      std::int64_t sent = amounts.bytes / static_cast<std::int64_t>(group.size());
      if (amounts.is_uneven) {
        std::int64_t& known = amounts.splits[from * group.size() + caller.place];
        if (known < 0) known = received;
        sent = known;
      }
      if (sent == received) continue;
      const Node& node = node_of(caller);
      NodeOfFile{&caller.of->trace->source, node.id, workload_.names[node.name]}.fail(
          fmt::format(": rank {} receives {} B from rank {}, which sends it {} B", caller.rank,
                      received, group[from], sent),
          "split sizes of an all-to-all agree on all ranks", ExitCode::wrong_program);
    }
  }

  static void complete(Amounts& amounts) {
    const std::size_t ranks = amounts.even.size();
    for (std::size_t i = 0; i < amounts.splits.size(); ++i)
      if (amounts.splits[i] < 0) amounts.splits[i] = amounts.even[i / ranks];
  }

  void rewrite(RankClass& one) {
    std::unique_ptr<Trace> changed;
    each(one, one.ranks.front(), [&](const Caller& caller) {
      const Amounts& amounts = calls_.at(caller.key);
      if (!amounts.is_uneven) return;
      if (changed == nullptr) changed = std::make_unique<Trace>(*one.trace);
      set(changed->nodes[caller.node], call_of(caller), amounts);
    });
    if (changed != nullptr) one.trace = std::move(changed);
  }

  void set(Node& node, CollectiveCall call, const Amounts& amounts) {
    const Splits& splits = amounts.splits;
    const std::size_t ranks = amounts.even.size();
    call.bytes = 0;
    for (std::size_t from = 0; from < ranks; ++from) {
      const auto row = splits.begin() + static_cast<std::ptrdiff_t>(from * ranks);
      call.bytes =
          std::max(call.bytes,
                   std::accumulate(row, row + static_cast<std::ptrdiff_t>(ranks), std::int64_t{0}));
    }
    if (call.bytes == 0) {  // nobody sends anything
      node.kind = NodeKind::nothing;
      node.work = -1;
      return;
    }
    const bool is_even = std::ranges::adjacent_find(splits, std::not_equal_to<>()) == splits.end();
    call.splits = is_even ? -1 : builder_.splits(splits);
    node.work = builder_.collective(call);
  }

  WorkloadBuilder& builder_;
  Workload& workload_;
  const Said& said_;
  std::map<UnevenCall, Amounts> calls_;
};

}  // namespace

void TraceAssembly::join_splits() {
  if (!builder_.workload().splits.empty() || !parts_.empty()) SplitJoiner(builder_, parts_).run();
}

}  // namespace hemiola::workload
