// Appending to a vector in a hot place.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace hemiola::sim {

template <typename T>
[[gnu::noinline]] void make_room(std::vector<T>& vector) {
  vector.reserve(std::max<std::size_t>(16, 2 * vector.capacity()));
}

/// push_back() whose seldom part, more memory, is a call: inlined it would take registers from all
/// around.
template <typename T>
void append(std::vector<T>& vector, T value) {
  if (vector.size() == vector.capacity()) [[unlikely]]
    make_room(vector);
#ifdef __GNUC__
  if (vector.size() == vector.capacity()) __builtin_unreachable();
#endif
  vector.push_back(value);
}

}  // namespace hemiola::sim
