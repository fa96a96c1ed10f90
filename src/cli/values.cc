#include "cli/values.h"

#include <algorithm>
#include <optional>

#include "core/diagnostics.h"

namespace hemiola::cli {
namespace {

constexpr std::int64_t kMostRanks = 1 << 20;

[[noreturn]] void fail(std::string_view option, std::string message, std::string hint = {}) {
  throw Failure(std::move(message), SourceLocation{.file = std::string(option)}, std::move(hint));
}

std::string quoted(std::string_view text) {
  return "'" + std::string(text) + "'";
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

/// Names of all values of an enumeration from the first to `last`.
template <typename T>
std::vector<std::string> all_names(T last) {
  std::vector<std::string> names;
  for (int i = 0; i <= static_cast<int>(last); ++i) names.emplace_back(name_of(static_cast<T>(i)));
  return names;
}

[[noreturn]] void fail_choice(std::string_view option, std::string_view text,
                              const std::vector<std::string>& choices, std::string_view what) {
  std::string hint = suggest(text, choices);
  if (!hint.empty()) hint += ' ';
  fail(option, quoted(text) + " is not " + std::string(what),
       hint + "there are: " + joined(choices));
}

Bytes one_size(std::string_view option, std::string_view text) {
  const std::optional<Bytes> size = parse_bytes(text);
  if (size && size->count > 0) return *size;
  if (size) fail(option, "a size must be greater than zero");
  if (parse_count(text)) {
    fail(option, quoted(text) + " has no unit", "write '" + std::string(text) + "B' for bytes");
  }
  fail(option, quoted(text) + " is not a size", "a size looks like 64MiB, 1KiB or 1000B");
}

Time one_time(std::string_view option, std::string_view text) {
  const std::optional<Time> time = parse_time(text);
  if (!time) fail(option, quoted(text) + " is not a time", "a time looks like 500ns or 2.5us");
  return *time;
}

Setting one_setting(std::string_view option, std::string_view text, std::string_view example) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size()) {
    fail(option, quoted(text) + " is not of the form NAME=VALUE",
         "for example " + std::string(option) + ' ' + std::string(example));
  }
  return {std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
}

}  // namespace

std::int64_t count_value(std::string_view option, std::string_view text, std::int64_t least,
                         std::int64_t most) {
  const std::optional<std::int64_t> value = parse_count(text);
  if (value && *value >= least && *value <= most) return *value;
  fail(option, quoted(text) + " is not a whole number from " + std::to_string(least) + " to " +
                   std::to_string(most));
}

DataType data_type_value(std::string_view text) {
  if (const auto type = parse_data_type(text)) return *type;
  fail_choice("--dtype", text, all_names(DataType::fp8_e5m2), "an element type");
}

ReduceOp reduce_op_value(std::string_view text) {
  if (const auto op = parse_reduce_op(text); op && *op != ReduceOp::none) return *op;
  std::vector<std::string> names = all_names(ReduceOp::prod);
  names.erase(names.begin());  // "none" is no reduction
  fail_choice("--op", text, names, "a reduction");
}

std::string choice_value(std::string_view option, const std::string& text,
                         const std::vector<std::string>& choices) {
  if (std::find(choices.begin(), choices.end(), text) != choices.end()) return text;
  fail_choice(option, text, choices, "a value of this option");
}

std::vector<Bytes> size_values(std::string_view text) {
  std::vector<Bytes> sizes;
  for (const std::string& part : split(text, ',')) sizes.push_back(one_size("--size", part));
  return sizes;
}

std::vector<Bytes> sizes_values(std::string_view text) {
  const std::string option = "--sizes";
  const std::vector<std::string> parts = split(text, ':');
  if (parts.size() == 1) {
    std::vector<Bytes> sizes;
    for (const std::string& part : split(text, ',')) sizes.push_back(one_size(option, part));
    return sizes;
  }
  const std::string hint = "a range looks like 1KiB:1GiB:x2";
  if (parts.size() != 3 || parts[2].size() < 2 || parts[2].front() != 'x') {
    fail(option, quoted(text) + " is not a range of sizes", hint);
  }
  const Bytes first = one_size(option, parts[0]);
  const Bytes last = one_size(option, parts[1]);
  const std::optional<std::int64_t> factor = parse_count(std::string_view(parts[2]).substr(1));
  if (!factor || *factor < 2)
    fail(option, quoted(parts[2]) + " is not a factor of at least 2", hint);
  if (last < first) fail(option, "the range ends before it starts", hint);
  std::vector<Bytes> sizes;
  for (std::int64_t size = first.count;; size *= *factor) {
    sizes.push_back({size});
    if (size > last.count / *factor) return sizes;  // the next one is beyond the end
  }
}

int rank_count_value(std::string_view text) {
  if (text.find_first_of(",-") != std::string_view::npos) return 0;
  return static_cast<int>(count_value("--ranks", text, 1, kMostRanks));
}

std::vector<int> ranks_value(std::string_view text) {
  std::vector<int> ranks;
  if (const int count = rank_count_value(text); count > 0) {
    for (int rank = 0; rank < count; ++rank) ranks.push_back(rank);
    return ranks;
  }
  for (const std::string& part : split(text, ',')) {
    const std::vector<std::string> ends = split(part, '-');
    if (ends.size() > 2) fail("--ranks", quoted(part) + " is not a range of ranks", "0-3 is one");
    const std::int64_t first = count_value("--ranks", ends.front(), 0, kMostRanks - 1);
    const std::int64_t last = count_value("--ranks", ends.back(), first, kMostRanks - 1);
    for (std::int64_t rank = first; rank <= last; ++rank) ranks.push_back(static_cast<int>(rank));
    if (std::ssize(ranks) > kMostRanks) fail("--ranks", "lists too many ranks");
  }
  return ranks;
}

std::vector<std::int64_t> dimensions_value(std::string_view option, std::string_view text) {
  std::vector<std::int64_t> dimensions;
  for (const std::string& part : split(text, text.find('x') == std::string_view::npos ? ',' : 'x'))
    dimensions.push_back(count_value(option, part, 1, std::int64_t{1} << 40));
  return dimensions;
}

std::vector<Time> skew_values(std::string_view text) {
  std::vector<Time> times;
  for (const std::string& part : split(text, ',')) times.push_back(one_time("--skew", part));
  return times;
}

std::pair<Time, Time> window_value(std::string_view text) {
  const std::string option = "--trace-lines";
  const std::vector<std::string> ends = split(text, ':');
  if (ends.size() != 2) {
    fail(option, quoted(text) + " is not a window of time", "a window looks like 10us:12us");
  }
  const std::pair window(one_time(option, ends[0]), one_time(option, ends[1]));
  if (window.second <= window.first) fail(option, "the window ends before it starts");
  return window;
}

Settings parameter_values(const std::vector<std::string>& texts) {
  Settings parameters;
  for (const std::string& text : texts) {
    parameters.push_back(one_setting("--param", text, "channels=8"));
  }
  return parameters;
}

std::vector<Settings> setting_combinations(const std::vector<std::string>& texts) {
  constexpr std::size_t kMost = 10'000;
  std::vector<Settings> combinations{{}};
  for (const std::string& text : texts) {
    const Setting setting = one_setting("--set", text, "gpu.l2.size=25MiB");
    const std::vector<std::string> values = split(setting.second, ',');
    if (combinations.size() * values.size() > kMost) {
      fail("--set", "makes more than " + std::to_string(kMost) + " combinations");
    }
    std::vector<Settings> longer;
    for (const Settings& combination : combinations) {
      for (const Setting& earlier : combination) {
        if (earlier.first == setting.first) {
          fail("--set", quoted(setting.first) + " is set twice",
               "write several values as " + setting.first + "=A,B");
        }
      }
      for (const std::string& value : values) {
        if (value.empty()) fail("--set", quoted(text) + " has an empty value");
        longer.push_back(combination);
        longer.back().emplace_back(setting.first, value);
      }
    }
    combinations = std::move(longer);
  }
  return combinations;
}

Settings one_setting(const std::vector<std::string>& texts) {
  std::vector<Settings> combinations = setting_combinations(texts);
  if (combinations.size() > 1) fail("--set", "only 'run' takes several values");
  return std::move(combinations.front());
}

std::string to_text(const Settings& settings) {
  std::string text;
  for (const auto& [name, value] : settings) text += (text.empty() ? "" : " ") + name + '=' + value;
  return text;
}

}  // namespace hemiola::cli
