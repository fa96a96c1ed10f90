// Blocks of a transformer under tensor and sequence parallelism: an all-gather of the rows, a
// product, what is local to a rank, a product, and a reduce-scatter, in steps that flow through.
// Private to the layer.
//
// Every rank has `rows` rows of each sequence. A step takes whole sequences, or some rows of every
// rank's part of one; no step waits for anything but its own data. One stream of computes does what
// a step needs in the order of the steps; where what is in between mixes rows (attention), steps of
// one sequence wait for each other there, and for nothing else.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/templates/sequences.h"

namespace hemiola::plan {

class BlockMaker {
 public:
  /// All ranks run it.
  Plan make();

 protected:
  /// `in`: the axes behind the rows of what the first product makes; `out`: of what the second one
  /// sums over. Failure: what is not divided.
  BlockMaker(const TemplateArguments& arguments, std::int64_t sequences,
             std::vector<std::int64_t> in, std::vector<std::int64_t> out, bool in_steps);
  BlockMaker(const BlockMaker&) = delete;
  BlockMaker& operator=(const BlockMaker&) = delete;
  virtual ~BlockMaker() = default;

  /// Some rows of some ranks: of a step those of all ranks, or of all but the own one, whose rows
  /// are then a piece of their own.
  struct Piece {
    std::string name;  ///< "step 3", "own"
    Affine block{};
    std::int64_t blocks = 1;
    bool wraps = false;
    std::int64_t sequence = 0, sequences = 1, row = 0, rows = 1;
    bool is_own = false;
    std::vector<Dependency> arrived{};
  };

  /// The products and what is between them of one step after the other: in the order in which a
  /// stream runs them.
  virtual void add_steps() = 0;
  /// Of own rows before and behind all steps ("hetero").
  virtual void add_own_first(const Piece& own) = 0;
  virtual std::vector<ComputeAxis> columns_of_input(const Piece& piece) const = 0;
  virtual std::vector<ComputeAxis> sums_of_output() const = 0;

  Piece step(std::int64_t outer, std::int64_t inner) const;
  /// The same rows of all ranks.
  Piece of_all_ranks(Piece piece) const;
  void add_input_product(const Piece& piece);
  void add_output_product(const Piece& piece);
  void add(Compute compute) { code_.computes.push_back(std::move(compute)); }
  /// Which are then complete: what a transfer of (outer, inner) waits for.
  void made(std::int64_t outer, std::int64_t inner);

  /// A launch on the one stream, whose first axes are block, sequence and row.
  Compute launch(const std::string& what, const Piece& piece, const char* kernel,
                 std::int64_t tile_rows) const;
  /// An operand along block, sequence, row and then `more`.
  ComputeOperand operand(std::int32_t tensor, Use use, const Piece& piece,
                         std::vector<std::int32_t> more, std::vector<Affine> begin = {}) const;
  std::int64_t tile(const std::string& name, const Piece& piece, std::int64_t extent) const;

  std::int64_t outers() const { return outers_; }
  std::int64_t inners() const { return inners_; }
  std::int64_t rows() const { return rows_; }

  static constexpr std::int32_t kX = 0, kIn = 1, kMiddle = 2, kInner = 3, kOut = 4, kPartial = 5,
                                kSlots = 6, kY = 7;
  const TemplateArguments& arguments_;
  std::int64_t ranks_;

 private:
  void start(const std::vector<std::int64_t>& in, const std::vector<std::int64_t>& out);
  Box chunk(const Affine& block) const;
  Affine made_by_step() const;
  void repeat_steps(Stream& stream, std::vector<Item> items) const;
  Stream gather_over(std::int64_t distance) const;
  Stream scatter_over(std::int64_t distance) const;
  Stream sums() const;

  std::int64_t sequences_, rows_, hidden_;
  std::int64_t outers_ = 1, inners_ = 1, step_sequences_ = 1, step_rows_ = 1;
  bool hetero_ = false;
  Ways gather_, scatter_;
  Plan plan_;
  Code code_;
  std::vector<std::int64_t> made_;  ///< by step: the compute behind which a step is made
};

/// Those of a block in steps (degree, steps) or at once, beside its sizes.
std::vector<ParameterInfo> block_parameters(std::vector<ParameterInfo> sizes, bool in_steps);

}  // namespace hemiola::plan
