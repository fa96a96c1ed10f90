#include "core/lists.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>

#include "core/units.h"

namespace hemiola {
namespace {

constexpr std::int64_t kMostRanks = 1 << 20;

std::string in_quotes(std::string_view text) {
  return "'" + std::string(text) + "'";
}

/// "A:B:xF", with A and B as `read_end` reads them: A, A F, A F F, ... up to B.
template <typename ReadEnd>
std::vector<std::int64_t> read_powers(std::string_view text, std::string_view of,
                                      const std::string& example, const SourceLocation& where,
                                      const ReadEnd& read_end) {
  const std::string hint = "a range looks like " + example;
  const std::vector<std::string> parts = split(text, ':');
  if (parts.size() != 3 || parts[2].size() < 2 || parts[2].front() != 'x')
    throw Failure(in_quotes(text) + " is not a range of " + std::string(of), where, hint);
  const std::int64_t first = read_end(parts[0]), last = read_end(parts[1]);
  const std::optional<std::int64_t> factor = parse_count(std::string_view(parts[2]).substr(1));
  if (!factor || *factor < 2)
    throw Failure(in_quotes(parts[2]) + " is not a factor of at least 2", where, hint);
  if (last < first) throw Failure("the range ends before it starts", where, hint);
  std::vector<std::int64_t> all;
  for (std::int64_t value = first;; value *= *factor) {
    all.push_back(value);
    if (value > last / *factor) return all;  // the next one is beyond the end
  }
}

}  // namespace

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string joined(const std::vector<std::string>& words, std::string_view separator) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += separator;
    text += word;
  }
  return text;
}

std::int64_t read_count(std::string_view text, std::int64_t least, std::int64_t most,
                        const SourceLocation& where) {
  const std::optional<std::int64_t> value = parse_count(text);
  if (value && *value >= least && *value <= most) return *value;
  throw Failure(in_quotes(text) + " is not a whole number from " + std::to_string(least) + " to " +
                    std::to_string(most),
                where);
}

std::vector<std::string> runs_of(const std::vector<int>& numbers) {
  std::vector<std::string> runs;
  for (std::size_t first = 0, end = 0; first < numbers.size(); first = end) {
    for (end = first + 1; end < numbers.size() && numbers[end] == numbers[end - 1] + 1;) ++end;
    runs.push_back(std::to_string(numbers[first]));
    if (end > first + 1) runs.back() += "-" + std::to_string(numbers[end - 1]);
  }
  return runs;
}

std::string_view trimmed(std::string_view text, std::string_view blanks) {
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

bool is_like(std::string_view text, std::string_view pattern) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  pattern.remove_prefix(star + 1);
  text.remove_prefix(star);
  // The shortest text for each star but the last, which ends the pattern.
  while (true) {
    const std::size_t next = pattern.find('*');
    if (next == std::string_view::npos) return text.ends_with(pattern);
    const std::size_t found = text.find(pattern.substr(0, next));
    if (found == std::string_view::npos) return false;
    text.remove_prefix(found + next);
    pattern.remove_prefix(next + 1);
  }
}

std::vector<std::string_view> words_of(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\r\n\f\v";
  std::vector<std::string_view> words;
  for (std::size_t at = line.find_first_not_of(kBlanks); at != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(kBlanks, end);
  }
  return words;
}

std::vector<WordLine> word_lines(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  std::vector<WordLine> lines;
  int number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    ++number;
    WordLine line{number, words_of(text.substr(at, end - at))};
    if (!line.words.empty()) lines.push_back(std::move(line));
    at = end + 1;
  }
  return lines;
}

std::optional<Bytes> parse_size(std::string_view text) {
  if (const std::optional<std::int64_t> bytes = parse_count(text)) return Bytes{*bytes};
  return parse_bytes(text);
}

Bytes read_size(std::string_view text, const SourceLocation& where) {
  const std::optional<Bytes> size = parse_size(text);
  if (size && size->count > 0) return *size;
  if (size) throw Failure("a size must be greater than zero", where);
  throw Failure(in_quotes(text) + " is not a size", where, "a size looks like 64MiB, 1KiB or 1000");
}

std::vector<Bytes> read_sizes(std::string_view text, const SourceLocation& where) {
  const auto size_of = [&](std::string_view part) { return read_size(part, where); };
  std::vector<Bytes> sizes;
  if (text.find(':') == std::string_view::npos) {
    for (const std::string& part : split(text, ',')) sizes.push_back(size_of(part));
    return sizes;
  }
  for (const std::int64_t size : read_powers(text, "sizes", "1KiB:1GiB:x2", where,
                                             [&](auto& part) { return size_of(part).count; }))
    sizes.push_back({size});
  return sizes;
}

std::vector<std::int64_t> read_range(std::string_view text, std::int64_t most,
                                     const SourceLocation& where) {
  return read_powers(text, "numbers", "64:65536:x2", where,
                     [&](auto& part) { return read_count(part, 1, most, where); });
}

int read_rank_count(std::string_view text, const SourceLocation& where) {
  if (text.find_first_of(",-") != std::string_view::npos) return 0;
  return static_cast<int>(read_count(text, 1, kMostRanks, where));
}

std::vector<int> read_ranks(std::string_view text, const SourceLocation& where) {
  std::vector<int> ranks;
  if (const int count = read_rank_count(text, where); count > 0) {
    for (int rank = 0; rank < count; ++rank) ranks.push_back(rank);
    return ranks;
  }
  for (const std::string& part : split(text, ',')) {
    const std::vector<std::string> ends = split(part, '-');
    if (ends.size() > 2)
      throw Failure(in_quotes(part) + " is not a range of ranks", where, "0-3 is one");
    const std::int64_t first = read_count(ends.front(), 0, kMostRanks - 1, where);
    const std::int64_t last = read_count(ends.back(), first, kMostRanks - 1, where);
    for (std::int64_t rank = first; rank <= last; ++rank) ranks.push_back(static_cast<int>(rank));
    if (std::ssize(ranks) > kMostRanks) throw Failure("lists too many ranks", where);
  }
  return ranks;
}

Time read_time(std::string_view text, const SourceLocation& where) {
  const std::optional<Time> time = parse_time(text);
  if (!time)
    throw Failure(in_quotes(text) + " is not a time", where, "a time looks like 500ns or 2.5us");
  return *time;
}

std::vector<Time> read_times(std::string_view text, const SourceLocation& where) {
  std::vector<Time> times;
  for (const std::string& part : split(text, ',')) times.push_back(read_time(part, where));
  return times;
}

}  // namespace hemiola
