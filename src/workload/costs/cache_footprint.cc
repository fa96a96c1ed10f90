#include "workload/costs/cache_footprint.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/index.h"
#include "program/bind/touched.h"

namespace hemiola::workload {
namespace {

/// What a launch touches once, and what it touches anew each time.
struct Touched {
  std::int64_t once = 0, each = 0;
};

/// Operands and results, whatever else their programs need.
std::int64_t least_of(const Workload& workload, const Node& node) {
  if (node.work < 0) return 0;
  if (is_call(node.kind)) return call_of(workload, node.kind, node.work).bytes;
  if (!is_kernel(node.kind)) return 0;
  const Compute& compute = workload.computes[index(node.work)];
  if (compute.kind != Compute::Kind::product) return compute.read + compute.written;
  const machine::GemmShape& p = compute.product;
  return p.batch *
         ((p.m + p.n) * p.k * size_of(p.type) + p.m * p.n * size_of(p.output.value_or(p.type)));
}

class ClassTouches {
 public:
  ClassTouches(const Workload& workload, const machine::SharedMachine& machine,
               LaunchPrograms& programs, const RankClass& one)
      : workload_(workload), machine_(machine), programs_(programs), one_(one) {}

  /// Counts no further than `enough`.
  std::int64_t bytes(std::int64_t enough) {
    std::int64_t sum = 0;
    for (const Node& node : one_.trace->nodes) {
      sum += least_of(workload_, node);
      if (sum > enough) return sum;
    }
    // So few that buffers between ranks count, too.
    sum = 0;
    for (const Node& node : one_.trace->nodes) {
      if (node.work < 0 || (!is_kernel(node.kind) && !is_call(node.kind))) continue;
      const auto [at, is_new] = known_.emplace(std::pair(node.kind, node.work), Touched{});
      if (is_new) at->second = of_program(node);
      sum += at->second.each + (is_new ? at->second.once : 0);
    }
    return sum;
  }

 private:
  Touched of_program(const Node& node) const {
    std::vector<int> ranks{one_.ranks.front()};
    LaunchPrograms::Made made;
    if (is_kernel(node.kind)) {
      made = programs_.kernel(node.work, ranks.front());
    } else {
      const Call call = call_of(workload_, node.kind, node.work);
      const auto& groups = workload_.families[index(call.family)].groups;
      ranks = *std::ranges::find_if(groups, [&](const auto& group) {
        return std::ranges::find(group, ranks.front()) != group.end();
      });
      if (ranks.size() < 2) return {};
      LaunchKind kind{.kind = node.kind, .work = node.work};
      if (kind.kind == NodeKind::receive) kind.kind = NodeKind::send;
      made = programs_.call(kind, call.bytes, ranks);
    }
    const program::Bound bound =
        program::bind(*made.program, machine::select_ranks(machine_, ranks), made.options);
    const program::Touched touched = program::touched_by(bound.frame(), 0);
    return {touched.scratch + touched.under_way(), touched.given};
  }

  const Workload& workload_;
  const machine::SharedMachine& machine_;
  LaunchPrograms& programs_;
  const RankClass& one_;
  std::map<std::pair<NodeKind, std::int32_t>, Touched> known_;
};

}  // namespace

std::int64_t cache_footprint(const Workload& workload, const machine::SharedMachine& machine,
                             LaunchPrograms& programs) {
  const machine::GpuModel& model = machine->model(0);
  // An L2 has all or nothing; of what is larger than a memory-side cache a part stays in it.
  constexpr std::int64_t kMost = 16;
  const std::int64_t l2 = model.l2_size.count, behind = model.msc_size.count;
  const std::int64_t enough = behind > 0 ? kMost * behind : l2;
  std::int64_t most = 0;
  for (const RankClass& one : workload.classes) {
    most = std::max(most, ClassTouches(workload, machine, programs, one).bytes(enough));
    if (most > enough) return 2 * enough;
  }
  if (most <= l2) return 0;
  return behind > 0 ? most : l2 + 1;
}

}  // namespace hemiola::workload
