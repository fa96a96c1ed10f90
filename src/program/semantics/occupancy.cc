#include "program/semantics/occupancy.h"

#include <algorithm>
#include <limits>

namespace hemiola::program {

namespace {

constexpr std::int64_t kRegisterBytes = 4;
// Registers for as much again as the accumulators: operands on their way, fragments, addresses.
constexpr std::int64_t kOfAccumulators = 2;

std::int64_t registers_of_block(const Kernel& kernel, std::size_t workgroup,
                                const machine::GpuModel& model) {
  const std::int64_t all = model.cu_registers.count;
  if (all == 0) return 0;
  if (kernel.fills_unit) return all;
  const std::int64_t usual = kernel.threads_in_block(workgroup) * model.sync_thread_state.count;
  return std::min(all, std::max(usual, kOfAccumulators * kernel.largest_tile * kRegisterBytes));
}

std::int64_t times(std::int64_t all, std::int64_t each) {
  return all == 0 || each == 0 ? std::numeric_limits<std::int64_t>::max() : all / each;
}

}  // namespace

Occupancy& Occupancy::operator+=(const Occupancy& other) {
  threads += other.threads;
  workgroups += other.workgroups;
  registers += other.registers;
  return *this;
}

Occupancy& Occupancy::operator-=(const Occupancy& other) {
  threads -= other.threads;
  workgroups -= other.workgroups;
  registers -= other.registers;
  return *this;
}

Occupancy occupancy_of_block(const Kernel& kernel, std::size_t workgroup,
                             const machine::GpuModel& model) {
  return {kernel.threads_in_block(workgroup),
          static_cast<std::int64_t>(kernel.parts_from(kernel.block_of(workgroup))),
          registers_of_block(kernel, workgroup, model)};
}

Occupancy occupancy_of(const Kernel& kernel, std::size_t workgroup,
                       const machine::GpuModel& model) {
  const Occupancy block = occupancy_of_block(kernel, workgroup, model);
  const auto part = static_cast<std::int64_t>(workgroup - kernel.block_of(workgroup));
  const auto share = [&](std::int64_t of) {
    return of * (part + 1) / block.workgroups - of * part / block.workgroups;
  };
  return {kernel.threads_in(workgroup), 1, share(block.registers)};
}

bool has_room(const Occupancy& used, const Occupancy& block, const machine::GpuModel& model) {
  if (used.workgroups == 0) return true;
  const auto fits = [](std::int64_t sum, std::int64_t all) { return all == 0 || sum <= all; };
  return fits(used.threads + block.threads, model.cu_max_threads) &&
         fits(used.workgroups + block.workgroups, model.cu_max_workgroups) &&
         fits(used.registers + block.registers, model.cu_registers.count);
}

std::int64_t blocks_per_unit(const Occupancy& block, const machine::GpuModel& model) {
  return std::max<std::int64_t>(1, std::min({times(model.cu_max_threads, block.threads),
                                             times(model.cu_max_workgroups, block.workgroups),
                                             times(model.cu_registers.count, block.registers)}));
}

}  // namespace hemiola::program
