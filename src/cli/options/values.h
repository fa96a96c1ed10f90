// Values of options: text to numbers, with errors that name the option and say what would be right.
// Every function throws Failure (bad input) whose place is the option.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/data_type.h"
#include "core/time.h"
#include "core/units.h"
#include "sim/result/options.h"
#include "study/laboratory/settings.h"

namespace hemiola::cli {

using Setting = std::pair<std::string, std::string>;  ///< "gpu.l2.size", "25 MiB"
using study::Settings;
using study::to_text;

std::int64_t count_value(std::string_view option, std::string_view text, std::int64_t least,
                         std::int64_t most);
int int_value(std::string_view option, std::string_view text, int least, int most);
DataType data_type_value(std::string_view text);
ReduceOp reduce_op_value(std::string_view text);

/// One of `choices`; `option` is for the message.
std::string choice_value(std::string_view option, const std::string& text,
                         const std::vector<std::string>& choices);

/// The one of `values` that has this name.
template <typename Value>
Value named_value(std::string_view option, const std::string& text,
                  std::initializer_list<Value> values) {
  std::vector<std::string> names;
  for (const Value value : values) names.emplace_back(name_of(value));
  choice_value(option, text, names);
  return *(values.begin() + (std::ranges::find(names, text) - names.begin()));
}
/// Of --launch.
sim::Launch launch_value(const std::string& text);
/// "64MiB", a list "1KiB,1MiB", or "A:B:xF": A, A F, A F F, ... up to B.
std::vector<Bytes> size_values(std::string_view text);

/// "3", "0,1", "0,4-7": distinct ranks, each by its number.
std::vector<int> rank_list(std::string_view option, std::string_view text);
/// The number of ranks of "8"; 0 for a list, which needs a machine to mean something.
int rank_count_value(std::string_view text);

/// "2x4" or "2,4": positive numbers, at most 2^40 each.
std::vector<std::int64_t> dimensions_value(std::string_view option, std::string_view text);

/// "0ns,5us": starts of rank 0, 1, ...
std::vector<Time> skew_values(std::string_view text);
/// "T0:T1" with T0 < T1.
std::pair<Time, Time> window_value(std::string_view text);

/// --param, each "NAME=VALUE".
Settings parameter_values(const std::vector<std::string>& texts);
/// --set, each "NAME=VALUE[,VALUE...]": all combinations, the first name varying slowest. One empty
/// combination when there are none.
std::vector<Settings> setting_combinations(const std::vector<std::string>& texts);
/// Of a verb that makes no table: Failure for several combinations.
Settings one_setting(const std::vector<std::string>& texts);

/// "NAME=VALUE" of a repeatable option, by name. Failure: no name or value, or a name twice.
std::map<std::string, std::string> pairs_of(const char* option,
                                            const std::vector<std::string>& texts);

}  // namespace hemiola::cli
