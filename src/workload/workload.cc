#include "workload/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/digest.h"
#include "core/names.h"
#include "workload/once.h"

namespace hemiola::workload {
namespace {

/// The index of a value in its list, where it is put if it is new.
template <class Known, class Value>
std::uint32_t find_once(OnceIndex& index, std::uint64_t hash, std::vector<Known>& values,
                        const Value& value) {
  return index.find(
      hash, [&](std::uint32_t at) { return values[at] == value; },
      [&] {
        values.emplace_back(value);
        return static_cast<std::uint32_t>(values.size() - 1);
      });
}

class Checker {
 public:
  explicit Checker(const Workload& workload) : workload_(workload) {}

  void run() {
    check_families();
    check_classes();
    for (const RankClass& one : workload_.classes) check_trace(one);
  }

 private:
  [[noreturn]] void fail(const std::string& message, const std::string& file = {}) const {
    throw Failure(message, {.file = file.empty() ? workload_.source : file});
  }

  void check_families() {
    for (const GroupFamily& family : workload_.families) check_family(family);
    for (const CollectiveCall& call : workload_.collectives) {
      const auto f = index(call.family);
      check_splits(call);
      if (f >= members_.size() || members_[f].twice < 0) continue;
      fail(fmt::format("rank {} is twice in the groups of '{}', which a {} is called in",
                       members_[f].twice, workload_.families[f].name, name_of(call.kind)));
    }
  }

  void check_splits(const CollectiveCall& call) const {
    if (call.splits == -1) return;
    const auto at = index(call.splits);
    const auto f = index(call.family);
    if (call.splits < 0 || at >= workload_.splits.size() || f >= workload_.families.size())
      fail("an all-to-all has no such amounts");
    for (const std::vector<int>& group : workload_.families[f].groups) {
      if (workload_.splits[at].size() != group.size() * group.size())
        fail(fmt::format("an all-to-all of {} ranks says {} amounts", group.size(),
                         workload_.splits[at].size()));
    }
  }

  void check_family(const GroupFamily& family) {
    const auto ranks = index(workload_.ranks);
    Members& members =
        members_.emplace_back(Members{std::vector<bool>(ranks), std::vector<bool>(ranks)});
    const bool pairs =
        std::ranges::all_of(family.groups, [](const auto& group) { return group.size() == 2; });
    for (const auto& group : family.groups) {
      if (group.empty()) fail(fmt::format("a group of '{}' has no rank", family.name));
      for (std::size_t place = 0; place < group.size(); ++place) {
        const int rank = group[place];
        if (rank < 0 || rank >= workload_.ranks)
          fail(fmt::format("group '{}' has rank {}, but there are ranks 0 to {}", family.name, rank,
                           workload_.ranks - 1));
        const auto r = index(rank);
        std::vector<bool>& here = place == 0 ? members.first : members.later;
        if (here[r] || (!pairs && (members.first[r] || members.later[r])))
          fail(fmt::format("rank {} is twice in the groups of '{}'", rank, family.name));
        here[r] = true;
        if (members.first[r] && members.later[r]) members.twice = rank;
      }
    }
  }

  void check_classes() const {
    std::vector<bool> seen(index(workload_.ranks));
    for (const RankClass& one : workload_.classes) {
      for (const int rank : one.ranks) {
        if (rank < 0 || rank >= workload_.ranks || seen[index(rank)])
          fail(fmt::format("rank {} of '{}' is not there, or does two things", rank, one.name));
        seen[index(rank)] = true;
      }
    }
    const auto missing = std::ranges::find(seen, false);
    if (missing != seen.end())
      fail(fmt::format("nothing says what rank {} does", missing - seen.begin()));
  }

  /// What `work` should be an index of, if it is none; null: it is fine.
  const char* lacking_work(const Node& node) const {
    const auto is_index = [&](const auto& values) {
      return node.work >= 0 && index(node.work) < values.size();
    };
    switch (node.kind) {
      case NodeKind::nothing:
      case NodeKind::host:
        return nullptr;
      case NodeKind::recorded_call:
        return is_index(workload_.names) ? nullptr : "call";
      case NodeKind::compute:
      case NodeKind::memory:
        // Without a shape it takes the time that was recorded.
        return node.work == -1 || is_index(workload_.computes) ? nullptr : "compute";
      case NodeKind::collective:
        return is_index(workload_.collectives) ? nullptr : "collective";
      case NodeKind::send:
      case NodeKind::receive:
        return is_index(workload_.messages) ? nullptr : "message";
    }
    return nullptr;
  }

