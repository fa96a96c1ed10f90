// Functions of triton.language that make blocks of others, or of numbers. Private to readback/.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "compile/readback/host.h"

namespace hemiola::compile::readback {

/// A block of so many elements along each axis. Failure: numbers that the text does not say.
std::vector<Along> shape_of(const Walker& walker, const Value& value, const Node& node);

/// "arange", "where", "sum", ...; nothing: none of these.
std::optional<Value> block_function(const Walker& walker, std::string_view name,
                                    const Arguments& given);

/// What a descriptor or a block pointer touches.
struct BlockTouch {
  std::int64_t base = 0;       ///< of the block's first element, inside the tensor or not
  std::vector<Along> touched;  ///< the block, by distances in memory
  Value inside;                ///< where it lies in the tensor
  bool is_empty = false;       ///< nowhere
  std::int64_t first = 0;      ///< element that lies inside
  std::vector<std::pair<std::int64_t, std::int64_t>> inner;  ///< count and distance, by axis
};
/// `items`: pointer, shape, strides, block. `checked`: axes that are cut at their ends; null: all.
/// Failure for others that reach beyond.
BlockTouch touched_by(const Walker& walker, const std::vector<Value>& items, const Value& offsets,
                      const Value* checked, const Node& node);

/// `tl.advance` of a block pointer: its offsets, the last of its items, go on.
Value advanced(const Walker& walker, const Value& pointer, const Value& by, const Node& node);

/// `.to(type)` and `tl.cast`: rounding fractions to another type is not looked at; as whole numbers
/// they are others, which is not followed. `tensors`: what is loaded of whole numbers stays.
Value as_type(const Value& of, const Value* type, const std::vector<Tensor>& tensors,
              const Node& node);

}  // namespace hemiola::compile::readback
