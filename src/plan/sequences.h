// Products in steps, each a launch of its own, with the communication that feeds or follows them:
// FiCCO's space of schedules (arXiv 2512.10236), {rows, columns} x {uniform, hetero} x {fused,
// unfused} at any degree, and the exchange of whole shards (docs/plans.md). Private to the layer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/pipelines.h"

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

/// A product as a launch, without operands: axes block, m, n, k with the tiles of the parameters,
/// or with those for the block that stays where it is (`own`).
Compute launched_product(const TemplateArguments& arguments, std::string name, std::int64_t blocks,
                         std::int64_t rows, std::int64_t columns, std::int64_t depth, bool own);

TemplateInfo sequence_template(const char* name, const char* description,
                               std::vector<ParameterInfo> more,
                               Plan (*make)(const TemplateArguments&));

}  // namespace hemiola::plan
