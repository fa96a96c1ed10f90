#include "core/finding.h"

namespace hemiola {

std::string Finding::counted() const {
  return text_ + (count_ > 1 ? " (and " + std::to_string(count_ - 1) + " more like it)" : "");
}

void Finding::warn(Diagnostics& warnings, std::string hint) const {
  if (count_ > 0) warnings.warning(counted(), first_, std::move(hint));
}

void Finding::warn(Diagnostics& warnings, Leniency leniency, std::string hint) const {
  if (count_ > 0) warn_leniently(warnings, leniency, counted(), first_, std::move(hint));
}

}  // namespace hemiola
