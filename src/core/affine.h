// Affine expressions (hemiola/parts/affine.h) as text.
#pragma once

#include <string>
#include <string_view>

#include "hemiola/parts/affine.h"

namespace hemiola {

/// The same function with as few parts as it takes: scale 1 and offset 0 without a modulus.
Affine normalised(const Affine& value);

/// As files write it: "(rank + i + 1) % 8 * 2 + 1", with i and j the counters of the loops from the
/// outermost. Equal functions print alike as far as normalised() sees it.
std::string to_string(const Affine& value);
/// Sums, differences, products with numbers, and one `%` by a number, with parentheses. Failure for
/// anything else, with the column and a hint.
Affine parse_affine(std::string_view text);

}  // namespace hemiola
