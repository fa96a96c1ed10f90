#include "program/semantics/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace hemiola::program {
namespace {

// NCCL, and the interpreters on top of it: 8 steps to a connection (NCCL_STEPS), 512 KiB each in
// Simple; MSCCL_CHUNKSTEPS 4 to a piece, MSCCL_SLICESTEPS 2 to a slice (msccl.h, msccl_struct.h).
// So an operation of Simple always posts two slices, empty ones too (genericOp in prims_simple.h),
// and four fit into a FIFO. One of LL or LL128 is one step.
constexpr Fifo kSimple{.slots = 4, .step = MiB(1), .slices = 2, .call = MiB(2)};

constexpr Fifo one_step(Bytes step) {
  return {.slots = 8, .step = step, .slices = 1, .call = step};
}

// microsoft/msccl src/include/devcomm.h: LL has 512 threads of 8 lines of 8 B of data; LL128 640
// threads of 120 elements of 8 B, of which 15 in 16 are data.
constexpr Bytes kLl = KiB(32), kLl128{576'000};
// ROCm/rccl src/include/device.h: 256 threads; lines of LL128 are 64 B, and a thread has 28
// elements of 8 B, of which 7 in 8 are data.
constexpr Bytes kRcclLl = KiB(16), kRcclLl128{50'176};

constexpr std::array kExecutors = std::to_array<Executor>({
    {.name = "msccl",
     .format = "msccl",
     .source = "microsoft/msccl, src/collectives/device",
     .simple = {kSimple, MiB(2), 512},
     .ll = {one_step(kLl), kLl, 512},
     .ll128 = {one_step(kLl128), kLl128, 640}},
    {.name = "rccl",
     .format = "msccl",
     .source = "ROCm/rccl, src/device",
     .simple = {kSimple, MiB(2), 256},
     .ll = {one_step(kRcclLl), kRcclLl, 256},
     .ll128 = {one_step(kRcclLl128), kRcclLl128, 256}},
    {.name = "msccl-slice1",
     .format = "msccl",
     .source = "microsoft/msccl built with MSCCL_SLICESTEPS 4: one slice for each operation",
     .simple = {{.slots = 2, .step = MiB(2), .slices = 1, .call = MiB(2)}, MiB(2), 512},
     .ll = {one_step(kLl), kLl, 512},
     .ll128 = {one_step(kLl128), kLl128, 640}},
    {.name = "mscclpp",
     .format = "mscclpp",
     .source = "microsoft/mscclpp, src/core/include/execution_kernel.hpp",
     .threads_post = true},
    // An operation takes as many slots as its bytes fill, and any thread may push a descriptor.
    {.name = "hemiola",
     .format = "",
     .source = "an ideal interpreter: slots are used as bytes fill them",
     .simple = {{.slots = 4, .step = MiB(1)}, MiB(2), 512},
     .ll = {{.slots = 8, .step = kLl}, kLl, 512},
     .ll128 = {{.slots = 8, .step = kLl128}, kLl128, 640}},
});

constexpr const Executor& kHemiola = kExecutors.back();

}  // namespace

const Executor::Protocols& Executor::of(Protocol protocol) const {
  return protocol == Protocol::simple ? simple : protocol == Protocol::ll ? ll : ll128;
}

std::string Executor::rules(Protocol protocol) const {
  if (threads_post)
    return "thread i waits for the i-th channel of an operation, and posts to it; operations "
           "join the threads of a warp only";
  const Fifo& fifo = of(protocol).fifo;
  if (fifo.call.count == 0) return "";
  return fmt::format(
      "{} slice{} for each operation, empty or not; {} fit into a FIFO; chunks of "
      "an operation go together up to {}",
      fifo.slices, fifo.slices == 1 ? "" : "s", fifo.slots, to_string(fifo.call));
}

std::span<const Executor> executors() {
  return kExecutors;
}

const Executor& find_executor(std::string_view name, std::string_view format) {
  std::string known;
  for (const Executor& one : kExecutors) {
    const bool fits = one.format.empty() || one.format == format;
    if (one.name == name && fits) return one;
    if (fits) known += (known.empty() ? "" : ", ") + std::string(one.name);
  }
  throw Failure(fmt::format("'{}' is no executor of this file", name), {.file = "--executor"},
                "it can be one of " + known);
}

const Executor& executor_of(const Program& program) {
  const auto found = std::ranges::find(kExecutors, program.executed_by.name, &Executor::name);
  return found == kExecutors.end() ? kHemiola : *found;
}

}  // namespace hemiola::program