  void check_trace(const RankClass& one) const {
    const Trace& trace = *one.trace;
    for (const Node& node : trace.nodes) {
      const auto where = [&] {
        return fmt::format("node {} '{}'", node.id, workload_.names[node.name]);
      };
      if (node.stream >= workload_.streams.size()) fail(where() + ": no such stream", trace.source);
      for (const std::uint32_t other : trace.dependencies_of(node)) {
        if (other >= trace.nodes.size()) fail(where() + ": no such dependency", trace.source);
        if (&trace.nodes[other] == &node)
          throw Failure(where() + " waits for itself", {.file = trace.source}, {},
                        ExitCode::deadlock);
      }
      if (const char* lacking = lacking_work(node))
        fail(where() + ": no such " + lacking, trace.source);
      if (!is_call(node.kind)) continue;
      const auto family = index(call_of(workload_, node.kind, node.work).family);
      const Members& members = members_[family];
      for (const int rank : one.ranks) {
        const auto r = index(rank);
        if (!members.first[r] && !members.later[r])
          fail(fmt::format("{}: rank {} is in no group of '{}'", where(), rank,
                           workload_.families[family].name),
               trace.source);
        if (node.kind == NodeKind::collective) continue;
        const bool is_first =
            (node.kind == NodeKind::send) == workload_.messages[index(node.work)].from_first;
        if (!(is_first ? members.first : members.later)[r])
          fail(fmt::format("{}: rank {} is not the one that {} a message of '{}'", where(), rank,
                           node.kind == NodeKind::send ? "sends" : "receives",
                           workload_.families[family].name),
               trace.source);
      }
    }
  }

  /// By rank: whether it is the first of a group of a family, and whether it is another one.
  struct Members {
    std::vector<bool> first, later;
    int twice = -1;  ///< a rank that is both, as in a ring; -1: there is none
  };

