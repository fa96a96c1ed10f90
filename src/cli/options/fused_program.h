// Files that `hemiola compile KERNEL.py --plan PLAN` wrote, as programs of `check` and `run`.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "compile/readback/readback.h"
#include "study/laboratory/experiment.h"
#include "study/laboratory/settings.h"

namespace hemiola::cli {

/// Whether it is a file with this text in it. A built-in's name is none.
bool is_fused_file(const std::string& name);

/// Reads fused files, each once for every number of programs that its kernel may have.
class FusedPrograms {
 public:
  /// `parameters`: prelaunch=0|1, as of the lowering of plans. Failure for others.
  explicit FusedPrograms(const study::Settings& parameters = {});

  /// `machine`: whose compute units a persistent kernel has a program on; null: one for each tile.
  study::SharedProgram on(const std::string& file, const machine::SharedMachine& machine);
  /// With this many programs at most. 0: one for each tile.
  study::SharedProgram with(const std::string& file, std::int64_t processors);
  /// Whether programs of its kernel take several tiles each.
  bool is_persistent(const std::string& file);

 private:
  struct Known {
    study::SharedProgram program;
    bool is_persistent = false;
  };
  const Known& read(const std::string& file, std::int64_t processors);

  bool prelaunch_ = false;
  std::map<std::pair<std::string, std::int64_t>, Known> known_;
};

}  // namespace hemiola::cli
