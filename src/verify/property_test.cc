// Whatever check accepts computes the right result in every order that a small, independent machine
// of single threads can produce.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <random>

#include "program/walk/cursor.h"
#include "verify/execute.h"
#include "verify/testing/programs.h"
#include "verify/verify.h"

namespace hemiola::verify {
namespace {

using namespace test;
using program::Primitive;
using program::PrimitiveKind;
using program::SemaphoreId;
using program::Span;

constexpr int kThreads = 4;

/// Runs threads one primitive at a time in a random order; stores become visible at once. Bytes are
/// 64-bit numbers, so that sums tell every mixture of contributions apart.
class ThreadMachine {
 public:
  ThreadMachine(const program::Bound& program, unsigned seed) : random_(seed) {
    for (int rank = 0; rank < program.ranks(); ++rank) {
      const program::Kernel& kernel = program.kernels()[static_cast<std::size_t>(rank)];
      for (std::int32_t body : kernel.bodies) {
        for (int thread = 0; thread < kThreads; ++thread)
          threads_.push_back(
              {workgroups_, thread, program::Cursor(program, rank, body), {}, false, false, 0});
        ++workgroups_;
      }
      const std::int64_t bytes = program.chunks_of(kInput, rank) * program.chunk_bytes();
      for (std::int64_t byte = 0; byte < bytes; ++byte)
        memory_[{rank, kInput, byte}] = input(rank, byte);
    }
    arrived_.resize(static_cast<std::size_t>(workgroups_));
  }

  static std::int64_t input(int rank, std::int64_t byte) {
    return (std::int64_t{1} << (8 * rank)) * (1000003 + byte);
  }

  /// False if it hangs.
  bool run() {
    std::vector<std::size_t> alive(threads_.size());
    for (std::size_t i = 0; i < alive.size(); ++i) alive[i] = i;
    while (!alive.empty()) {
      std::shuffle(alive.begin(), alive.end(), random_);
      bool moved = false;
      for (std::size_t i = 0; i < alive.size() && !moved; ++i) {
        Thread& thread = threads_[alive[i]];
        moved = step(thread);
        if (thread.ended) alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(i));
      }
      if (!moved) return false;
    }
    return true;
  }

  std::int64_t at(int rank, std::int32_t buffer, std::int64_t byte) {
    return memory_[{rank, buffer, byte}];
  }

 private:
  struct Thread {
    int workgroup;
    int number;
    program::Cursor cursor;
    Primitive current;
    bool has_current;
    bool ended;
    int barriers;  ///< passed or arrived at
  };

  bool step(Thread& self) {
    if (!self.has_current) {
      self.has_current = self.cursor.next(self.current);
      if (!self.has_current) {
        self.ended = true;
        return true;
      }
      if (self.current.kind == PrimitiveKind::sync) {
        ++self.barriers;
        auto& arrived = arrived_[static_cast<std::size_t>(self.workgroup)];
        arrived.resize(std::max(arrived.size(), static_cast<std::size_t>(self.barriers) + 1));
        ++arrived[static_cast<std::size_t>(self.barriers)];
      }
    }
    if (!execute(self)) return false;
    self.has_current = false;
    return true;
  }

  bool execute(Thread& self) {
    const Primitive& primitive = self.current;
    const auto thread = static_cast<std::size_t>(self.number);
    const bool mine = thread < primitive.semaphores.size();
    switch (primitive.kind) {
      case PrimitiveKind::sync:
        return arrived_[static_cast<std::size_t>(self.workgroup)]
                       [static_cast<std::size_t>(self.barriers)] == kThreads;
      case PrimitiveKind::signal:
        if (mine) semaphores_[primitive.semaphores[thread]] += primitive.values[thread];
        return true;
      case PrimitiveKind::wait:
        return !mine || semaphores_[primitive.semaphores[thread]] >= primitive.values[thread];
      case PrimitiveKind::move:
        for (std::int64_t begin = 16 * self.number; begin < primitive.bytes;
             begin += 16 * kThreads) {
          for (std::int64_t byte = begin; byte < std::min(begin + 16, primitive.bytes); ++byte) {
            std::int64_t sum = 0;
            for (const Span& span : primitive.src)
              sum += memory_[{span.rank, span.buffer, span.offset + byte}];
            for (const Span& span : primitive.dst)
              memory_[{span.rank, span.buffer, span.offset + byte}] = sum;
          }
        }
        return true;
      default:
        return true;
    }
  }

  std::mt19937 random_;
  int workgroups_ = 0;
  std::vector<Thread> threads_;
  std::vector<std::vector<int>> arrived_;
  std::map<SemaphoreId, std::int64_t> semaphores_;
  std::map<std::tuple<int, std::int32_t, std::int64_t>, std::int64_t> memory_;
};

/// Damages a right program in one place.
void mutate(std::vector<std::vector<std::vector<Op>>>& bodies) {
  auto& ops = bodies[*rc::gen::inRange<std::size_t>(0, bodies.size())][0];
  const auto index = *rc::gen::inRange<std::size_t>(0, ops.size());
  switch (*rc::gen::inRange(0, 4)) {
    case 0:
      ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(index));
      break;
    case 1:
      std::swap(ops[index], ops[(index + 1) % ops.size()]);
      break;
    case 2:
      for (Operand& operand : ops[index].dst) operand.chunk = constant(*rc::gen::inRange(0, 2));
      break;
    default:
      for (Operand& operand : ops[index].src) operand.chunk = constant(*rc::gen::inRange(0, 2));
      break;
  }
}

std::vector<std::vector<std::vector<Op>>> any_right_program(Collective collective) {
  return collective == Collective::all_gather ? exchange() : exchange_and_add();
}

TEST(Property, what_is_proven_is_right_in_every_order) {
  int proven = 0;
  int refused = 0;
  EXPECT_TRUE(rc::check("mutated exchanges", [&] {
    const auto collective = *rc::gen::element(Collective::all_gather, Collective::all_reduce);
    auto bodies = any_right_program(collective);
    for (int i = *rc::gen::inRange(0, 3); i > 0; --i) mutate(bodies);
    const auto program = make(collective, 2, bodies, 4, 96, kThreads);
    if (check(program).verdict != Verdict::proven) {
      ++refused;
      return;
    }
    ++proven;
    RC_ASSERT(execute(program, {.rounds = 1}).outcome == Outcome::right);
    for (unsigned seed = 0; seed < 8; ++seed) {
      ThreadMachine machine(program, seed);
      RC_ASSERT(machine.run());
      for (int rank = 0; rank < 2; ++rank) {
        for (std::int64_t byte = 0; byte < 192; byte += 16) {
          const std::int64_t expected =
              collective == Collective::all_gather
                  ? ThreadMachine::input(static_cast<int>(byte / 96), byte % 96)
                  : ThreadMachine::input(0, byte) + ThreadMachine::input(1, byte);
          RC_ASSERT(machine.at(rank, kOutput, byte) == expected);
        }
      }
    }
  }));
  EXPECT_GT(proven, 10) << "the mutations leave nothing to prove";
  EXPECT_GT(refused, 10) << "the mutations never break anything";
}

}  // namespace
}  // namespace hemiola::verify
