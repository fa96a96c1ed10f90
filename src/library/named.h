// Programs and plans by their names, for who knows more names than the built-ins.
#pragma once

#include "hemiola/program.h"
#include "study/laboratory/experiment.h"

namespace hemiola {

/// As Program::load(); null: the built-ins.
Program loaded(const std::string& name_or_file, const Settings& parameters,
               const parts::Registry* registry);
/// As Plan::make().
Plan made(study::Laboratory& laboratory, const std::string& name, int ranks,
          const Settings& parameters, const std::optional<Machine>& machine,
          const std::atomic<bool>* stop);

}  // namespace hemiola
