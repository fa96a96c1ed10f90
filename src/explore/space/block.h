// A block of a transformer under tensor and sequence parallelism: a chain of operators that rows
// flow through. Rows are gathered, multiplied, go through what is local to a GPU, are multiplied
// again, and their partial sums are scattered.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "explore/space/operator.h"

namespace hemiola::explore {

enum class BlockKind : std::uint8_t {
  mlp,       ///< all-gather, up (and gate), activation, down, reduce-scatter
  attention  ///< all-gather, queries keys and values, attention, output product, reduce-scatter
};
std::string_view name_of(BlockKind kind);  ///< "mlp"
/// Failure with a suggestion, placed at `where`.
BlockKind block_named(const std::string& name, const SourceLocation& where);

/// Sizes are global: of all ranks together.
struct Block {
  BlockKind kind = BlockKind::mlp;
  int ranks = 0;
  std::int64_t tokens = 0, hidden = 0;
  // Of an MLP.
  std::int64_t intermediate = 0;
  bool gated = true;  ///< SwiGLU: the first product has a gate beside each column; else GELU
  // Of attention.
  std::int64_t heads = 0, kv_heads = 0, head_dim = 128;
  std::int64_t sequences = 1;  ///< that the tokens belong to, each as long as the others
  bool causal = true;          ///< half of the pairs of queries and keys
  DataType type = DataType::bfloat16;

  bool operator==(const Block&) const = default;
};

/// Failure for sizes below 1, and for those that the ranks do not divide. It is placed at the name
/// of the option: "--tokens", or with `prefix` "" "tokens".
void check(const Block& block, const std::string& prefix = "--");

/// The operators at its ends, as they would be explored alone: ag-gemm and gemm-rs.
Operator first_operator(const Block& block);
Operator last_operator(const Block& block);

/// Names of what a GPU does, in order: "all-gather", "up", "activation", "down", "reduce-scatter".
std::array<std::string_view, 5> parts_of(BlockKind kind);
/// The line of a job file for what is between the products, on every GPU (docs/jobs.md): an
/// element-wise kernel by its bytes, or attention.
std::string middle_launch(const Block& block);
/// The library's collectives and products and what is between them, one after the other.
std::string serial_job(const Block& block);

/// "block-mlp/sequence"
std::string template_of(const Block& block);
/// The sizes and the type as it takes them.
study::Settings template_sizes(const Block& block);

/// "mlp block 8192 tokens, hidden 8192, intermediate 28672, swiglu, bfloat16 on 8 GPUs"
std::string text_of(const Block& block);
/// A line for what a GPU has and does.
std::vector<std::string> who_holds_what(const Block& block);

}  // namespace hemiola::explore
