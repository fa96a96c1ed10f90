// Numbers and words as text, the same on every host.
#pragma once

#include <string>
#include <vector>

#include "core/time.h"
#include "sim/result/result.h"

namespace hemiola::report {

/// Nanoseconds with all six decimals, from the integer: nothing is rounded.
std::string exact_ns(Time time);
/// Microseconds with three decimals, or as many as the first two digits of a shorter time need.
std::string table_us(Time time);
/// GB/s as nccl-tests prints them: they lose decimals as they grow, never digits before the point.
std::string table_rate(double gigabytes_per_second);
/// 100 * part / whole with one decimal; "-" when whole is 0.
std::string percent(Time part, Time whole);

/// Quoted where CSV (RFC 4180) needs it.
std::string csv_cell(const std::string& text);

/// The reasons of an attribution that took time, largest first, equal ones in the order of the
/// enum.
std::vector<sim::Reason> by_share(const sim::Attribution& attribution);

/// Every setting that some result has, sorted.
std::vector<std::string> setting_names(const std::vector<sim::Result>& results);
/// Its value in a result; "" where that has none.
std::string setting_of(const sim::Result& result, const std::string& name);

}  // namespace hemiola::report
