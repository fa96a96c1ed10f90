#include "compile/fuse/stores.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "core/index.h"
#include "plan/launches.h"

namespace hemiola::compile {
namespace {

constexpr std::size_t kMostParts = 1024;  // of a push: waves of their own
constexpr const char* kOthers =
    "plans whose kernel makes what a push sends on are, such as gemm-rs/direct with transfer=push";

plan::Region region_of(std::int32_t tensor, const plan::Rect& rect) {
  plan::Region made{.tensor = tensor, .boxes = {{}}};
  for (std::size_t i = 0; i < rect.begin.size(); ++i)
    made.boxes[0].push_back({constant(rect.begin[i]), rect.end[i] - rect.begin[i]});
  return made;
}

class PushTaker {
 public:
  PushTaker(Grids& grids, const std::string& file) : grids_(grids), file_(file) {
    if (grids.are_of_launches || grids.count() != 1) refuse("is a plan of launches");
    const plan::Plan& before = grids.plan;
    plan_ = with_folded_tensors(before, Folds(before.tensors.size(), -1));
    for (int rank = 0; rank < plan_.ranks; ++rank)
      plan_.codes[index(rank)].computes = before.code(rank).computes;
  }

  std::vector<TileStore> take() {
    for (int rank = 0; rank < plan_.ranks; ++rank) find(rank);
    if (stores_.empty()) refuse("pushes nothing that its kernel makes for nobody else");
    for (int rank = 0; rank < plan_.ranks; ++rank) rewrite(rank);
    grids_.plan = std::move(plan_);
    return std::move(stores_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Failure(what + ": no tiles are stored to peers", {.file = file_}, kOthers);
  }

  static const plan::Transfer& at(const plan::Stream& stream, std::size_t i) {
    return std::get<plan::Transfer>(stream.items[i]);
  }

  bool is_made(int rank, std::int32_t tensor) const {
    const auto& operands = plan_.code(rank).computes.front().operands;
    return plan_.tensors[index(tensor)].role != plan::Role::output &&
           std::ranges::all_of(operands, [&](const plan::ComputeOperand& one) {
             return (one.tensor == tensor) == plan::makes(one.use);
           });
  }

  using Pair = std::pair<plan::Rect, plan::Rect>;  ///< what is sent, and where to

  /// A push as parts that lie alike in both tensors. Where an axis that tiles have one element of
  /// each (heads) is farther apart in one of them, each of its elements is a part. Empty: none.
  std::vector<Pair> parts_of(int rank, const plan::Transfer& push, const Pair& whole) const {
    std::vector<Pair> parts{whole};
    const plan::Compute& compute = plan_.code(rank).computes.front();
    for (std::size_t axis = 0; axis < whole.first.begin.size(); ++axis) {
      if (lie_alike(push, parts.front().first, parts.front().second)) return parts;
      const bool is_single =
          std::ranges::any_of(compute.operands, [&](const plan::ComputeOperand& one) {
            return one.tensor == push.source.tensor && one.axes[axis] >= 0 &&
                   compute.axes[index(one.axes[axis])].tile == 1;
          });
      if (!is_single) return {};
      std::vector<Pair> finer;
      for (const Pair& part : parts) {
        for (std::int64_t i = 0; i < part.first.end[axis] - part.first.begin[axis]; ++i) {
          finer.push_back(part);
          for (plan::Rect* rect : {&finer.back().first, &finer.back().second}) {
            rect->begin[axis] += i;
            rect->end[axis] = rect->begin[axis] + 1;
          }
        }
      }
      parts = std::move(finer);
      if (parts.size() > kMostParts) return {};
    }
    return lie_alike(push, parts.front().first, parts.front().second) ? parts : std::vector<Pair>{};
  }

  /// Rows of both are equally far apart.
  bool lie_alike(const plan::Transfer& push, const plan::Rect& a, const plan::Rect& b) const {
    const plan::Tensor &from = plan_.tensors[index(push.source.tensor)],
                       &to = plan_.tensors[index(push.destination.tensor)];
    if (from.type != to.type || from.shape.size() != to.shape.size()) return false;
    std::int64_t stride = 1, other = 1;
    for (std::size_t i = from.shape.size(); i-- > 0;) {
      const std::int64_t count = a.end[i] - a.begin[i];
      if (count != b.end[i] - b.begin[i] || (count > 1 && stride != other)) return false;
      stride *= from.shape[i];
      other *= to.shape[i];
    }
    return true;
  }

  /// Whether anything but this transfer reads what it sends.
  bool is_read_elsewhere(int owner, const plan::Area& area, const plan::Transfer& push) const {
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      const Indices here{.rank = rank};
      for (const plan::Stream& stream : plan_.code(rank).streams) {
        for (std::size_t i = 0; i < stream.items.size(); ++i) {
          const plan::Transfer& one = at(stream, i);
          if (&one == &push) continue;
          const bool pulls = one.kind == plan::TransferKind::pull;
          const auto of = pulls ? one.peer(here) : rank;
          const bool may = of == owner || one.group >= 0;
          if (may && overlap(plan::evaluate(one.source, here), area)) return true;
          if (!one.operand.boxes.empty() && overlap(plan::evaluate(one.operand, here), area) &&
              (one.kind == plan::TransferKind::push ? one.peer(here) : rank) == owner)
            return true;
        }
      }
    }
    return false;
  }

