#include "study/support/digest.h"

#include <fmt/format.h>

#include <cstdint>

namespace hemiola::study {

std::string digest(std::string_view content) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : content) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return fmt::format("{:016x}", hash);
}

}  // namespace hemiola::study