  const Workload& workload_;
  std::vector<Members> members_;  ///< by family
};

}  // namespace

std::uint32_t Trace::add(Node node, std::span<const std::uint32_t> after) {
  node.first_dependency = static_cast<std::uint32_t>(dependencies.size());
  node.dependencies = static_cast<std::uint32_t>(after.size());
  dependencies.insert(dependencies.end(), after.begin(), after.end());
  nodes.push_back(node);
  return static_cast<std::uint32_t>(nodes.size() - 1);
}

Amounts amounts_of(const Compute& c) {
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const auto whole = [](double value) {
    constexpr double kMost = 9e18;
    return static_cast<std::int64_t>(std::min(value, kMost));
  };
  double flop = 0, bytes = real(c.read) + real(c.written);
  if (c.kind == Compute::Kind::product) {
    const machine::GemmShape& p = c.product;
    const double m = real(p.m), n = real(p.n), k = real(p.k), batch = real(p.batch);
    flop = 2 * m * n * k * batch;
    if (bytes == 0)
      bytes = batch * (size_of(p.type) * (m * k + k * n) +
                       size_of(p.output.value_or(p.type)) * m * n * (p.accumulate ? 2 : 1));
  } else if (c.kind == Compute::Kind::attention) {
    const double heads = real(c.heads), kv_heads = real(c.kv_heads > 0 ? c.kv_heads : c.heads);
    const double queries = real(c.queries), keys = real(c.keys), head_dim = real(c.head_dim);
    flop = 4 * real(c.batch) * heads * queries * keys * head_dim * (c.causal ? 0.5 : 1) *
           (c.backward ? 2.5 : 1);
    if (bytes == 0)
      bytes = real(c.batch) * 2 * (heads * queries + kv_heads * keys) * head_dim * size_of(c.type) *
              (c.backward ? 2 : 1);
  }
  return {c.flop > 0 ? c.flop : whole(flop), whole(bytes)};
}

std::string_view name_of(NodeKind kind) {
  constexpr std::array<std::string_view, 8> kNames{
      "nothing", "host", "compute", "memory", "collective", "send", "receive", "recorded-call"};
  return name_in(kNames, kind);
}

Call call_of(const Workload& workload, NodeKind kind, std::int32_t work) {
  const auto at = index(work);
  if (kind == NodeKind::collective) {
    const CollectiveCall& call = workload.collectives[at];
    return {call.kind, call.family, call.bytes};
  }
  if (kind == NodeKind::recorded_call) return {Collective::custom, work, 0};
  return {Collective::send_recv, workload.messages[at].family, workload.messages[at].bytes};
}

bool has_product(const Workload& workload, NodeKind kind, std::int32_t work) {
  return kind == NodeKind::collective && workload.collectives[index(work)].product >= 0;
}

bool is_uneven(const Workload& workload, NodeKind kind, std::int32_t work) {
  return kind == NodeKind::collective && workload.collectives[index(work)].splits >= 0;
}

bool is_ring(const GroupFamily& family) {
  std::vector<int> firsts;
  for (const auto& group : family.groups) {
    if (group.size() != 2) return false;
    firsts.push_back(group.front());
  }
  std::ranges::sort(firsts);
  return std::ranges::any_of(family.groups, [&](const auto& group) {
    return std::binary_search(firsts.begin(), firsts.end(), group.back());
  });
}

std::vector<int> ranks_from(int first, int count) {
  std::vector<int> ranks(index(count));
  std::iota(ranks.begin(), ranks.end(), first);
  return ranks;
}

std::vector<std::vector<int>> pairs_of_blocks(int size, int first, int second) {
  std::vector<std::vector<int>> pairs;
  for (int place = 0; place < size; ++place)
    pairs.push_back({first * size + place, second * size + place});
  return pairs;
}

std::vector<std::vector<int>> strided_groups(int ranks, int size, int stride) {
  std::vector<std::vector<int>> groups;
  for (int first = 0; first < ranks; ++first) {
    if (first / stride % size != 0) continue;
    std::vector<int>& group = groups.emplace_back();
    for (int place = 0; place < size; ++place) group.push_back(first + place * stride);
  }
  return groups;
}

std::vector<std::int32_t> classes_of_ranks(const Workload& workload) {
  std::vector<std::int32_t> classes(index(workload.ranks), -1);
  for (std::size_t c = 0; c < workload.classes.size(); ++c)
    for (const int rank : workload.classes[c].ranks)
      classes[index(rank)] = static_cast<std::int32_t>(c);
  return classes;
}

std::int64_t Workload::nodes() const {
  std::int64_t all = 0;
  for (const RankClass& one : classes)
    all += static_cast<std::int64_t>(one.trace->nodes.size() * one.ranks.size());
  return all;
}

struct WorkloadBuilder::Known {
  Workload workload;
  OnceIndex names, computes;
  std::map<std::vector<std::vector<int>>, std::int32_t> families;
  OnceList<CollectiveCall> collectives;
  OnceList<Message> messages;
};

WorkloadBuilder::WorkloadBuilder(std::string name, int ranks) : known_(std::make_unique<Known>()) {
  known_->workload.name = std::move(name);
  known_->workload.ranks = ranks;
}
WorkloadBuilder::~WorkloadBuilder() = default;

std::uint32_t WorkloadBuilder::name(std::string_view text) {
  return find_once(known_->names, std::hash<std::string_view>()(text), known_->workload.names,
                   text);
}

std::uint16_t WorkloadBuilder::stream(std::string_view name, bool in_order) {
  std::vector<Stream>& streams = known_->workload.streams;
  for (std::size_t s = 0; s < streams.size(); ++s)
    if (streams[s].name == name) return static_cast<std::uint16_t>(s);
  if (streams.size() >= std::numeric_limits<std::uint16_t>::max())
    throw Failure("there are more than 65,535 streams");
  streams.push_back({std::string(name), in_order});
  return static_cast<std::uint16_t>(streams.size() - 1);
}

std::int32_t WorkloadBuilder::family(std::string_view name, std::vector<std::vector<int>> groups) {
  std::vector<GroupFamily>& families = known_->workload.families;
  const auto [at, is_new] =
      known_->families.emplace(groups, static_cast<std::int32_t>(families.size()));
  if (is_new) families.push_back({std::string(name), std::move(groups)});
  return at->second;
}

std::int32_t WorkloadBuilder::compute(const Compute& c) {
  const machine::GemmShape& p = c.product;
  Digest digest;
  for (const std::int64_t number : {p.m, p.n, p.k, c.queries, c.keys, c.flop, c.read, c.written})
    digest.add(number);
  return static_cast<std::int32_t>(
      find_once(known_->computes, digest.value(), known_->workload.computes, c));
}
std::int32_t WorkloadBuilder::collective(const CollectiveCall& call) {
  return known_->collectives.find(known_->workload.collectives, call);
}
std::int32_t WorkloadBuilder::message(const Message& message) {
  return known_->messages.find(known_->workload.messages, message);
}
std::int32_t WorkloadBuilder::splits(Splits splits) {
  std::vector<Splits>& known = known_->workload.splits;
  const auto at = std::ranges::find(known, splits);
  const auto place = static_cast<std::int32_t>(at - known.begin());
  if (at == known.end()) known.push_back(std::move(splits));
  return place;
}
Workload& WorkloadBuilder::workload() {
  return known_->workload;
}

Workload WorkloadBuilder::take() {
  check(known_->workload);
  return std::move(known_->workload);
}

void check(const Workload& workload) {
  Checker(workload).run();
}

}  // namespace hemiola::workload
