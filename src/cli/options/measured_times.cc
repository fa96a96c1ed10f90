#include "cli/options/measured_times.h"

#include <utility>

#include "cli/notices.h"
#include "compile/emit/torch_runtime.h"
#include "core/text.h"
#include "report/bench.h"

namespace hemiola::cli {

MetTimes meet_measured(Session& session, const std::string& file, DataType type,
                       study::MachineChoice& machine, const sim::Options& options) {
  MetTimes met{explore::read_measured_times(read_file(file), file, type), {}};
  if (met.own.products.empty() && met.own.collectives.empty()) return met;
  Progress progress(session);
  progress.doing("fitting " + machine.name + " to " + file);
  explore::FittedMachine fitted =
      explore::fit_machine(session.laboratory, machine, met.own, options);
  for (const auto& setting : fitted.settings) machine.settings.push_back(setting);
  met.remarks = std::move(fitted.remarks);
  if (!fitted.settings.empty()) {
    std::string text = "the same machine elsewhere:";
    for (const auto& [name, value] : fitted.settings) text += " --set '" + name + "=" + value + "'";
    met.remarks.push_back(text);
  }
  return met;
}

void write_bench_program(const std::string& folder, const std::string& schedules) {
  write_file(folder + "/schedules.json", schedules);
  compile::write_runtime(folder);
  write_file(folder + "/bench.py", std::string(report::bench_program()));
}

}  // namespace hemiola::cli
