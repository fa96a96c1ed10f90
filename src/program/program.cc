#include "program/program.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "program/semantics/primitive.h"
#include "program/semantics/streams.h"

namespace hemiola::program {
namespace {

bool waits_on_semaphores(OpKind kind) {
  return kind == OpKind::wait || kind == OpKind::relaxed_wait || kind == OpKind::sem_acquire;
}

/// The semaphores that each body waits on, without repetition.
std::vector<std::set<std::int32_t>> awaited_by_body(const Program& program) {
  std::vector<std::set<std::int32_t>> awaited(program.bodies.size());
  for (std::size_t body = 0; body < program.bodies.size(); ++body) {
    for (const Op& op : program.bodies[body].ops) {
      if (!waits_on_semaphores(op.kind)) continue;
      for (const SemaphoreRef& ref : op.semaphores) awaited[body].insert(ref.index);
    }
  }
  return awaited;
}

/// Marks the semaphores that more than one workgroup of some rank waits on.
void mark_shared(Program& program) {
  const auto awaited = awaited_by_body(program);
  for (const RankCode& code : program.codes) {
    std::map<std::int32_t, int> waiters;
    each_body(code, program.kernels, [&](std::int32_t body) {
      for (const std::int32_t semaphore : awaited.at(index(body))) ++waiters[semaphore];
    });
    for (const auto& [index, count] : waiters)
      if (count > 1) program.semaphores.at(static_cast<std::size_t>(index)).shared = true;
  }
}

}  // namespace

std::pair<std::int64_t, std::int64_t> Op::range_of(std::int32_t column) const {
  if (column < 0) return {0, 0};
  const auto width = index(columns());
  const std::int64_t first = places[index(column)];
  std::pair range{first, first};
  for (auto at = index(column); at < places.size(); at += width) {
    range.first = std::min(range.first, places[at]);
    range.second = std::max(range.second, places[at]);
  }
  return range;
}

bool Op::operator==(const Op& other) const {
  return kind == other.kind && channel == other.channel && reduce == other.reduce &&
         src == other.src && dst == other.dst && semaphores == other.semaphores &&
         target == other.target && targets == other.targets && relaxed == other.relaxed &&
         bypass_l1 == other.bypass_l1 && staged == other.staged && batched == other.batched &&
         send_to == other.send_to && recv_from == other.recv_from && more_from == other.more_from &&
         more_to == other.more_to && slice == other.slice && slices == other.slices &&
         barrier_id == other.barrier_id && workgroups == other.workgroups && count == other.count &&
         places == other.places && unit == other.unit && unit_chunks == other.unit_chunks &&
         pieces == other.pieces && flop == other.flop && product == other.product &&
         bytes == other.bytes && duration == other.duration && values == other.values &&
         made == other.made;
}

Bytes Program::next_legal_size(Bytes wanted, DataType element) const {
  const std::int64_t step =
      chunks_per_size * std::lcm(alignment.count, static_cast<std::int64_t>(size_of(element)));
  const std::int64_t steps = wanted.count <= step ? 1 : (wanted.count - 1) / step + 1;
  return {steps * step};
}

Program Program::sized(const BindOptions& options) const {
  return make_ ? make_(options).sized(options) : *this;
}

std::int64_t Fifo::call_bytes(std::int64_t chunk) const {
  constexpr std::int64_t kMost = 71;  // MSCCL_MAX_COUNT - 1 (msccl.h, msccl_struct.h)
  if (call.count == 0 || chunk <= 0) return 0;
  return std::clamp<std::int64_t>(call.count / chunk, 1, kMost) * chunk;
}

std::int64_t Fifo::slice_bytes(std::int64_t bytes, std::int64_t element) const {
  if (slices <= 1) return step.count;
  const std::int64_t grain = 16 * element * slices;  // 16 elements, as NCCL rounds
  const std::int64_t even = (bytes + grain - 1) / grain * 16 * element;
  return std::min(step.count, std::max(even, step.count / 32));
}

std::int64_t Program::slot_bytes() const {
  constexpr std::array<Access, 3> kAccess{Access::plain, Access::packet, Access::ll128};
  return memory_size(fifo.step.count, kAccess.at(index(protocol)));
}

namespace {

std::int64_t largest_tile(const Program& program, const Kernel& kernel) {
  std::int64_t largest = 0;
  const std::set<std::int32_t> bodies(kernel.bodies.begin(), kernel.bodies.end());
  for (const std::int32_t body : bodies)
    for (const Op& op : program.bodies.at(index(body)).ops)
      largest = std::max(largest, op.product.m * op.product.n);
  return largest;
}

}  // namespace

std::size_t Kernel::block_of(std::size_t workgroup) const {
  while (workgroup > 0 && workgroup < blocks.size() && blocks[workgroup - 1] == blocks[workgroup])
    --workgroup;
  return workgroup;
}

std::int64_t Kernel::threads_in_block(std::size_t workgroup) const {
  const std::size_t first = block_of(workgroup);
  std::int64_t sum = 0;
  for (std::size_t part = 0; part < parts_from(first); ++part) sum += threads_in(first + part);
  return sum;
}

int Program::workgroups(int rank) const {
  std::size_t total = 0;
  const auto code = index(code_of.at(index(rank)));
  for (const Stream& stream : codes.at(code).streams) {
    for (const StreamItem& item : stream)
      if (item.kind == StreamItem::Kind::kernel)
        total += kernels.at(index(item.index)).bodies.size();
  }
  return static_cast<int>(total);
}

std::int64_t Program::chunks_of(std::int32_t buffer, int rank) const {
  const std::vector<std::int64_t>& chunks = buffers.at(index(buffer)).chunks;
  if (chunks.empty()) return 0;
  return chunks.size() == 1 ? chunks.front() : chunks.at(index(rank));
}

void Program::finish() {
  const Bytes fifo_bytes{fifo.slots * slot_bytes()};
  first_.fifo = static_cast<std::int32_t>(buffers.size());
  for (std::int32_t i = 0; i < inbound; ++i) {
    buffers.push_back({.name = "fifo " + std::to_string(i),
                       .kind = BufferKind::fifo,
                       .chunks = {},
                       .bytes = fifo_bytes});
  }
  first_.staging = static_cast<std::int32_t>(buffers.size());
  for (std::int32_t i = 0; i < outbound; ++i) {
    buffers.push_back({.name = "staging " + std::to_string(i),
                       .kind = BufferKind::fifo,
                       .chunks = {},
                       .bytes = fifo_bytes});
  }
  first_.tail = static_cast<std::int32_t>(semaphores.size());
  for (std::int32_t i = 0; i < inbound; ++i)
    semaphores.push_back({.name = "tail of fifo " + std::to_string(i)});
  first_.head = static_cast<std::int32_t>(semaphores.size());
  for (std::int32_t i = 0; i < outbound; ++i)
    semaphores.push_back({.name = "credit of connection " + std::to_string(i)});
  mark_shared(*this);
  for (Kernel& kernel : kernels) kernel.largest_tile = largest_tile(*this, kernel);
}

}  // namespace hemiola::program
