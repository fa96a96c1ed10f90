// The first of each kind in a list.
#pragma once

#include <cstddef>
#include <set>
#include <type_traits>
#include <vector>

namespace hemiola::explore {

/// Positions of the elements whose key no earlier one has, in the order of the list.
template <typename List, typename KeyOf>
std::vector<std::size_t> first_of_each(const List& list, const KeyOf& key_of) {
  std::vector<std::size_t> first;
  std::set<std::decay_t<decltype(key_of(list[0]))>> seen;
  for (std::size_t i = 0; i < list.size(); ++i)
    if (seen.insert(key_of(list[i])).second) first.push_back(i);
  return first;
}

}  // namespace hemiola::explore
