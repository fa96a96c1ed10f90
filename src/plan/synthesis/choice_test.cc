// How synthesis cuts a size into blocks, what it chooses from, and who watches it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "plan/template.h"
#include "plan/testing/templates.h"

namespace hemiola::plan {
namespace {

using machine::Machine;

TEST(Synthesis, sizes_that_do_not_divide_are_cut_as_evenly_as_whole_16_bytes_go) {
  for (const char* name : {"dgx1-v100", "ring:5", "torus:2x3"}) {
    const Machine machine = machine::load(name);
    const int ranks = machine.ranks();
    for (const TemplateInfo& info : templates()) {
      if (!info.needs_machine) continue;
      for (const int split : {1, 2, 3}) {
        SCOPED_TRACE(info.name + " " + name + " split " + std::to_string(split));
        // Shares of 5 units, in 2 or 3 parts; of an all-reduce 5 units more, for all ranks.
        const bool anywhere = info.collective == Collective::all_reduce;
        const std::int64_t units = 5 * ranks + (anywhere ? 3 : 0);
        const Plan plan = make(info.name, ranks,
                               {{"split", std::to_string(split)},
                                {"blocks", "uneven"},
                                {"size", std::to_string(16 * units)}},
                               &machine);
        validate(plan);
        expect_right_in_any_order(plan, 1);
        const bool divides = units % (ranks * split) == 0;
        EXPECT_EQ(plan.chunks_per_size, divides ? ranks * split : units);
      }
    }
  }
}

TEST(Synthesis, sizes_that_divide_are_cut_equally_and_others_in_units_as_large_as_possible) {
  const Machine machine = machine::load("ring:4");
  const auto chunks = [&](const char* size) {
    return make("all-reduce/synth", 4, {{"split", "1"}, {"blocks", "uneven"}, {"size", size}},
                &machine)
        .chunks_per_size;
  };
  EXPECT_EQ(chunks("65536"), 4);
  EXPECT_EQ(chunks("65552"), 65552 / 16);
  EXPECT_EQ(chunks("65568"), 65568 / 32);
  EXPECT_EQ(chunks("65537"), 4);  // for no program: bind() names the legal sizes
  EXPECT_EQ(chunks("48"), 4);     // nor this
}

TEST(Synthesis, plans_of_the_switch_are_candidates_only_where_a_switch_multicasts) {
  const auto sees_nvls = [](const char* name) {
    const Machine machine = machine::load(name);
    bool seen = false;
    make("all-reduce/synth", 8, {{"size", "1048576"}}, &machine,
         [&](const Plan& plan, Bytes) -> std::optional<Time> {
           seen = seen || plan.name == "all-reduce/nvls";
           return Time::from_us(1);
         });
    return seen;
  };
  EXPECT_TRUE(sees_nvls("dgx-h100"));
  EXPECT_FALSE(sees_nvls("dgx-a100"));
}

TEST(Synthesis, tells_who_watches_how_far_it_is_and_stops_when_told_to) {
  const Machine machine = machine::load("dgx1-v100");
  std::atomic<bool> stop{false};
  Monitor monitor{.stop = &stop};
  std::vector<double> seen;
  const auto judge = [&](const Plan&, Bytes) -> std::optional<Time> {
    seen.push_back(monitor.fraction());
    return Time::from_us(1);
  };
  make("all-reduce/synth", 8, {}, &machine, judge, &monitor);
  ASSERT_GT(seen.size(), 3u);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  EXPECT_LT(seen.front(), seen.back());
  EXPECT_EQ(monitor.fraction(), 1);
  const std::size_t judged = seen.size();
  stop = true;
  EXPECT_THROW(make("all-reduce/synth", 8, {}, &machine, judge, &monitor), Interrupted);
  EXPECT_EQ(seen.size(), judged);
}

}  // namespace
}  // namespace hemiola::plan
