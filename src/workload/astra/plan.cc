#include "workload/astra/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "core/index.h"

namespace hemiola::workload::astra {
namespace {

using Kind = AstraAlgorithm::Kind;

/// A dimension of the collective: ranks in it, and the distance between neighbours.
struct Axis {
  std::int32_t ranks, stride;
  AstraAlgorithm algorithm;
};

bool is_native(Collective kind) {
  return index(kind) < std::tuple_size_v<decltype(AstraSystem::algorithms)>;
}

class Planner {
 public:
  Planner(const CollectiveCall& call, std::int64_t ranks, const AstraConfiguration& configuration)
      : call_(call), ranks_(ranks), configuration_(configuration) {}

  Plan plan() {
    if (!is_native(call_.kind))
      throw Failure(fmt::format("ASTRA-sim has no {}", name_of(call_.kind)));
    const std::vector<AstraAlgorithm>& algorithms =
        configuration_.system.algorithms[index(call_.kind)];
    if (algorithms.empty())
      throw Failure(fmt::format("the configuration has no algorithm for {}", name_of(call_.kind)),
                    {}, fmt::format("add '{}-implementation' to the system", name_of(call_.kind)));
    part_ = ranks_ != configuration_.network.npus();
    find_axes(algorithms);

    Plan plan;
    plan.size = astra_size(call_, ranks_);
    const std::int64_t chunk = cut(plan);
    plan.passes = passes(chunk, true);
    const bool trees = std::ranges::any_of(
        plan.passes, [](const Pass& pass) { return pass.algorithm == Kind::double_binary_tree; });
    if (trees) plan.other_passes = passes(chunk, false);
    return plan;
  }

 private:
  void find_axes(const std::vector<AstraAlgorithm>& algorithms) {
    if (part_) {
      // The dimensions mean nothing for a part of the NPUs: one ring of its ranks in their order.
      axes_.push_back({static_cast<std::int32_t>(ranks_), 1,
                       algorithms.size() == 1 ? algorithms.front() : AstraAlgorithm{}});
      return;
    }
    const auto& dimensions = configuration_.network.dimensions;
    if (algorithms.size() > dimensions.size())
      throw Failure(fmt::format("{} has {} algorithms for {} dimensions", name_of(call_.kind),
                                algorithms.size(), dimensions.size()));
    std::int32_t stride = 1;
    for (std::size_t d = 0; d < algorithms.size(); ++d) {
      if (algorithms[d].over_all) {
        axes_.push_back({static_cast<std::int32_t>(ranks_), 1, algorithms[d]});
        return;
      }
      axes_.push_back({dimensions[d].npus, stride, algorithms[d]});
      stride *= dimensions[d].npus;
    }
  }

  /// Chunks of at least a byte for each NPU of the network; what is left over is a whole chunk too.
  std::int64_t cut(Plan& plan) const {
    const std::int64_t wanted = configuration_.system.chunks, npus = configuration_.network.npus();
    std::int64_t chunk = plan.size / wanted, size = plan.size;
    if (call_.kind != Collective::all_gather && npus > chunk) {
      chunk = npus;
      size = wanted * chunk;
    }
    chunk = std::max<std::int64_t>(chunk, 1);
    plan.chunks = (size + chunk - 1) / chunk;
    return chunk;
  }

  std::vector<Pass> passes(std::int64_t bytes, bool highest_root) const {
    std::vector<Pass> made;
    const bool aware_of_bandwidth =
        call_.kind == Collective::all_reduce && configuration_.system.local_bandwidth_aware;
    const auto pass = [&](std::size_t axis, Collective kind, bool upwards) {
      if (axes_[axis].ranks == 1) return;
      Pass one = pass_over(axes_[axis], kind, bytes);
      one.dimension = static_cast<std::int32_t>(axis);
      one.upwards = upwards;
      // Trees take turns at every pass over a dimension, and this passes over it twice.
      const bool twice = aware_of_bandwidth && axis + 1 < axes_.size();
      one.highest_root = twice ? upwards : highest_root;
      if (axes_[axis].algorithm.kind == Kind::double_binary_tree) kind = Collective::all_reduce;
      if (kind == Collective::reduce_scatter) bytes /= axes_[axis].ranks;
      if (kind == Collective::all_gather) bytes *= axes_[axis].ranks;
      made.push_back(std::move(one));
    };
    const std::size_t axes = axes_.size();
    if (aware_of_bandwidth) {
      for (std::size_t a = 0; a + 1 < axes; ++a) pass(a, Collective::reduce_scatter, true);
      pass(axes - 1, Collective::all_reduce, true);
      for (std::size_t a = axes - 1; a-- > 0;) pass(a, Collective::all_gather, false);
    } else if (call_.kind == Collective::all_gather) {
      for (std::size_t a = axes; a-- > 0;) pass(a, call_.kind, true);
    } else {
      for (std::size_t a = 0; a < axes; ++a) pass(a, call_.kind, true);
    }
    return made;
  }

