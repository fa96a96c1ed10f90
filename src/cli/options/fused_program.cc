#include "cli/options/fused_program.h"

#include <algorithm>

#include "core/text.h"
#include "machine/machine.h"

namespace hemiola::cli {

bool is_fused_file(const std::string& name) {
  return name.ends_with(".py") && is_file(name) && compile::is_fused_text(read_file(name));
}

FusedPrograms::FusedPrograms(const study::Settings& parameters) {
  for (const auto& [name, value] : parameters) {
    if (name != "prelaunch" || (value != "0" && value != "1"))
      throw Failure("a fused file has no parameter '" + name + "=" + value + "'",
                    {.file = "--param"}, "prelaunch=0 or prelaunch=1; all else its text says");
    prelaunch_ = value == "1";
  }
}

study::SharedProgram FusedPrograms::on(const std::string& file,
                                       const machine::SharedMachine& machine) {
  if (machine == nullptr) return with(file, 0);
  std::int64_t units = INT64_MAX;
  for (int rank = 0; rank < machine->ranks(); ++rank)
    units = std::min(units, machine->model(rank).cu_count);
  return with(file, units);
}

study::SharedProgram FusedPrograms::with(const std::string& file, std::int64_t processors) {
  return read(file, processors).program;
}

bool FusedPrograms::is_persistent(const std::string& file) {
  return read(file, 0).is_persistent;
}

const FusedPrograms::Known& FusedPrograms::read(const std::string& file, std::int64_t processors) {
  Known& known = known_[{file, processors}];
  if (known.program == nullptr) {
    compile::FusedReading made = compile::read_fused(
        file, read_file(file), {.processors = processors, .prelaunch = prelaunch_});
    known.is_persistent = made.is_persistent;
    known.program = std::make_shared<const program::Program>(std::move(made.program));
  }
  return known;
}

}  // namespace hemiola::cli
