// Plans as plain PyTorch: what `hemiola compile --plan PLAN` writes without a kernel
// (docs/compile_plan.md). One entrance: torch_of().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace hemiola::compile {

struct Fusion;
struct FusedText;
struct TileStore;

/// A kernel that the computes of a plan were fused into.
struct TorchKernel {
  const std::vector<Fusion>* fusions = nullptr;  ///< by grid, each a launch
  const FusedText* text = nullptr;
  std::string file;  ///< where the kernel stood, as the header calls it
  const std::vector<TileStore>* stores = nullptr;  ///< tiles that it stores to peers
  /// Of the kernel, for reference(): `epilogue(product, of)`, as lines of Python; empty: it stores
  /// products.
  std::vector<std::string> epilogue{};
};

/// Who moves data on streams that copy.
struct TorchMovers {
  std::int32_t workgroups = 0;  ///< kernels of so many, together; 0: copy engines
  bool bulk = false;            ///< by TMA, else by loads and stores
  bool by_switch = false;       ///< groups by a switch that multicasts and adds up
  bool carried = false;         ///< by the programs of the kernel, whose text is made for it
};

struct TorchOptions {
  std::string file;      ///< the plan's, as messages and the header call it
  std::string command;   ///< what the header says that it was written by
  std::string version;   ///< of Hemiola
  std::string digest{};  ///< of the plan as the user has it; empty: of this one
  TorchKernel kernel{};
  TorchMovers movers{};
};

/// What was written, and how much of what a rank does in a call (the first rank, loops unrolled).
struct TorchFile {
  std::string text;
  std::int64_t streams_of_copies = 0, streams_of_products = 0;
  std::int64_t copies = 0;  ///< reductions and collectives too
  std::int64_t products = 0, waits = 0, signals = 0;
};

/// A Python file that needs PyTorch and hemiola_rt: setup(rt), inputs(rt, t), run(rt, t), reference
/// and a main for torchrun. The same plan and options give the same bytes. The plan is valid and
/// proven: what it does not order, the file does not order either.
///
/// Failure at `options.file`, with what has no counterpart by its name: plans of chunks; data types
/// that PyTorch lacks or does not multiply; computes that need a kernel or are no products;
/// multicast and reduction by the switch, unless `movers` say so; collectives of a library whose
/// regions differ by rank; regions of several boxes that do not pair up; strides.
TorchFile torch_of(const plan::Plan& plan, const TorchOptions& options);

}  // namespace hemiola::compile
