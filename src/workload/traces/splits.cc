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
    const auto at = std::find(family.groups[g].begin(), family.groups[g].end(), rank);
    if (at != family.groups[g].end())
      return GroupOfRankIndex{g, static_cast<std::size_t>(at - family.groups[g].begin())};
  }
  return std::nullopt;
}

class SplitJoiner {
 public:
  using Received = std::map<std::pair<int, std::uint64_t>, ReceivedParts>;

  SplitJoiner(WorkloadBuilder& builder, const Received& received)
      : builder_(builder), workload_(builder.workload()), received_(received) {}

  void run() {
    for_all([&](const RankClass& one, int, const UnevenCall& call, std::size_t place) {
      collect(one, call, place);
    });
    for_all([&](const RankClass& one, int rank, const UnevenCall& call, std::size_t place) {
      compare(one, rank, call, place);
    });
    for (RankClass& one : workload_.classes) rewrite(one);
  }

 private:
  template <typename Visit>
  void for_all(const Visit& visit) {
    for (const RankClass& one : workload_.classes) {
      for (const int rank : one.ranks)
        each(one, rank, [&](std::size_t, const UnevenCall& call, std::size_t place) {
          visit(one, rank, call, place);
        });
    }
  }

  /// All-to-alls of a rank: `visit(node, call, place in its group)`.
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
      node_ = n;
      visit(n, UnevenCall{call.family, where->group, turns[call.family]++}, where->place);
    }
  }

  void collect(const RankClass& one, const UnevenCall& key, std::size_t place) {
    const CollectiveCall& call = workload_.collectives[index(one.trace->nodes[node_].work)];
    const std::size_t ranks =
        workload_.families[index(call.family)].groups[std::get<1>(key)].size();
    auto& [splits, is_uneven] = calls_[key];
    if (splits.empty()) splits.assign(ranks * ranks, 0);
    is_uneven = is_uneven || call.splits >= 0;
    for (std::size_t to = 0; to < ranks; ++to) {
      splits[place * ranks + to] = call.splits >= 0
                                       ? workload_.splits[index(call.splits)][place * ranks + to]
                                       : call.bytes / static_cast<std::int64_t>(ranks);
    }
  }

  /// NCCL copies what is sent into what is there, or waits for ever for what is not.
  void compare(const RankClass& one, int rank, const UnevenCall& key, std::size_t place) const {
    const Node& node = one.trace->nodes[node_];
    const auto said = received_.find({rank, node.id});
    if (said == received_.end()) return;
    const Splits& splits = calls_.at(key).splits;
    const std::vector<int>& group =
        workload_.families[index(std::get<0>(key))].groups[std::get<1>(key)];
    for (std::size_t from = 0; from < group.size(); ++from) {
      const std::int64_t sent = splits[from * group.size() + place];
      const std::int64_t received =
          said->second.parts.empty() ? said->second.of_each : said->second.parts[from];
      if (sent == received) continue;
      NodeOfFile{&one.trace->source, node.id, workload_.names[node.name]}.fail(
          fmt::format(": rank {} receives {} B from rank {}, which sends it {} B", rank, received,
                      group[from], sent),
          "split sizes of an all-to-all agree on all ranks", ExitCode::wrong_program);
    }
  }

  void rewrite(RankClass& one) {
    std::unique_ptr<Trace> changed;
    each(one, one.ranks.front(), [&](std::size_t n, const UnevenCall& key, std::size_t) {
      const auto& [splits, is_uneven] = calls_.at(key);
      if (!is_uneven) return;
      CollectiveCall call = workload_.collectives[index(one.trace->nodes[n].work)];
      const std::size_t ranks =
          workload_.families[index(call.family)].groups[std::get<1>(key)].size();
      call.bytes = 1;
      for (std::size_t from = 0; from < ranks; ++from) {
        const auto row = splits.begin() + static_cast<std::ptrdiff_t>(from * ranks);
        call.bytes = std::max(
            call.bytes,
            std::accumulate(row, row + static_cast<std::ptrdiff_t>(ranks), std::int64_t{0}));
      }
      call.splits = builder_.splits(splits);
      if (changed == nullptr) changed = std::make_unique<Trace>(*one.trace);
      changed->nodes[n].work = builder_.collective(call);
    });
    if (changed != nullptr) one.trace = std::move(changed);
  }

  struct Amounts {
    Splits splits;
    bool is_uneven = false;
  };
  WorkloadBuilder& builder_;
  Workload& workload_;
  const Received& received_;
  std::map<UnevenCall, Amounts> calls_;
  std::size_t node_ = 0;
};

}  // namespace

void TraceAssembly::join_splits() {
  if (!builder_.workload().splits.empty() || !received_.empty())
    SplitJoiner(builder_, received_).run();
}

}  // namespace hemiola::workload
