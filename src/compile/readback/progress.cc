// Whether all that ranks give their streams comes to an end, with as few programs of a kernel as
// one, and with kernels that hold all compute units until they end.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "compile/readback/body.h"
#include "compile/readback/program.h"
#include "core/index.h"

namespace hemiola::compile::readback {
namespace {

/// What is done at some time: an operation of a stream, a wave of tiles or a movement of a kernel.
struct Step {
  int rank = 0;
  const Node* node = nullptr;
  std::vector<std::size_t> before{};
  bool is_tiles = false;
};

class ProgressProver {
 public:
  explicit ProgressProver(const Reading& reading) : reading_(reading) {
    for (int rank = 0; rank < reading.ranks; ++rank) add_rank(rank);
    for (int rank = 0; rank < reading.ranks; ++rank) order_rank(rank);
    meet();
  }

  void prove() {
    if (const Step* stuck = first_of(undone()))
      fail(*stuck,
           fmt::format("rank {} waits for ever: tiles wait for what comes behind later tiles of a "
                       "kernel, which no program is free to take",
                       stuck->rank),
           "a persistent kernel may have as few programs as one");
    const auto held = beside();
    for (const auto& [unit, kernel] : held) steps_[unit].before.push_back(kernel);
    const std::vector<bool> open = undone();
    const Step* stuck = first_of(open);
    if (stuck == nullptr) return;
    const auto unit = std::ranges::find_if(held, [&](const auto& one) {
      return open[one.first] && steps_[one.first].rank == stuck->rank;
    });
    const Step& waits = unit == held.end() ? *stuck : steps_[unit->first];
    fail(waits,
         fmt::format("this needs compute units (a copy within a GPU, a sum, zeros or a collective "
                     "of a library), and a kernel of rank {} that waits for it, line {}, may hold "
                     "all of them",
                     waits.rank, reading_.walker.module().source.line(stuck->node->begin)),
         "the kernel's stream waits for it before the launch, or workgroups of their own move the "
         "data (movers) beside a persistent kernel");
  }

 private:
  struct Launch {
    std::size_t start = 0, end = 0;
    bool is_persistent = false;
    std::map<std::int64_t, std::size_t> parts;  ///< the last wave of each, and movements
  };

  std::size_t add(int rank, const Node* node, bool is_tiles = false) {
    steps_.push_back({.rank = rank, .node = node, .is_tiles = is_tiles});
    return steps_.size() - 1;
  }
  void order(std::size_t earlier, std::size_t later) { steps_[later].before.push_back(earlier); }

  void add_rank(int rank) {
    launches_.emplace_back();
    const RankRecord& record = reading_.records[index(rank)];
    for (std::size_t s = 0; s < record.streams.size(); ++s) {
      std::optional<std::size_t> last;
      for (const HostOp& op : record.streams[s]) {
        const std::size_t step = add(rank, op.node);
        if (last) order(*last, step);
        ops_[&op] = step;
        last = step;
        if (op.kind == HostOp::Kind::launch) last = add_launch(rank, op, step);
        if (op.kind == HostOp::Kind::record) events_[{rank, op.event}] = step;
        if (op.kind == HostOp::Kind::signal)
          signals_.try_emplace({rank, op.to, op.slot, op.step}, step);
        if (takes_units(op, rank, record.movers[s].workgroups > 0))
          units_.push_back({step, record.movers[s].workgroups > 0});
      }
    }
  }

  /// Whether it runs on compute units of the rank: copies between GPUs are made by engines.
  static bool takes_units(const HostOp& op, int rank, bool has_movers) {
    using Kind = HostOp::Kind;
    if (op.kind == Kind::copy)
      return has_movers || (op.regions[0].rank == rank && op.regions[1].rank == rank);
    return op.kind == Kind::reduce || op.kind == Kind::to_all || op.kind == Kind::sum_of_all ||
           op.kind == Kind::zero || op.kind == Kind::collective;
  }

  std::size_t add_launch(int rank, const HostOp& op, std::size_t start) {
    Launch launch{.start = start, .is_persistent = !op.work->kernel->tile.empty(), .parts = {}};
    std::size_t last = start;
    const auto next = [&](const Node* node, bool is_tiles) {
      const std::size_t step = add(rank, node, is_tiles);
      order(last, step);
      last = step;
    };
    std::size_t move = 0;
    const WorkObject& work = *op.work;
    const auto moves_before = [&](std::int64_t wave) {
      for (; move < work.moves.size() && work.moves[move].before <= wave; ++move) {
        next(work.moves[move].op.node, false);
        launch.parts[kFirstShares + static_cast<std::int64_t>(move)] = last;
        needs_.emplace_back(last, &work.moves[move].after);
      }
    };
    for (std::size_t w = 0; w < work.waves.size(); ++w) {
      moves_before(static_cast<std::int64_t>(w));
      next(work.waves[w].node, true);
      needs_.emplace_back(last, &work.waves[w].after);
      for (const WorkObject::Turns& turns : work.turns) needs_.emplace_back(last, &turns.after);
      if (work.waves[w].part >= 0) launch.parts[work.waves[w].part] = last;
    }
    moves_before(INT64_MAX);
    launch.end = last;
    launches_.back().push_back(std::move(launch));
    return last;
  }

