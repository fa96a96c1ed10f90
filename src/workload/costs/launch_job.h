// Launches of a workload as a job that is linked and simulated. Private to the costs.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/units.h"
#include "program/jobs/job.h"
#include "program/jobs/launch_programs.h"
#include "study/laboratory/experiment.h"
#include "workload/costs/simulated_costs.h"
#include "workload/scheduler/costs.h"

namespace hemiola::workload {

/// The flop of the matrix units' full rate that take as long as the kernel's at the share of it
/// that such kernels reach.
std::int64_t flop_of_units(const Compute& compute);

/// What a copy moves in the time in which a kernel reads (or writes) so much.
Bytes bytes_of_copy(std::int64_t bytes);

/// Of kernels that are known by their bytes: into so many pieces a workgroup cuts its share. Enough
/// for what is beside them to come and go.
constexpr std::int64_t kPiecesOfKernel = 16;

/// What a collective, or a message, runs as: NCCL's broadcast of two ranks is what a message is,
/// from the first to the second, over as many channels.
struct RunAs {
  Collective kind = Collective::broadcast;
  DataType type = DataType::uint8;
};
RunAs run_as(const Workload& workload, NodeKind kind, std::int32_t work);

/// "product 8192x4096x1024", "all-reduce of 64 MiB"
std::string text_of(const Workload& workload, const LaunchKind& kind);

/// Programs of works, each made once.
class LaunchPrograms {
 public:
  LaunchPrograms(const Workload& workload, machine::SharedMachine machine,
                 study::Laboratory& laboratory, const CostOptions& options)
      : workload_(workload),
        machine_(std::move(machine)),
        laboratory_(laboratory),
        options_(options) {}

  struct Made {
    std::shared_ptr<const program::Program> program;
    program::BindOptions options{};
  };
  /// Of a kernel on the GPU of `rank`.
  Made kernel(std::int32_t compute, int rank);
  /// Copies so many bytes within the memory of `rank`.
  Made copy(std::int64_t bytes, int rank);
  /// One that takes a microsecond.
  Made short_kernel(int rank);
  /// One that moves bytes through memory, long enough for others to come and go.
  Made any_kernel(int rank);
  /// Of a collective, or of a message, of so many bytes in a group. Failure where no program takes
  /// it, with what the library says.
  Made call(const LaunchKind& kind, std::int64_t bytes, const std::vector<int>& group);

  /// Machine::ways_between(), once for each list. Of more than eight ranks it looks at parts of
  /// four: neighbours, as in rings, and ranks that are far apart, as in trees; all pairs of a
  /// thousand ranks would be a million routes.
  std::uint64_t ways_between(const std::vector<int>& ranks);

 private:
  program::Work work_of(const Compute& compute, const machine::GpuModel& model) const;
  template <class Make>
  Made once(std::int64_t number, int rank, const Make& make);
  Made fused(const CollectiveCall& call, const std::vector<int>& group,
             const machine::SharedMachine& ranks);
  void set_uneven(study::Experiment& experiment, const CollectiveCall& call,
                  std::size_t ranks) const;
  const CollectiveRule* rule_for(Collective kind, int ranks, std::int64_t bytes) const;

  const Workload& workload_;
  machine::SharedMachine machine_;
  study::Laboratory& laboratory_;
  const CostOptions& options_;
  std::map<std::pair<std::int64_t, const machine::GpuModel*>, Made> kernels_;
  /// By call with its product, or -1 for collectives, -2 for messages; what runs; ways.
  std::map<std::tuple<std::int32_t, Collective, DataType, std::int64_t, std::uint64_t>, Made>
      calls_;
  std::map<std::vector<int>, machine::SharedMachine> machines_;
  std::map<std::vector<int>, std::uint64_t> ways_;
};

}  // namespace hemiola::workload
