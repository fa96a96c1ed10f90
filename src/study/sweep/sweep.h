// Many runs of one kind: what a sweep file says (docs/sweep.md), point by point.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/data_type.h"
#include "core/units.h"
#include "sim/result/options.h"
#include "study/laboratory/settings.h"

namespace hemiola::parts {
class Registry;
}

namespace hemiola::study {

/// One run: all that its result depends on, beside what all points of a sweep share.
struct SweepPoint {
  std::string machine;  ///< name, or file as the sweep file has it
  std::string gpu;      ///< device model (name or file) of GPUs that name none; empty: the default
  Settings set;
  std::string ranks;    ///< as written: "8" or "0,2,4-7"; empty: all of the machine
  std::string program;  ///< built-in, or file as the sweep file has it
  Settings parameters;
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
  Bytes size{};
  sim::Engine engine = sim::Options{}.engine;
  sim::Launch launch = sim::Options{}.launch;
  std::string skew;  ///< later starts of ranks, as written: "0ns,5us"; empty: none

  bool operator==(const SweepPoint&) const = default;
};

struct Sweep {
  std::string file;  ///< as the user named it; files that it names are relative to its folder
  std::string text;  ///< of the file
  /// In the order of the file: machines vary slowest, skews fastest. No two are equal.
  std::vector<SweepPoint> points;
  int warmup = 0, iterations = 0;  ///< sim::Options
  bool check = true;
  bool round_size = false;  ///< a size that is not legal stands for the next one that is
  /// Name and digest of every file that the points name, by name: results are kept only as long as
  /// these stay. Files that those name in turn are not among them.
  std::vector<std::pair<std::string, std::string>> inputs;

  /// Where a machine, device model or program is: `name`, or for a file its path from here.
  std::string path_of(const std::string& name) const;
};

/// Reads and understands a sweep file. Failure, with file and line, for a key that is not known or
/// stands twice, a value of the wrong kind, a machine or program that is not there, a parameter of
/// `set` that a machine does not have, no point at all and more than a million.
Sweep read_sweep(const std::string& file, const parts::Registry* parts = nullptr);

/// Part `number` of `count` (1-based): the points whose number (from 0) leaves number - 1 when it
/// is divided by count.
struct Shard {
  std::int64_t number = 1, count = 1;

  bool has(std::int64_t point) const { return point % count == number - 1; }
  std::string text() const { return std::to_string(number) + "/" + std::to_string(count); }
  bool operator==(const Shard&) const = default;
};

}  // namespace hemiola::study
