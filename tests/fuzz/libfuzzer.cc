// The target of libFuzzer. Which reader it is for is what the program is called by: tools/fuzz
// makes a link of that name for each.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "readers.h"

namespace {

const hemiola::fuzz::Reader* reader = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** argv) {
  const std::string name = std::filesystem::path((*argv)[0]).filename().string();
  reader = hemiola::fuzz::find_reader(name);
  if (reader != nullptr) return 0;
  std::fprintf(stderr, "%s is no reader; there are:", name.c_str());
  for (const auto& one : hemiola::fuzz::readers())
    std::fprintf(stderr, " %s", std::string(one.name).c_str());
  std::fprintf(stderr, "\n");
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  hemiola::fuzz::takes(*reader, {reinterpret_cast<const char*>(data), size});
  return 0;
}
