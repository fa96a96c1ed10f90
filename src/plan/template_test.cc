// Every template, executed by its dependencies alone, gives the collective's result.
#include "plan/template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "core/testing/failure.h"
#include "plan/testing/templates.h"

namespace hemiola::plan {
namespace {

/// The templates of chunks that need no machine and do what nccl-tests' collectives do.
std::vector<TemplateInfo> templates_of_chunks() {
  std::vector<TemplateInfo> some;
  for (const TemplateInfo& info : templates())
    if (info.in_chunks && !info.needs_machine && info.collective != Collective::custom)
      some.push_back(info);
  return some;
}

/// All combinations of the parameters that are words, and more than one part or wave.
std::vector<Parameters> word_variants_of(const TemplateInfo& info) {
  std::vector<Parameters> variants{{}};
  for (const ParameterInfo& parameter : info.parameters) {
    std::vector<Parameters> longer;
    for (const Parameters& variant : variants) {
      std::vector<std::string> values = parameter.choices;
      if (parameter.name == "split" || parameter.name == "waves") values = {"1", "3"};
      for (const std::string& choice : values) {
        longer.push_back(variant);
        longer.back().emplace_back(parameter.name, choice);
      }
    }
    if (!longer.empty()) variants = std::move(longer);
  }
  return variants;
}

std::size_t items_of(const Plan& plan) {
  std::size_t items = 0;
  for (const Code& code : plan.codes)
    for (const Stream& stream : code.streams) items += stream.items.size();
  return items;
}

TEST(Templates, all_are_valid_and_right_for_many_numbers_of_ranks) {
  for (const TemplateInfo& info : templates_of_chunks()) {
    for (const Parameters& variant : word_variants_of(info)) {
      for (const int ranks : {2, 3, 4, 6, 7, 8, 16}) {
        const Plan plan = make(info.name, ranks, variant);
        ASSERT_NO_THROW(validate(plan)) << info.name;
        for (std::uint32_t seed = 0; seed < 3; ++seed) expect_right_in_any_order(plan, seed);
      }
    }
  }
}

TEST(Templates, rooted_ones_work_for_every_root) {
  for (const char* name : {"broadcast/ring", "broadcast/tree", "reduce/ring", "reduce/tree"}) {
    for (int root = 0; root < 5; ++root) {
      const Plan plan = make(name, 5, {{"root", std::to_string(root)}});
      EXPECT_EQ(plan.root, root);
      validate(plan);
      expect_right_in_any_order(plan, 1);
    }
  }
}

TEST(Templates, over_groups_work_for_every_size_of_group) {
  for (const char* name :
       {"all-gather/double-ring", "all-gather/hierarchical", "all-to-all/hierarchical"}) {
    for (const int inner : {1, 2, 3, 4, 6, 12}) {
      const Plan plan = make(name, 12, {{"inner", std::to_string(inner)}});
      validate(plan);
      expect_right_in_any_order(plan, 1);
    }
  }
}

TEST(Templates, of_one_role_have_as_many_items_for_1024_ranks_as_for_8) {
  std::size_t tried = 0;
  for (const TemplateInfo& info : templates_of_chunks()) {
    const Plan plan = make(info.name, 8);
    if (info.needs_machine || plan.codes.size() > 1) continue;
    ++tried;
    EXPECT_EQ(items_of(make(info.name, 1024)), items_of(make(info.name, 8))) << info.name;
    EXPECT_LE(items_of(make(info.name, 1024)), 12u) << info.name;
  }
  EXPECT_GE(tried, 9u);
}

TEST(Templates, a_ring_all_reduce_sends_every_chunk_over_every_link_less_two) {
  const Plan plan = make("all-reduce/ring", 8);
  EXPECT_EQ(count_transfers(plan.stream(0, 0)), 2 * (8 - 1));
  std::map<std::int64_t, int> times;
  for_each_transfer(plan.stream(3, 0), 3, [&](const Transfer& transfer, const Indices& at) {
    EXPECT_EQ(transfer.peer(at), 4);
    ++times[transfer.source.first()(at)];
  });
  EXPECT_EQ(times.size(), 8u);
  for (const auto& [chunk, count] : times) EXPECT_LE(count, 2) << chunk;
}

TEST(Templates, a_direct_exchange_gives_all_ranks_different_partners_in_each_step) {
  for (const char* name : {"all-gather/direct", "all-to-all/direct"}) {
    const Plan plan = make(name, 6);
    for (std::size_t step = 0; step < 5; ++step) {
      std::map<std::int64_t, int> chosen;
      for (int rank = 0; rank < 6; ++rank) {
        std::size_t number = 0;
        for_each_transfer(plan.stream(rank, 0), rank,
                          [&](const Transfer& transfer, const Indices& at) {
                            if (number++ == step) ++chosen[transfer.peer(at)];
                          });
      }
      EXPECT_EQ(chosen.size(), 6u) << name << " step " << step;
    }
  }
}

/// Chunks by source and destination, the own ones too.
std::vector<std::int64_t> sizes_of(const Plan& plan) {
  std::vector<std::int64_t> sizes;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    std::vector<std::int64_t> row(static_cast<std::size_t>(plan.ranks));
    for_each_transfer(plan.stream(rank, 0), rank, [&](const Transfer& t, const Indices& at) {
      row[static_cast<std::size_t>(t.peer(at))] = t.source.elements();
    });
    sizes.insert(sizes.end(), row.begin(), row.end());
  }
  return sizes;
}

TEST(Templates, an_uneven_exchange_brings_every_rank_what_others_have_for_it) {
  for (const char* transfer : {"push", "pull"}) {
    for (const int ranks : {2, 3, 5, 8, 16}) {
      for (const char* seed : {"0", "1", "77"}) {
        const Plan plan =
            make("all-to-all/uneven", ranks, {{"transfer", transfer}, {"seed", seed}});
        ASSERT_NO_THROW(validate(plan));
        Execution execution(plan, 1);
        ASSERT_TRUE(execution.run());
        std::vector<std::int64_t> read(static_cast<std::size_t>(ranks));  // of their inputs
        for (int rank = 0; rank < ranks; ++rank) {
          std::int64_t written = 0;
          for (const Expectation& part : plan.code(rank).expected) {
            const std::int64_t holder = (*part.holder)({});
            EXPECT_EQ(part.region.first()({}), written) << "no gaps";
            EXPECT_EQ(part.of->first()({}), read[static_cast<std::size_t>(holder)]);
            for (std::int64_t chunk = 0; chunk < part.region.count(); ++chunk) {
              EXPECT_EQ(execution.value(rank, 1, written + chunk),
                        Execution::input(holder, part.of->first()({}) + chunk));
            }
            written += part.region.count();
            read[static_cast<std::size_t>(holder)] += part.region.count();
          }
        }
        for (int rank = 0; rank < ranks; ++rank)
          EXPECT_EQ(read[static_cast<std::size_t>(rank)],
                    plan.code(rank).resident->front().count());
      }
    }
  }
}

TEST(Templates, an_uneven_exchange_draws_sizes_around_the_mean_from_its_seed) {
  const auto draw = [](const char* mean, const char* seed) {
    return sizes_of(make("all-to-all/uneven", 32, {{"mean", mean}, {"seed", seed}}));
  };
  const std::vector<std::int64_t> sizes = draw("8", "1");
  EXPECT_EQ(sizes, draw("8", "1"));
  EXPECT_NE(sizes, draw("8", "2"));
  EXPECT_EQ(*std::min_element(sizes.begin(), sizes.end()), 0);
  EXPECT_EQ(*std::max_element(sizes.begin(), sizes.end()), 16);
  const std::int64_t sum = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  EXPECT_NEAR(static_cast<double>(sum) / 1024, 8, 0.6) << "4 sigma";
}

TEST(Templates, no_dependency_can_be_left_out) {
  for (const TemplateInfo& info : templates_of_chunks())
    expect_no_needless_wait(make(info.name, 6));
}

RC_GTEST_PROP(Templates, any_number_of_ranks_is_right, ()) {
  const auto all = templates_of_chunks();
  const auto& info = all[*rc::gen::inRange<std::size_t>(0, all.size())];
  const auto variants = word_variants_of(info);
  const auto& variant = variants[*rc::gen::inRange<std::size_t>(0, variants.size())];
  const Plan plan = make(info.name, *rc::gen::inRange(2, 24), variant);
  validate(plan);
  expect_right_in_any_order(plan, *rc::gen::arbitrary<std::uint32_t>());
}

TEST(Templates, an_unknown_name_is_suggested_against) {
  EXPECT_THAT(test::message_of([] { make("all-reduce/rin", 4); }),
              ::testing::HasSubstr("all-reduce/ring"));
  EXPECT_THAT(test::message_of([] { make("", 4); }),
              ::testing::HasSubstr("there is no plan template ''"));
}

TEST(Templates, parameters_are_checked) {
  using ::testing::HasSubstr;
  EXPECT_THAT(test::message_of([] {
                make("all-gather/direct", 4, {{"transfre", "pull"}});
              }),
              HasSubstr("did you mean 'transfer'?"));
  EXPECT_THAT(test::message_of([] {
                make("all-gather/direct", 4, {{"transfer", "shove"}});
              }),
              HasSubstr("cannot be 'shove'"));
  EXPECT_THAT(test::message_of([] {
                make("send-recv/direct", 4, {{"split", "2"}});
              }),
              HasSubstr("its parameters are transfer"));
  EXPECT_THAT(test::message_of([] {
                make("broadcast/ring", 4, {{"root", "4"}});
              }),
              HasSubstr("root 4 is not one of 4 ranks"));
  EXPECT_THAT(test::message_of([] {
                make("broadcast/ring", 4, {{"root", "-1"}});
              }),
              HasSubstr("cannot be '-1'"));
  EXPECT_THAT(test::message_of([] {
                make("broadcast/ring", 4, {{"root", "99999999999"}});
              }),
              HasSubstr("root 99999999999 is not"));
  EXPECT_THAT(test::message_of([] { make("all-reduce/ring", 1); }),
              HasSubstr("needs at least 2 ranks, not 1"));
  EXPECT_THAT(test::message_of([] { make("all-reduce/ring", -3); }),
              HasSubstr("needs at least 2 ranks, not -3"));
}

}  // namespace
}  // namespace hemiola::plan
