// Trace readers: from a file, or the files of all ranks, to a workload (workload.h).
//
//     hemiola::workload::Workload read_mine(const hemiola::workload::TraceRequest&,
//                                           const hemiola::workload::TraceFiles& files) {
//       using namespace hemiola::workload;
//       const std::string text = files.ranks.front().content();  // here it says nothing more
//       WorkloadBuilder builder("mine", 2);  // ranks
//       Trace trace;
//       Node node{.name = builder.name("reduce"), .kind = NodeKind::collective,
//                 .stream = builder.stream("comm")};
//       node.work = builder.collective({.family = builder.family("all", {{0, 1}}), .bytes = 1 <<
//       20}); trace.add(node, {}); builder.workload().classes = {
//           {"all", std::make_shared<const Trace>(std::move(trace)), {0, 1}}};
//       return builder.take();
//     }
//     registry.add(hemiola::workload::TraceReader{
//         .name = "mine", .description = "texts of one all-reduce",
//         .recognises = [](std::string_view start) { return start.starts_with("mine"); },
//         .read = read_mine});
//
// Units: bytes, flop, and times of hemiola::Time. Order: nodes in that in which the CPU launches
// them; what a node waits for stands before it. Checked: check() of the workload, and that there is
// a node. Errors: throw hemiola::Failure with file and line. What is left out, converted or guessed
// is said in Workload::notices.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hemiola/parts/workload.h"

namespace hemiola::parts {
class Registry;
}

namespace hemiola::workload {

struct TraceRequest {
  /// A file; a folder or an archive (.tgz, .tar.gz, .zip, .gz) of files, one for each rank; a
  /// prefix of `PREFIX.<rank>.et`; or a pattern, `t.%d.et`. Formats are recognised by content.
  std::string path;
  /// Leaves out, or takes as something similar, what would be refused; each kind is a notice.
  bool lenient = false;
  std::string sizes;   ///< a file with the sizes of calls that do not say theirs; may be empty
  std::string groups;  ///< a file of process groups; empty: the one beside the trace, if there is
  /// There is one trace, and so many ranks do the same.
  std::optional<int> replicate;
  std::string name;                        ///< of the workload; empty: that of the files
  const parts::Registry* parts = nullptr;  ///< its readers are asked; null: the built-ins
};

/// On disk, or a member of an archive.
struct TraceFile {
  std::string name;  ///< as the user would call it: "folder/a.0.et", "a.tgz:a.0.et"
  std::shared_ptr<const std::string> member{};  ///< expanded; null: `name` is on disk

  std::string content() const;                ///< the whole file, expanded
  std::string start(std::size_t most) const;  ///< its first bytes, expanded; empty if unreadable
};

struct TraceFiles {
  std::vector<TraceFile> ranks;  ///< in their order
  /// Of ranks by the files' names, the number in them; of a single file only what its name says.
  std::optional<int> rank_of_single;
  std::string ranks_from;  ///< of a folder or archive of several: how their ranks are known
  std::optional<TraceFile> groups;  ///< process groups beside them
  std::string name;                 ///< of all: without folder and ending
};

struct TraceReader {
  std::string name{};         ///< one word
  std::string description{};  ///< of the format: "Chakra execution traces"
  /// Whether a file is of this format, by its first 64 KiB (expanded if it was compressed). Has to
  /// be true for a damaged one too. Readers are asked in the order of registration.
  std::function<bool(std::string_view start)> recognises{};
  /// The files of the path that was asked for: one, or with `per_rank` one of each rank.
  std::function<Workload(const TraceRequest&, const TraceFiles&)> read{};
  /// A file is of one rank of several, so that folders and archives of them are read. Others say
  /// themselves what all ranks do.
  bool per_rank = false;
  std::string source{};     ///< where the format is defined
  bool is_checked = false;  ///< of built-ins, which end in WorkloadBuilder::take()
};

}  // namespace hemiola::workload
