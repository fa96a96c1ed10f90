// What windows of the engine `sampled` say of moves that they have shown, and of others.
#include "sim/sampled/sampling.h"

#include <gtest/gtest.h>

namespace hemiola::sim {
namespace {

constexpr std::int64_t kUs = 1'000'000'000;  // fs
constexpr std::int64_t kBytes = 16 << 10;    // of a batch

/// A rank with one wavefront in each of two workgroups, in a run of 10 ms.
class SamplingTest : public testing::Test {
 protected:
  SamplingTest() : sampling_(1, 2, 2) { sampling_.windows.expect(10'000 * kUs, 10'000 * kBytes); }

  sampled::Mover mover(std::int32_t wave, std::int32_t kernel, std::int32_t way) {
    const bool remote = way != sampled::Moves::kOwn;
    return {.wave = wave,
            .group = wave,
            .rank = 0,
            .kind = sampling_.moves.number_of({kernel, 0, 2, remote ? 3 : 2}, remote),
            .way = way};
  }

  /// Batches of 1 us each behind a fast one, so that something is full, until the next skip begins.
  void move_until_skip(const sampled::Mover& mover) {
    while (sampling_.windows.skips(now_)) pass(kUs);
    for (std::int64_t time = kUs / 4; !sampling_.windows.skips(now_); time = kUs) {
      sampling_.moves.begin_batch(mover, now_, kBytes, {});
      pass(time);
      sampling_.moves.end_batch(mover.wave, now_, {});
    }
  }

  /// Two wavefronts at a time, then one of them, with batches as long.
  void move_by_turns_until_skip(const sampled::Mover& one, const sampled::Mover& other) {
    std::int64_t time = kUs / 4;
    for (bool both = false; !sampling_.windows.skips(now_); both = !both, time = kUs) {
      sampling_.moves.begin_batch(one, now_, kBytes, {});
      if (both) sampling_.moves.begin_batch(other, now_, kBytes, {});
      pass(time);
      sampling_.moves.end_batch(one.wave, now_, {});
      if (both) sampling_.moves.end_batch(other.wave, now_, {});
    }
  }

  Sampling sampling_;

 private:
  void pass(std::int64_t time) {
    now_ += time;
    moved_ += kBytes;
    sampling_.advance(now_, moved_, 0);
  }
  std::int64_t now_ = 0, moved_ = 0;
};

// The results of a product take as long as results do, not as long as copies of a gather did.
TEST_F(SamplingTest, says_nothing_of_moves_inside_a_gpu_that_no_window_has_shown) {
  const sampled::Mover copy = mover(0, 0, sampled::Moves::kOwn);
  move_until_skip(copy);
  EXPECT_TRUE(sampling_.moves.knows(copy));
  EXPECT_FALSE(sampling_.moves.knows(mover(1, 1, sampled::Moves::kOwn)));
}

// A link is as fast for all.
TEST_F(SamplingTest, says_of_moves_over_a_link_what_others_over_it_took) {
  const std::int32_t way = sampling_.moves.way_over(0, 7);
  move_until_skip(mover(0, 0, way));
  EXPECT_TRUE(sampling_.moves.knows(mover(1, 1, way)));
}

// Copies of workgroups whose compute units are busy with other things: when all of them copy at a
// time each takes what it took alone.
TEST_F(SamplingTest, has_moves_inside_a_gpu_share_nothing_that_take_as_long_beside_others) {
  const sampled::Mover one = mover(0, 0, sampled::Moves::kOwn),
                       other = mover(1, 0, sampled::Moves::kOwn);
  move_by_turns_until_skip(one, other);
  EXPECT_NEAR(static_cast<double>(sampling_.moves.move_time(one, kBytes)), kUs, 0.1 * kUs);
}

TEST_F(SamplingTest, remembers_the_pace_of_moves_that_later_windows_do_not_show) {
  const sampled::Mover first = mover(0, 0, sampled::Moves::kOwn),
                       second = mover(1, 1, sampled::Moves::kOwn);
  move_until_skip(first);
  const std::int64_t time = sampling_.moves.move_time(first, kBytes);
  move_until_skip(second);
  ASSERT_TRUE(sampling_.moves.knows(first));
  EXPECT_EQ(sampling_.moves.move_time(first, kBytes), time);
}

}  // namespace
}  // namespace hemiola::sim