  void order_rank(int rank) {
    const RankRecord& record = reading_.records[index(rank)];
    for (const auto& stream : record.streams) {
      for (const HostOp& op : stream) {
        const std::size_t step = ops_.at(&op);
        if (op.kind == HostOp::Kind::wait_signal) wait(step, op.slot, op.step);
        if (op.kind == HostOp::Kind::wait && events_.contains({rank, op.event}))
          order(events_.at({rank, op.event}), step);
        if (op.kind == HostOp::Kind::barrier) barriers_[op.event].push_back(step);
      }
    }
    for (const auto& [step, needs] : needs_)
      if (steps_[step].rank == rank)
        for (const Need& need : *needs) wait(step, need.slot, need.step);
  }

  /// What nobody tells is not for here: it is waited for for ever.
  void wait(std::size_t step, std::int64_t slot, std::int64_t of_call) {
    const int rank = steps_[step].rank;
    const auto told = reading_.sends.find({rank, slot});
    if (told == reading_.sends.end()) return;
    const auto send =
        std::ranges::find_if(told->second, [&](const Send& one) { return one.step >= of_call; });
    if (send == told->second.end()) return;
    if (send->launch < 0) {
      const auto by = signals_.find({send->rank, rank, slot, send->step});
      if (by != signals_.end()) order(by->second, step);
      return;
    }
    const Launch& launch = launches_[index(send->rank)][index(send->launch)];
    const auto part = launch.parts.find(send->part);
    order(part == launch.parts.end() ? launch.end : part->second, step);
  }

  /// Whoever meets is over once all of them are there.
  void meet() {
    std::vector<std::vector<std::size_t>> all;
    for (const auto& [number, steps] : barriers_) all.push_back(steps);
    for (const Meeting& meeting : meetings_of(reading_)) {
      all.emplace_back();
      for (const auto& [rank, op] : meeting.ops) all.back().push_back(ops_.at(op));
    }
    for (const std::vector<std::size_t>& steps : all) {
      std::vector<std::size_t> before;
      for (const std::size_t step : steps)
        before.insert(before.end(), steps_[step].before.begin(), steps_[step].before.end());
      for (const std::size_t step : steps) steps_[step].before = before;
    }
  }

  /// Who needs compute units and does not come before a kernel that may hold all of them.
  std::vector<std::pair<std::size_t, std::size_t>> beside() const {
    std::vector<std::pair<std::size_t, std::size_t>> made;
    for (std::size_t rank = 0; rank < launches_.size(); ++rank) {
      for (const Launch& launch : launches_[rank]) {
        std::vector<bool> before(steps_.size(), false);
        std::vector<std::size_t> open{launch.start};
        while (!open.empty()) {
          const std::size_t step = open.back();
          open.pop_back();
          if (before[step]) continue;
          before[step] = true;
          open.insert(open.end(), steps_[step].before.begin(), steps_[step].before.end());
        }
        for (const auto& [unit, has_movers] : units_)
          if (index(steps_[unit].rank) == rank && !before[unit] &&
              !(has_movers && launch.is_persistent))
            made.emplace_back(unit, launch.end);
      }
    }
    return made;
  }

  /// By step whether it is never done.
  std::vector<bool> undone() const {
    std::vector<std::vector<std::size_t>> after(steps_.size());
    std::vector<std::size_t> left(steps_.size()), ready;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      left[i] = steps_[i].before.size();
      if (left[i] == 0) ready.push_back(i);
      for (const std::size_t earlier : steps_[i].before) after[earlier].push_back(i);
    }
    while (!ready.empty()) {
      const std::size_t step = ready.back();
      ready.pop_back();
      for (const std::size_t later : after[step])
        if (--left[later] == 0) ready.push_back(later);
    }
    std::vector<bool> open;
    for (const std::size_t count : left) open.push_back(count > 0);
    return open;
  }

  /// A wave if there is any; nothing: none is.
  const Step* first_of(const std::vector<bool>& open) const {
    const Step* found = nullptr;
    for (std::size_t i = 0; i < steps_.size(); ++i)
      if (open[i] && (found == nullptr || (steps_[i].is_tiles && !found->is_tiles)))
        found = &steps_[i];
    return found;
  }

  [[noreturn]] void fail(const Step& step, const std::string& what, const std::string& hint) const {
    reading_.walker.wrong(*step.node, what, hint, ExitCode::deadlock);
  }

  const Reading& reading_;
  std::vector<Step> steps_;
  std::map<const HostOp*, std::size_t> ops_;
  std::map<std::pair<int, std::int32_t>, std::size_t> events_;
  std::map<std::tuple<int, int, std::int64_t, std::int64_t>, std::size_t> signals_;
  std::map<std::int32_t, std::vector<std::size_t>> barriers_;
  std::vector<std::pair<std::size_t, const std::vector<Need>*>> needs_;
  std::vector<std::pair<std::size_t, bool>> units_;  ///< and whether they are workgroups of movers
  std::vector<std::vector<Launch>> launches_;        ///< by rank
};

}  // namespace

void prove_progress(const Reading& reading) {
  ProgressProver(reading).prove();
}

}  // namespace hemiola::compile::readback
