#include "cli/options/values.h"

#include <algorithm>

#include "core/diagnostics.h"
#include "core/lists.h"

namespace hemiola::cli {
namespace {

[[noreturn]] void fail(std::string_view option, std::string message, std::string hint = {}) {
  throw Failure(std::move(message), SourceLocation{.file = std::string(option)}, std::move(hint));
}

std::string in_quotes(std::string_view text) {
  return "'" + std::string(text) + "'";
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
  fail(option, in_quotes(text) + " is not " + std::string(what),
       hint + "there are: " + joined(choices));
}

Setting name_and_value(std::string_view option, std::string_view text, std::string_view example) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size()) {
    fail(option, in_quotes(text) + " is not of the form NAME=VALUE",
         "for example " + std::string(option) + ' ' + std::string(example));
  }
  return {std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
}

}  // namespace

std::int64_t count_value(std::string_view option, std::string_view text, std::int64_t least,
                         std::int64_t most) {
  return read_count(text, least, most, {.file = std::string(option)});
}

int int_value(std::string_view option, std::string_view text, int least, int most) {
  return static_cast<int>(count_value(option, text, least, most));
}

sim::Launch launch_value(const std::string& text) {
  return named_value("--launch", text, {sim::Launch::stream, sim::Launch::graph});
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
  if (std::ranges::find(choices, text) != choices.end()) return text;
  fail_choice(option, text, choices, "a value of this option");
}

std::vector<Bytes> size_values(std::string_view text) {
  return read_sizes(text, {.file = "--size"});
}

int rank_count_value(std::string_view text) {
  return read_rank_count(text, {.file = "--ranks"});
}

std::vector<int> rank_list(std::string_view option, std::string_view text) {
  if (text.find_first_of(",-") == std::string_view::npos)
    return {int_value(option, text, 0, INT32_MAX)};
  return read_ranks(text, {.file = std::string(option)});
}

std::vector<std::int64_t> dimensions_value(std::string_view option, std::string_view text) {
  std::vector<std::int64_t> dimensions;
  for (const std::string& part : split(text, text.find('x') == std::string_view::npos ? ',' : 'x'))
    dimensions.push_back(count_value(option, part, 1, std::int64_t{1} << 40));
  return dimensions;
}

std::vector<Time> skew_values(std::string_view text) {
  return read_times(text, {.file = "--skew"});
}

std::pair<Time, Time> window_value(std::string_view text) {
  const std::string option = "--trace-lines";
  const std::vector<std::string> ends = split(text, ':');
  if (ends.size() != 2)
    fail(option, in_quotes(text) + " is not a window of time", "a window looks like 10us:12us");
  const SourceLocation where{.file = option};
  const std::pair window(read_time(ends[0], where), read_time(ends[1], where));
  if (window.second <= window.first) fail(option, "the window ends before it starts");
  return window;
}

Settings parameter_values(const std::vector<std::string>& texts) {
  Settings parameters;
  for (const std::string& text : texts)
    parameters.push_back(name_and_value("--param", text, "channels=8"));
  return parameters;
}

std::vector<Settings> setting_combinations(const std::vector<std::string>& texts) {
  constexpr std::size_t kMost = 10'000;
  std::vector<Settings> combinations{{}};
  for (const std::string& text : texts) {
    const Setting setting = name_and_value("--set", text, "gpu.l2.size=25MiB");
    const std::vector<std::string> values = split(setting.second, ',');
    if (combinations.size() * values.size() > kMost)
      fail("--set", "makes more than " + std::to_string(kMost) + " combinations");
    std::vector<Settings> longer;
    for (const Settings& combination : combinations) {
      for (const Setting& earlier : combination) {
        if (earlier.first == setting.first) {
          fail("--set", in_quotes(setting.first) + " is set twice",
               "write several values as " + setting.first + "=A,B");
        }
      }
      for (const std::string& value : values) {
        if (value.empty()) fail("--set", in_quotes(text) + " has an empty value");
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

std::map<std::string, std::string> pairs_of(const char* option,
                                            const std::vector<std::string>& texts) {
  std::map<std::string, std::string> pairs;
  for (const std::string& text : texts) {
    const std::size_t at = text.find('=');
    if (at == std::string::npos || at == 0 || at + 1 == text.size())
      throw Failure("'" + text + "' is not NAME=VALUE", SourceLocation{.file = option});
    if (!pairs.emplace(text.substr(0, at), text.substr(at + 1)).second)
      throw Failure("'" + text.substr(0, at) + "' is given twice", SourceLocation{.file = option});
  }
  return pairs;
}

}  // namespace hemiola::cli
