// Functions of triton.language that make blocks of others, or of numbers. Private to readback/.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "compile/readback/walk.h"

namespace hemiola::compile::readback {

/// A block of so many elements along each axis. Failure: numbers that the text does not say.
std::vector<Along> shape_of(const Walker& walker, const Value& value, const Node& node);

/// "arange", "where", "sum", ...; nothing: none of these.
std::optional<Value> block_function(const Walker& walker, std::string_view name,
                                    const Arguments& given);

}  // namespace hemiola::compile::readback
