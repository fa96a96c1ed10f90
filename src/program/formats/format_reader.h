// Readers: one for each program format.
//
// A format is one file that defines a function `FormatReader NAME_reader()` and one line in
// reader_list.h (docs/extending.md shows one being added). load() asks them in order of the list.
#pragma once

#include <string>
#include <string_view>

#include "program/program.h"

namespace hemiola::program {

struct FormatReader {
  std::string_view format;  ///< for messages: "MSCCL++ execution plans (JSON)"
  /// Whether a file is of this format, by its content (expanded if it was compressed). Has to be
  /// true for a damaged one too, so that read() can say where the damage is.
  bool (*recognises)(std::string_view content) = nullptr;
  /// Throws Failure with the place of what is wrong; `file` is its name as the user wrote it. The
  /// program has been through finish(). `executor` as of read_msccl().
  Program (*read)(std::string_view content, const std::string& file,
                  std::string_view executor) = nullptr;
};

#define HEMIOLA_READER(name) FormatReader name##_reader();
#include "program/formats/reader_list.h"
#undef HEMIOLA_READER

}  // namespace hemiola::program
