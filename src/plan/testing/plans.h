// Executes plans on numbers: for the tests of this layer.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "core/index.h"
#include "plan/area.h"
#include "plan/launches.h"
#include "plan/plan.h"
#include "plan/tiles.h"

namespace hemiola::plan {

/// In each step something that has all it waits for happens, chosen at random, some streams being
/// much slower than others: a stream's next
/// transfer reads, or writes what it has read; a whole collective; a tile. Reading what nobody
/// wrote is an error, and additions between which nothing orders get lost, so a missing dependency
/// shows in some order. Numbers are modulo 2^64; reductions add.
class Execution {
 public:
  using Value = std::uint64_t;

  /// `in_place`: input and output share memory as in nccl-tests (plans of chunks).
  Execution(const Plan& plan, std::uint32_t seed, bool in_place = false)
      : plan_(plan), random_(seed), in_place_(in_place) {
    for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
      if (plan.tensors[t].role == Role::input && input_ < 0) input_ = static_cast<int>(t);
      if (plan.tensors[t].role == Role::output) output_ = static_cast<int>(t);
    }
    memory_.resize(index(plan.ranks));
    for (int rank = 0; rank < plan.ranks; ++rank) add_rank(rank);
  }

  /// False when something remains that waits for ever.
  bool run() {
    while (true) {
      std::vector<std::size_t> ready;
      bool is_done = true;
      for (std::size_t i = 0; i < states_.size(); ++i) {
        if (states_[i].next == states_[i].todo.size()) continue;
        is_done = false;
        if (states_[i].has_read || may_start(states_[i])) ready.push_back(i);
      }
      for (std::size_t i = 0; i < tiles_.size(); ++i) {
        if (tiles_[i].is_done) continue;
        is_done = false;
        if (may_start(tiles_[i])) ready.push_back(states_.size() + i);
      }
      if (is_done) return true;
      if (ready.empty()) return false;
      const std::size_t chosen = choose(ready);
      if (chosen < states_.size())
        advance(states_[chosen]);
      else
        compute(tiles_[chosen - states_.size()]);
    }
  }

