#include "workload/traces/assembly.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "core/digest.h"
#include "workload/traces/order.h"

namespace hemiola::workload {
namespace {

/// From ids to indices: a table where ids lie close together, else a sorted list.
class IdIndex {
 public:
  explicit IdIndex(const std::vector<Node>& nodes) {
    std::uint64_t most = 0;
    least_ = nodes.empty() ? 0 : nodes.front().id;
    for (const Node& node : nodes) {
      least_ = std::min(least_, node.id);
      most = std::max(most, node.id);
    }
    constexpr std::uint64_t kSparse = 8;  // entries for a node
    if (nodes.empty() || (most - least_) / kSparse < nodes.size()) {
      table_.assign(nodes.empty() ? 0 : most - least_ + 1, kNone);
      for (std::uint32_t i = 0; i < nodes.size(); ++i) {
        std::uint32_t& entry = table_[nodes[i].id - least_];
        if (entry != kNone && twice_ == kNone) twice_ = i;
        entry = i;
      }
      return;
    }
    for (std::uint32_t i = 0; i < nodes.size(); ++i) list_.emplace_back(nodes[i].id, i);
    std::ranges::sort(list_);
    for (std::size_t i = 1; i < list_.size(); ++i)
      if (list_[i].first == list_[i - 1].first) twice_ = std::min(twice_, list_[i].second);
  }

  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  /// The first node whose id another one before it has.
  std::uint32_t twice() const { return twice_; }

  std::uint32_t find(std::uint64_t id) const {
    if (list_.empty())
      return id < least_ || id - least_ >= table_.size() ? kNone : table_[id - least_];
    const auto at = std::lower_bound(list_.begin(), list_.end(), std::pair(id, std::uint32_t{0}));
    return at == list_.end() || at->first != id ? kNone : at->second;
  }

