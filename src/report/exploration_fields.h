// JSON and cells that pages, tables and objects of explorations share. Private to the layer.
#pragma once

#include <optional>
#include <string>

#include "core/time.h"
#include "core/units.h"
#include "explore/operator.h"
#include "report/page.h"
#include "report/run_timeline.h"
#include "sim/simulate.h"
#include "study/settings.h"

namespace hemiola::report {

/// "serial_fs": 1, "serial_ns": 0.000001
std::string time_fields(const char* name, Time time);
/// What is multiplied, gathered and sent: "kind", "gather", "m", "n", "k", "dtype", "ranks",
/// "local", "collective_size_bytes".
std::string operator_object(const explore::Operator& op);

/// {"degree": "4"}
std::string settings_object(const study::Settings& settings);
/// Reasons with their femtoseconds, the longest first.
std::string attribution_object(const sim::Attribution& attribution);

/// "best: GPU 0": the panels of one run among those of others.
void add_panels(page::Timelines& all, const char* name, const RunTimeline::Panels& panels);

/// With one decimal.
std::string mebibytes(Bytes bytes);
/// With two decimals; "-" of nothing.
std::string ratio_cell(const std::optional<double>& ratio);

}  // namespace hemiola::report
