// Files and positions in text.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

#include "core/diagnostics.h"

namespace hemiola {

/// The whole file; gzip-compressed files are expanded (recognised by content). Throws Failure for a
/// missing, unreadable or empty file, a directory, or a damaged or over-long (4 GiB) gzip stream.
std::string read_file(const std::string& path);

/// Writes to a temporary file beside `path` and renames it, so that a failed run leaves no partial
/// file. Throws Failure.
void write_file(const std::string& path, std::string_view content);

/// Whether there is a file of that name, no folder and no pipe.
bool is_file(const std::string& path);
/// Whether there is anything of that name.
bool is_there(const std::string& path);
/// With all that it stands in; it may be there. Failure: it cannot be made.
void make_folder(const std::string& path);

/// Line and column (1-based) of a byte offset.
SourceLocation locate(std::string file, std::string_view text, std::size_t offset);

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> prefixes);

/// What a text file looks like by its content, not by its name.
enum class Format {
  hemiola_plan,    ///< chunk plan (docs/plan_files.md)
  mscclpp_json,    ///< MSCCL++ execution plan
  msccl_xml,       ///< <algo ...>
  nccl_topology,   ///< <system ...>
  nccl_graph,      ///< <graphs ...>
  infragraph,      ///< JSON or YAML with devices / instances / components
  chakra_et,       ///< Chakra execution trace, protobuf; or PyTorch's, JSON
  chakra_json,     ///< Chakra execution trace as JSON, by its jsonizer or for its feeder
  astra_network,   ///< ASTRA-sim network .yml
  astra_system,    ///< ASTRA-sim system .json
  kineto_trace,    ///< of the PyTorch profiler
  hlo,             ///< HLO module of XLA, as text
  mlir,            ///< StableHLO or other MLIR, as text
  astra_text,      ///< workload text of ASTRA-sim 1 and SimAI: a parallelism, then a line per layer
  aicb_csv,        ///< AICB's table of calls
  simai_topology,  ///< SimAI's text of nodes and links
  simai_configuration,  ///< tables and settings of SimAI's own models
  json,                 ///< JSON of no known kind
  yaml,
  xml,
  binary,
  unknown
};
Format recognise(std::string_view content);
/// "an MSCCL++ execution plan", "a Chakra execution trace", ...
std::string_view describe(Format format);

}  // namespace hemiola
