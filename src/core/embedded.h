// Files of data/ and of python/hemiola_rt that are built into the library.
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

/// Null: there is none of that path.
inline const EmbeddedFile* find_embedded(std::string_view path) {
  for (const EmbeddedFile& file : embedded_files())
    if (file.path == path) return &file;
  return nullptr;
}

}  // namespace hemiola
