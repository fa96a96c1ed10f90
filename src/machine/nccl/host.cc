#include "machine/nccl/host.h"

#include <algorithm>
#include <array>

namespace hemiola::machine {
namespace {

struct Speed {
  std::string_view prefix, generation;
  std::int64_t kilobytes_per_lane;  ///< 1000 B/s, after the line code
};
constexpr std::array kSpeeds{
    Speed{"2.5", "gen1", 250'000},  Speed{"5", "gen2", 500'000},    Speed{"8", "gen3", 984'615},
    Speed{"16", "gen4", 1'969'231}, Speed{"32", "gen5", 3'938'462}, Speed{"64", "gen6", 7'562'500},
};

}  // namespace

PcieLink pcie_link_of(const std::string& speed, const std::string& width,
                      const SourceLocation& where) {
  std::int64_t lanes = width.empty() ? 0 : parse_count(width).value_or(-1);
  if (lanes < 0 || lanes > 32)
    throw Failure("'" + width + "' is no value for 'link_width'", where, "lanes such as 16");
  const bool assumed = speed.empty() || lanes == 0;
  if (lanes == 0) lanes = 16;
  const std::string_view value =
      speed.empty() ? "8" : std::string_view(speed).substr(0, speed.find_first_of(" G"));
  const auto found = std::ranges::find_if(kSpeeds, [&](const Speed& known) {
    return known.prefix == value || std::string(known.prefix) + ".0" == value;
  });
  if (found == kSpeeds.end())
    throw Failure("'" + speed + "' is no value for 'link_speed'", where,
                  "one of 2.5, 5, 8, 16, 32 and 64 GT/s");
  return {"pcie-" + std::string(found->generation) + "-x" + std::to_string(lanes),
          {found->kilobytes_per_lane * lanes * 1000},
          assumed};
}

std::int64_t socket_megabytes(std::string_view arch, std::string_view vendor, std::int64_t model) {
  if (arch == "ppc64") return 32'000;
  if (arch == "arm64") return 6'000;
  if (vendor == "AuthenticAMD") return 16'000;
  if (vendor == "GenuineIntel")
    return model >= 0xcf ? 40'000 : model >= 0x8f ? 22'000 : model >= 0x55 ? 10'000 : 6'000;
  return 6'000;
}

}  // namespace hemiola::machine
