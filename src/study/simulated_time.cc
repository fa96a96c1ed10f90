#include "study/simulated_time.h"

#include "sim/simulate.h"

namespace hemiola::study {

std::optional<plan::Judgement> simulated_time(const machine::SharedMachine& machine,
                                              const program::Program& program, Bytes size,
                                              DataType type, ReduceOp op,
                                              const std::atomic<bool>* stop) {
  constexpr int kMostRanks = 32;
  constexpr std::int64_t kMostBytes = std::int64_t{192} << 20;  // of all ranks
  if (program.ranks > kMostRanks) return std::nullopt;
  program::Bound bound = program::bind(program, machine, {size, type, op});
  Bytes simulated = size;
  while (simulated.count * program.ranks > kMostBytes) simulated.count /= 2;
  simulated = program.next_legal_size(simulated, type);
  if (simulated.count > kMostBytes) return std::nullopt;  // e.g. of uneven blocks, for `size` alone
  if (simulated < size) bound = program::bind(program, machine, {simulated, type, op});
  Monitor monitor{.stop = stop};
  return plan::Judgement{sim::simulate(bound, {.monitor = &monitor}).time, bound.size()};
}

}  // namespace hemiola::study
