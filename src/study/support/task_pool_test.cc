#include "study/support/task_pool.h"

#include <gmock/gmock.h>

#include <set>
#include <stdexcept>

namespace hemiola::study {
namespace {

using Numbers = std::vector<std::size_t>;

TEST(TaskPool, bring_every_task_once) {
  for (const int threads : {1, 3, 50}) {
    TaskPool<std::size_t> pool(threads, 20);
    EXPECT_LE(pool.threads(), 20u);
    std::multiset<std::size_t> all;
    pool.run([](std::size_t, std::size_t task) { return task; },
             [&](const Numbers& brought, const Numbers& at) {
               EXPECT_EQ(at.size(), pool.threads());
               all.insert(brought.begin(), brought.end());
             },
             nullptr);
    EXPECT_EQ(all.size(), 20u);
    EXPECT_EQ(std::set(all.begin(), all.end()).size(), 20u);
  }
}

TEST(TaskPool, without_tasks_have_nothing_to_do) {
  TaskPool<int> pool(4, 0);
  EXPECT_EQ(pool.threads(), 0u);
  pool.run([](std::size_t, std::size_t) { return 1; },
           [](const std::vector<int>&, const Numbers&) { FAIL(); }, nullptr);
}

TEST(TaskPool, that_are_stopped_take_what_was_brought_and_begin_nothing) {
  std::atomic<bool> stop{false};
  std::atomic<std::size_t> begun{0};
  std::size_t taken = 0;
  TaskPool<std::size_t> pool(2, 1000);
  pool.run(
      [&](std::size_t, std::size_t task) {
        if (++begun == 3) stop = true;
        while (stop && !pool.halt()) std::this_thread::yield();
        return task;
      },
      [&](const Numbers& brought, const Numbers&) { taken += brought.size(); }, &stop);
  EXPECT_EQ(taken, begun.load());
  EXPECT_LT(taken, 1000u);
}

TEST(TaskPool, hand_on_what_a_task_or_the_taker_throws) {
  TaskPool<int> tasks(2, 10);
  EXPECT_THROW(tasks.run(
                   [](std::size_t, std::size_t task) -> int {
                     if (task == 5) throw std::runtime_error("task");
                     return 1;
                   },
                   [](const std::vector<int>&, const Numbers&) {}, nullptr),
               std::runtime_error);
  TaskPool<int> taker(2, 10);
  EXPECT_THROW(
      taker.run([](std::size_t, std::size_t) { return 1; },
                [](const std::vector<int>&, const Numbers&) { throw std::logic_error("taker"); },
                nullptr),
      std::logic_error);
}

TEST(TaskPool, leave_out_tasks_that_were_interrupted) {
  TaskPool<int> pool(1, 10);
  int taken = 0;
  pool.run(
      [](std::size_t, std::size_t task) -> int {
        if (task == 4) throw Interrupted();
        return 1;
      },
      [&](const std::vector<int>& brought, const Numbers&) {
        taken += static_cast<int>(brought.size());
      },
      nullptr);
  EXPECT_EQ(taken, 4);
}

}  // namespace
}  // namespace hemiola::study
