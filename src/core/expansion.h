// How far compressed files may expand, and their first bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hemiola {

/// How many first bytes tell the kind of a file.
constexpr std::size_t kFormatStart = std::size_t{1} << 16;

/// Counts what comes out of `packed` bytes of the file `path`. Traces shrink to a thirtieth at
/// most; a file that is a thousand times as large as it looks is made to fill the memory.
class Expansion {
 public:
  static constexpr std::size_t kFree = std::size_t{64} << 20;  ///< at any ratio
  static constexpr std::size_t kMostRatio = 200;               ///< beyond
  static constexpr std::size_t kMost = std::size_t{4} << 30;

  Expansion(std::string path, std::size_t packed);

  /// Failure where this is more than the above.
  void add(std::size_t bytes);

 private:
  std::string path_;
  std::size_t most_, expanded_ = 0;
};

/// Whether a longer file that begins like this can be read by anybody: text, a trace, an archive.
bool is_readable_start(std::string_view start);

/// The first bytes of a file, expanded; empty if it cannot be read.
std::string read_start(const std::string& path, std::size_t most = kFormatStart);

}  // namespace hemiola
