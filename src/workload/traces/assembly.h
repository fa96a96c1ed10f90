// From what a reader found in a file, whatever its format, to a trace that can be scheduled.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/diagnostics.h"
#include "workload/traces/groups.h"
#include "workload/workload.h"

namespace hemiola::workload {

/// What many nodes of all files have in common, said once: how often, and the first.
class Tally {
 public:
  void begin_file(const std::string& file) { file_ = file; }
  void add(std::string_view what, const std::string& first, std::int64_t count = 1);
  /// A notice for each, at the file of the first: "{what}: {count} times, the first is {first}".
  void report(std::vector<Diagnostic>& notices) const;

 private:
  struct Entry {
    std::int64_t count = 0;
    std::string first, file;
  };
  std::string file_;
  std::map<std::string, Entry, std::less<>> entries_;
};

/// A file's nodes in its order. Their dependencies are ids of nodes: those of a node are
/// `dependencies` entries of `waits_for` from `first_dependency` on.
struct FileTrace {
  std::string file;
  std::vector<Node> nodes;
  std::vector<std::uint64_t> waits_for;
  /// What was added to `waits_for` since the node before are the node's.
  void add(Node node);
  /// Who called a node, which says nothing about when it runs: has to be there, and no more.
  std::vector<std::pair<std::uint32_t, std::uint64_t>> callers;  ///< index of the node, id
};

/// What a rank says about one of its all-to-alls, beside what it sends.
struct AllToAllParts {
  bool sends_are_cut = false;  ///< nor that: the list of it is cut
  bool says_received = false;
  std::vector<std::int64_t> received{};  ///< bytes from each rank of the group; empty: `of_each`
  std::int64_t of_each = 0;
};

class TraceAssembly {
 public:
  TraceAssembly(WorkloadBuilder& builder, bool lenient);

  /// As those of the builder.
  std::uint32_t name(std::string_view text) { return builder_.name(text); }
  /// -1 for one that has nothing to do: it takes no time.
  std::int32_t compute(const Compute& compute) {
    return compute.is_nothing() ? -1 : builder_.compute(compute);
  }

  /// Makes the trace of it: dependencies by index, each once, sorted; nodes in the order of the
  /// file, except that a node stands behind those that it waits for.
  ///
  /// Failure: an id that is there twice; a dependency on a node that is not there (lenient: it is
  /// left out); with ExitCode::deadlock a node that waits for itself (lenient: it does not), nodes
  /// that wait for each other.
  Trace finish(FileTrace&& file, Tally& tally) const;

  /// Ranks of equal traces become one class. `name`: of the class; empty: "rank 3".
  void add_ranks(Trace&& trace, const std::vector<int>& ranks, const std::string& name);

  /// Of a workload that we wrote, whose files name streams by number; set by the first file.
  std::vector<std::uint16_t> written_streams;
  std::vector<std::string> written_classes;  ///< names, in their order
  /// Classes in that order.
  void sort_classes();

  /// Of all-to-alls that are uneven on a rank: what all ranks of a group send, from what each of
  /// them says. To be called when all ranks are there, and each has its own file. Failure (wrong
  /// program): one receives another amount than it is sent.
  void join_splits();
  void says(int rank, std::uint64_t node, AllToAllParts parts) {
    parts_[{rank, node}] = std::move(parts);
  }

  bool lenient() const { return lenient_; }
  WorkloadBuilder& builder() { return builder_; }

 private:
  void miss(const NodeOfFile& node, std::uint64_t id, Tally& tally) const;

  WorkloadBuilder& builder_;
  bool lenient_;
  std::map<std::pair<int, std::uint64_t>, AllToAllParts> parts_;  ///< by rank and node
  std::unordered_multimap<std::uint64_t, std::size_t> classes_;   ///< by a digest of the trace
};

}  // namespace hemiola::workload
