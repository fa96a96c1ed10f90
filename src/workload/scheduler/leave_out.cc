#include "workload/scheduler/leave_out.h"

#include <map>
#include <utility>

#include "core/index.h"
#include "core/lists.h"

namespace hemiola::workload {
namespace {

/// One kind of node, or all of a name.
struct LeftPart {
  std::string word;
  std::vector<char> of_name{};  ///< by Workload::names: whether it is meant; of a kind: empty
  bool is_there = false;
};

class LeavingOut {
 public:
  LeavingOut(const Workload& from, const LeftOut& what) : workload_(from) {
    for (const auto& [word, is_given] :
         {std::pair("products", what.products), std::pair("attention", what.attention),
          std::pair("kernels", what.kernels), std::pair("copies", what.copies),
          std::pair("recorded-calls", what.recorded_calls), std::pair("host", what.host)})
      if (is_given) parts_.push_back({word});
    for (const std::string& pattern : what.names) {
      LeftPart part{pattern};
      for (const std::string& name : from.names) part.of_name.push_back(is_like(name, pattern));
      parts_.push_back(std::move(part));
    }
  }

  Workload take() {
    // Ranks of several classes may share a trace.
    std::map<const Trace*, std::shared_ptr<const Trace>> done;
    for (RankClass& one : workload_.classes) {
      std::shared_ptr<const Trace>& made = done[one.trace.get()];
      if (made == nullptr) made = std::make_shared<const Trace>(without(*one.trace));
      one.trace = made;
    }
    for (const LeftPart& part : parts_) {
      if (!part.is_there)
        workload_.notices.push_back(
            {Severity::note,
             "there is nothing to leave out: no node is '" + part.word + "'",
             {.file = "--without"},
             {}});
    }
    return std::move(workload_);
  }

 private:
  Trace without(Trace trace) {
    for (Node& node : trace.nodes) {
      for (LeftPart& part : parts_) {
        if (part.word == "host" && part.of_name.empty() && node.host.fs > 0) {
          part.is_there = true;
          node.host = {};
        }
        if (!is_meant(part, node)) continue;
        part.is_there = true;
        // It keeps its place on its stream.
        node.kind = NodeKind::nothing;
        node.work = -1;
        node.recorded = {};
        break;
      }
    }
    return trace;
  }

  bool is_meant(const LeftPart& part, const Node& node) const {
    if (!part.of_name.empty())
      return (is_kernel(node.kind) || node.kind == NodeKind::recorded_call) &&
             part.of_name[node.name] != 0;
    return part.word == word_of(node);
  }

  std::string_view word_of(const Node& node) const {
    if (node.kind == NodeKind::memory) return "copies";
    if (node.kind == NodeKind::recorded_call) return "recorded-calls";
    if (node.kind == NodeKind::host) return "host";
    if (node.kind != NodeKind::compute) return {};
    if (node.work < 0) return "kernels";
    switch (workload_.computes[index(node.work)].kind) {
      case Compute::Kind::product:
        return "products";
      case Compute::Kind::attention:
        return "attention";
      case Compute::Kind::other:
        break;
    }
    return "kernels";
  }

  Workload workload_;
  std::vector<LeftPart> parts_;
};

}  // namespace

std::shared_ptr<const Workload> leave_out(std::shared_ptr<const Workload> workload,
                                          const LeftOut& what) {
  if (!what.any()) return workload;
  return std::make_shared<const Workload>(LeavingOut(*workload, what).take());
}

}  // namespace hemiola::workload