  Pass pass_over(const Axis& axis, Collective kind, std::int64_t bytes) const {
    Pass pass{.algorithm = axis.algorithm.kind,
              .ranks = axis.ranks,
              .stride = axis.stride,
              .of_part = part_};
    const std::int64_t n = axis.ranks;
    pass.bytes = kind == Collective::all_gather ? bytes : bytes / n;
    if (kind == Collective::reduce_scatter) pass.reduces = Pass::Reduces::in_every_cycle;
    if (kind == Collective::all_reduce) pass.reduces = Pass::Reduces::in_every_other_cycle;
    const std::int64_t rounds = kind == Collective::all_reduce ? 2 : 1;
    switch (pass.algorithm) {
      case Kind::ring:
        // Of an all-to-all, what is for a rank goes through all that are between.
        pass.sends = kind == Collective::all_to_all ? n * (n - 1) / 2 : rounds * (n - 1);
        pass.cycle = n;
        break;
      case Kind::direct:
        pass.sends = rounds * (n - 1);
        pass.window = n - 1;
        if (axis.algorithm.window > 0)
          pass.window = std::min<std::int64_t>(axis.algorithm.window, n - 1);
        pass.unreduced = pass.window;
        // Of a part of the NPUs the second half of an all-reduce counts as the first one, and is
        // reduced too.
        pass.cycle = pass.window + (part_ ? (n - 1) * pass.window : pass.window);
        if (kind == Collective::all_reduce) pass.before_second_half = n - 1;
        pass.sources = axis.ranks - 1;
        break;
      case Kind::halving_doubling:
        halve_and_double(pass, kind, bytes);
        break;
      case Kind::double_binary_tree:
        need_power_of_two(axis.ranks, "doubleBinaryTree");
        if (part_)
          throw Failure(fmt::format("ASTRA-sim has no tree for a group of {} of {} NPUs", ranks_,
                                    configuration_.network.npus()),
                        {}, "of its algorithms ring, direct and halvingDoubling take such a group");
        pass.bytes = bytes;
        pass.sources = 3;
        break;
    }
    if ((pass.reduces != Pass::Reduces::never || pass.algorithm == Kind::double_binary_tree) &&
        configuration_.system.local_memory_bandwidth == 0)
      throw Failure("the system does not say how fast memory is: ranks that reduce need it", {},
                    "add 'local-mem-bw' to the system");
    return pass;
  }

  void halve_and_double(Pass& pass, Collective kind, std::int64_t bytes) const {
    if (kind == Collective::all_to_all)
      throw Failure("ASTRA-sim has no all-to-all by halvingDoubling", {},
                    "of its algorithms ring and direct do it");
    need_power_of_two(pass.ranks, "halvingDoubling");
    const auto levels = static_cast<std::int32_t>(std::bit_width(index(pass.ranks)) - 1);
    pass.sources = levels;
    pass.cycle = levels;
    if (kind != Collective::all_gather) {
      for (std::int32_t l = 0; l < levels; ++l) {
        pass.distances.push_back(1 << l);
        pass.sizes.push_back(bytes >>= 1);
      }
    }
    if (kind == Collective::all_reduce) bytes = bytes / 2 * 2;  // it is halved once too often
    if (kind != Collective::reduce_scatter) {
      for (std::int32_t l = levels; l-- > 0;) {
        pass.distances.push_back(1 << l);
        pass.sizes.push_back(bytes);
        bytes *= 2;
      }
    }
    pass.sends = static_cast<std::int64_t>(pass.sizes.size());
  }

  void need_power_of_two(std::int32_t ranks, std::string_view algorithm) const {
    if (std::has_single_bit(index(ranks))) return;
    throw Failure(
        fmt::format("{} of ASTRA-sim needs a power of two of ranks, not {}", algorithm, ranks));
  }

  const CollectiveCall& call_;
  std::int64_t ranks_;
  const AstraConfiguration& configuration_;
  bool part_ = false;
  std::vector<Axis> axes_;
};

}  // namespace

std::int64_t astra_size(const CollectiveCall& call, std::int64_t ranks) {
  return call.kind == Collective::all_gather ? std::max<std::int64_t>(call.bytes / ranks, 1)
                                             : call.bytes;
}

Plan make_plan(const CollectiveCall& call, std::int64_t ranks,
               const AstraConfiguration& configuration) {
  return Planner(call, ranks, configuration).plan();
}

}  // namespace hemiola::workload::astra
