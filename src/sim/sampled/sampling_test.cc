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
  SamplingTest() : sampling_(1, 2, 2) { sampling_.expect(10'000 * kUs, 10'000 * kBytes); }

  Sampling::Mover mover(std::int32_t wave, std::int32_t kernel, std::int32_t way) {
    const bool remote = way != Sampling::kOwn;
    return {.wave = wave,
            .group = wave,
            .rank = 0,
            .kind = sampling_.number_of({kernel, 0, 2, remote ? 3 : 2}, remote),
            .way = way};
  }

  /// Batches of 1 us each behind a fast one, so that something is full, until the next skip begins.
  void move_until_skip(const Sampling::Mover& mover) {
    while (sampling_.skips(now_)) pass(kUs);
    for (std::int64_t time = kUs / 4; !sampling_.skips(now_); time = kUs) {
      sampling_.begin_batch(mover, now_, kBytes, {});
      pass(time);
      sampling_.end_batch(mover.wave, now_, {});
    }
  }

  /// Two wavefronts at a time, then one of them, with batches as long.
  void move_by_turns_until_skip(const Sampling::Mover& one, const Sampling::Mover& other) {
    std::int64_t time = kUs / 4;
    for (bool both = false; !sampling_.skips(now_); both = !both, time = kUs) {
      sampling_.begin_batch(one, now_, kBytes, {});
      if (both) sampling_.begin_batch(other, now_, kBytes, {});
      pass(time);
      sampling_.end_batch(one.wave, now_, {});
      if (both) sampling_.end_batch(other.wave, now_, {});
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
  const Sampling::Mover copy = mover(0, 0, Sampling::kOwn);
  move_until_skip(copy);
  EXPECT_TRUE(sampling_.knows(copy));
  EXPECT_FALSE(sampling_.knows(mover(1, 1, Sampling::kOwn)));
}

// A link is as fast for all.
TEST_F(SamplingTest, says_of_moves_over_a_link_what_others_over_it_took) {
  const std::int32_t way = sampling_.way_over(0, 7);
  move_until_skip(mover(0, 0, way));
  EXPECT_TRUE(sampling_.knows(mover(1, 1, way)));
}

// Copies of workgroups whose compute units are busy with other things: when all of them copy at a
// time each takes what it took alone.
TEST_F(SamplingTest, has_moves_inside_a_gpu_share_nothing_that_take_as_long_beside_others) {
  const Sampling::Mover one = mover(0, 0, Sampling::kOwn), other = mover(1, 0, Sampling::kOwn);
  move_by_turns_until_skip(one, other);
  EXPECT_NEAR(static_cast<double>(sampling_.move_time(one, kBytes)), kUs, 0.1 * kUs);
}

TEST_F(SamplingTest, remembers_the_pace_of_moves_that_later_windows_do_not_show) {
  const Sampling::Mover first = mover(0, 0, Sampling::kOwn), second = mover(1, 1, Sampling::kOwn);
  move_until_skip(first);
  const std::int64_t time = sampling_.move_time(first, kBytes);
  move_until_skip(second);
  ASSERT_TRUE(sampling_.knows(first));
  EXPECT_EQ(sampling_.move_time(first, kBytes), time);
}

}  // namespace
}  // namespace hemiola::sim
