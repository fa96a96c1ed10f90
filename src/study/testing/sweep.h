// For tests of sweeps: a folder with a sweep file in it.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "study/sweep/sweep.h"

namespace hemiola::test {

/// Temporary; gone with the object.
class SweepFolder {
 public:
  SweepFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "hemiola-sweep-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = name;
  }
  ~SweepFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  SweepFolder(const SweepFolder&) = delete;
  SweepFolder& operator=(const SweepFolder&) = delete;

  std::string path(const std::string& name) const { return folder_ + '/' + name; }
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(path(name), std::ios::binary) << content;
  }
  /// Of this text, in sweep.yaml.
  study::Sweep sweep(const std::string& yaml) const {
    write("sweep.yaml", yaml);
    return study::read_sweep(path("sweep.yaml"));
  }

 private:
  std::string folder_;
};

}  // namespace hemiola::test
