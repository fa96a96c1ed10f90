// Clocks against maps from actors to segments.
#include "verify/programs/clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

namespace hemiola::verify {
namespace {

struct PlainClock {
  std::map<Actor, Segment> all;
  std::map<Actor, Segment> reads;

  static void raise(std::map<Actor, Segment>& known, Actor actor, Segment segment) {
    known[actor] = std::max(known[actor], segment);
  }
  void join(const PlainClock& other, bool reads_only) {
    for (const auto& [actor, segment] : other.reads) raise(reads, actor, segment);
    if (reads_only) return;
    for (const auto& [actor, segment] : other.all) raise(all, actor, segment);
  }
};

/// Actors near each other and far away, so that trees of different heights meet.
Actor some_actor(std::mt19937& random) {
  constexpr Actor kLimits[] = {4, 16, 300, 70'000};
  return static_cast<Actor>(random() % static_cast<unsigned>(kLimits[random() % 4]));
}

TEST(Clock, is_a_map_from_actors_to_segments) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    std::vector<Clock> clocks(6);
    std::vector<PlainClock> plain(clocks.size());
    std::vector<Actor> actors;
    for (int step = 0; step < 300; ++step) {
      const std::size_t a = random() % clocks.size();
      const std::size_t b = random() % clocks.size();
      const Actor actor = some_actor(random);
      const auto segment = static_cast<Segment>(random() % 20);
      actors.push_back(actor);
      switch (random() % 5) {
        case 0:
          clocks[a].learn(actor, segment);
          PlainClock::raise(plain[a].all, actor, segment);
          PlainClock::raise(plain[a].reads, actor, segment);
          break;
        case 1:
          clocks[a].learn_reads(actor, segment);
          PlainClock::raise(plain[a].reads, actor, segment);
          break;
        case 2:
          clocks[a].join(clocks[b]);
          plain[a].join(PlainClock(plain[b]), false);
          break;
        case 3:
          clocks[a].join_reads(clocks[b]);
          plain[a].join(PlainClock(plain[b]), true);
          break;
        default:
          clocks[a] = clocks[b];
          plain[a] = PlainClock(plain[b]);
      }
    }
    for (std::size_t i = 0; i < clocks.size(); ++i) {
      for (const Actor actor : actors) {
        ASSERT_EQ(clocks[i].all(actor), plain[i].all[actor]) << "seed " << seed;
        ASSERT_EQ(clocks[i].reads(actor), plain[i].reads[actor]) << "seed " << seed;
      }
    }
  }
}

TEST(Clock, a_copy_does_not_follow) {
  Clock clock;
  clock.learn(3, 1);
  const Clock copy = clock;
  clock.learn(3, 2);
  clock.learn(5000, 7);
  EXPECT_EQ(copy.all(3), 1);
  EXPECT_EQ(copy.all(5000), 0);
  EXPECT_EQ(clock.all(3), 2);
  EXPECT_EQ(clock.all(5000), 7);
}

TEST(Snapshot, adds_its_own_segments_to_what_it_knew) {
  Clock knew;
  knew.learn(1, 4);
  Clock loads;
  Snapshot{knew, 2, 3}.join_reads_into(loads);
  EXPECT_EQ(loads.reads(1), 4);
  EXPECT_EQ(loads.reads(2), 3);
  EXPECT_EQ(loads.all(2), 0);
  Clock everything;
  Snapshot{knew, 2, 3}.join_into(everything);
  EXPECT_EQ(everything.all(1), 4);
  EXPECT_EQ(everything.all(2), 3);
  Clock none;
  Snapshot{}.join_into(none);
  EXPECT_EQ(none.all(0), 0);
}

}  // namespace
}  // namespace hemiola::verify
