// Products in steps, each a launch of its own, with the communication that feeds or follows them:
// FiCCO's space of schedules (arXiv 2512.10236), {rows, columns} x {uniform, hetero} x {fused,
// unfused} at any degree, and the exchange of whole shards (docs/plans.md). Private to the layer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hemiola/parts/build_plan.h"
#include "plan/templates/pipelines.h"

namespace hemiola::plan {

/// How an operator is divided into steps. Of n ranks, every one gets a block of each.
struct SequenceShape {
  std::int64_t degree = 1;  ///< steps in which each block goes
  /// Blocks come one after the other, each from one peer; else those of all peers at once.
  bool one_by_one = false;
  /// Steps divide rows of a block (1D); else (2D) what is summed over, where products follow their
  /// data, and columns, where data follow their products: what is sent has to be complete.
  bool by_rows = true;
  /// The own block is a product of its own, at the end where nobody waits for anybody: the first
  /// one, which needs no data of others, or the last one, whose result nobody else needs. Else it
  /// is divided as all others.
  bool hetero = false;
  bool fused = true;  ///< one product per step; else one for each block of a step
  /// Fused steps by rows work on consecutive memory: chunks land beside each other, and results are
  /// copied to their rows; or rows are copied beside each other, and chunks leave from there. Else
  /// products read and write blocks in their places.
  bool copies = false;
  bool pulls = false;                ///< receivers load; else senders store
  std::int64_t compute_streams = 1;  ///< of unfused products
};

/// And how tokens spread over experts.
std::vector<ParameterInfo> with_load(std::vector<ParameterInfo> parameters);
/// transfer, degree, axis, steps, products, placement, streams, and the tiles of the own block; the
/// sizes of a product are not among them. `transfer` is the default; `columns` what 2D steps
/// divide, "k" or "n".
std::vector<ParameterInfo> sequence_parameters(const char* transfer, const char* columns);
/// transfer; own_tile_m and own_tile_n, of the product of the own block.
std::vector<ParameterInfo> shards_parameters(const char* transfer);
/// Failure: values out of range, and combinations that mean nothing.
SequenceShape sequence_shape(const TemplateArguments& arguments);
/// All at once: one step.
SequenceShape serial_shape(const TemplateArguments& arguments);
/// Whole blocks of one peer after the other.
SequenceShape shards_shape(const TemplateArguments& arguments);

/// What makers of both directions share: a block of `rows` x `length` elements from each rank to
/// each other, in chunks, where a distance between ranks stands for a stream of transfers.
class SequenceMaker {
 protected:
  /// `rows`: of a block, or of those of the experts of each rank. `length` of a row of a block,
  /// which steps by columns divide: "k" or "n".
  SequenceMaker(const TemplateArguments& arguments, const SequenceShape& shape,
                std::vector<std::int64_t> rows, std::int64_t length, const char* name_of_length);

  /// m over ranks: rows of a rank.
  static std::int64_t rows_of_rank(const TemplateArguments& arguments);
  /// What each rank has for the experts of each other, by rank.
  static std::vector<std::int64_t> rows_for_experts(const TemplateArguments& arguments);

  /// From now on blocks have as many rows as those of the experts of `rank`; without experts, or
  /// where their load is even, all blocks have the same.
  void use_rows_of(std::int64_t rank);
  /// Whether all ranks do the same.
  bool is_even() const { return rows_by_expert_.empty(); }
  /// Rows of a rank that have most.
  std::int64_t most_rows() const;
  /// The rows that blocks have now, of a tensor [rank, rows, ...]: of all its blocks, or of one.
  Region rows_of_blocks(std::int32_t tensor) const;
  Region rows_of_block(std::int32_t tensor, const Affine& block) const;

  /// The distance from which on steps take blocks, and how many they take.
  std::int64_t first_block() const { return shape_.hetero ? 1 : 0; }
  std::int64_t blocks() const { return ranks_ - first_block(); }
  /// Whom the own rank sends to at a distance, and who sends to it.
  Affine taker_at(std::int64_t distance) const;
  Affine sender_at(std::int64_t distance) const;
  /// Of a transfer with `peer`.
  Affine sender_to(const Affine& peer) const { return shape_.pulls ? peer : own_rank(); }
  Affine taker_from(const Affine& peer) const { return shape_.pulls ? own_rank() : peer; }
  Transfer moved(const Affine& peer, const Region& from, const Region& to) const;
  /// "to rank + 3", behind what is moved.
  Stream stream_over(std::int64_t distance, const char* what = "") const;
  /// That what stream `distance` brings in a step is there.
  Dependency arrived(std::int64_t distance, const Affine& step) const;

  /// Rows and columns of a block in the step that `at` says; of the whole block without steps.
  Box chunk(const Affine& block, const Affine& at) const;
  /// Rows of a tensor [step, rows, ...] in which what a step needs lies together.
  Region beside(std::int32_t tensor, const Affine& at, const Affine& row) const;
  std::int64_t row_of(std::int64_t step) const { return shape_.by_rows ? step * step_rows_ : 0; }
  /// Where in its rows a step begins.
  std::int64_t begin_of(std::int64_t step) const {
    return shape_.by_rows ? 0 : step * step_length_;
  }

  /// A product as a launch, without operands: axes block, m, n, k with the tiles of the parameters,
  /// or with those for the block that stays where it is (`own`).
  Compute launched_product(std::string name, std::int64_t blocks, std::int64_t rows,
                           std::int64_t columns, std::int64_t depth, bool own) const;
  /// That of an unfused step, on its stream.
  Compute launched_block(std::int64_t step, std::int64_t distance, std::int64_t columns,
                         std::int64_t depth) const;

  /// Transfers with one peer after the other: `make(peer, number)`. `use(distance)` sees to the
  /// rows of what goes that far, where loads differ.
  template <typename Use, typename Make>
  Stream transfers_one_by_one(const Use& use, const Make& make) const {
    Stream stream{shape_.pulls ? "from the next ranks" : "to the next ranks", {}};
    if (is_even()) {
      repeat(stream, ranks_ - 1, make(around(ranks_, 1, 1), counting()));
      return stream;
    }
    for (std::int64_t distance = 1; distance < ranks_; ++distance) {
      use(distance);
      stream.items.emplace_back(make(around(ranks_, distance), constant(distance - 1)));
    }
    return stream;
  }

  /// The plan in which ranks run `code_of(rank)`: all the same, or each its own.
  template <typename CodeOf>
  Plan run(const CodeOf& code_of) {
    std::vector<Code> codes;
    for (std::int64_t rank = 0; rank < (is_even() ? 1 : ranks_); ++rank)
      codes.push_back(code_of(rank));
    run_codes(plan_, std::move(codes));
    return std::move(plan_);
  }

  const TemplateArguments& arguments_;
  SequenceShape shape_;
  std::int64_t ranks_;
  std::int64_t rows_;                         // of a block
  std::vector<std::int64_t> rows_by_expert_;  // where their load is not even
  std::int64_t step_rows_, step_length_;      // of a chunk
  Plan plan_;
};

}  // namespace hemiola::plan
