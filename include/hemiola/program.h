// Programs: what each GPU executes, with which hardware.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hemiola/job.h"
#include "hemiola/machine.h"
#include "hemiola/plan.h"

namespace hemiola {

/// What is to be run: a built-in by its name, a file's program, a plan with the parameters of its
/// lowering, or a job. It has no size and no machine; run() and check() give it both. Immutable and
/// cheap to copy.
class Program {
 public:
  /// A built-in ("all-reduce/ring", "auto/nccl"), a collective ("all-reduce": the fastest of its
  /// built-ins is taken), or a file: MSCCL++ execution plan, MSCCL XML (also gzip-compressed),
  /// chunk plan, job. A file is read now; what a built-in becomes depends on the machine and is
  /// found there. Failure: no such name or file, what is wrong in the file, with line and place;
  /// parameters for a file that is neither plan nor built-in.
  static Program load(const std::string& name_or_file, const Settings& parameters = {});
  /// A plan, lowered for the machine. Parameters: `channels`, `protocol`, ... (docs/plans.md).
  Program(const Plan& plan, const Settings& parameters = {});  // NOLINT: a plan is a program
  Program(const Job& job);                                     // NOLINT: and so is a job
  static std::vector<Named> built_ins();

  const std::string& name() const;  ///< as it was named
  const Settings& parameters() const;

  struct Implementation;  ///< the library's
  explicit Program(std::shared_ptr<const Implementation> self) : self_(std::move(self)) {}
  const Implementation& implementation() const { return *self_; }

 private:
  std::shared_ptr<const Implementation> self_;
};

}  // namespace hemiola
