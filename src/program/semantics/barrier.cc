#include "program/semantics/barrier.h"

#include <algorithm>

#include "core/index.h"

namespace hemiola::program {

std::array<Primitive, 4> parts_of_barrier(const Primitive& barrier, int rank, std::int32_t first,
                                          std::vector<std::int64_t>& rounds) {
  rounds.resize(std::max(rounds.size(), index(barrier.barrier_id) + 1));
  const std::int64_t round = ++rounds[index(barrier.barrier_id)];
  std::array<Primitive, 4> parts;
  auto& [join, count, wait, join_again] = parts;
  for (Primitive& part : parts) part.op = barrier.op;
  for (Primitive* part : {&count, &wait}) {
    part->semaphores = {{rank, first + barrier.barrier_id}};
    part->release = part->acquire = true;
    part->system_scope = false;
  }
  join.kind = join_again.kind = PrimitiveKind::sync;
  count.kind = PrimitiveKind::signal;
  count.values = {1};
  wait.kind = PrimitiveKind::wait;
  wait.values = {round * barrier.workgroups};
  return parts;
}

}  // namespace hemiola::program
