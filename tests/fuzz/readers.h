// Every reader of texts and files that users hand over, as one function each: what fuzzing calls.
#pragma once

#include <span>
#include <string_view>

namespace hemiola::fuzz {

struct Reader {
  std::string_view name;  ///< as in seeds.txt
  /// Reads it and forgets it. Failure for what is refused.
  void (*read)(std::string_view text);
};

/// In the order of the layers.
std::span<const Reader> readers();
/// Null: there is none of that name.
const Reader* find_reader(std::string_view name);

/// Whether the reader took the text. Whatever else it does than take it, or refuse it with a
/// message, ends the process: an exception that is no Failure, one of ExitCode::internal, one that
/// says nothing.
bool takes(const Reader& reader, std::string_view text);

}  // namespace hemiola::fuzz
