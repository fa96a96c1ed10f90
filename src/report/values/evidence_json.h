// The key `evidence` of results.
#pragma once

#include <optional>

#include "report/report.h"
#include "report/values/json_text.h"
#include "study/evidence/evidence.h"

namespace hemiola::report {

/// {"rows", "median", "p90", "kind", "nearest", "interval_us"}: `p90` are the ends within which 9
/// of 10 measured times lie, relative to the simulated one, `interval_us` the same of that time.
JsonText evidence_json(const study::Evidence& evidence, std::optional<double> simulated_us);

/// Of what is like that; null: no measured row is of its kind.
JsonText evidence_json(const study::Likeness& like, std::optional<double> simulated_us);
/// Of a result. Nothing: no measured row is of its kind.
std::optional<study::Evidence> evidence_of_result(const Run& run, const sim::Result& result);
/// Of a result; null: no measured row is of its kind.
JsonText evidence_json(const Run& run, const sim::Result& result);

}  // namespace hemiola::report
