#include "report/values/numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>

namespace hemiola::report {

std::string exact_ns(Time time) {
  const std::int64_t magnitude = time.fs < 0 ? -time.fs : time.fs;
  return fmt::format("{}{}.{:06}", time.fs < 0 ? "-" : "", magnitude / 1'000'000,
                     magnitude % 1'000'000);
}

std::string table_us(Time time) {
  int decimals = 3;
  for (std::int64_t smallest = 10'000'000; time.fs > 0 && time.fs < smallest && decimals < 9;
       smallest /= 10)
    ++decimals;
  return fmt::format("{:.{}f}", time.us(), decimals);
}

std::string table_rate(double gigabytes_per_second) {
  const int decimals = gigabytes_per_second < 1000 ? 2 : gigabytes_per_second < 10'000 ? 1 : 0;
  return fmt::format("{:.{}f}", gigabytes_per_second, decimals);
}

std::string percent(Time part, Time whole) {
  if (whole.fs == 0) return "-";
  return fmt::format("{:.1f}",
                     100.0 * static_cast<double>(part.fs) / static_cast<double>(whole.fs));
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

std::vector<sim::Reason> by_share(const sim::Attribution& attribution) {
  std::vector<sim::Reason> reasons;
  for (std::size_t i = 0; i < sim::kReasons; ++i)
    if (attribution[i] != 0) reasons.push_back(static_cast<sim::Reason>(i));
  std::ranges::stable_sort(reasons, [&](sim::Reason a, sim::Reason b) {
    return attribution[static_cast<std::size_t>(a)] > attribution[static_cast<std::size_t>(b)];
  });
  return reasons;
}

std::vector<std::string> setting_names(const std::vector<sim::Result>& results) {
  std::set<std::string> names;
  for (const sim::Result& result : results)
    for (const auto& [name, value] : result.settings) names.insert(name);
  return {names.begin(), names.end()};
}

std::string setting_of(const sim::Result& result, const std::string& name) {
  const auto found = result.settings.find(name);
  return found == result.settings.end() ? "" : found->second;
}

}  // namespace hemiola::report
