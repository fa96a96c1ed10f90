// Plans for tests of the general lowering: random ones that are right by construction, and a fused
// all-gather and matrix product.
#pragma once

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "hemiola/parts/build_plan.h"

namespace hemiola::program::fixtures {

inline plan::Region box(std::int32_t tensor, std::int64_t row, std::int64_t rows,
                        std::int64_t column, std::int64_t columns) {
  return {tensor, {{{constant(row), rows}, {constant(column), columns}}}};
}

/// Pushes, pulls, copies and reductions of rectangles in a random order on random streams. Every
/// rectangle of `work` is written once, and whoever reads it waits for its writer: free of races.
class RandomPlan {
 public:
  enum class Form { any, pushes, copies };  ///< pushes: what a NIC can carry; copies: no reductions
  explicit RandomPlan(unsigned seed, Form form = Form::any) : form_(form), random_(seed) {}

  plan::Plan make() {
    plan_.name = "random";
    plan_.ranks = static_cast<int>(between(2, 4));
    plan_.tensors = {{"input", plan::Role::input, {kRows, kColumns}, {}},
                     {"work", plan::Role::scratch, {kWorkRows, kColumns}, {}}};
    plan_.chunks_per_size = kRows * kColumns;
    used_.assign(static_cast<std::size_t>(plan_.ranks), 0);
    written_.resize(static_cast<std::size_t>(plan_.ranks));
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      plan_.codes.emplace_back();
      plan_.code_of.push_back(rank);
      for (std::int64_t s = between(1, 3); s > 0; --s)
        plan_.codes.back().streams.push_back({.name = "s", .items = {}});
    }
    for (std::int64_t count = between(4, 24); count > 0; --count) add();
    return plan_;
  }

 private:
  static constexpr std::int64_t kRows = 4, kColumns = 6, kWorkRows = 96;
  struct Written {
    plan::Region region;
    int rank = -1;  ///< of the writer; -1: input
    std::int32_t stream = 0;
    std::int64_t number = 0;
  };

  std::int64_t between(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
  }

  /// Something to read on a rank, of `rows` x `columns` (0: any).
  std::optional<Written> readable(int owner, std::int64_t rows, std::int64_t columns) {
    std::vector<Written> fitting;
    for (const Written& w : written_[static_cast<std::size_t>(owner)]) {
      const plan::Box& b = w.region.boxes.front();
      if (rows == 0 || (b[0].extent >= rows && b[1].extent >= columns)) fitting.push_back(w);
    }
    if (fitting.empty() || between(0, 2) == 0) {
      if (rows == 0) {
        rows = between(1, kRows);
        columns = between(1, kColumns);
      }
      if (rows > kRows) return {};
      return Written{
          box(0, between(0, kRows - rows), rows, between(0, kColumns - columns), columns)};
    }
    Written chosen = fitting[static_cast<std::size_t>(between(0, std::ssize(fitting) - 1))];
    if (rows == 0) return chosen;
    plan::Box& b = chosen.region.boxes.front();
    b[0].begin.constant += between(0, b[0].extent - rows);
    b[1].begin.constant += between(0, b[1].extent - columns);
    b[0].extent = rows;
    b[1].extent = columns;
    return chosen;
  }

  void depend(plan::Transfer& transfer, const Written& on, int rank, std::int32_t stream) {
    if (on.rank < 0 || (on.rank == rank && on.stream == stream && on.rank == owner_)) return;
    transfer.after.push_back({constant(on.rank), on.stream, constant(on.number), {}});
  }

  void add() {
    const auto rank = static_cast<int>(between(0, plan_.ranks - 1));
    auto& streams = plan_.codes[static_cast<std::size_t>(rank)].streams;
    const auto stream = static_cast<std::int32_t>(between(0, std::ssize(streams) - 1));
    auto kind = static_cast<plan::TransferKind>(between(0, 2));
    if (form_ == Form::pushes && kind == plan::TransferKind::pull) kind = plan::TransferKind::push;
    const bool local = kind == plan::TransferKind::copy;
    const int peer =
        local ? rank : static_cast<int>((rank + between(1, plan_.ranks - 1)) % plan_.ranks);
    const int from = kind == plan::TransferKind::pull ? peer : rank;
    const int to = kind == plan::TransferKind::push ? peer : rank;
    const std::optional<Written> source = readable(from, 0, 0);
    const plan::Box& shape = source->region.boxes.front();
    std::int64_t& row = used_[static_cast<std::size_t>(to)];
    if (row + shape[0].extent > kWorkRows) return;
    plan::Transfer transfer{.kind = kind, .peer = constant(peer), .source = source->region};
    transfer.destination =
        box(1, row, shape[0].extent, between(0, kColumns - shape[1].extent), shape[1].extent);
    owner_ = from;
    depend(transfer, *source, rank, stream);
    const bool may_reduce = form_ == Form::any || (form_ == Form::pushes && local);
    if (may_reduce && between(0, 3) == 0) {
      if (const auto operand = readable(to, shape[0].extent, shape[1].extent)) {
        transfer.reduce = ReduceOp::sum;
        transfer.operand = operand->region;
        owner_ = to;
        depend(transfer, *operand, rank, stream);
      }
    }
    row += shape[0].extent;
    auto& items = streams[static_cast<std::size_t>(stream)].items;
    written_[static_cast<std::size_t>(to)].push_back(
        {transfer.destination, rank, stream, std::ssize(items)});
    items.emplace_back(std::move(transfer));
  }

