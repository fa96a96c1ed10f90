// Machines: GPUs, NICs, switches and links, with all their parameters.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hemiola/error.h"

namespace hemiola {

/// Names and values, in the order in which they apply: "gpu.l2.size", "25 MiB". A unit is always
/// written out (docs/machines.md, docs/devices.md).
using Settings = std::vector<std::pair<std::string, std::string>>;

/// One of a list to choose from.
struct Named {
  std::string name;
  std::string description;  ///< one line
};

struct MachineOptions {
  std::string gpu{};  ///< device model (name or file) of GPUs whose file names none
  Settings set{};     ///< parameters to change
  /// The GPUs that take part, in the order of their ranks; empty: all of the machine.
  std::vector<int> ranks{};
};

/// A value of a parameter, and who says so.
struct MachineParameter {
  std::string name;    ///< as Settings take it: "gpu.l2.size", "link.nvlink4.bandwidth"
  std::string value;   ///< with its unit
  std::string source;  ///< a document or measurement; "assumed"; empty: the machine's own file
};

/// Immutable, cheap to copy (copies share everything), and safe to use from several threads.
class Machine {
 public:
  /// A shipped machine ("dgx-h100", "dgx-h100:4", "mesh:4x4") or a file (InfraGraph YAML or JSON,
  /// NCCL topology XML). Failure: no such machine, a file that is not one, with line and place;
  /// unknown parameters and bad values, with a suggestion; a machine without a GPU.
  static Machine load(const std::string& name_or_file, const MachineOptions& options = {});
  static std::vector<Named> built_ins();            ///< shipped machines
  static std::vector<std::string> device_models();  ///< for MachineOptions::gpu

  /// The same with some parameters changed. Failure as above.
  Machine with(const Settings& set) const;
  /// The same with these of its ranks only, in this order, numbered from 0. Failure: an unknown
  /// rank, one that is listed twice, none.
  Machine with_ranks(const std::vector<int>& ranks) const;

  const std::string& name() const;
  const std::string& description() const;
  const Settings& settings() const;  ///< all that was changed since it was loaded
  int ranks() const;                 ///< GPUs that take part
  /// What was assumed or left out when it was read.
  const std::vector<Diagnostic>& warnings() const;
  /// Of the first rank's GPU, of all link classes, of the first switch and of the first NIC.
  std::vector<MachineParameter> parameters() const;
  /// As InfraGraph YAML, which reads back to the same machine. Failure: what InfraGraph cannot say.
  std::string to_infragraph() const;

  struct Implementation;  ///< the library's
  explicit Machine(std::shared_ptr<const Implementation> self) : self_(std::move(self)) {}
  const Implementation& implementation() const { return *self_; }

 private:
  std::shared_ptr<const Implementation> self_;
};

}  // namespace hemiola
