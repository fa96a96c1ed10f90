#include "workload/traces/groups.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <tuple>

namespace hemiola::workload {
namespace {

std::string list_ranks(const std::vector<int>& ranks) {
  constexpr std::size_t kShown = 8;
  if (ranks.size() <= kShown) return fmt::format("{}", fmt::join(ranks, ", "));
  return fmt::format("{}, ... {}", fmt::join(ranks.begin(), ranks.begin() + kShown - 1, ", "),
                     ranks.back());
}

bool is_other_order(std::vector<int> a, std::vector<int> b) {
  std::ranges::sort(a);
  std::ranges::sort(b);
  return !a.empty() && a == b;
}

constexpr std::string_view kOrderHint =
    "the order of the ranks is that of the communicator, and has to be one";
constexpr std::string_view kGivenHint =
    "--groups contradicts the trace: leave the group out of its file";

/// "ranks 0, 1 | 2, 3", "8 ranks", "all ranks"
std::string group_text(const ProcessGroup& group) {
  if (!group.ranks.empty()) return fmt::format("ranks {}", list_ranks(group.ranks));
  if (group.parts.empty())
    return group.size > 0 ? fmt::format("{} ranks", group.size) : std::string("all ranks");
  std::vector<std::string> parts;
  for (const std::vector<int>& part : group.parts) parts.push_back(list_ranks(part));
  return fmt::format("ranks {}", fmt::join(parts, " | "));
}

/// "there are traces of ranks 0 to 7"
std::string describe_ranks(int ranks) {
  return ranks == 1 ? "there is a trace of rank 0"
                    : fmt::format("there are traces of ranks 0 to {}", ranks - 1);
}

}  // namespace

std::string NodeOfFile::text() const {
  return fmt::format("node {} '{}'", id, shorten(name));
}

std::string shorten(std::string_view name) {
  constexpr std::size_t kLongest = 80;
  if (name.size() <= kLongest) return std::string(name);
  return std::string(name.substr(0, kLongest - 3)) + "...";
}

void NodeOfFile::fail(const std::string& problem, const std::string& hint, ExitCode code) const {
  throw Failure(text() + problem, {.file = *file}, hint, code);
}

Time NodeOfFile::time(std::int64_t nanoseconds) const {
  if (nanoseconds > std::numeric_limits<std::int64_t>::max() / 1'000'000)
    fail(" has a time beyond the 9,223 s that a time can be");
  return Time::from_ns(nanoseconds);
}

ProcessGroups::ProcessGroups(WorkloadBuilder& builder, int ranks, bool replicated)
    : builder_(builder), ranks_(ranks), replicated_(replicated) {}

void ProcessGroups::begin_file(int rank, int world, bool is_rank_said) {
  rank_ = rank;
  is_rank_said_ = is_rank_said;
  world_ = world;
  of_file_.clear();
  used_.clear();
}

const ProcessGroup* ProcessGroups::find(std::string_view name) const {
  for (const auto* groups : {&of_file_, &of_all_}) {
    const auto at = groups->find(name);
    if (at != groups->end()) return &at->second;
  }
  return nullptr;
}

/// Whether both can be true: one may list ranks where the other says "all", or how many.
bool ProcessGroups::is_same(const ProcessGroup& a, const ProcessGroup& b) const {
  if (!a.ranks.empty() && !b.ranks.empty()) return a.ranks == b.ranks;
  if (!a.parts.empty() && !b.parts.empty()) return a.parts == b.parts;
  if (a.parts.empty() != b.parts.empty()) {
    const auto& [parts, ranks] =
        a.parts.empty() ? std::tie(b.parts, a.ranks) : std::tie(a.parts, b.ranks);
    if (!ranks.empty()) return std::ranges::find(parts, ranks) != parts.end();
  }
  const auto size_of = [&](const ProcessGroup& group) {
    if (!group.parts.empty()) return static_cast<int>(group.parts.front().size());
    if (!group.ranks.empty()) return static_cast<int>(group.ranks.size());
    if (group.size > 0) return group.size;
    return world_ > 0 || replicated_ ? world_ : ranks_;
  };
  const int one = size_of(a), other = size_of(b);
  return one == 0 || other == 0 || one == other;
}

/// What to do about two lists that contradict each other.
std::string ProcessGroups::hint_of(const ProcessGroup& known, const ProcessGroup& other) const {
  if (is_other_order(known.ranks, other.ranks)) return std::string(kOrderHint);
  return is_given(known.name) ? std::string(kGivenHint) : "";
}

void ProcessGroups::define(const ProcessGroup& group, const std::string& file) {
  std::set<int> distinct(group.ranks.begin(), group.ranks.end());
  std::size_t count = group.ranks.size();
  for (const std::vector<int>& part : group.parts) {
    distinct.insert(part.begin(), part.end());
    count += part.size();
  }
  if (group.size > 0 && !group.ranks.empty() && index(group.size) != group.ranks.size())
    throw Failure(fmt::format("process group '{}' is said to have {}, and to have {} of them",
                              group.name, group_text(group), group.size),
                  {.file = file});
  if (distinct.size() != count || (!distinct.empty() && *distinct.begin() < 0))
    throw Failure(fmt::format("process group '{}' has a rank twice or a negative one: {}",
                              group.name, group_text(group)),
                  {.file = file});
  const ProcessGroup* known = find(group.name);
  if (known == nullptr) {
    of_file_.emplace(group.name, group);
  } else if (!is_same(*known, group)) {
    throw Failure(fmt::format("process group '{}' is said to have two lists of ranks: {} and {}",
                              group.name, group_text(*known), group_text(group)),
                  {.file = file}, hint_of(*known, group));
  }
}

void ProcessGroups::check(std::string_view name, const std::vector<int>& ranks, std::int64_t size,
                          const NodeOfFile& node) const {
  const ProcessGroup* known = find(name);
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  const ProcessGroup said{std::string(name), ranks, static_cast<int>(std::min(size, kMost))};
  if (!ranks.empty() && size > 0 && size != static_cast<std::int64_t>(ranks.size()))
    node.fail(fmt::format(" says that process group '{}' has ranks {}, and that they are {}", name,
                          list_ranks(ranks), size));
  if (known == nullptr || (ranks.empty() && size <= 0) || is_same(*known, said)) return;
  node.fail(fmt::format(" says that process group '{}' has {}, elsewhere it has {}", name,
                        group_text(said), group_text(*known)),
            hint_of(*known, said));
}

void ProcessGroups::refine(std::string_view name, const std::vector<int>& ranks) {
  const auto known = of_file_.find(name);
  if (known != of_file_.end() && known->second.ranks.empty() && known->second.parts.empty())
    known->second.ranks = ranks;
}

int ProcessGroups::said_size(std::string_view name) const {
  const ProcessGroup* group = find(name);
  if (group == nullptr) return world_;
  if (!group->parts.empty()) return static_cast<int>(group->parts.front().size());
  if (!group->ranks.empty()) return static_cast<int>(group->ranks.size());
  return group->size > 0 ? group->size : world_;
}

std::vector<std::string> ProcessGroups::unused() const {
  std::vector<std::string> names;
  for (const auto& [name, group] : of_all_)
    if (!asked_.contains(name)) names.push_back(name);
  return names;
}

void ProcessGroups::define_for_all(const std::vector<ProcessGroup>& groups,
                                   const std::string& file) {
  for (const ProcessGroup& group : groups) define(group, file);
  of_all_.merge(of_file_);
  of_file_.clear();
}

std::int32_t ProcessGroups::add(const std::string& name, std::vector<std::vector<int>> groups) {
  std::vector<GroupFamily>& families = builder_.workload().families;
  families.push_back({name, std::move(groups)});
  const auto index = static_cast<std::int32_t>(families.size() - 1);
  families_[name] = index;
  streams_.resize(families.size());
  return index;
}

void ProcessGroups::define_family(const std::string& family,
                                  const std::vector<std::string>& groups) {
  std::vector<std::vector<int>> lists;
  for (const std::string& group : groups) {
    const ProcessGroup* known = find(group);
    if (known == nullptr) return;  // groups of another file; nodes will say so if it matters
    lists.push_back(known->ranks);
  }
  const std::int32_t index = add(family, std::move(lists));
  for (const std::string& group : groups) written_[group] = index;
}

void ProcessGroups::fail(std::string_view group, const NodeOfFile& node, const std::string& problem,
                         const std::string& hint) const {
  const ProcessGroup* known = find(group);
  if (known == nullptr || known->inferred.empty()) node.fail(problem, hint);
  node.fail(fmt::format("{}; its ranks are inferred: {}", problem, known->inferred),
            fmt::format("{}{}--groups FILE says which ranks they are: {{\"{}\": [0, 1]}}", hint,
                        hint.empty() ? "" : "; or ", group));
}

std::vector<int> ProcessGroups::ranks_of(std::string_view name, const NodeOfFile& node) const {
  const ProcessGroup* group = find(name);
  if (group != nullptr && !asked_.contains(name)) asked_.emplace(name);
  if (group == nullptr && !name.empty() && name != "0")
    node.fail(fmt::format(" uses process group '{}', which nothing defines", name),
              fmt::format("--groups FILE says which ranks it has: {{\"{}\": [0, 1]}}", name));
  if (group != nullptr && !group->ranks.empty()) return group->ranks;
  if (group != nullptr && !group->parts.empty()) {
    for (const std::vector<int>& part : group->parts)
      if (std::ranges::find(part, rank_) != part.end()) return part;
    node.fail(fmt::format(" is of rank {}, which is in no group of '{}'", rank_, name));
  }
  const int size = group == nullptr || group->size == 0 ? world_ : group->size;
  if (world_ > 0 && size != world_)
    fail(name, node,
         fmt::format(" is in process group '{}' of {} ranks, and nothing says which they are", name,
                     size),
         fmt::format("--groups FILE says it: {{\"{}\": [0, 1]}}", name));
  if (size > 0 && size != ranks_ && !replicated_)
    fail(name, node,
         fmt::format(" communicates in a group of all {} ranks, but {}", size,
                     describe_ranks(ranks_)),
         fmt::format("--replicate {} makes the others from it", size));
  return ranks_from(0, ranks_);
}

std::vector<std::vector<int>> ProcessGroups::partition(const std::string& name,
                                                       const std::vector<int>& ranks,
                                                       const NodeOfFile& node) const {
  const auto refuse = [&](const std::string& why) {
    fail(name, node,
         fmt::format(" is in process group '{}' of ranks {}, {}", name, list_ranks(ranks), why),
         "give the traces of all ranks");
  };
  const auto size = static_cast<int>(ranks.size());
  if (const ProcessGroup* group = find(name); group != nullptr && !group->parts.empty()) {
    std::vector<int> all;
    for (const std::vector<int>& part : group->parts) {
      if (part.size() != ranks.size()) refuse("and others of its lists have more or fewer");
      all.insert(all.end(), part.begin(), part.end());
    }
    std::ranges::sort(all);
    if (all.front() == 0 && all.back() == ranks_ - 1 && static_cast<int>(all.size()) == ranks_)
      return group->parts;
    refuse(fmt::format("and its lists are not of the ranks 0 to {}", ranks_ - 1));
  }
  if (size == ranks_ || size == world_) return {ranks_from(0, ranks_)};
  std::vector<int> sorted = ranks;
  std::ranges::sort(sorted);
  if (size == 1) sorted.push_back(sorted.front() + 1);
  const int stride = sorted[1] - sorted[0];
  for (int i = 1; i < size; ++i)
    if (sorted[index(i)] != sorted[0] + i * stride)
      refuse("which are not evenly spaced: other ranks cannot have the like");
  const std::int64_t block = std::int64_t{size} * stride;
  if (ranks_ % block != 0 || sorted[0] % block >= stride)
    refuse(fmt::format("into the like of which {} ranks cannot be divided", ranks_));
  // Each in the order of this one.
  std::vector<std::vector<int>> groups = strided_groups(ranks_, size, stride);
  for (std::vector<int>& group : groups) {
    const int first = group.front();
    std::ranges::transform(ranks, group.begin(),
                           [&](int rank) { return first + rank - sorted[0]; });
  }
  return groups;
}

std::int32_t ProcessGroups::join(const std::string& name, const std::vector<int>& ranks,
                                 const NodeOfFile& node) {
  const auto known = families_.find(name);
  if (known == families_.end()) return add(name, {ranks});
  std::vector<std::vector<int>>& groups = builder_.workload().families[index(known->second)].groups;
  for (const std::vector<int>& other : groups) {
    if (other == ranks) return known->second;
    for (const int rank : ranks) {
      if (std::ranges::find(other, rank) != other.end())
        fail(name, node,
             fmt::format(" is in process group '{}' of ranks {}, which another file says has "
                         "ranks {}",
                         name, list_ranks(ranks), list_ranks(other)));
    }
  }
  groups.push_back(ranks);
  return known->second;
}

void ProcessGroups::require_own_rank(const std::string& name, const std::vector<int>& ranks,
                                     const NodeOfFile& node) const {
  if (std::ranges::find(ranks, rank_) == ranks.end())
    fail(name, node,
         fmt::format(" is of rank {}, which is not in its process group '{}' of ranks {}", rank_,
                     name, list_ranks(ranks)));
}

GroupOfRank ProcessGroups::group(std::string_view name, const NodeOfFile& node) {
  const auto used = used_.find(name);
  if (used != used_.end()) return used->second;
  const bool is_world = find(name) == nullptr && (name.empty() || name == "0");
  const std::string known_as(is_world ? "world" : name);
  const std::vector<int> ranks = ranks_of(name, node);
  std::int32_t family = -1;
  if (const auto written = written_.find(name); written != written_.end()) {
    family = written->second;
  } else if (replicated_) {
    const auto known = families_.find(known_as);
    family =
        known != families_.end() ? known->second : add(known_as, partition(known_as, ranks, node));
    if (is_rank_said_ && known_as == name && !find(name)->ranks.empty())
      require_own_rank(known_as, ranks, node);
  } else {
    for (const int rank : ranks) {
      if (rank >= ranks_)
        fail(name, node,
             fmt::format(" is in process group '{}' with rank {}, but {} only", known_as, rank,
                         describe_ranks(ranks_)),
             fmt::format("give the traces of all ranks, or --replicate {} makes the others from it",
                         std::max(world_, *std::ranges::max_element(ranks) + 1)));
    }
    family = join(known_as, ranks, node);
  }
  if (!replicated_) require_own_rank(known_as, ranks, node);
  if (const ProcessGroup* known = find(name); known != nullptr)
    builder_.workload().families[index(family)].inferred = known->inferred;
  GroupOfRank group{family, static_cast<int>(ranks.size())};
  if (replicated_)  // which may have made a larger one of it
    group.size =
        static_cast<int>(builder_.workload().families[index(family)].groups.front().size());
  used_.emplace(name, group);
  return group;
}

Message ProcessGroups::message(int from, int to, std::string_view name, const NodeOfFile& node) {
  for (const int rank : {from, to}) {
    if (rank < 0 || rank >= ranks_)
      node.fail(fmt::format(" is a message from rank {} to {}, but {} only", from, to,
                            describe_ranks(ranks_)),
                "give the traces of all ranks");
  }
  if (from == to) node.fail(fmt::format(" is a message from rank {} to itself", from));
  if (replicated_)
    node.fail(fmt::format(" is a message from rank {} to {}: which ranks the others have in their "
                          "place, nothing says",
                          from, to),
              "give the traces of all ranks");
  Message message;
  const auto written = written_.find(name);
  const ProcessGroup* group = find(name);
  if (written != written_.end() && group != nullptr &&
      (group->ranks == std::vector{from, to} || group->ranks == std::vector{to, from})) {
    asked_.emplace(name);
    message.family = written->second;
    message.from_first = group->ranks.front() == from;
    return message;
  }
  const auto [at, is_new] = pairs_.try_emplace({from, to}, -1);
  if (is_new) at->second = add(fmt::format("{} to {}", from, to), {{from, to}});
  message.family = at->second;
  return message;
}

std::optional<int> ProcessGroups::rank_at(std::string_view name, std::int64_t place,
                                          const NodeOfFile& node) const {
  const std::vector<int> ranks = ranks_of(name, node);
  if (place < 0 || place >= static_cast<std::int64_t>(ranks.size())) return std::nullopt;
  return ranks[index(place)];
}

std::size_t ProcessGroups::own_place(std::string_view name, const NodeOfFile& node) const {
  const std::vector<int> ranks = ranks_of(name, node);
  const auto at = std::ranges::find(ranks, rank_);
  return at == ranks.end() ? 0 : index(at - ranks.begin());
}

std::optional<int> ProcessGroups::other_of_pair(std::string_view name,
                                                const NodeOfFile& node) const {
  const std::vector<int> ranks = ranks_of(name, node);
  if (ranks.size() != 2) return std::nullopt;
  if (ranks[0] == rank_) return ranks[1];
  if (ranks[1] == rank_) return ranks[0];
  return std::nullopt;
}

std::uint16_t ProcessGroups::stream(std::int32_t family) {
  std::optional<std::uint16_t>& known = streams_[index(family)];
  if (!known) known = builder_.stream("group " + builder_.workload().families[index(family)].name);
  return *known;
}

}  // namespace hemiola::workload
