#include "workload/models/generate_groups.h"

#include <utility>

namespace hemiola::workload {
namespace {

using RankGroups = std::vector<std::vector<int>>;

/// Walks over coordinates; `data` is cp + CP x dp.
class RankGrid {
 public:
  explicit RankGrid(const Parallelism& by) : by_(by), data_(by.cp * by.dp) {}

  int rank(int tp, int data, int pp) const { return tp + by_.tp * (data + data_ * pp); }

  RankGroups tp() const {
    RankGroups groups;
    for (int pp = 0; pp < by_.pp; ++pp) {
      for (int data = 0; data < data_; ++data) {
        std::vector<int>& group = groups.emplace_back();
        for (int tp = 0; tp < by_.tp; ++tp) group.push_back(rank(tp, data, pp));
      }
    }
    return groups;
  }

  /// Runs of `size` data-parallel ranks, each `step` after the one before.
  RankGroups data(int size, int step) const {
    RankGroups groups;
    for (int pp = 0; pp < by_.pp; ++pp) {
      for (int block = 0; block < data_; block += size * step) {
        for (int first = block; first < block + step; ++first) {
          for (int tp = 0; tp < by_.tp; ++tp) {
            std::vector<int>& group = groups.emplace_back();
            for (int i = 0; i < size; ++i) group.push_back(rank(tp, first + i * step, pp));
          }
        }
      }
    }
    return groups;
  }

  /// Each cp rank with the next one, the last with the first.
  RankGroups context_ring() const {
    RankGroups pairs;
    if (by_.cp < 2) return pairs;
    for (const auto& group : data(by_.cp, 1))
      for (std::size_t i = 0; i < group.size(); ++i)
        pairs.push_back({group[i], group[(i + 1) % group.size()]});
    return pairs;
  }

  void add_pairs(RankGroups& groups, int first, int second) const {
    for (int data = 0; data < data_; ++data)
      for (int tp = 0; tp < by_.tp; ++tp)
        groups.push_back({rank(tp, data, first), rank(tp, data, second)});
  }
  /// Between stages s and s + 1 for s = first, first + 2, ...
  RankGroups neighbours(int first) const {
    RankGroups groups;
    for (int stage = first; stage + 1 < by_.pp; stage += 2) add_pairs(groups, stage, stage + 1);
    return groups;
  }

  /// All ranks with the same data, or all ranks.
  RankGroups model(bool everything) const {
    RankGroups groups(everything ? 1 : index(data_));
    for (int pp = 0; pp < by_.pp; ++pp) {
      for (int data = 0; data < data_; ++data)
        for (int tp = 0; tp < by_.tp; ++tp)
          groups[everything ? 0 : index(data)].push_back(rank(tp, data, pp));
    }
    return groups;
  }

 private:
  const Parallelism& by_;
  int data_;
};

class FamilyAdder {
 public:
  explicit FamilyAdder(WorkloadBuilder& builder) : builder_(builder) {}
  std::int32_t operator()(std::string_view name, RankGroups groups) {
    if (groups.empty() || groups.front().size() < 2) return -1;
    return builder_.family(name, std::move(groups));
  }

 private:
  WorkloadBuilder& builder_;
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
  FamilyAdder add(builder);
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
  if (request.chunks > 1) {
    RankGroups wrap;
    grid.add_pairs(wrap, by.pp - 1, 0);
    families.wrap_pairs = add("pp-wrap", std::move(wrap));
  }
  if (request.model.tied_embeddings && by.pp > 1) {
    RankGroups ends;
    grid.add_pairs(ends, 0, by.pp - 1);
    families.embedding = add("embedding", std::move(ends));
  }
  // With divided optimizers, or experts, every rank has gradients that no other one has.
  if (request.clip_gradients) families.model = add("model", grid.model(by.zero > 0 || by.ep > 1));
  return families;
}

std::vector<int> ranks_of_stage(const Parallelism& by, int stage) {
  const int size = by.tp * by.cp * by.dp;
  std::vector<int> ranks;
  for (int i = 0; i < size; ++i) ranks.push_back(stage * size + i);
  return ranks;
}

}  // namespace hemiola::workload
