#include "workload/iteration/job_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "core/index.h"
#include "core/units.h"
#include "workload/costs/launch_job.h"

namespace hemiola::workload {
namespace {

constexpr std::size_t kMostLaunches = 10'000;

class JobWriter {
 public:
  JobWriter(const Workload& workload, Places& places, const ScheduleResult& order)
      : workload_(workload), places_(places), order_(order) {}

  std::string write() {
    collect();
    divide();
    std::string text = fmt::format("name: \"{}\"\nlaunches:\n", workload_.name);
    for (const One& one : launches_)
      for (const Part& part : one.parts) text += line_of(one, part);
    return text;
  }

 private:
  /// A line of the job, and where it runs.
  struct Part {
    std::string name;
    std::vector<std::vector<int>> groups;  ///< of a kernel one, its ranks
    int set = 0;                           ///< of disjoint_sets(): none has a rank twice
  };

  /// A launch: a node, or the nodes that met.
  struct One {
    Time begin{};
    std::vector<std::pair<std::int32_t, std::uint32_t>> members;  ///< class, node
    std::string name;
    std::set<std::size_t> causes{};
    std::vector<Part> parts{};
    std::vector<std::int32_t> part_of_rank{};  ///< -1: it does not run there
    /// Of a ring, where a rank sends and receives: its other part. Empty: there is none.
    std::vector<std::int32_t> other_part_of_rank{};
  };

  /// Whether it copies out of a FIFO what another launch sent, or sends: that one may not wait for
  /// what the receiver waits for, or two that send to each other would wait for each other.
  bool takes_out(const One& one) const {
    return std::ranges::all_of(
        one.members, [&](const auto& member) { return node_of(member).kind == NodeKind::receive; });
  }

  const Node& node_of(const std::pair<std::int32_t, std::uint32_t>& member) const {
    return workload_.classes[index(member.first)].trace->nodes[member.second];
  }

  /// A kernel, or communication of which only the time is known.
  static bool runs_alone(const Node& node) {
    return is_kernel(node.kind) || node.kind == NodeKind::recorded_call;
  }

  bool is_launch(const Node& node, const NodeTimes& times) const {
    if (node.kind == NodeKind::nothing || node.kind == NodeKind::host) return false;
    if (runs_alone(node)) return times.end > times.begin;
    return times.meeting != kNoNode;
  }

  void collect() {
    std::map<std::uint32_t, std::size_t> meetings;
    for (std::size_t c = 0; c < workload_.classes.size(); ++c) {
      const auto& nodes = workload_.classes[c].trace->nodes;
      for (std::uint32_t n = 0; n < nodes.size(); ++n) {
        const NodeTimes& times = order_.nodes[c][n];
        if (!is_launch(nodes[n], times)) continue;
        if (has_product(workload_, nodes[n].kind, nodes[n].work))
          throw Failure("a product and its collective in one launch are not written as a job",
                        {.file = "--job"}, "leave out the rules with 'fuse'");
        const std::pair member{static_cast<std::int32_t>(c), n};
        if (times.meeting != kNoNode) {
          const auto [at, is_new] = meetings.emplace(times.meeting, launches_.size());
          if (!is_new) {
            launches_[at->second].members.push_back(member);
            continue;
          }
        }
        launches_.push_back({.begin = times.begin, .members = {member}});
      }
    }
    if (launches_.size() > kMostLaunches)
      throw Failure(fmt::format("{} has {} launches, and a job is simulated in one go",
                                workload_.name, launches_.size()),
                    {.file = workload_.source}, fmt::format("up to {} are written", kMostLaunches));
    std::ranges::stable_sort(launches_, [](const One& a, const One& b) {
      return std::tuple(a.begin, a.members.front()) < std::tuple(b.begin, b.members.front());
    });
    for (std::size_t l = 0; l < launches_.size(); ++l) {
      launches_[l].name =
          fmt::format("{} {}", l, workload_.names[node_of(launches_[l].members.front()).name]);
      std::replace(launches_[l].name.begin(), launches_[l].name.end(), '"', '\'');
      for (const auto& member : launches_[l].members) by_node_[member] = l;
    }
  }