  void find(int rank) {
    const Indices here{.rank = rank};
    const std::vector<plan::Stream>& streams = plan_.code(rank).streams;
    for (std::int32_t s = 0; s < std::ssize(streams); ++s) {
      for (std::size_t i = 0; i < streams[index(s)].items.size(); ++i) {
        const plan::Transfer& push = at(streams[index(s)], i);
        const bool waits_for_tiles =
            std::ranges::all_of(push.after, [&](const plan::Dependency& one) {
              return one.computed.has_value() && one.rank(here) == rank;
            });
        if (push.kind != plan::TransferKind::push || push.reduce != ReduceOp::none ||
            push.group >= 0 || push.after.empty() || !waits_for_tiles ||
            !is_made(rank, push.source.tensor))
          continue;
        const plan::Area source = plan::evaluate(push.source, here),
                         target = plan::evaluate(push.destination, here);
        if (source.rects.size() != 1 || target.rects.size() != 1 ||
            is_read_elsewhere(rank, source, push))
          continue;
        const std::vector<Pair> parts = parts_of(rank, push, {source.rects[0], target.rects[0]});
        if (parts.empty()) continue;
        gone_[{rank, s, static_cast<std::int64_t>(i)}] = {source.tensor, source.rects[0]};
        for (const auto& [from, to] : parts) {
          stores_.push_back(
              {rank, source.tensor, from, static_cast<int>(push.peer(here)), target.tensor, to});
          grids_.apart.push_back({rank, source.tensor, from});
        }
      }
    }
  }

  /// What comes after a transfer comes after the tiles of all that are gone up to it.
  void add(std::vector<plan::Dependency>& after, const plan::Dependency& one, int rank) const {
    const Indices here{.rank = rank};
    const auto keep = [&](plan::Dependency dependency) {
      if (std::ranges::find(after, dependency) == after.end())
        after.push_back(std::move(dependency));
    };
    if (!one.on_transfer()) return keep(one);
    const auto of = static_cast<int>(one.rank(here));
    const std::int64_t position = one.transfer(here);
    std::int64_t left = 0;
    for (std::int64_t i = 0; i <= position; ++i) {
      const auto gone = gone_.find({of, one.stream, i});
      if (gone == gone_.end()) {
        ++left;
        continue;
      }
      plan::Dependency made{.rank = constant(of)};
      made.computed = region_of(gone->second.first, gone->second.second);
      if (i == position || !gone_.contains({of, one.stream, position})) keep(std::move(made));
    }
    if (left == 0) return;
    plan::Dependency made = one;
    made.transfer = constant(left - 1);
    keep(std::move(made));
  }

  void rewrite(int rank) {
    plan::Code& code = plan_.codes[index(rank)];
    for (std::int32_t s = 0; s < std::ssize(code.streams); ++s) {
      std::vector<plan::Item> left;
      for (std::size_t i = 0; i < code.streams[index(s)].items.size(); ++i) {
        if (gone_.contains({rank, s, static_cast<std::int64_t>(i)})) continue;
        plan::Transfer one = at(code.streams[index(s)], i);
        const std::vector<plan::Dependency> after = std::exchange(one.after, {});
        for (const plan::Dependency& dependency : after) add(one.after, dependency, rank);
        left.emplace_back(std::move(one));
      }
      code.streams[index(s)].items = std::move(left);
    }
  }

  Grids& grids_;
  const std::string& file_;
  plan::Plan plan_;
  std::vector<TileStore> stores_;
  std::map<Point, std::pair<std::int32_t, plan::Rect>> gone_;  ///< by transfer: what it sent
};

}  // namespace

std::vector<TileStore> take_pushes(Grids& grids, const std::string& file) {
  return PushTaker(grids, file).take();
}

const TileStore* store_of(const plan::Plan& plan, const Fusion& fusion,
                          const std::vector<TileStore>& stores, int rank, const FusedWave& wave,
                          const std::string& file) {
  const plan::Compute& compute = plan.code(rank).computes[index(fusion.compute)];
  for (const TileStore& store : stores) {
    if (store.rank != rank) continue;
    for (const plan::ComputeOperand& operand : compute.operands) {
      if (operand.tensor != store.tensor) continue;
      plan::Rect made = store.source;
      for (std::size_t i = 0; i < operand.axes.size(); ++i) {
        for (std::size_t a = 0; a < fusion.axes.size(); ++a) {
          if (operand.axes[i] < 0 || fusion.axes[a].compute != operand.axes[i]) continue;
          made.begin[i] = operand.first(i, rank) + wave.box.begin[a];
          made.end[i] = operand.first(i, rank) + wave.box.end[a];
        }
      }
      if (!plan::overlap(made, store.source)) continue;
      if (plan::intersection(made, store.source) == made) return &store;
      throw Failure(fmt::format("rank {}: tiles of a wave are stored to rank {} in part only", rank,
                                store.peer),
                    {.file = file}, "without --store-to-peers transfers push them");
    }
  }
  return nullptr;
}

}  // namespace hemiola::compile
