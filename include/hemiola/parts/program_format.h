// Program formats: files that are programs, as MSCCL++ execution plans and MSCCL XML are.
//
//     hemiola::program::FormatReader{
//         .name = "distances", .format = "lists of distances",
//         .recognises = [](std::string_view content) { return content.starts_with("distances"); },
//         .read = [](std::string_view content, const std::string& file, std::string_view) {
//           return hemiola::program::lower_plan(plan_of(content, file), {});
//         }}
//
// Errors: throw hemiola::Failure with the place of what is wrong in the file. Checked: that there
// is a rank, every index when it is bound; all else is proven before it is run, as of any program.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "hemiola/parts/lower_plan.h"
#include "hemiola/parts/program.h"

namespace hemiola::program {

struct FormatReader {
  std::string name{};    ///< one word
  std::string format{};  ///< for messages: "MSCCL++ execution plans (JSON)"
  /// Whether a file is of this format, by its content (expanded if it was compressed). Has to be
  /// true for a damaged one too, so that read() can say where the damage is. Readers are asked in
  /// the order of registration, the built-ins first.
  std::function<bool(std::string_view content)> recognises{};
  /// `file` is its name as the user wrote it. The program has been through finish(). `executor`:
  /// what `--executor` says; "": nothing.
  std::function<Program(std::string_view content, const std::string& file,
                        std::string_view executor)>
      read{};
  std::string source{};  ///< where the format is defined
};

}  // namespace hemiola::program
