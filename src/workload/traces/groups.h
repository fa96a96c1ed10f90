// Process groups of traces: who communicates with whom, by the names that nodes use.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/diagnostics.h"
#include "workload/workload.h"

namespace hemiola::workload {

struct ProcessGroup {
  std::string name;
  std::vector<int> ranks;  ///< in the order of the communicator; empty: all
  int size = 0;            ///< that is said beside `ranks`; 0: nothing
  std::string alias{};     ///< what older traces call it: "82149104"
  /// Several groups of one name, of which a rank is in one: then `ranks` is empty.
  std::vector<std::vector<int>> parts{};
  std::string inferred{};  ///< why a reader takes these ranks; empty: the trace or the user says so
};

/// Groups of a text `{"1": [0, 1], "2": [2, 3]}`, as ASTRA-sim takes it; numbered ones in the order
/// of their numbers, before others. Instead of ranks also "all", or groups of which a rank is in
/// one: `[[0, 1], [2, 3]]`. Nothing if the text is something else.
std::optional<std::vector<ProcessGroup>> parse_group_file(std::string_view text);
/// The same of a file; Failure if it is something else.
std::vector<ProcessGroup> read_group_file(const std::string& path);

/// Groups of PyTorch's `[{"pg_name": "0", "ranks": [0, 1], "group_size": 2, ...}]`, which may stand
/// inside another text such as a Python list. Nothing if there is none.
std::optional<std::vector<ProcessGroup>> parse_process_groups(std::string_view text);

/// Names of kernels can be very long: cut for messages.
std::string shorten(std::string_view name);

/// A node that communicates, for messages. Refers to what it is given.
struct NodeOfFile {
  const std::string* file = nullptr;
  std::uint64_t id = 0;
  std::string_view name;

  std::string text() const;  ///< "node 8 'all-gather'"
  /// Failure for more than a time can be.
  Time time(std::int64_t nanoseconds) const;
  [[noreturn]] void fail(const std::string& problem, const std::string& hint = {},
                         ExitCode code = ExitCode::bad_input) const;
};

/// A process group as the file's rank sees it.
struct GroupOfRank {
  std::int32_t family = -1;
  int size = 0;  ///< ranks of the group
};

/// Makes families of the groups that nodes use.
///
/// Every name is a family. Files may use one name for different groups, if these have no rank in
/// common: then they are groups of one family.
///
/// With `replicated` there is one trace, and all ranks do the same: a group of its rank becomes a
/// partition of the ranks into groups of the same size and stride, and a group of all ranks of the
/// trace becomes one of all ranks.
class ProcessGroups {
 public:
  ProcessGroups(WorkloadBuilder& builder, int ranks, bool replicated);

  /// Groups that hold for all files. Failure as define().
  void define_for_all(const std::vector<ProcessGroup>& groups, const std::string& file);
  /// A family of a workload that we wrote: names of groups that are defined, in order.
  void define_family(const std::string& family, const std::vector<std::string>& groups);

  /// From here on it is about another file: what `define()` said holds no more. `world` is the
  /// number of ranks that the traced job had; 0: not known. `is_rank_said`: by the file, not by
  /// its name.
  void begin_file(int rank, int world, bool is_rank_said = false);
  /// Failure: the name is known with other ranks, or another number of them; a rank is negative, or
  /// is there twice.
  void define(const ProcessGroup& group, const std::string& file);
  /// Failure: a node says of the group that it has other ranks, or another number of them. No ranks
  /// and a size of 0: it does not say.
  void check(std::string_view name, const std::vector<int>& ranks, std::int64_t size,
             const NodeOfFile& node) const;
  bool knows(std::string_view name) const { return find(name) != nullptr; }
  /// Whether define_for_all() said it.
  bool is_given(std::string_view name) const { return of_all_.find(name) != of_all_.end(); }
  /// Of a group of the file whose ranks it did not say, only how many: which they are.
  void refine(std::string_view name, const std::vector<int>& ranks);
  /// Ranks that a group is said to have, before any is made larger for `replicated`; 0: not said.
  int said_size(std::string_view name) const;
  /// Names of define_for_all() that nothing asked for.
  std::vector<std::string> unused() const;

  /// The group of a name; "" is all ranks, and so is "0" where no group has that name. Failure:
  /// there is no such group, the file's rank is not in it, it has a rank that does not exist.
  GroupOfRank group(std::string_view name, const NodeOfFile& node);
  /// A message of or to the file's rank. Its family is the group `name` if define_family() says so
  /// and this group is the two, and else is made for them: "0 to 1".
  Message message(int from, int to, std::string_view name, const NodeOfFile& node);
  /// The rank at a place in a group.
  std::optional<int> rank_at(std::string_view name, std::int64_t place,
                             const NodeOfFile& node) const;
  /// The place of the file's rank in a group; 0 if it is in none.
  std::size_t own_place(std::string_view name, const NodeOfFile& node) const;
  /// The rank that forms the group with the file's rank; nothing if the group is no pair.
  std::optional<int> other_of_pair(std::string_view name, const NodeOfFile& node) const;

  /// Where the collectives of a family run, one after the other: "group tp".
  std::uint16_t stream(std::int32_t family);

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  int world() const { return world_; }
  bool replicated() const { return replicated_; }

 private:
  const ProcessGroup* find(std::string_view name) const;
  bool is_same(const ProcessGroup& a, const ProcessGroup& b) const;
  std::string hint_of(const ProcessGroup& known, const ProcessGroup& other) const;
  void require_own_rank(const std::string& name, const std::vector<int>& ranks,
                        const NodeOfFile& node) const;
  std::vector<int> ranks_of(std::string_view name, const NodeOfFile& node) const;
  std::vector<std::vector<int>> partition(const std::string& name, const std::vector<int>& ranks,
                                          const NodeOfFile& node) const;
  std::int32_t add(const std::string& name, std::vector<std::vector<int>> groups);
  [[noreturn]] void fail(std::string_view group, const NodeOfFile& node, const std::string& problem,
                         const std::string& hint = {}) const;
  std::int32_t join(const std::string& name, const std::vector<int>& ranks, const NodeOfFile& node);

  WorkloadBuilder& builder_;
  int ranks_;
  bool replicated_;
  int rank_ = 0;
  bool is_rank_said_ = false;
  int world_ = 0;
  std::map<std::string, ProcessGroup, std::less<>> of_all_, of_file_;
  std::map<std::string, std::int32_t, std::less<>> written_;   ///< group to family
  std::map<std::string, std::int32_t, std::less<>> families_;  ///< by name
  std::map<std::string, GroupOfRank, std::less<>> used_;       ///< by name, in this file
  mutable std::set<std::string, std::less<>> asked_;           ///< names that nodes use
  std::map<std::pair<int, int>, std::int32_t> pairs_;
  std::vector<std::optional<std::uint16_t>> streams_;  ///< by family
};

}  // namespace hemiola::workload
