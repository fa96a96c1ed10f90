#include "workload/traces/kineto/communicators.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/diagnostics.h"

namespace hemiola::workload {
namespace {

/// Ranks that one call tells, with the reason.
struct GroupSize {
  std::int64_t ranks = 0;
  std::string reason;
};

std::optional<GroupSize> size_by_shares(const UnnamedCall& call) {
  const bool gathers = call.kind == TorchCallKind::all_gather;
  if (!gathers && call.kind != TorchCallKind::reduce_scatter) return std::nullopt;
  if (!call.sent || !call.received) return std::nullopt;
  const std::int64_t share = gathers ? *call.sent : *call.received;
  const std::int64_t whole = gathers ? *call.received : *call.sent;
  // NCCL launches no kernel for a communicator of one rank.
  if (share <= 0 || whole <= share || whole % share != 0) return std::nullopt;
  return GroupSize{whole / share, fmt::format("{} makes {} elements of {}",
                                              gathers ? "an all-gather" : "a reduce-scatter",
                                              gathers ? whole : share, gathers ? share : whole)};
}

/// Whatever calls say about the number of ranks.
std::optional<GroupSize> size_by_calls(const Communicator& one, const std::string& file) {
  std::optional<GroupSize> found;
  const auto add = [&](const GroupSize& size) {
    if (!found) found = size;
    if (found->ranks != size.ranks)
      throw Failure(
          fmt::format("calls on stream {} contradict each other: {}, so {} ranks; {}, so {}",
                      one.stream, found->reason, found->ranks, size.reason, size.ranks),
          {.file = file},
          fmt::format("--groups FILE says which ranks they are among: {{\"{}\": [0, 1]}}",
                      group_of_stream(one.stream)));
  };
  for (const UnnamedCall& call : one.calls) {
    if (call.size > 0)
      add({call.size, fmt::format("a call says that its group has {} ranks", call.size)});
    if (call.shares > 1) add({call.shares, fmt::format("a call lists {} shares", call.shares)});
    if (const std::optional<GroupSize> size = size_by_shares(call)) add(*size);
  }
  return found;
}

std::vector<int> neighbours(int rank, std::int64_t count) {
  std::vector<int> ranks(index(count));
  std::iota(ranks.begin(), ranks.end(), rank / static_cast<int>(count) * static_cast<int>(count));
  return ranks;
}

/// Equal for calls that can be the same one, as two ranks of a group see it. Of an all-to-all ranks
/// may send different amounts.
bool agree(const UnnamedCall& a, const UnnamedCall& b) {
  if (a.kind != b.kind) return false;
  if (a.kind == TorchCallKind::all_to_all || a.kind == TorchCallKind::unknown) return true;
  return !a.sent || !b.sent || *a.sent == *b.sent;
}
bool agree(const Communicator& a, const Communicator& b) {
  return std::equal(a.calls.begin(), a.calls.end(), b.calls.begin(), b.calls.end(),
                    [](const UnnamedCall& x, const UnnamedCall& y) { return agree(x, y); });
}
/// Whether their n-th calls were under way at one moment, for all n. So they are where ranks share
/// a clock: nobody leaves before all have come.
bool overlap(const Communicator& a, const Communicator& b) {
  constexpr std::int64_t kRounding = 2000;
  for (std::size_t i = 0; i < a.calls.size(); ++i) {
    const UnnamedCall &x = a.calls[i], &y = b.calls[i];
    if (x.begin > y.end + kRounding || y.begin > x.end + kRounding) return false;
  }
  return true;
}

class GroupInference {
 public:
  explicit GroupInference(const std::vector<CommunicatorsOfRank>& ranks) : ranks_(ranks) {}

  std::vector<InferredGroups> infer() {
    found_.resize(ranks_.size());
    if (have_one_clock()) {
      std::int64_t start = ranks_.front().first;
      for (const CommunicatorsOfRank& rank : ranks_) start = std::min(start, rank.first);
      for (InferredGroups& one : found_) one.start = start;
    }
    find_by_peers();
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      for (const Communicator& one : ranks_[r].unnamed) infer_one(r, one);
    return std::move(found_);
  }

 private:
  /// Each rank has a communicator whose calls are those of the first rank, and at the same times.
  bool have_one_clock() const {
    const auto has_common = [&](const CommunicatorsOfRank& one, const CommunicatorsOfRank& two) {
      for (std::size_t k = 0; k < std::min(one.all.size(), two.all.size()); ++k)
        if (one.all[k].calls.size() > 1 && agree(one.all[k], two.all[k]) &&
            overlap(one.all[k], two.all[k]))
          return true;
      return false;
    };
    return ranks_.size() > 1 &&
           std::all_of(ranks_.begin() + 1, ranks_.end(), [&](const CommunicatorsOfRank& rank) {
             return has_common(ranks_.front(), rank);
           });
  }

