#include "plan/templates/blocks.h"

#include <algorithm>
#include <utility>

#include "plan/templates/families.h"

namespace hemiola::plan {
namespace {

constexpr Affine kOuterCount = counting();
constexpr Affine kInnerCount = {.loop = {0, 1}};

}  // namespace

std::vector<ParameterInfo> block_parameters(std::vector<ParameterInfo> sizes, bool in_steps) {
  std::vector<ParameterInfo> all = std::move(sizes);
  const auto add_tile = [&all](const std::string& name, const char* value, const char* of) {
    all.push_back({name + "_m", value, {}, std::string("rows of a tile of ") + of});
    all.push_back({name + "_n", value, {}, std::string("columns of a tile of ") + of});
  };
  add_tile("in_tile", "128", "the first product");
  add_tile("out_tile", "128", "the second product");
  all.push_back({"tile_k", "64", {}, "what a tile sums over in a step"});
  all.push_back(data_type_parameter());
  all.push_back({"gather", "pull", {"push", "pull"}, "who moves rows: senders or receivers"});
  all.push_back({"scatter", "push", {"push", "pull"}, "who moves results"});
  if (!in_steps) return all;
  all.push_back({"degree", "4", {}, "steps that flow through"});
  all.push_back({"steps",
                 "uniform",
                 {"uniform", "hetero"},
                 "hetero: the own rows go through the first product before those of all others, "
                 "and through the second one behind them"});
  add_tile("own_in_tile", "0", "the first product of the own rows; 0: as the others");
  add_tile("own_out_tile", "0", "the second product of the own rows; 0: as the others");
  return all;
}

BlockMaker::BlockMaker(const TemplateArguments& arguments, std::int64_t sequences,
                       std::vector<std::int64_t> in, std::vector<std::int64_t> out, bool in_steps)
    : arguments_(arguments),
      ranks_(arguments.ranks),
      sequences_(sequences),
      rows_(divided(arguments, "m / sequences",
                    divided(arguments, "m", positive(arguments, "m"), sequences), ranks_)),
      hidden_(positive(arguments, "h")),
      hetero_(in_steps && arguments.word("steps") == "hetero"),
      gather_{ranks_, arguments.word("gather") == "pull"},
      scatter_{ranks_, arguments.word("scatter") == "pull"} {
  const std::int64_t degree = in_steps ? positive(arguments, "degree") : 1;
  if (degree <= sequences_) {
    outers_ = degree;
    step_sequences_ = divided(arguments, "sequences", sequences_, degree);
    step_rows_ = rows_;
  } else {
    outers_ = sequences_;
    inners_ = divided(arguments, "degree", degree, sequences_);
    step_rows_ = divided(arguments, "rows of a rank", rows_, inners_);
  }
  start(in, out);
}

/// x[rank, sequence, row, h] and everything behind it has rows in the same places.
void BlockMaker::start(const std::vector<std::int64_t>& in, const std::vector<std::int64_t>& out) {
  const DataType type = data_type_of(arguments_);
  const auto rows_and = [&](std::int64_t blocks, const std::vector<std::int64_t>& more) {
    std::vector<std::int64_t> shape{blocks, sequences_, rows_};
    shape.insert(shape.end(), more.begin(), more.end());
    return shape;
  };
  std::vector<std::int64_t> first_weights{hidden_}, last_weights = out;
  first_weights.insert(first_weights.end(), in.begin(), in.end());
  last_weights.push_back(hidden_);
  plan_ = start_plan(arguments_, 1);
  plan_.tensors = {{"x", Role::input, rows_and(ranks_, {hidden_}), type},
                   {"w_in", Role::input, first_weights, type},
                   {"middle", Role::scratch, rows_and(ranks_, in), type},
                   {"inner", Role::scratch, rows_and(ranks_, out), type},
                   {"w_out", Role::input, last_weights, type},
                   {"partial", Role::scratch, rows_and(ranks_, {hidden_}), type},
                   {"slots", Role::scratch, rows_and(ranks_ - 1, {hidden_}), type},
                   {"y", Role::output, {sequences_, rows_, hidden_}, type}};
}

Plan BlockMaker::make() {
  for (std::int64_t d = 1; d < ranks_; ++d) code_.streams.push_back(gather_over(d));
  Piece own{
      .name = "own", .block = own_rank(), .sequences = sequences_, .rows = rows_, .is_own = true};
  if (hetero_) add_own_first(own);
  add_steps();
  if (hetero_) add_output_product(own);
  for (std::int64_t d = 1; d < ranks_; ++d) code_.streams.push_back(scatter_over(d));
  code_.streams.push_back(sums());
  code_.resident = {slab(plan_, kX, 0, own_rank(), 1), all_of(plan_, kIn), all_of(plan_, kOut)};
  code_.expected = {{all_of(plan_, kY), true, slab(plan_, kPartial, 0, own_rank(), 1)}};
  run_codes(plan_, {std::move(code_)});
  return std::move(plan_);
}

// --- Transfers.

/// The rows of a step in a block of x, partial or slots, by the counters of the loops.
Box BlockMaker::chunk(const Affine& block) const {
  return {{block, 1},
          {scaled(kOuterCount, step_sequences_), step_sequences_},
          {scaled(kInnerCount, step_rows_), step_rows_},
          {{}, hidden_}};
}

void BlockMaker::repeat_steps(Stream& stream, std::vector<Item> items) const {
  repeat(stream, outers_, {Item{Loop{inners_, std::move(items)}}});
}

Stream BlockMaker::gather_over(std::int64_t distance) const {
  const Affine peer = gather_.peer_at(distance);
  const Region rows{kX, {chunk(gather_.sender_to(peer))}};
  Stream stream = gather_.stream_over(distance, "rows ");
  repeat_steps(stream, {Item{gather_.moved(peer, rows, rows)}});
  return stream;
}

/// Number of the compute that makes a step, by the counters of the loops.
Affine BlockMaker::made_by_step() const {
  const std::int64_t first = made_.front();
  return {.constant = first,
          .loop = {outers_ > 1 ? made_[index(inners_)] - first : 0,
                   inners_ > 1 ? made_[1] - first : 0}};
}

Stream BlockMaker::scatter_over(std::int64_t distance) const {
  const Affine peer = scatter_.peer_at(distance), maker = scatter_.sender_to(peer);
  Stream stream = scatter_.stream_over(distance, "results ");
  repeat_steps(stream,
               {Item{after(scatter_.moved(peer, {kPartial, {chunk(scatter_.taker_from(peer))}},
                                          {kSlots, {chunk(constant(distance - 1))}}),
                           {.rank = maker, .compute = made_by_step()})}});
  return stream;
}

/// Sums of a step wait for all that they need before they begin, so that a lowering may add it up
/// in one pass. Own rows that come last are added at the end.
Stream BlockMaker::sums() const {
  const auto result = [&] {
    Box box = chunk({});
    box.erase(box.begin());
    return Region{kY, {box}};
  }();
  const Affine number{.loop = {inners_, 1}};
  const Region own{kPartial, {chunk(own_rank())}};
  Stream stream{"sums", {}};
  std::vector<Item> step;
  for (std::int64_t d = hetero_ ? 1 : 0; d < ranks_; ++d) {
    const Region part = d == 0 ? own : Region{kSlots, {chunk(constant(d - 1))}};
    Transfer add = step.empty() ? copy(part, result) : accumulating(copy(part, result));
    if (step.empty()) {
      for (std::int64_t other = 1; other < ranks_; ++other)
        add.after.push_back(
            scatter_.arrived(other, static_cast<std::int32_t>(ranks_ - 1 + other - 1), number));
      if (d == 0) add.after.push_back({.rank = own_rank(), .compute = made_by_step()});
    }
    step.emplace_back(std::move(add));
  }
  repeat_steps(stream, std::move(step));
  if (hetero_) {
    const auto last = constant(static_cast<std::int64_t>(code_.computes.size()) - 1);
    repeat_steps(
        stream,
        {Item{after(accumulating(copy(own, result)), {.rank = own_rank(), .compute = last})}});
  }
  return stream;
}

// --- Computes.

BlockMaker::Piece BlockMaker::step(std::int64_t outer, std::int64_t inner) const {
  const std::int64_t number = outer * inners_ + inner;
  Piece piece{.name = "step " + std::to_string(number),
              .block = hetero_ ? around(ranks_, 1) : Affine{},
              .blocks = hetero_ ? ranks_ - 1 : ranks_,
              .wraps = hetero_,
              .sequence = outer * step_sequences_,
              .sequences = step_sequences_,
              .row = inner * step_rows_,
              .rows = step_rows_};
  for (std::int64_t d = 1; d < ranks_; ++d)
    piece.arrived.push_back(gather_.arrived(d, static_cast<std::int32_t>(d - 1), constant(number)));
  return piece;
}

BlockMaker::Piece BlockMaker::of_all_ranks(Piece piece) const {
  piece.block = {};
  piece.blocks = ranks_;
  piece.wraps = false;
  return piece;
}

void BlockMaker::made(std::int64_t outer, std::int64_t inner) {
  made_.resize(std::max(made_.size(), index(outer * inners_ + inner + 1)));
  made_[index(outer * inners_ + inner)] = static_cast<std::int64_t>(code_.computes.size()) - 1;
}

Compute BlockMaker::launch(const std::string& what, const Piece& piece, const char* kernel,
                           std::int64_t tile_rows) const {
  Compute compute{.name = what + " " + piece.name, .kernel = kernel, .axes = {}, .operands = {}};
  compute.axes = {{"block", piece.blocks, 1, false},
                  {"sequence", piece.sequences, 1, false},
                  {"m", piece.rows, std::min(tile_rows, piece.rows), false}};
  compute.stream = "compute";
  compute.waits = Waits::launch;
  return compute;
}

ComputeOperand BlockMaker::operand(std::int32_t tensor, Use use, const Piece& piece,
                                   std::vector<std::int32_t> more,
                                   std::vector<Affine> begin) const {
  ComputeOperand operand{tensor,
                         use,
                         {0, 1, 2},
                         {piece.block, constant(piece.sequence), constant(piece.row)},
                         piece.wraps};
  begin.resize(more.size());
  operand.axes.insert(operand.axes.end(), more.begin(), more.end());
  operand.begin.insert(operand.begin.end(), begin.begin(), begin.end());
  return operand;
}

std::int64_t BlockMaker::tile(const std::string& name, const Piece& piece,
                              std::int64_t extent) const {
  const std::int64_t own = piece.is_own ? arguments_.number("own_" + name) : 0;
  return std::min(own > 0 ? own : positive(arguments_, name.c_str()), extent);
}

void BlockMaker::add_input_product(const Piece& piece) {
  Compute product = launch("in", piece, "gemm", tile("in_tile_m", piece, piece.rows));
  std::vector<std::int32_t> columns, weights{-1};
  for (ComputeAxis& axis : columns_of_input(piece)) {
    columns.push_back(static_cast<std::int32_t>(product.axes.size()));
    product.axes.push_back(std::move(axis));
  }
  const auto depth = static_cast<std::int32_t>(product.axes.size());
  product.axes.push_back({"k", hidden_, std::min(positive(arguments_, "tile_k"), hidden_), true});
  weights.front() = depth;
  weights.insert(weights.end(), columns.begin(), columns.end());
  product.operands = {operand(kX, Use::read, piece, {depth}),
                      {kIn, Use::read, weights},
                      operand(kMiddle, Use::accumulate, piece, columns)};
  product.after = piece.arrived;
  add(std::move(product));
}

void BlockMaker::add_output_product(const Piece& piece) {
  Compute product = launch("out", piece, "gemm", tile("out_tile_m", piece, piece.rows));
  const auto columns = static_cast<std::int32_t>(product.axes.size());
  product.axes.push_back({"n", hidden_, tile("out_tile_n", piece, hidden_), false});
  std::vector<std::int32_t> sums, weights;
  for (ComputeAxis& axis : sums_of_output()) {
    sums.push_back(static_cast<std::int32_t>(product.axes.size()));
    product.axes.push_back(std::move(axis));
  }
  weights = sums;
  weights.push_back(columns);
  product.operands = {operand(kInner, Use::read, piece, sums),
                      {kOut, Use::read, weights},
                      operand(kPartial, Use::accumulate, piece, {columns})};
  add(std::move(product));
}

}  // namespace hemiola::plan