 private:
  std::uint64_t least_ = 0;
  std::uint32_t twice_ = kNone;
  std::vector<std::uint32_t> table_;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> list_;
};

std::uint64_t digest_of(const Trace& trace) {
  Digest digest;
  for (const Node& node : trace.nodes)
    digest.add(static_cast<std::int64_t>(node.id)).add(node.name).add(node.work);
  return digest.add(static_cast<std::int64_t>(trace.dependencies.size())).value();
}

}  // namespace

void Tally::add(std::string_view what, const std::string& first, std::int64_t count) {
  const auto at = entries_.find(what);
  if (at != entries_.end())
    at->second.count += count;
  else
    entries_.emplace(what, Entry{count, first, file_});
}

void Tally::report(std::vector<Diagnostic>& notices) const {
  for (const auto& [what, entry] : entries_) {
    notices.push_back({Severity::warning,
                       fmt::format("{}: {} time{}, the first is {}", what, entry.count,
                                   entry.count == 1 ? "" : "s", entry.first),
                       {.file = entry.file},
                       {}});
  }
}

TraceAssembly::TraceAssembly(WorkloadBuilder& builder, bool lenient)
    : builder_(builder), lenient_(lenient) {}

void FileTrace::add(Node node) {
  if (!nodes.empty())
    node.first_dependency = nodes.back().first_dependency + nodes.back().dependencies;
  node.dependencies = static_cast<std::uint32_t>(waits_for.size()) - node.first_dependency;
  nodes.push_back(node);
}

void TraceAssembly::miss(const NodeOfFile& node, std::uint64_t id, Tally& tally) const {
  const std::string problem = fmt::format(" depends on node {}, which is not there", id);
  if (!lenient_) node.fail(problem, "--lenient leaves such dependencies out");
  tally.add("ignored: a dependency on a node that is not there", node.text() + problem);
}

Trace TraceAssembly::finish(FileTrace&& file, Tally& tally) const {
  const std::vector<std::string>& names = builder_.workload().names;
  const auto describe = [&](const Node& node) {
    return NodeOfFile{&file.file, node.id, names[node.name]};
  };
  Trace trace{.source = file.file, .nodes = std::move(file.nodes), .dependencies = {}};
  const IdIndex ids(trace.nodes);
  if (ids.twice() != IdIndex::kNone)
    describe(trace.nodes[ids.twice()]).fail(" has an id that another node has");
  trace.dependencies.reserve(file.waits_for.size());
  for (std::uint32_t i = 0; i < trace.nodes.size(); ++i) {
    Node& node = trace.nodes[i];
    const auto first = static_cast<std::uint32_t>(trace.dependencies.size());
    for (std::uint32_t d = 0; d < node.dependencies; ++d) {
      const std::uint64_t id = file.waits_for[node.first_dependency + d];
      const std::uint32_t other = ids.find(id);
      if (other == IdIndex::kNone) {
        miss(describe(node), id, tally);
        continue;
      }
      if (other == i) {
        if (!lenient_)
          describe(node).fail(" waits for itself", "--lenient leaves such dependencies out",
                              ExitCode::deadlock);
        tally.add("ignored: a node waits for itself", describe(node).text());
        continue;
      }
      trace.dependencies.push_back(other);
    }
    if (node.dependencies > 1) {
      const auto own = trace.dependencies.begin() + first;
      std::sort(own, trace.dependencies.end());
      trace.dependencies.erase(std::unique(own, trace.dependencies.end()),
                               trace.dependencies.end());
    }
    node.first_dependency = first;
    node.dependencies = static_cast<std::uint32_t>(trace.dependencies.size()) - first;
  }
  for (const auto& [index, id] : file.callers)
    if (ids.find(id) == IdIndex::kNone) miss(describe(trace.nodes[index]), id, tally);
  file.waits_for = {};
  const std::vector<std::uint32_t> order = order_nodes(trace, names);
  if (order.empty()) return trace;
  std::vector<std::uint32_t> place(order.size()), own;
  for (std::uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  Trace ordered{.source = std::move(trace.source), .nodes = {}, .dependencies = {}};
  ordered.nodes.reserve(order.size());
  ordered.dependencies.reserve(trace.dependencies.size());
  for (const std::uint32_t at : order) {
    own.clear();
    for (const std::uint32_t other : trace.dependencies_of(trace.nodes[at]))
      own.push_back(place[other]);
    std::ranges::sort(own);
    ordered.add(trace.nodes[at], own);
  }
  return ordered;
}

void TraceAssembly::add_ranks(Trace&& trace, const std::vector<int>& ranks,
                              const std::string& name) {
  std::vector<RankClass>& classes = builder_.workload().classes;
  const std::uint64_t digest = digest_of(trace);
  const auto [begin, end] = classes_.equal_range(digest);
  for (auto at = begin; at != end; ++at) {
    RankClass& known = classes[at->second];
    if (known.trace->dependencies != trace.dependencies || known.trace->nodes != trace.nodes ||
        (!name.empty() && known.name != name))
      continue;
    known.ranks.insert(known.ranks.end(), ranks.begin(), ranks.end());
    if (name.empty()) known.name = fmt::format("ranks {}, ...", known.ranks.front());
    return;
  }
  classes_.emplace(digest, classes.size());
  std::string own = name;
  if (name.empty())
    own = ranks.size() == 1 ? fmt::format("rank {}", ranks.front())
                            : fmt::format("ranks {}, ...", ranks.front());
  classes.push_back({own, std::make_shared<const Trace>(std::move(trace)), ranks});
}

void TraceAssembly::sort_classes() {
  const auto place = [&](const RankClass& one) {
    return std::ranges::find(written_classes, one.name);
  };
  std::vector<RankClass>& classes = builder_.workload().classes;
  std::ranges::stable_sort(
      classes, [&](const RankClass& a, const RankClass& b) { return place(a) < place(b); });
  classes_.clear();
}

}  // namespace hemiola::workload
