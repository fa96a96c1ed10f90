// Pieces of text that the page and the files of `diff` share.
#pragma once

#include <optional>
#include <string>

#include "core/time.h"
#include "study/results/difference.h"

namespace hemiola::report {

/// With its sign, as table_us() and exact_ns(); "0.000" has none.
std::string signed_us(Time time);
std::string signed_ns(Time time);
/// "+18.10" of 0.181; "-" of nothing.
std::string signed_percent(const std::optional<double>& share);

/// "gpu.l2.size=25MiB", or of both where they differ: "A gpu.l2.size=25MiB, B gpu.l2.size=50MiB".
std::string settings_text(const study::ResultChange& change);

}  // namespace hemiola::report
