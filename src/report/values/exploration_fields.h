// JSON and cells that pages, tables and objects of explorations share. Private to the layer.
#pragma once

#include <functional>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/time.h"
#include "core/units.h"
#include "explore/space/operator.h"
#include "report/exploration.h"
#include "report/page.h"
#include "report/run_timeline.h"
#include "study/laboratory/settings.h"

namespace hemiola::report {

struct JsonText;  // json_text.h

/// What is multiplied, gathered and sent: "kind", "gather", "m", "n", "k", "dtype", "ranks",
/// "local", "collective_size_bytes".
JsonText operator_object(const explore::Operator& op);

/// Reasons with their femtoseconds, the longest first.
JsonText attribution_object(const sim::Attribution& attribution);

/// "best: GPU 0": the panels of one run among those of others.
void add_panels(page::Timelines& all, const std::string& name, const RunTimeline::Panels& panels);
/// A part of a stacked bar, in microseconds. Losses that are gains (below zero) are left out.
void add_loss(page::Bars::Row& row, std::string_view name, std::int64_t fs);

/// "hemiola run all-reduce/ring --machine dgx-h100 --param channels=8"; `where` is "--machine ...".
std::string run_command(const std::string& program, const std::string& where,
                        const study::Settings& parameters);
/// A row for each `what` that was measured, the fastest first, beside the time that was simulated;
/// nothing where nothing was measured.
void print_measured_order(std::ostream& out, const std::string& what,
                          const std::map<std::string, double>& measured_us,
                          const std::function<std::optional<Time>(const std::string&)>& simulated);

/// With one decimal.
std::string mebibytes(Bytes bytes);
/// With two decimals; "-" of nothing.
std::string ratio_cell(const std::optional<double>& ratio);

}  // namespace hemiola::report
