// Files of data/ that are built into the library.
#pragma once

#include <span>
#include <string_view>

namespace hemiola {

struct EmbeddedFile {
  std::string_view path;  ///< "data/devices/h100.yaml"
  std::string_view content;
};
/// In order of path. Defined by generated code.
std::span<const EmbeddedFile> embedded_files();

}  // namespace hemiola
