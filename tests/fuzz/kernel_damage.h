// Kernels with something wrong in them, token by token: most of them are still Python.
#pragma once

#include <string>

#include "corpus.h"

namespace hemiola::fuzz {

/// One to three changes of a kernel's text: tokens and lines that are gone, twice or swapped, other
/// numbers and names, lines further in or out, or the head of one kernel before the tail of
/// `other`.
std::string damaged_kernel(std::string text, const std::string& other, Draw& draw);

}  // namespace hemiola::fuzz