  /// Launches that a node waits for, through nodes that are none.
  void add_causes(std::int32_t number, std::uint32_t node, std::set<std::size_t>& causes) const {
    const Trace& trace = *workload_.classes[index(number)].trace;
    for (const std::uint32_t before : trace.dependencies_of(trace.nodes[node])) {
      const auto known = by_node_.find({number, before});
      if (known != by_node_.end())
        causes.insert(known->second);
      else
        add_causes(number, before, causes);
    }
  }

  /// A launch is one line; a call of several groups is one for each, where what it waits for does
  /// not run on all of them: in a job, a group waits for its own ranks.
  void divide() {
    for (One& one : launches_) {
      for (const auto& member : one.members) add_causes(member.first, member.second, one.causes);
      const auto& [number, n] = one.members.front();
      const Node& node = node_of(one.members.front());
      if (runs_alone(node))
        one.parts = {{one.name, {workload_.classes[index(number)].ranks}}};
      else if (takes_out(one))
        one.parts = {{one.name, {receivers_of(one)}}};
      else
        one.parts = by_sets(one.name, places_.place(places_.of_call(number, node)).groups);
      number_parts(one);
    }
    std::vector<bool> is_divided(launches_.size());
    for (std::size_t l = 0; l < launches_.size(); ++l) {
      for (const std::size_t cause : launches_[l].causes) {
        for (const Part& part : launches_[l].parts)
          for (const auto& group : part.groups)
            is_divided[l] = is_divided[l] || parts_on(launches_[cause], {group}).empty();
      }
    }
    for (std::size_t l = 0; l < launches_.size(); ++l) {
      if (!is_divided[l]) continue;
      std::vector<Part> parts;
      for (const Part& part : launches_[l].parts) {
        for (const auto& group : part.groups)
          parts.push_back({fmt::format("{} of {}", launches_[l].name, fmt::join(group, "-")),
                           {group},
                           part.set});
      }
      launches_[l].parts = std::move(parts);
      number_parts(launches_[l]);
    }
  }

  std::vector<int> receivers_of(const One& one) const {
    std::vector<int> ranks;
    for (const auto& member : one.members) {
      const std::vector<int>& more = workload_.classes[index(member.first)].ranks;
      ranks.insert(ranks.end(), more.begin(), more.end());
    }
    return ranks;
  }

  /// One part, or of a ring as many as have no rank twice.
  static std::vector<Part> by_sets(const std::string& name,
                                   const std::vector<std::vector<int>>& groups) {
    std::vector<Part> parts;
    const std::vector<int> sets = disjoint_sets(groups);
    for (std::size_t g = 0; g < groups.size(); ++g) {
      while (parts.size() <= index(sets[g])) {
        const auto set = static_cast<int>(parts.size());
        parts.push_back({set == 0 ? name : fmt::format("{} ({})", name, set + 1), {}, set});
      }
      parts[index(sets[g])].groups.push_back(groups[g]);
    }
    return parts;
  }

  void number_parts(One& one) const {
    one.part_of_rank.assign(index(workload_.ranks), -1);
    one.other_part_of_rank.clear();
    for (std::size_t p = 0; p < one.parts.size(); ++p) {
      for (const auto& group : one.parts[p].groups) {
        for (const int rank : group) {
          const bool is_free = one.part_of_rank[index(rank)] < 0;
          if (!is_free) one.other_part_of_rank.resize(index(workload_.ranks), -1);
          (is_free ? one.part_of_rank : one.other_part_of_rank)[index(rank)] =
              static_cast<std::int32_t>(p);
        }
      }
    }
  }

  /// The parts of a launch that run on some of these ranks.
  static std::set<std::int32_t> parts_on(const One& one,
                                         const std::vector<std::vector<int>>& groups) {
    std::set<std::int32_t> parts;
    for (const auto& group : groups) {
      for (const int rank : group) {
        for (const auto* of_rank : {&one.part_of_rank, &one.other_part_of_rank})
          if (!of_rank->empty() && (*of_rank)[index(rank)] >= 0)
            parts.insert((*of_rank)[index(rank)]);
      }
    }
    return parts;
  }

