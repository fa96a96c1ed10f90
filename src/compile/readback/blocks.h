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

/// `.to(type)` and `tl.cast`: rounding fractions to another type is not looked at; as whole numbers
/// they are others, which is not followed. `tensors`: what is loaded of whole numbers stays.
Value as_type(const Value& of, const Value* type, const std::vector<Tensor>& tensors,
              const Node& node);

}  // namespace hemiola::compile::readback
