#include "core/expansion.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <utility>

#include "core/diagnostics.h"
#include "core/text.h"

namespace hemiola {

Expansion::Expansion(std::string path, std::size_t packed)
    : path_(std::move(path)),
      most_(std::min(kMost, std::max(kFree, std::min(packed, kMost) * kMostRatio))) {}

void Expansion::add(std::size_t bytes) {
  expanded_ += bytes;
  if (expanded_ <= most_) return;
  throw Failure(fmt::format("expands to more than {} MiB", most_ >> 20), {.file = path_},
                fmt::format("{} MiB, or {} times its size, but never more than {} GiB; expand it "
                            "yourself, if it is a trace or a program",
                            kFree >> 20, kMostRatio, kMost >> 30));
}

bool is_readable_start(std::string_view start) {
  constexpr std::size_t kMagicOfTar = 257;
  return start.starts_with("PK\x03\x04") ||
         (start.size() > kMagicOfTar + 5 && start.substr(kMagicOfTar, 5) == "ustar") ||
         recognise(start) != Format::binary;
}

std::string read_start(const std::string& path, std::size_t most) {
  const gzFile file = gzopen(path.c_str(), "rb");  // reads plain files too
  if (file == nullptr) return {};
  std::string text;
  while (text.size() < most) {
    const std::size_t known = text.size();
    const std::size_t part = std::min(kFormatStart, most - known);
    text.resize(known + part);
    const int count = gzread(file, text.data() + known, static_cast<unsigned>(part));
    text.resize(known + (count > 0 ? static_cast<std::size_t>(count) : 0));
    if (count < static_cast<int>(part)) break;
  }
  gzclose_r(file);
  return text;
}

}  // namespace hemiola
