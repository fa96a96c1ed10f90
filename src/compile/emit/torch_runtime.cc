#include "compile/emit/torch_runtime.h"

#include <filesystem>
#include <system_error>

#include "core/embedded.h"
#include "core/text.h"

namespace hemiola::compile {

void write_runtime(const std::string& folder) {
  constexpr std::string_view kSource = "python/";
  const std::filesystem::path place = folder.empty() ? "." : folder;
  std::error_code error;
  std::filesystem::create_directories(place / "hemiola_rt", error);
  if (error) throw Failure("cannot be made: " + error.message(), {.file = folder});
  for (const EmbeddedFile& file : embedded_files()) {
    if (!file.path.starts_with("python/hemiola_rt/")) continue;
    write_file((place / file.path.substr(kSource.size())).string(), file.content);
  }
}

}  // namespace hemiola::compile
