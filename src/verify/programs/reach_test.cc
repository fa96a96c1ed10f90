// Functions of the image against plain lists of numbers; clocks of many images against one clock
// for each image.
#include "verify/programs/reach.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "verify/programs/clock.h"

namespace hemiola::verify {
namespace {

using PlainReach = std::vector<std::int32_t>;

TEST(Reach, functions_are_as_lists_of_their_values) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    const auto images = static_cast<std::int32_t>(1 + random() % 40);
    ReachTable table;
    std::vector<Reach> reaches(5, 0);
    std::vector<PlainReach> plain(reaches.size(), PlainReach(static_cast<std::size_t>(images)));
    for (int step = 0; step < 400; ++step) {
      const std::size_t a = random() % reaches.size();
      const std::size_t b = random() % reaches.size();
      const auto image = static_cast<std::int32_t>(random() % static_cast<unsigned>(images));
      const auto value = static_cast<std::int32_t>(random() % 50);
      switch (random() % 4) {
        case 0:
          reaches[a] = table.raised(reaches[a], image, images, value);
          plain[a][static_cast<std::size_t>(image)] =
              std::max(plain[a][static_cast<std::size_t>(image)], value);
          break;
        case 1:
          reaches[a] = table.highest(reaches[a], reaches[b]);
          for (std::size_t i = 0; i < plain[a].size(); ++i)
            plain[a][i] = std::max(plain[a][i], plain[b][i]);
          break;
        case 2: {
          reaches[a] = table.turned(reaches[b], image);
          PlainReach turned(plain[b].size());
          for (std::size_t i = 0; i < turned.size(); ++i)
            turned[(i + static_cast<std::size_t>(image)) % turned.size()] = plain[b][i];
          plain[a] = turned;
          break;
        }
        default:
          for (const Reach reach : reaches) table.mark(reach);
          table.sweep();
      }
      ASSERT_EQ(table.maximum(reaches[a]), *std::max_element(plain[a].begin(), plain[a].end()));
      for (std::int32_t i = 0; i < images; ++i)
        ASSERT_EQ(table.at(reaches[a], i), plain[a][static_cast<std::size_t>(i)])
            << "seed " << seed;
      // Equal functions are one number.
      for (std::size_t other = 0; other < reaches.size(); ++other)
        ASSERT_EQ(reaches[a] == reaches[other], plain[a] == plain[other]) << "seed " << seed;
    }
  }
}

TEST(Clock, of_many_images_knows_what_a_clock_for_each_of_them_would) {
  constexpr Actor kActors[] = {0, 1, 17, 300};
  for (unsigned seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    const auto images = static_cast<std::int32_t>(2 + random() % 12);
    using Known = std::map<std::pair<Actor, std::int32_t>, Segment>;
    struct Both {
      Known all, reads;
    };
    std::vector<Clock> clocks(4);
    std::vector<Both> plain(clocks.size());
    const auto raise = [](Known& known, Actor actor, std::int32_t image, Segment segment) {
      Segment& at = known[{actor, image}];
      at = std::max(at, segment);
    };
    for (int step = 0; step < 300; ++step) {
      const std::size_t a = random() % clocks.size();
      const std::size_t b = random() % clocks.size();
      const Actor actor = kActors[random() % 4];
      const auto image = static_cast<std::int32_t>(random() % static_cast<unsigned>(images));
      const auto segment = static_cast<Segment>(random() % 20);
      const bool reads_only = random() % 2 == 0;
      if (random() % 2 == 0) {
        if (reads_only) {
          clocks[a].learn_reads(actor, image, images, segment);
        } else {
          clocks[a].learn(actor, image, images, segment);
          raise(plain[a].all, actor, image, segment);
        }
        raise(plain[a].reads, actor, image, segment);
      } else {
        const Both other = plain[b];
        if (reads_only) {
          clocks[a].join_reads(Clock(clocks[b]), image);
        } else {
          clocks[a].join(Clock(clocks[b]), image);
          for (const auto& [who, known] : other.all)
            raise(plain[a].all, who.first, (who.second + image) % images, known);
        }
        for (const auto& [who, known] : other.reads)
          raise(plain[a].reads, who.first, (who.second + image) % images, known);
      }
    }
    for (std::size_t i = 0; i < clocks.size(); ++i) {
      const Clock together = clocks[i].of_all_images();
      for (const Actor actor : kActors) {
        Segment most = 0;
        for (std::int32_t image = 0; image < images; ++image) {
          ASSERT_EQ(clocks[i].all(actor, image), (plain[i].all[{actor, image}]));
          ASSERT_EQ(clocks[i].reads(actor, image), (plain[i].reads[{actor, image}]));
          most = std::max(most, plain[i].all[{actor, image}]);
        }
        for (std::int32_t image = 0; image < images; ++image)
          ASSERT_EQ(together.all(actor, image), most);
      }
    }
  }
}

}  // namespace
}  // namespace hemiola::verify
