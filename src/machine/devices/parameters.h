// The parameters of a GPU model by the names that --set uses.
#pragma once

#include <optional>
#include <span>

#include "machine/devices/gpu_model.h"

namespace hemiola::machine {

/// A rate of hardware, as parse_rate() reads it: nothing below 1 MB/s, which no link or memory has
/// and at which a line takes longer than engines keep events apart.
std::optional<Rate> parse_hardware_rate(std::string_view text);

/// One parameter: how --set, the reader and `machine show` get at it.
struct Parameter {
  std::string_view name;  ///< dotted, without the "gpu." of --set
  std::string_view kind;  ///< "count", "bytes", "rate", "time", "frequency", "choice", "flag"
  std::string_view description;
  std::string (*get)(const GpuModel&);            ///< as text with its unit
  bool (*set)(GpuModel&, std::string_view text);  ///< false: malformed or out of range
  std::string_view hint;  ///< what a good value looks like: "a size such as 50 MiB"
};
std::span<const Parameter> gpu_parameters();

/// Sets one parameter by its dotted name; Failure with a suggestion for unknown names and bad
/// values.
void set_parameter(GpuModel& model, std::string_view name, std::string_view value,
                   const SourceLocation& where = {});

/// What single ranges cannot say: a sector fits a line, a cache holds one set per slice, ...
/// Applied by set_parameter() and parse_gpu_model(), so that a model in use always passes.
Diagnostics check_gpu_model(const GpuModel& model, const SourceLocation& where = {});

}  // namespace hemiola::machine
