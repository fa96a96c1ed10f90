// Products in steps, each a launch of its own, with the communication that feeds or follows them:
// FiCCO's space of schedules (arXiv 2512.10236), {rows, columns} x {uniform, hetero} x {fused,
// unfused} at any degree, and the exchange of whole shards (docs/plans.md). Private to the layer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/pipelines.h"

namespace hemiola::plan {

/// How an operator is divided into steps. Of n ranks, every one has a block for (or from) each.
struct SequenceShape {
  std::int64_t degree = 1;  ///< steps in which each block goes
  /// Steps divide rows of a block (1D); else columns: what is summed over where blocks are
  /// gathered, columns of the result where they are sent (2D).
  bool by_rows = true;
  /// The block that stays on its rank is a product of its own: the first one, which needs no data
  /// of others, or the last one, which nobody waits for. Else it is divided as all others.
  bool hetero = false;
  bool fused = true;  ///< one product per step; else one for each block of a step
  /// Fused steps by rows work on consecutive memory: chunks land beside each other, and results are
  /// copied to their rows. Else products read and write blocks in their places.
  bool copies = false;
  bool pulls = false;                ///< receivers load; else senders store
  std::int64_t compute_streams = 1;  ///< of unfused products
};

/// degree, axis, steps, products, placement, streams; `transfer` and the sizes of a product are not
/// among them. `columns`: the name of the second axis.
std::vector<ParameterInfo> sequence_parameters(const char* columns, const char* transfer);
/// Failure: values out of range, and combinations that mean nothing.
SequenceShape sequence_shape(const TemplateArguments& arguments);

/// A product of `plan` as a launch: axes block, m, n, k with the tiles of the parameters, or with
/// those for the block that stays where it is (`own`).
Compute launched_product(const TemplateArguments& arguments, std::string name, std::int64_t blocks,
                         std::int64_t rows, std::int64_t columns, std::int64_t depth, bool own);

TemplateInfo sequence_template(const char* name, const char* description,
                               std::vector<ParameterInfo> more,
                               Plan (*make)(const TemplateArguments&));

}  // namespace hemiola::plan
