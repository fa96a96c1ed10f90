#include "workload/models/generate_groups.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace hemiola::workload {
namespace {

using RankGroups = std::vector<std::vector<int>>;

/// Groups of ranks, which are tp + TP x (data + DATA x pp); `data` is cp + CP x dp.
class RankGrid {
 public:
  explicit RankGrid(const Parallelism& by)
      : by_(by), ranks_(static_cast<int>(by.ranks())), stage_(by.tp * by.cp * by.dp) {}

  RankGroups tp() const { return strided_groups(ranks_, by_.tp, 1); }
  /// Runs of `size` data-parallel ranks, each `step` after the one before.
  RankGroups data(int size, int step) const { return strided_groups(ranks_, size, by_.tp * step); }

  /// Each cp rank with the next one, the last with the first.
  RankGroups context_ring() const {
    RankGroups pairs;
    if (by_.cp < 2) return pairs;
    for (const auto& group : data(by_.cp, 1))
      for (std::size_t i = 0; i < group.size(); ++i)
        pairs.push_back({group[i], group[(i + 1) % group.size()]});
    return pairs;
  }

  RankGroups pairs(int first, int second) const { return pairs_of_blocks(stage_, first, second); }
  /// Between stages s and s + 1 for s = first, first + 2, ...
  RankGroups neighbours(int first) const {
    RankGroups groups;
    for (int stage = first; stage + 1 < by_.pp; stage += 2)
      std::ranges::move(pairs(stage, stage + 1), std::back_inserter(groups));
    return groups;
  }

  /// All ranks with the same data, or all ranks.
  RankGroups model(bool everything) const {
    if (everything) return {ranks_from(0, ranks_)};
    RankGroups groups(index(stage_ / by_.tp));
    for (int rank = 0; rank < ranks_; ++rank)
      groups[index(rank / by_.tp) % groups.size()].push_back(rank);
    return groups;
  }

 private:
  const Parallelism& by_;
  int ranks_, stage_;
};

}  // namespace

Streams add_streams(WorkloadBuilder& builder, const MakeRequest& request) {
  Streams streams;
  streams.compute = builder.stream("compute");
  streams.tp = builder.stream("tp");
  streams.dp = builder.stream("dp");
  streams.pp_send = builder.stream("pp-send");
  streams.pp_receive = builder.stream("pp-receive");
  streams.ep = builder.stream("ep");
  streams.cp = builder.stream("cp");
  streams.dp_gather = builder.stream("dp-gather");
  if (request.context_parallel == ContextParallel::ring) {
    streams.cp_send = builder.stream("cp-send");
    streams.cp_receive = builder.stream("cp-receive");
  }
  return streams;
}

Families add_families(WorkloadBuilder& builder, const MakeRequest& request) {
  const Parallelism& by = request.parallelism;
  const RankGrid grid(by);
  const int data = by.cp * by.dp;
  const bool trains = request.phase == Phase::train;
  const auto add = [&](std::string_view name, RankGroups groups) {
    const bool is_none = groups.empty() || groups.front().size() < 2;
    return is_none ? -1 : builder.family(name, std::move(groups));
  };
  Families families;
  families.tp = add("tp", grid.tp());
  if (request.context_parallel == ContextParallel::ring)
    families.ring = add("cp-ring", grid.context_ring());
  else
    families.cp = add("cp", grid.data(by.cp, 1));
  const int shard = by.shard > 0 ? by.shard : data;
  if (trains) families.dp = add(shard < data ? "shard" : "dp", grid.data(shard, 1));
  if (trains) families.replicas = add("replicas", grid.data(data / shard, shard));
  families.ep = add("ep", grid.data(by.ep, 1));
  if (trains && request.model.is_mixture())
    families.expert_dp = add("expert-dp", grid.data(shard / by.ep, by.ep));
  families.even_pairs = add("pp-even", grid.neighbours(0));
  families.odd_pairs = add("pp-odd", grid.neighbours(1));
  if (!trains) return families;
  if (request.chunks > 1) families.wrap_pairs = add("pp-wrap", grid.pairs(by.pp - 1, 0));
  if (request.model.tied_embeddings && by.pp > 1)
    families.embedding = add("embedding", grid.pairs(0, by.pp - 1));
  // With divided optimizers, or experts, every rank has gradients that no other one has.
  if (request.clip_gradients) families.model = add("model", grid.model(by.zero > 0 || by.ep > 1));
  return families;
}

std::vector<int> ranks_of_stage(const Parallelism& by, int stage) {
  const int size = by.tp * by.cp * by.dp;
  return ranks_from(stage * size, size);
}

}  // namespace hemiola::workload
