// What ASTRA-sim would say, and ours beside it.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>

#include "workload/astra/astra.h"
#include "workload/iteration/iteration.h"

namespace hemiola::report {

struct AstraComparison {
  workload::AstraResult unaware;
  std::optional<workload::AstraResult> aware;  ///< networks of one dimension
  std::optional<workload::IterationOutcome> ours;
  std::string ours_engine;  ///< "fluid"
  std::string not_ours;     ///< why there is none
};

void print_astra(std::ostream& out, const workload::Workload& workload,
                 const AstraComparison& comparison);
std::string astra_json(const std::string& command, const workload::Workload& workload,
                       const AstraComparison& comparison);

}  // namespace hemiola::report
