#include "verify/programs/semaphores.h"

#include <gtest/gtest.h>

namespace hemiola::verify {
namespace {

constexpr Actor kSignaller = 1;

/// What a workgroup learns of the signaller that waits for `value` and has not waited before.
Segment learned(SemaphoreState& semaphore, Actor actor, std::int64_t value) {
  Clock clock;
  semaphore.take({.actor = actor, .value = value, .acquire = true}).join_into(clock);
  return clock.all(kSignaller);
}

SemaphoreState with_signals(bool one_waiter, int count) {
  SemaphoreState semaphore(0, one_waiter);
  for (Segment segment = 1; segment <= count; ++segment) {
    const Snapshot done{{}, kSignaller, segment, 0, 1};
    semaphore.add({.actor = kSignaller, .releases = true, .released = done, .performed = done}, 1);
  }
  return semaphore;
}

TEST(Semaphores, teach_a_second_waiter_that_comes_long_after_the_first_one_what_they_taught_it) {
  SemaphoreState semaphore = with_signals(false, 200);
  EXPECT_EQ(learned(semaphore, 2, 150), 150);
  const Snapshot later{{}, kSignaller, 201, 0, 1};
  semaphore.add({.actor = kSignaller, .releases = true, .released = later, .performed = later}, 1);
  EXPECT_EQ(learned(semaphore, 3, 1), 1);
}

}  // namespace
}  // namespace hemiola::verify
