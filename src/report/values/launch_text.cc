#include "report/values/launch_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "report/values/numbers.h"

namespace hemiola::report {

std::string slowdown_text(const sim::LaunchResult& launch) {
  const Time extra = launch.end - launch.begin - launch.alone;
  std::vector<std::pair<std::int64_t, sim::Reason>> more;
  for (std::size_t r = 0; r < sim::kReasons; ++r) {
    const std::int64_t fs = launch.attribution[r] - launch.alone_attribution[r];
    if (fs * 20 > extra.fs) more.emplace_back(-fs, static_cast<sim::Reason>(r));
  }
  std::ranges::sort(more);
  std::string text = fmt::format("{} is {} us slower than alone:", launch.name, table_us(extra));
  for (std::size_t i = 0; i < std::min<std::size_t>(3, more.size()); ++i)
    text += fmt::format("{} {} +{}", i > 0 ? "," : "", sim::name_of(more[i].second),
                        table_us({-more[i].first}));
  text += "; beside ";
  for (std::size_t i = 0; i < std::min<std::size_t>(3, launch.slowed_by.size()); ++i)
    text += fmt::format("{}{} (for {} us)", i > 0 ? ", " : "", launch.slowed_by[i].launch,
                        table_us(launch.slowed_by[i].overlap));
  if (launch.slowed_by.size() > 3) text += fmt::format(" and {} more", launch.slowed_by.size() - 3);
  return text;
}

}  // namespace hemiola::report