  Form form_;
  std::mt19937 random_;
  plan::Plan plan_;
  std::vector<std::int64_t> used_;             // rows of work, by rank
  std::vector<std::vector<Written>> written_;  // by rank
  int owner_ = 0;
};

struct AgGemm {
  int ranks = 4;
  std::int64_t m = 512, n = 128, k = 256;  ///< n: columns of one rank
  std::int64_t tile_m = 64, tile_n = 64;
  bool pulls = false;
  bool gathers = true;  ///< false: everybody has all rows from the start
  bool computes = true;
};

/// Every rank holds m / ranks rows of A [m, k], gets the others', and multiplies them with its own
/// columns B [k, n] to C [m, n].
inline plan::Plan ag_gemm(const AgGemm& shape) {
  const std::int64_t share = shape.m / shape.ranks;
  const DataType type = DataType::bfloat16;
  plan::Plan plan;
  plan.name = "ag-gemm";
  plan.ranks = shape.ranks;
  plan.tensors = {{"A", plan::Role::input, {share, shape.k}, type},
                  {"gathered", plan::Role::scratch, {shape.m, shape.k}, type},
                  {"B", plan::Role::input, {shape.k, shape.n}, type},
                  {"C", plan::Role::output, {shape.m, shape.n}, type}};
  const auto rows_of = [&](const Affine& rank) {
    Affine first = rank;
    first.scale = share;
    return plan::Region{1, {{{first, share}, {constant(0), shape.k}}}};
  };
  plan::Code code;
  plan::Stream stream{.name = "gather", .items = {}};
  const plan::Region own = box(0, 0, share, 0, shape.k);
  stream.items.emplace_back(plan::copy(own, rows_of(own_rank())));
  if (shape.gathers) {
    const Affine peer = plan::around(shape.ranks, 1, 1);
    plan::repeat(stream, shape.ranks - 1,
                 shape.pulls ? plan::pull(peer, own, rows_of(peer))
                             : plan::push(peer, own, rows_of(own_rank())));
  }
  code.streams = {stream};
  if (shape.computes) {
    const std::int64_t m = shape.gathers ? shape.m : share;
    plan::Compute gemm{.name = "gemm",
                       .kernel = "gemm",
                       .axes = {{"m", m, shape.tile_m, false}, {"n", shape.n, shape.tile_n, false}},
                       .operands = {{1, plan::Use::read, {0, -1}, {}},
                                    {2, plan::Use::read, {-1, 1}, {}},
                                    {3, plan::Use::write, {0, 1}, {}}},
                       .flop_per_point = 2 * shape.k};
    if (!shape.gathers) {
      Affine first = own_rank();
      first.scale = share;
      gemm.operands[0].begin = {first, constant(0)};
    }
    code.computes = {gemm};
  }
  plan.codes = {code};
  plan.code_of.assign(static_cast<std::size_t>(plan.ranks), 0);
  return plan;
}

/// Every rank multiplies its A [m, k] with its B [k, n], in two steps along k; rows r of all
/// results go to rank r as soon as they are computed, which adds them up: a fused product and
/// reduce-scatter.
inline plan::Plan gemm_rs(int ranks, std::int64_t m = 256, std::int64_t n = 128,
                          std::int64_t k = 128) {
  const std::int64_t share = m / ranks;
  const DataType type = DataType::bfloat16;
  plan::Plan plan;
  plan.name = "gemm-rs";
  plan.ranks = ranks;
  plan.tensors = {{"A", plan::Role::input, {m, k}, type},
                  {"B", plan::Role::input, {k, n}, type},
                  {"partial", plan::Role::scratch, {m, n}, type},
                  {"arrived", plan::Role::scratch, {ranks, share, n}, type},
                  {"C", plan::Role::output, {share, n}, type}};
  const auto rows_of = [&](Affine rank) {
    rank.scale = share;
    return plan::Region{2, {{{rank, share}, {constant(0), n}}}};
  };
  const auto slot_of = [&](const Affine& rank) {
    return plan::Region{3, {{{rank, 1}, {constant(0), share}, {constant(0), n}}}};
  };
  plan::Stream stream{.name = "scatter", .items = {}};
  const Affine peer = plan::around(ranks, 1, 1);
  plan::Transfer send = plan::push(peer, rows_of(peer), slot_of(own_rank()));
  send.after.push_back({own_rank(), 0, constant(0), rows_of(peer)});
  plan::repeat(stream, ranks - 1, send);
  const plan::Region result = box(4, 0, share, 0, n);
  plan::Transfer own = plan::copy(rows_of(own_rank()), result);
  own.after.push_back({own_rank(), 0, constant(0), rows_of(own_rank())});
  stream.items.emplace_back(own);
  // Rank (own - 1 - i) sends here as its transfer number i.
  const Affine from{.constant = ranks - 1, .rank = 1, .loop = {-1, 0}, .modulus = ranks};
  plan::Transfer add = plan::accumulating(plan::copy(slot_of(from), result));
  add.after.push_back({from, 0, {.loop = {1, 0}}, {}});
  plan::repeat(stream, ranks - 1, add);
  plan::Code code;
  code.streams = {stream};
  code.computes = {{.name = "gemm",
                    .kernel = "gemm",
                    .axes = {{"m", m, 32, false}, {"n", n, 64, false}, {"k", k, 64, true}},
                    .operands = {{0, plan::Use::read, {0, 2}, {}},
                                 {1, plan::Use::read, {2, 1}, {}},
                                 {2, plan::Use::accumulate, {0, 1}, {}}}}};
  plan.codes = {code};
  plan.code_of.assign(static_cast<std::size_t>(ranks), 0);
  return plan;
}

}  // namespace hemiola::program::fixtures