  static Value input(std::int64_t rank, std::int64_t element, std::int32_t tensor = 0) {
    std::mt19937_64 mixed(static_cast<Value>((tensor * 1'009 + rank) * 1'000'003 + element + 1));
    return mixed();
  }

  /// Elements are numbered with the last axis fastest.
  std::optional<Value> value(int rank, std::int32_t tensor, std::int64_t element) const {
    return const_cast<Execution*>(this)->cell(rank, tensor, element);
  }

  /// The numbers of the area's elements, in its order.
  std::vector<std::int64_t> list(const Area& area) const {
    const std::vector<std::int64_t>& shape = plan_.tensors[index(area.tensor)].shape;
    std::vector<std::int64_t> all;
    for (const Rect& rect : area.rects) {
      Coordinates place = rect.begin;
      for (bool more = !rect.empty(); more;) {
        std::int64_t element = 0;
        for (std::size_t axis = 0; axis < shape.size(); ++axis)
          element = element * shape[axis] + place[axis];
        all.push_back(element);
        std::size_t axis = place.size();
        while (axis > 0 && ++place[axis - 1] == rect.end[axis - 1]) {
          place[axis - 1] = rect.begin[axis - 1];
          --axis;
        }
        more = axis > 0;
      }
    }
    return all;
  }

 private:
  struct State {
    int rank;
    std::vector<std::pair<Transfer, Indices>> todo;
    std::size_t next = 0;
    bool has_read = false;
    std::vector<Value> values{};
  };
  /// A compute; what a launch comes after.
  struct Kernel {
    int rank;
    const Compute* compute;
    std::vector<std::size_t> before;  // kernels
    std::size_t tiles_left = 0;
    bool has_started = false;
  };
  struct Tile {
    int rank;
    const Compute* compute;
    std::size_t kernel;
    std::vector<std::int64_t> begin, end;  // by compute axis
    std::vector<Area> operands;
    bool is_done = false;
  };
  /// A transfer that writes to a rank.
  struct Writer {
    Area area;
    std::size_t state, number;
  };

  /// Mostly the one of the highest rank in an order drawn once per run.
  std::size_t choose(const std::vector<std::size_t>& ready) {
    if (order_.empty()) {
      order_.resize(states_.size() + tiles_.size());
      for (std::uint32_t& place : order_) place = static_cast<std::uint32_t>(random_());
    }
    if (random_() % 4 == 0) return ready[random_() % ready.size()];
    return *std::max_element(ready.begin(), ready.end(),
                             [&](std::size_t a, std::size_t b) { return order_[a] < order_[b]; });
  }

  void add_rank(int rank) {
    const Code& code = plan_.code(rank);
    const Indices here{.rank = rank};
    for (const Tensor& tensor : plan_.tensors) memory_[index(rank)].emplace_back(tensor.elements());
    for (std::size_t t = 0; t < plan_.tensors.size(); ++t) {
      const auto tensor = static_cast<std::int32_t>(t);
      if (plan_.tensors[t].role != Role::input || code.resident) continue;
      fill(rank, whole(plan_, tensor));
    }
    if (code.resident)
      for (const Region& region : *code.resident) fill(rank, evaluate(region, here));
    for (std::size_t i = 0; i < code.streams.size(); ++i) {
      State state{rank, {}};
      for_each_transfer(code.streams[i], rank, [&](const Transfer& transfer, const Indices& when) {
        for (const int writer : writers_of(rank, transfer, when))
          writers_[writer].push_back(
              {evaluate(transfer.destination, when), states_.size(), state.todo.size()});
        state.todo.emplace_back(transfer, when);
      });
      index_[{rank, static_cast<std::int32_t>(i)}] = states_.size();
      states_.push_back(std::move(state));
    }
    const LaunchOrder order(code);
    first_kernel_.push_back(kernels_.size());
    for (std::size_t c = 0; c < code.computes.size(); ++c) {
      Kernel kernel{rank, &code.computes[c], {}};
      for (const std::int32_t other : order.directly_before(static_cast<std::int32_t>(c)))
        kernel.before.push_back(first_kernel_.back() + index(other));
      kernels_.push_back(std::move(kernel));
      add_tiles(rank, code.computes[c]);
    }
  }

  void fill(int rank, const Area& area) {
    for (const std::int64_t element : list(area))
      cell(rank, area.tensor, element) = input(rank, element, area.tensor);
  }

  void add_tiles(int rank, const Compute& compute) {
    std::vector<std::int64_t> begin(compute.axes.size(), 0);
    while (true) {
      Tile tile{rank, &compute, kernels_.size() - 1, begin, begin, {}};
      ++kernels_.back().tiles_left;
      for (std::size_t axis = 0; axis < begin.size(); ++axis)
        tile.end[axis] = std::min(begin[axis] + compute.axes[axis].tile, compute.axes[axis].extent);
      for (const ComputeOperand& operand : compute.operands) {
        Area area = whole(plan_, operand.tensor);
        for (std::size_t i = 0; i < operand.axes.size(); ++i) {
          if (operand.axes[i] < 0) continue;
          const std::int64_t extent = plan_.tensors[index(operand.tensor)].shape[i];
          std::int64_t shift = operand.begin.empty() ? 0 : operand.begin[i]({.rank = rank});
          if (operand.wraps && tile.begin[index(operand.axes[i])] + shift >= extent)
            shift -= extent;
          area.rects[0].begin[i] = tile.begin[index(operand.axes[i])] + shift;
          area.rects[0].end[i] = tile.end[index(operand.axes[i])] + shift;
        }
        tile.operands.push_back(std::move(area));
      }
      tiles_.push_back(std::move(tile));
      std::size_t axis = begin.size();
      while (axis > 0 &&
             (begin[axis - 1] += compute.axes[axis - 1].tile) >= compute.axes[axis - 1].extent) {
        begin[axis - 1] = 0;
        --axis;
      }
      if (axis == 0) return;
    }
  }

  std::optional<Value>& cell(int rank, std::int32_t tensor, std::int64_t element) {
    if (in_place_ && (tensor == input_ || tensor == output_)) {
      const std::int64_t in = plan_.tensors[index(input_)].elements();
      const std::int64_t out = plan_.tensors[index(output_)].elements();
      if ((tensor == input_ ? in : out) < std::max(in, out)) element += rank * std::min(in, out);
      tensor = in >= out ? input_ : output_;
    }
    return memory_[index(rank)][index(tensor)][index(element)];
  }

  std::vector<int> writers_of(int rank, const Transfer& transfer, const Indices& when) const {
    if (transfer.kind != TransferKind::push) return {rank};
    if (transfer.group >= 0) return plan_.groups[index(transfer.group)];
    return {static_cast<int>(transfer.peer(when))};
  }

  bool has_computed(int rank, const Area& area) const {
    return std::all_of(tiles_.begin(), tiles_.end(),
                       [&](const Tile& tile) {
                         if (tile.rank != rank || tile.is_done) return true;
                         for (std::size_t o = 0; o < tile.operands.size(); ++o)
                           if (tile.compute->operands[o].use != Use::read &&
                               overlap(tile.operands[o], area))
                             return false;
                         return true;
                       }) &&
           std::all_of(tiles_.begin(), tiles_.end(), [&](const Tile& tile) {
             // All of a launch that waits as a whole.
             if (tile.rank != rank || tile.compute->waits == Waits::tiles) return true;
             if (kernels_[tile.kernel].tiles_left == 0) return true;
             for (std::size_t o = 0; o < tile.operands.size(); ++o)
               if (tile.compute->operands[o].use != Use::read && overlap(tile.operands[o], area))
                 return false;
             return true;
           });
  }

  bool has_all_it_needs(const State& state) const {
    const auto& [transfer, when] = state.todo[state.next];
    for (const Dependency& dependency : transfer.after) {
      const auto rank = static_cast<int>(dependency.rank(when));
      if (dependency.computed) {
        if (!has_computed(rank, evaluate(*dependency.computed, when))) return false;
        continue;
      }
      if (dependency.compute) {
        const Kernel& kernel =
            kernels_[first_kernel_[index(rank)] + index((*dependency.compute)(when))];
        if (kernel.tiles_left > 0) return false;
        continue;
      }
      const State& other = states_[index_.at({rank, dependency.stream})];
      if (static_cast<std::int64_t>(other.next) <= dependency.transfer(when)) return false;
    }
    return true;
  }

  /// A collective is started by the first of its group when all have come to it.
  bool may_start(const State& state) const {
    if (!has_all_it_needs(state)) return false;
    const Transfer& transfer = state.todo[state.next].first;
    if (transfer.kind != TransferKind::collective) return true;
    const std::vector<int>& group = plan_.groups[index(transfer.group)];
    return state.rank == group.front() && std::all_of(group.begin(), group.end(), [&](int member) {
             return waiting(member, transfer.group).has_value();
           });
  }

  /// The stream of a rank whose next transfer is a collective of the group and has all it needs.
  std::optional<std::size_t> waiting(int rank, std::int32_t group) const {
    for (std::size_t i = 0; i < states_.size(); ++i) {
      const State& state = states_[i];
      if (state.rank != rank || state.next == state.todo.size()) continue;
      const Transfer& transfer = state.todo[state.next].first;
      if (transfer.kind == TransferKind::collective && transfer.group == group &&
          has_all_it_needs(state))
        return i;
    }
    return std::nullopt;
  }

  bool may_start(const Kernel& kernel) const {
    const Indices here{.rank = kernel.rank};
    return kernel.has_started ||
           (std::all_of(kernel.before.begin(), kernel.before.end(),
                        [&](std::size_t other) { return kernels_[other].tiles_left == 0; }) &&
            std::all_of(kernel.compute->after.begin(), kernel.compute->after.end(),
                        [&](const Dependency& dependency) {
                          if (!dependency.on_transfer()) return true;
                          const State& other = states_[index_.at(
                              {static_cast<int>(dependency.rank(here)), dependency.stream})];
                          return static_cast<std::int64_t>(other.next) > dependency.transfer(here);
                        }));
  }

  bool may_start(const Tile& tile) const {
    if (!may_start(kernels_[tile.kernel])) return false;
    if (tile.compute->waits == Waits::launch) return true;
    for (std::size_t o = 0; o < tile.operands.size(); ++o) {
      const Use use = tile.compute->operands[o].use;
      if (use != Use::read && use != Use::add) continue;
      const auto found = writers_.find(tile.rank);
      if (found == writers_.end()) continue;
      for (const Writer& writer : found->second)
        if (states_[writer.state].next <= writer.number && overlap(writer.area, tile.operands[o]))
          return false;
    }
    return true;
  }

  std::vector<Value> read(int owner, const Region& region, const Indices& when) {
    const Area area = evaluate(region, when);
    std::vector<Value> values;
    for (const std::int64_t element : list(area)) {
      const auto found = cell(owner, area.tensor, element);
      EXPECT_TRUE(found.has_value())
          << "rank " << owner << " has not all of " << to_string(plan_, area);
      values.push_back(found.value_or(0));
    }
    return values;
  }

  static void add(std::vector<Value>& sum, const std::vector<Value>& values) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
  }

  void write(int owner, const Region& region, const Indices& when,
             const std::vector<Value>& values) {
    const Area area = evaluate(region, when);
    const std::vector<std::int64_t> elements = list(area);
    for (std::size_t i = 0; i < elements.size(); ++i)
      cell(owner, area.tensor, elements[i]) = values[i];
  }

  void advance(State& state) {
    const auto& [transfer, when] = state.todo[state.next];
    if (transfer.kind == TransferKind::collective) {
      run_collective(transfer);
      return;
    }
    if (!state.has_read) {
      state.has_read = true;
      state.values = read_all(state.rank, transfer, when);
      return;
    }
    for (const int writer : writers_of(state.rank, transfer, when))
      write(writer, transfer.destination, when, state.values);
    state.has_read = false;
    ++state.next;
  }

  std::vector<Value> read_all(int rank, const Transfer& transfer, const Indices& when) {
    const int peer = static_cast<int>(transfer.peer(when));
    const bool pulls = transfer.kind == TransferKind::pull;
    if (pulls && transfer.group >= 0) {
      std::vector<Value> sum(index(transfer.source.elements()), 0);
      for (const int member : plan_.groups[index(transfer.group)])
        add(sum, read(member, transfer.source, when));
      return sum;
    }
    std::vector<Value> values = read(pulls ? peer : rank, transfer.source, when);
    if (transfer.reduce != ReduceOp::none)
      add(values, read(transfer.kind == TransferKind::push ? peer : rank, transfer.operand, when));
    return values;
  }

  void run_collective(const Transfer first) {
    const std::vector<int> members = plan_.groups[index(first.group)];
    std::vector<State*> states;
    std::vector<std::vector<Value>> sources;
    for (const int member : members) {
      states.push_back(&states_[*waiting(member, first.group)]);
      const auto& [transfer, when] = states.back()->todo[states.back()->next];
      EXPECT_EQ(transfer.collective, first.collective);
      sources.push_back(read(member, transfer.source, when));
    }
    std::vector<Value> sum(sources.front().size(), 0);
    for (const auto& source : sources) add(sum, source);
    for (std::size_t i = 0; i < members.size(); ++i) {
      const auto& [transfer, when] = states[i]->todo[states[i]->next];
      const auto part = static_cast<std::ptrdiff_t>(sum.size() / members.size());
      const auto own = static_cast<std::ptrdiff_t>(i);
      std::vector<Value> result = sum;
      if (transfer.collective == Collective::reduce_scatter)
        result = {sum.begin() + own * part, sum.begin() + (own + 1) * part};
      else
        EXPECT_EQ(transfer.collective, Collective::all_reduce) << "not known here";
      write(members[i], transfer.destination, when, result);
      ++states[i]->next;
    }
  }

  /// What a launch accumulates in is empty when it starts.
  void start(Kernel& kernel) {
    if (std::exchange(kernel.has_started, true) || !kernel.compute->is_launch()) return;
    for (const ComputeOperand& operand : kernel.compute->operands) {
      if (operand.use != Use::accumulate) continue;
      const Area all = operand_area(plan_, operand, whole_box(*kernel.compute), kernel.rank);
      for (const std::int64_t element : list(all)) cell(kernel.rank, all.tensor, element).reset();
    }
  }

  /// gemm: c[..., m, n] += a[..., m, k] b[k, n]. attention, without its softmax:
  /// o[h, q, :] += (q[h, q, :] . k[h, kv, :]) v[h, kv, :].
  void compute(Tile& tile) {
    start(kernels_[tile.kernel]);
    const bool is_gemm = tile.compute->kernel == "gemm";
    EXPECT_TRUE(is_gemm || tile.compute->kernel == "attention");
    const std::size_t result = is_gemm ? 2 : 3;  // behind it: what parts of a sum are weighed with
    EXPECT_GE(tile.operands.size(), result + 1);
    const auto length = [&](std::size_t axis) { return tile.end[axis] - tile.begin[axis]; };
    const std::size_t last = tile.begin.size() - 1;
    // With groups (a fourth axis) a tile has one head of queries.
    const std::int64_t batches = is_gemm ? 1 : length(0);
    EXPECT_TRUE(is_gemm || last == 2 || length(1) == 1);
    const std::int64_t inner = length(last);
    std::int64_t rows = is_gemm ? 1 : length(last - 1);
    for (std::size_t axis = 0; is_gemm && axis + 1 < last; ++axis) rows *= length(axis);
    const auto operand = [&](std::size_t o) {
      std::vector<Value> values;
      for (const std::int64_t element : list(tile.operands[o])) {
        const auto found = cell(tile.rank, tile.operands[o].tensor, element);
        const Use use = tile.compute->operands[o].use;
        EXPECT_TRUE(found || (use != Use::read && use != Use::add));
        values.push_back(found.value_or(0));
      }
      return values;
    };
    const std::vector<Value> a = operand(0), b = operand(1);
    const std::vector<Value> v = is_gemm ? std::vector<Value>{} : operand(2);
    std::vector<Value> out = operand(result);
    const std::int64_t columns = is_gemm ? length(last - 1) : std::ssize(out) / (batches * rows);
    for (std::int64_t batch = 0; batch < batches; ++batch) {
      for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t i = 0; i < inner; ++i) {
          Value dot = 0;
          for (std::int64_t d = 0; !is_gemm && d < columns; ++d)
            dot += a[index((batch * rows + row) * columns + d)] *
                   b[index((batch * inner + i) * columns + d)];
          for (std::int64_t column = 0; column < columns; ++column)
            out[index((batch * rows + row) * columns + column)] +=
                is_gemm ? a[index(row * inner + i)] * b[index(i * columns + column)]
                        : dot * v[index((batch * inner + i) * columns + column)];
        }
      }
    }
    const std::vector<std::int64_t> elements = list(tile.operands[result]);
    for (std::size_t i = 0; i < elements.size(); ++i)
      cell(tile.rank, tile.operands[result].tensor, elements[i]) = out[i];
    tile.is_done = true;
    --kernels_[tile.kernel].tiles_left;
  }

  const Plan& plan_;
  std::mt19937 random_;
  bool in_place_;
  std::int32_t input_ = -1, output_ = -1;
  std::vector<std::vector<std::vector<std::optional<Value>>>> memory_;  // rank, tensor, element
  std::vector<State> states_;
  std::vector<Tile> tiles_;
  std::vector<Kernel> kernels_;
  std::vector<std::size_t> first_kernel_;  // by rank
  std::vector<std::uint32_t> order_;
  std::map<int, std::vector<Writer>> writers_;  // by rank
  std::map<std::pair<int, std::int32_t>, std::size_t> index_;
};

}  // namespace hemiola::plan
