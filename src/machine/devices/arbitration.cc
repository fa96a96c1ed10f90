#include "machine/devices/arbitration.h"

#include <algorithm>
#include <cstddef>

#include "machine/devices/arbitration_names.h"

namespace hemiola::machine {

static_assert(kArbitrationNames.size() <= 256, "an Arbitration is one byte");

std::span<const std::string_view> arbitration_names() {
  return kArbitrationNames;
}

std::string_view name_of(Arbitration arbitration) {
  return kArbitrationNames[static_cast<std::size_t>(arbitration)];
}

std::optional<Arbitration> parse_arbitration(std::string_view name) {
  const auto* const found = std::ranges::find(kArbitrationNames, name);
  if (found == kArbitrationNames.end()) return std::nullopt;
  return static_cast<Arbitration>(found - kArbitrationNames.begin());
}

}  // namespace hemiola::machine
