// Ranks in the names of files: the number that tells them from each other.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>

#include "core/diagnostics.h"
#include "core/index.h"
#include "workload/traces/files.h"

namespace hemiola::workload {
namespace {

struct NumberedName {
  std::vector<std::string> texts;  ///< around the numbers
  std::vector<std::int64_t> numbers;
};

NumberedName split_numbers(std::string_view name) {
  NumberedName split;
  split.texts.emplace_back();
  for (std::size_t at = 0; at < name.size();) {
    if (name[at] < '0' || name[at] > '9') {
      split.texts.back() += name[at++];
      continue;
    }
    constexpr std::int64_t kMost = std::int64_t{1} << 50;
    std::int64_t number = 0;
    for (; at < name.size() && name[at] >= '0' && name[at] <= '9'; ++at)
      number = std::min(kMost, number * 10 + (name[at] - '0'));
    split.numbers.push_back(number);
    split.texts.emplace_back();
  }
  return split;
}

/// The numbers at a place, if no two are equal and they look like ranks.
std::optional<std::vector<std::int64_t>> numbers_at(const std::vector<NumberedName>& names,
                                                    std::size_t place) {
  std::vector<std::int64_t> numbers;
  std::set<std::int64_t> distinct;
  for (const NumberedName& name : names) {
    if (place >= name.numbers.size()) return std::nullopt;
    numbers.push_back(name.numbers[place]);
    distinct.insert(name.numbers[place]);
  }
  if (distinct.size() != names.size()) return std::nullopt;
  // Times and process ids are in names too.
  constexpr std::int64_t kSparse = 1000;
  if (*distinct.rbegin() > kSparse * static_cast<std::int64_t>(names.size())) return std::nullopt;
  return numbers;
}

}  // namespace

std::optional<std::vector<int>> ranks_by_name(const std::vector<std::string>& names) {
  std::vector<NumberedName> split;
  std::size_t places = 0;
  // Where all files have one name, their folders tell them apart.
  const auto base = [](const std::string& name) {
    return name.substr(name.find_last_of("/:") + 1);
  };
  const bool by_folder = std::ranges::all_of(
      names, [&](const std::string& name) { return base(name) == base(names.front()); });
  for (const std::string& name : names) {
    const std::size_t slash = by_folder ? std::string::npos : name.find_last_of("/:");
    split.push_back(
        split_numbers(std::string_view(name).substr(slash == std::string::npos ? 0 : slash + 1)));
    places = std::max(places, split.back().numbers.size());
  }
  std::optional<std::vector<std::int64_t>> numbers;
  for (std::size_t place = 0; place < places; ++place) {
    std::optional<std::vector<std::int64_t>> here = numbers_at(split, place);
    // Of several such numbers, the one that counts from 0 without a gap.
    if (here &&
        (!numbers || *std::ranges::max_element(*here) < *std::ranges::max_element(*numbers)))
      numbers = std::move(here);
  }
  if (!numbers) return std::nullopt;
  std::vector<bool> seen(names.size());
  for (const std::int64_t number : *numbers)
    if (number < static_cast<std::int64_t>(names.size())) seen[index(number)] = true;
  const auto missing = std::ranges::find(seen, false);
  if (missing != seen.end()) {
    const auto last = std::ranges::max_element(*numbers) - numbers->begin();
    throw Failure(
        fmt::format("the file of rank {} is missing: there are {} files, up to that of rank {}",
                    missing - seen.begin(), names.size(), (*numbers)[index(last)]),
        {.file = names[index(last)]}, "give the traces of all ranks, or one file and --replicate");
  }
  return std::vector<int>(numbers->begin(), numbers->end());
}

}  // namespace hemiola::workload