  std::string line_of(const One& one, const Part& part) const {
    const auto& [number, n] = one.members.front();
    const Node& node = node_of(one.members.front());
    std::string after;
    for (const std::size_t cause : one.causes) {
      for (const std::int32_t before : parts_on(launches_[cause], part.groups))
        after += fmt::format("{}\"{}\"", after.empty() ? "" : ", ",
                             launches_[cause].parts[index(before)].name);
    }
    return fmt::format("  - {{name: \"{}\", {}, stream: \"{}\"{}}}\n", part.name,
                       takes_out(one) ? copy_of(node, part) : what_of(number, n, node, part),
                       stream_of(number, node, part),
                       after.empty() ? "" : ", after: [" + after + "]");
  }

  std::string stream_of(std::int32_t number, const Node& node, const Part& part) const {
    if (node.kind == NodeKind::send || node.kind == NodeKind::receive)
      return fmt::format("messages {}{}", places_.of_call(number, node),
                         part.set == 0 ? "" : fmt::format(" ({})", part.set + 1));
    return workload_.streams[node.stream].name;
  }

  std::string copy_of(const Node& node, const Part& part) const {
    const std::int64_t bytes = call_of(workload_, node.kind, node.work).bytes;
    return fmt::format("compute: {{read: {}B, write: {}B, pieces: {}}}, ranks: [{}]", bytes, bytes,
                       kPiecesOfKernel, fmt::join(part.groups.front(), ", "));
  }

  std::string what_of(std::int32_t number, std::uint32_t n, const Node& node,
                      const Part& part) const {
    if (runs_alone(node)) {
      const std::string ranks = fmt::format("ranks: [{}]", fmt::join(part.groups.front(), ", "));
      if (node.work < 0 || node.kind == NodeKind::recorded_call)
        return fmt::format("compute: {{time: {}}}, {}", to_string(node.recorded), ranks);
      const NodeTimes& times = order_.nodes[index(number)][n];
      return kernel_of(workload_.computes[index(node.work)], times) + ", " + ranks;
    }
    std::string groups;
    for (const auto& group : part.groups)
      groups += fmt::format("{}[{}]", groups.empty() ? "" : ", ", fmt::join(group, ", "));
    const auto [kind, type] = run_as(workload_, node.kind, node.work);
    return fmt::format(
        "run: auto/nccl, param: {{collective: {}}}, size: {}B, dtype: {}, groups: [{}]",
        name_of(kind), call_of(workload_, node.kind, node.work).bytes, name_of(type), groups);
  }

  static std::string kernel_of(const Compute& compute, const NodeTimes& times) {
    if (compute.kind == Compute::Kind::product && compute.product.batch == 1)
      return fmt::format("product: {{m: {}, n: {}, k: {}}}, dtype: {}", compute.product.m,
                         compute.product.n, compute.product.k, name_of(compute.product.type));
    // Several products at once take what the model says.
    if (compute.kind == Compute::Kind::product)
      return fmt::format("compute: {{time: {}}}", to_string(times.end - times.begin));
    std::string parts;
    const bool is_other = compute.kind == Compute::Kind::other;
    const auto bytes = [&](std::int64_t count) {
      return is_other ? bytes_of_copy(count).count : count;
    };
    if (compute.read > 0) parts += fmt::format("read: {}B", bytes(compute.read));
    if (compute.written > 0)
      parts += fmt::format("{}write: {}B", parts.empty() ? "" : ", ", bytes(compute.written));
    if (compute.flop > 0)
      parts += fmt::format("{}flop: {}", parts.empty() ? "" : ", ", flop_of_units(compute));
    return fmt::format("compute: {{{}, pieces: {}}}", parts, kPiecesOfKernel);
  }

  const Workload& workload_;
  Places& places_;
  const ScheduleResult& order_;
  std::vector<One> launches_;
  std::map<std::pair<std::int32_t, std::uint32_t>, std::size_t> by_node_;
};

}  // namespace

std::string job_text(const Workload& workload, Places& places, const ScheduleResult& order) {
  return JobWriter(workload, places, order).write();
}

}  // namespace hemiola::workload
