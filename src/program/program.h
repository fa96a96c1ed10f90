// Programs (hemiola/parts/program.h) by name and from files.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/affine.h"
#include "core/data_type.h"
#include "core/diagnostics.h"
#include "core/index.h"
#include "core/units.h"
#include "hemiola/parts/program.h"

namespace hemiola::parts {
class Registry;
}

namespace hemiola::program {

/// Adds the built-in kernels and the formats of files.
void register_parts(parts::Registry& registry);
/// `parts`, or, where nobody gives any, the built-ins of this layer and of those before.
const parts::Registry& parts_or_built_in(const parts::Registry* parts);

/// Reads a file (MSCCL++ execution plan or MSCCL XML, also gzip-compressed; recognised by content)
/// or makes a built-in ("all-reduce/ring") for `ranks`. Throws Failure.
struct LoadOptions {
  int ranks = 0;  ///< built-ins: number of ranks (0: the machine decides first)
  std::vector<std::pair<std::string, std::string>>
      parameters;                    ///< built-ins: channels=8, protocol=ll, ...
  machine::SharedMachine machine{};  ///< built-ins: its links choose rings, schedules; may be null
  // For names that choose an algorithm by size (`auto/...`); others ignore them.
  Bytes size{};
  /// What the program is to be bound to: a plan with another size of its own is refused before it
  /// is lowered, as bind() would refuse it.
  std::optional<Bytes> exact{};
  DataType type = DataType::float32;
  Collective collective = Collective::custom;  ///< custom: the name says it
  /// For names that choose among plans (`*/synth`): how long a program takes, see plan::Judge.
  std::function<std::optional<Time>(const Program&, Bytes)> judge;
  const parts::Registry* parts = nullptr;  ///< what names mean; null: the built-ins
};
/// The parameter that says which executor runs a file: `--executor`.
inline constexpr std::string_view kExecutorParameter = "executor";
Program load(const std::string& name_or_file, const LoadOptions& options = {});
bool is_built_in(const std::string& name, const parts::Registry* parts = nullptr);
/// Whether a reader takes a file with this content for one of its format (format_reader.h).
bool is_readable(std::string_view content, const parts::Registry* parts = nullptr);

/// `executor`: what runs it; "": what its format is for (semantics/executor.h).
Program read_mscclpp(std::string_view json, const std::string& file,
                     std::string_view executor = {});
Program read_msccl(std::string_view xml, const std::string& file, std::string_view executor = {});
/// Failure for a program that the format cannot say, with the operation and the reason.
/// Where a plan left the type of a channel open, `machine` says it (formats/mscclpp/resolve.h).
std::string write_mscclpp(const Program& program, const machine::Machine* machine = nullptr);
std::string write_msccl(const Program& program);

}  // namespace hemiola::program