  void infer_one(std::size_t r, const Communicator& one) {
    const CommunicatorsOfRank& rank = ranks_[r];
    if (one.is_given) return;
    const std::optional<GroupSize> size = size_by_calls(one, rank.file);
    const auto peers = peers_.find({r, one.stream});
    if (rank.groups.size() == 1 && !size) {
      add(r, one, rank.groups.front().ranks, "it is the only process group of the trace");
    } else if (size) {
      add_of_size(r, one, *size);
    } else if (peers != peers_.end()) {
      add(r, one, peers->second,
          fmt::format(
              "the {} calls of ranks {} agree in their order, and each was under way on all "
              "of them at one moment",
              one.calls.size(), fmt::join(peers->second, ", ")));
    } else if (rank.world > 0 && !rank.has_named && rank.unnamed.size() == 1) {
      add(r, one, {},
          fmt::format("it is the only communicator of the trace, of a job of {} ranks",
                      rank.world));
    } else if (rank.world > 0 && !rank.has_named && &one == &rank.unnamed.front()) {
      add(r, one, {},
          fmt::format("its stream is the lowest of {} communicators, and PyTorch makes that of the "
                      "default group first; the job has {} ranks",
                      rank.unnamed.size(), rank.world));
    } else if (!found_[r].problem) {
      found_[r].problem = fmt::format(
          "nothing says which ranks the {} call{} on stream {} {} among", one.calls.size(),
          one.calls.size() == 1 ? "" : "s", one.stream, one.calls.size() == 1 ? "is" : "are");
    }
  }

  void add_of_size(std::size_t r, const Communicator& one, const GroupSize& size) {
    const int world = ranks_[r].world > 0 ? ranks_[r].world : static_cast<int>(ranks_.size());
    constexpr std::int64_t kMost = 1 << 24;
    if (size.ranks > kMost || (ranks_[r].world > 0 && size.ranks > world))
      throw Failure(fmt::format("{} on stream {}, so there are {} ranks, but the job has {}",
                                size.reason, one.stream, size.ranks, world),
                    {.file = ranks_[r].file},
                    "--groups says which ranks they are among, by stream");
    const bool is_all = size.ranks == ranks_[r].world;
    add(r, one, is_all ? std::vector<int>() : neighbours(ranks_[r].rank, size.ranks),
        fmt::format("{}, so there are {} ranks{}", size.reason, size.ranks,
                    is_all ? "" : "; which they are nothing says, and neighbours are taken"));
  }

  void add(std::size_t r, const Communicator& one, std::vector<int> group, std::string reason) {
    // Ranks number their streams differently: the k-th communicators are the same one.
    const auto k = index(&one - ranks_[r].unnamed.data());
    const std::vector<Communicator>& first = ranks_.front().unnamed;
    ProcessGroup known{group_of_stream(k < first.size() ? first[k].stream : one.stream),
                       std::move(group)};
    if (known.ranks.empty()) known.size = ranks_[r].world;
    known.inferred = std::move(reason);
    found_[r].known.emplace(one.stream, std::move(known));
  }

  /// Ranks whose k-th communicators agree and overlap, if there are at least two of them.
  void find_by_peers() {
    if (ranks_.size() < 2) return;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      for (std::size_t k = 0; k < ranks_[r].unnamed.size(); ++k) {
        const Communicator& one = ranks_[r].unnamed[k];
        std::vector<int> group;
        for (std::size_t other = 0; other < ranks_.size(); ++other) {
          if (k >= ranks_[other].unnamed.size()) continue;
          const Communicator& two = ranks_[other].unnamed[k];
          if (other == r || (agree(one, two) && overlap(one, two)))
            group.push_back(ranks_[other].rank);
        }
        if (group.size() > 1) peers_.emplace(std::pair(r, one.stream), std::move(group));
      }
    }
  }

  const std::vector<CommunicatorsOfRank>& ranks_;
  std::vector<InferredGroups> found_;
  std::map<std::pair<std::size_t, std::int64_t>, std::vector<int>> peers_;
};

}  // namespace

std::string group_of_stream(std::int64_t stream) {
  return fmt::format("stream {}", stream);
}

std::vector<InferredGroups> infer_groups(const std::vector<CommunicatorsOfRank>& ranks) {
  return GroupInference(ranks).infer();
}

}  // namespace hemiola::workload
