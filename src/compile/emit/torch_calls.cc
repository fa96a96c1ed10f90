#include "compile/emit/torch_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compile/emit/torch_order.h"
#include "compile/emit/torch_views.h"
#include "compile/fuse/carry.h"
#include "compile/fuse/tasks.h"
#include "core/index.h"
#include "plan/area.h"

namespace hemiola::compile {
namespace {

bool is_float(DataType type) {
  return type == DataType::float16 || type == DataType::bfloat16 || type == DataType::float32 ||
         type == DataType::float64;
}
bool is_fp8(DataType type) {
  return type == DataType::fp8_e4m3 || type == DataType::fp8_e5m2;
}

class CallMaker {
 public:
  CallMaker(const plan::Plan& plan, const std::vector<std::string>& names, const std::string& file,
            const Fusions* fusions, bool carries, const std::vector<TileStore>* stores)
      : plan_(plan),
        names_(names),
        file_(file),
        fusions_(fusions),
        stores_(stores),
        tasks_(tasks_of(plan, file, fusions)) {
    if (carries) carried_ = carried_of(plan, *fusions, tasks_, file);
  }

  TorchCalls make() {
    if (carried_.empty()) {
      const std::vector<std::vector<Issue>> orders = order_of(tasks_, file_);
      for (const std::vector<Issue>& order : orders) made_.by_rank.push_back(statements(order));
    }
    for (std::size_t rank = 0; rank < carried_.size(); ++rank)
      made_.by_rank.push_back(launches_of(static_cast<int>(rank)));
    for (std::size_t grid = 0; fusions_ != nullptr && grid < fusions_->size(); ++grid) {
      made_.work.emplace_back();
      for (int rank = 0; rank < plan_.ranks; ++rank)
        made_.work.back().push_back(work_of(grid, rank));
    }
    for (const RankTasks& tasks : tasks_) {
      made_.copies = std::max<std::int64_t>(made_.copies, tasks.copies);
      made_.launches = std::max(made_.launches, std::ssize(tasks.actors) - tasks.copies);
    }
    return std::move(made_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what, const std::string& hint) const {
    throw Failure(what, {.file = file_}, hint);
  }

  std::int32_t copies_of(const Point& point) const {
    return tasks_[static_cast<std::size_t>(point.rank)].copies;
  }
  bool is_copy(const Point& point) const { return point.actor < copies_of(point); }

  Statement actor(const Point& point) const {
    if (speaker_ != nullptr) return *speaker_;
    return is_copy(point) ? Statement{"copies[{}]", {point.actor}}
                          : Statement{"compute[{}]", {point.actor - copies_of(point)}};
  }
  /// "t.arrived[rank, stream]": that a task is complete.
  Statement signal_of(const Point& point) const {
    return is_copy(point)
               ? Statement{"t.arrived[{}, {}]", {point.rank, point.actor}}
               : Statement{"t.made[{}, {}]", {point.rank, point.actor - copies_of(point)}};
  }
  static Statement event_of(const Point& point) {
    return {"events[{}, {}]", {point.actor, point.position}};
  }

  std::vector<Statement> statements(const std::vector<Issue>& order) {
    std::vector<Statement> all;
    for (const Issue& issue : order) {
      for (const Wait& wait : issue.waits) all.push_back(waited(issue.task, wait));
      const Task& task = tasks_[static_cast<std::size_t>(issue.task.rank)].at(issue.task);
      if (task.transfer != nullptr)
        add_transfer(all, issue.task, task);
      else
        add_product(all, issue.task, task);
      if (issue.records) {
        made_.uses_events = true;
        all.push_back(event_of(issue.task).add(" = ").add(actor(issue.task)).add(".record()"));
      }
      for (const int to : issue.signals_to)
        all.push_back(actor(issue.task)
                          .add(".signal(")
                          .add(signal_of(issue.task))
                          .add(", to={}, step={})", {to, issue.task.position}));
      if (!issue.signals_to.empty()) {
        std::int64_t& steps = is_copy(issue.task) ? made_.steps_of_copies : made_.steps_of_launches;
        steps = std::max(steps, issue.task.position + 1);
      }
    }
    return all;
  }

  /// The kernels of a rank whose programs move the data.
  std::vector<Statement> launches_of(int rank) {
    std::vector<Statement> all;
    const RankTasks& tasks = tasks_[index(rank)];
    for (const Point& point : tasks.places_of_launches) add_product(all, point, tasks.at(point));
    return all;
  }

  /// "t.work.copy(...)" and what stands around it.
  void add_carried(std::vector<Statement>& all, const std::string& work, int rank,
                   const CarriedItem& item) {
    const Statement actor{work};
    for (const Point& one : item.after)
      all.push_back(Statement{work}
                        .add(".wait_signal(")
                        .add(signal_of(one))
                        .add(", step={})", {one.position}));
    for (const PartWait& part : item.parts)
      all.push_back(
          Statement{work}.add(".wait_signal(t.done[{}, {}], step=0)", {part.rank, part.part}));
    speaker_ = &actor;
    add_transfer(all, item.movement, tasks_[index(rank)].at(item.movement));
    speaker_ = nullptr;
    for (const int to : item.told)
      all.push_back(Statement{work}
                        .add(".signal(")
                        .add(signal_of(item.movement))
                        .add(", to={}, step={})", {to, item.movement.position}));
    if (!item.told.empty())
      made_.steps_of_copies = std::max(made_.steps_of_copies, item.movement.position + 1);
  }

  Statement waited(const Point& task, const Wait& wait) const {
    Statement line = actor(task);
    switch (wait.kind) {
      case Wait::Kind::stream:
        return line.add(".wait(").add(actor(wait.on)).add(")");
      case Wait::Kind::event:
        return line.add(".wait(").add(event_of(wait.on)).add(")");
      case Wait::Kind::part:
        return line.add(".wait_signal(t.done[{}, {}], step=0)", {wait.on.rank, wait.on.position});
      case Wait::Kind::signal:
        break;
    }
    return line.add(".wait_signal(").add(signal_of(wait.on)).add(", step={})", {wait.on.position});
  }

  const Fusion& fusion_of(const Point& point) const { return (*fusions_)[index(point.position)]; }

  /// The part of a tensor that a launch is of: mostly all of it.
  Statement view_of_operand(const Point& point, const FusedOperand& fused) const {
    const plan::Compute& compute = plan_.code(point.rank).computes[index(fusion_of(point).compute)];
    const plan::ComputeOperand& operand = compute.operands[index(fused.operand)];
    const plan::Tensor& tensor = plan_.tensors[index(fused.tensor)];
    plan::Rect rect;
    for (std::size_t i = 0; i < operand.axes.size(); ++i) {
      const std::int32_t axis = operand.axes[i];
      const std::int64_t first = axis < 0 ? 0 : operand.first(i, point.rank);
      rect.begin.push_back(first);
      rect.end.push_back(first + (axis < 0 ? tensor.shape[i] : compute.axes[index(axis)].extent));
    }
    return view_of("t." + names_[index(fused.tensor)], tensor, rect,
                   std::vector<bool>(operand.axes.size(), true));
  }

  /// The launch of the fused kernel; what else it is called with is known to `t.work`.
  Statement launch_of(const Point& point) const {
    const Fusion& fusion = fusion_of(point);
    Statement line = actor(point).add(".launch(" + work_name(index(point.position)));
    for (const FusedOperand& operand : fusion.operands)
      line.add(fmt::format(", {}=", operand.parameter)).add(view_of_operand(point, operand));
    for (const FusedExtra& extra : fusion.extras)
      line.add(
          fmt::format(", {}={}{}", extra.parameter, extra.shape.empty() ? "" : "t.", extra.name));
    return line.add(")");
  }

  /// ", after=[(t.arrived[0, 1], 3)]"
  Statement after_of(const std::vector<Point>& needs) const {
    if (needs.empty()) return {};
    Statement line{", after=["};
    for (const Point& need : needs) {
      if (&need != &needs.front()) line.add(", ");
      line.add("(").add(signal_of(need)).add(", {})", {need.position});
    }
    return line.add("]");
  }

  Statement wave_of(const Fusion& fusion, const std::string& work, const FusedRank& of_rank,
                    int rank, const FusedWave& wave) {
    Statement line{work + ".wave({{"};
    bool is_first = true;
    for (std::size_t i = 0; i < fusion.axes.size(); ++i) {
      const std::int64_t extent = wave.box.end[i] - wave.box.begin[i];
      if (extent == fusion.axes[i].extent) continue;
      line.add(
          fmt::format("{}\"{}\": ({{}}, {})", is_first ? "" : ", ", fusion.axes[i].name, extent),
          {wave.box.begin[i]});
      is_first = false;
    }
    line.add("}}").add(after_of(wave.needs));
    if (wave.part >= 0) line.add(", part={}", {of_rank.first_part + wave.part});
    const TileStore* store =
        stores_ == nullptr ? nullptr : store_of(plan_, fusion, *stores_, rank, wave, file_);
    if (store != nullptr) {
      const auto view = [&](std::int32_t tensor, const plan::Rect& rect) {
        return view_of("", plan_.tensors[index(tensor)], rect);
      };
      made_.shared.insert(store->target);
      line.add(", to=(t." + names_[index(store->target)] + "_at[{}]", {store->peer});
      line.add(view(store->target, store->destination));
      line.add(", t." + names_[index(store->tensor)]).add(view(store->tensor, store->source));
      line.add(")");
    }
    return line.add(")");
  }

  /// "t.work.wave(...)" and "t.work.part(...)" of a rank.
  std::vector<Statement> work_of(std::size_t grid, int rank) {
    const Fusion& fusion = (*fusions_)[grid];
    const std::string work = work_name(grid);
    const FusedRank& of_rank = fusion.ranks[static_cast<std::size_t>(rank)];
    std::vector<Statement> all;
    if (carried_.empty()) {
      for (const FusedWave& wave : of_rank.waves)
        all.push_back(wave_of(fusion, work, of_rank, rank, wave));
    } else {
      for (const CarriedItem& item : carried_[index(rank)])
        if (item.wave >= 0)
          all.push_back(wave_of(fusion, work, of_rank, rank, of_rank.waves[index(item.wave)]));
        else
          add_carried(all, work, rank, item);
    }
    for (const FusedPiece& piece : of_rank.pieces)
      all.push_back(
          Statement{fmt::format("{}.turns({{}}, {}", work, piece.end - piece.begin), {piece.begin}}
              .add(after_of(piece.needs))
              .add(")"));
    for (std::size_t i = 0; i < of_rank.parts.size(); ++i) {
      Statement line{work + ".part({}, to=[", {of_rank.first_part + static_cast<std::int64_t>(i)}};
      for (std::size_t j = 0; j < of_rank.parts[i].told.size(); ++j)
        line.add(j == 0 ? "{}" : ", {}", {of_rank.parts[i].told[j]});
      all.push_back(line.add("])"));
    }
    return all;
  }

  void add_product(std::vector<Statement>& all, const Point& point, const Task& task) const {
    if (fusions_ != nullptr) {
      for (const FusedOperand& operand : fusion_of(point).operands)
        if (operand.is_added_to)
          all.push_back(actor(point).add(".zero(").add(view_of_operand(point, operand)).add(")"));
      for (const FusedExtra& extra : fusion_of(point).extras)
        if (extra.is_added_once && point.rank > 0)
          all.push_back(actor(point).add(".zero(t." + extra.name + ")"));
      all.push_back(launch_of(point));
      return;
    }
    const plan::Compute& compute =
        plan_.code(point.rank).computes[static_cast<std::size_t>(task.compute)];
    for (const plan::ComputeOperand& operand : compute.operands)
      check_arithmetic(operand.tensor, "compute '" + compute.name + "'", true);
    all.push_back(
        product_of(plan_, names_, compute, point.rank, point.actor - copies_of(point), file_));
  }

  /// A region of a rank, box by box; of another one than the own one through what it shares.
  std::vector<Statement> views(const plan::Region& region, const Indices& at, bool is_remote,
                               std::int64_t owner) {
    const plan::Area area = plan::evaluate(region, at);
    const auto index = static_cast<std::size_t>(area.tensor);
    std::vector<Statement> all;
    for (const plan::Rect& rect : area.rects) {
      Statement view = view_of("", plan_.tensors[index], rect);
      Statement whole{"t." + names_[index]};
      if (is_remote) whole.add("_at[{}]", {owner});
      all.push_back(whole.add(view));
    }
    if (is_remote) made_.shared.insert(area.tensor);
    return all;
  }

  std::string place_of(const Point& point) const {
    return fmt::format("rank {}, stream '{}', transfer {}", point.rank,
                       plan_.code(point.rank).streams[static_cast<std::size_t>(point.actor)].name,
                       point.position);
  }

  void add_transfer(std::vector<Statement>& all, const Point& point, const Task& task) {
    const plan::Transfer& transfer = *task.transfer;
    Indices at = task.at;
    at.rank = point.rank;
    if (transfer.reduce != ReduceOp::none)
      check_arithmetic(transfer.destination.tensor, place_of(point), false);
    if (transfer.kind == plan::TransferKind::collective) {
      all.push_back(collective(point, transfer, at));
      return;
    }
    if (transfer.group >= 0) return add_by_switch(all, point, transfer, at);
    const std::int64_t peer = transfer.peer(at);
    const bool pushes = transfer.kind == plan::TransferKind::push;
    const bool pulls = transfer.kind == plan::TransferKind::pull;
    const auto sources = views(transfer.source, at, pulls, peer);
    const auto targets = views(transfer.destination, at, pushes, peer);
    check_pairs(point, transfer.source, transfer.destination);
    const bool reduces = transfer.reduce != ReduceOp::none;
    std::vector<Statement> operands;
    if (reduces && transfer.operand != transfer.destination) {
      check_pairs(point, transfer.operand, transfer.destination);
      operands = views(transfer.operand, at, pushes, peer);
    }
    for (std::size_t i = 0; i < sources.size(); ++i) {
      Statement line = actor(point);
      line.add(!reduces ? ".copy(" : operands.empty() ? ".accumulate(" : ".reduce(");
      line.add(targets[i]).add(", ").add(sources[i]);
      if (!operands.empty()) line.add(", ").add(operands[i]);
      if (reduces && transfer.reduce != ReduceOp::sum)
        line.add(fmt::format(", operator=\"{}\"", name_of(transfer.reduce)));
      all.push_back(line.add(")"));
    }
  }

  /// The own view, which stands for the same place of all members.
  void add_by_switch(std::vector<Statement>& all, const Point& point,
                     const plan::Transfer& transfer, const Indices& at) {
    const bool pushes = transfer.kind == plan::TransferKind::push;
    const auto sources = views(transfer.source, at, false, 0);
    const auto targets = views(transfer.destination, at, false, 0);
    check_pairs(point, transfer.source, transfer.destination);
    made_.shared.insert(pushes ? transfer.destination.tensor : transfer.source.tensor);
    for (std::size_t i = 0; i < sources.size(); ++i)
      all.push_back(actor(point)
                        .add(pushes ? ".to_all(" : ".sum_of_all(")
                        .add(targets[i])
                        .add(", ")
                        .add(sources[i])
                        .add(", t.groups[{}])", {transfer.group}));
  }

  void check_pairs(const Point& point, const plan::Region& a, const plan::Region& b) const {
    bool pair = a.boxes.size() == b.boxes.size();
    for (std::size_t i = 0; pair && i < a.boxes.size(); ++i)
      pair = plan::Region{a.tensor, {a.boxes[i]}}.elements() ==
             plan::Region{b.tensor, {b.boxes[i]}}.elements();
    if (!pair)
      refuse(place_of(point) + ": its regions have boxes of other sizes, which is no one copy each",
             "cut both regions into the same boxes");
  }

  Statement collective(const Point& point, const plan::Transfer& transfer, const Indices& at) {
    static constexpr Collective kKnown[] = {Collective::all_reduce, Collective::all_gather,
                                            Collective::reduce_scatter, Collective::all_to_all};
    if (std::ranges::find(kKnown, transfer.collective) == std::end(kKnown))
      refuse(fmt::format("{}: a library's {} is not emitted", place_of(point),
                         name_of(transfer.collective)),
             "all-reduce, all-gather, reduce-scatter and all-to-all are");
    const auto& members = plan_.groups[static_cast<std::size_t>(transfer.group)];
    for (const int member : members) {
      Indices there = at;
      there.rank = member;
      if (!(plan::evaluate(transfer.source, there) == plan::evaluate(transfer.source, at)))
        refuse(place_of(point) +
                   ": its source differs by rank, which a library's collective does "
                   "not take",
               "let all members name the same region");
    }
    const auto sources = views(transfer.source, at, false, 0);
    const auto targets = views(transfer.destination, at, false, 0);
    if (sources.size() != 1 || targets.size() != 1)
      refuse(place_of(point) + ": a library's collective takes one box", "leave split out");
    made_.shared.insert(transfer.source.tensor);
    Statement line = actor(point);
    line.add(fmt::format(".collective(\"{}\", ", name_of(transfer.collective)));
    line.add(targets.front()).add(", ").add(sources.front());
    line.add(", t.groups[{}]", {transfer.group});
    if (transfer.reduce != ReduceOp::sum && transfer.reduce != ReduceOp::none)
      line.add(fmt::format(", operator=\"{}\"", name_of(transfer.reduce)));
    return line.add(")");
  }

  void check_arithmetic(std::int32_t index, const std::string& what, bool is_product) const {
    const DataType type = *plan_.tensors[static_cast<std::size_t>(index)].type;
    if (is_product ? !is_float(type) : is_fp8(type))
      refuse(fmt::format("{} works on {}, for which PyTorch has no {}", what, name_of(type),
                         is_product ? "torch.mm on GPUs" : "sums"),
             "float, half and bfloat16 compile");
  }

  const plan::Plan& plan_;
  const std::vector<std::string>& names_;
  const std::string& file_;
  const Fusions* fusions_;
  const std::vector<TileStore>* stores_;
  std::vector<RankTasks> tasks_;
  std::vector<std::vector<CarriedItem>> carried_;  ///< by rank; empty: streams move
  const Statement* speaker_ = nullptr;             ///< in the place of a stream
  TorchCalls made_;
};

}  // namespace

std::string work_name(std::size_t grid) {
  return grid == 0 ? "t.work" : fmt::format("t.work_{}", grid + 1);
}

TorchCalls calls_of(const plan::Plan& plan, const std::vector<std::string>& names,
                    const std::string& file, const Fusions* fusions, bool carries,
                    const std::vector<TileStore>* stores) {
  return CallMaker(plan, names, file, fusions, carries, stores).make();
}

}  // namespace hemiola::compile
