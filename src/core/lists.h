// Lists of sizes and of ranks as users write them, on the command line and in files.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/diagnostics.h"
#include "core/time.h"

namespace hemiola {

/// "64MiB"; a whole number without a unit counts bytes, as in nccl-tests: "4096". Nothing for
/// anything else.
std::optional<Bytes> parse_size(std::string_view text);
/// The same. Failure at `where` for anything else, and for a size of 0.
Bytes read_size(std::string_view text, const SourceLocation& where);
/// "A:B:xF": A, A F, A F F, ... up to B; or a list "1KiB,1MiB". Failure at `where`.
std::vector<Bytes> read_sizes(std::string_view text, const SourceLocation& where);
/// "A:B:xF" of whole numbers from 1 to `most`. Failure at `where`.
std::vector<std::int64_t> read_range(std::string_view text, std::int64_t most,
                                     const SourceLocation& where);

/// The number of ranks of "8"; 0 for a list, which needs a machine to mean something. Failure at
/// `where`.
int read_rank_count(std::string_view text, const SourceLocation& where);
/// "8" is the first eight; "0,2,4-7" is a list, in its order. Failure at `where`.
std::vector<int> read_ranks(std::string_view text, const SourceLocation& where);

/// Failure at `where`.
Time read_time(std::string_view text, const SourceLocation& where);

/// "0ns,5us": times of rank 0, 1, ... Failure at `where`.
std::vector<Time> read_times(std::string_view text, const SourceLocation& where);

/// A decimal integer from `least` to `most`. Failure at `where`.
std::int64_t read_count(std::string_view text, std::int64_t least, std::int64_t most,
                        const SourceLocation& where);

/// Without `blanks` at both ends.
std::string_view trimmed(std::string_view text, std::string_view blanks = " \t\r\n");
/// Whether `pattern`, in which `*` stands for any text, is like the whole text.
bool is_like(std::string_view text, std::string_view pattern);
/// What stands between blanks.
std::vector<std::string_view> words_of(std::string_view line);
struct WordLine {
  int number = 0;  ///< 1-based
  std::vector<std::string_view> words;
};
/// The lines with words in them; a byte order mark is none.
std::vector<WordLine> word_lines(std::string_view text);

/// "a,b" is "a" and "b"; "" is one empty text.
std::vector<std::string> split(std::string_view text, char separator);
/// Numbers in ascending order, those in a row together: "0-3" and "8".
std::vector<std::string> runs_of(const std::vector<int>& numbers);
/// The other way round, for messages: "a, b".
std::string joined(const std::vector<std::string>& words, std::string_view separator = ", ");
/// `text(item)` of each, with the separator between them.
template <typename Items, typename Text>
requires(!std::is_convertible_v<Text, std::string_view>) std::string
    joined(const Items& items, const Text& text, std::string_view separator = ", ") {
  std::string all;
  bool is_first = true;
  for (const auto& item : items) {
    if (!is_first) all += separator;
    is_first = false;
    all += text(item);
  }
  return all;
}

/// `name` of each, a member or a function of it; its member `name` where none is given. For
/// messages and their suggestions.
struct MemberName {
  std::string operator()(const auto& item) const { return std::string(item.name); }
};
template <typename Items, typename Name = MemberName>
std::vector<std::string> names_of(const Items& items, const Name& name = {}) {
  std::vector<std::string> names;
  for (const auto& item : items) names.emplace_back(std::invoke(name, item));
  return names;
}

}  // namespace hemiola
