// Numbers of several ranks as one expression, and repetitions as loops.
#include "compile/emit/torch_numbers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compile/emit/torch_statements.h"

namespace hemiola::compile {
namespace {

std::string expression(const std::vector<std::int64_t>& values) {
  std::vector<int> ranks;
  for (std::size_t i = 0; i < values.size(); ++i) ranks.push_back(static_cast<int>(i));
  return number_of(values, ranks, static_cast<int>(values.size())).text({});
}

TEST(TorchNumbers, are_constants_or_turn_with_the_rank_or_grow_with_it) {
  EXPECT_EQ(expression({7, 7, 7, 7}), "7");
  EXPECT_EQ(expression({0, 1, 2, 3}), "rank");
  EXPECT_EQ(expression({1, 2, 3, 0}), "(rank + 1) % 4");
  EXPECT_EQ(expression({3, 0, 1, 2}), "(rank - 1) % 4");
  EXPECT_EQ(expression({16, 24, 0, 8}), "(rank + 2) % 4 * 8");
  EXPECT_EQ(expression({5, 13, 21, 29}), "rank * 8 + 5");
  EXPECT_EQ(expression({1, 0, 1, 0}), "(rank + 1) % 2");
  EXPECT_EQ(expression({0, 1, 0, 1}), "rank % 2");
  EXPECT_EQ(expression({8, 24, 8, 24}), "rank % 2 * 16 + 8");
}

TEST(TorchNumbers, that_follow_no_rule_are_a_table) {
  EXPECT_EQ(expression({1, 5, 2, 2}), "(1, 5, 2, 2)[rank]");
}

TEST(TorchNumbers, of_some_ranks_are_a_table_with_their_values) {
  EXPECT_EQ(number_of({4, 9, 1}, {0, 2, 3}, 4).text({}), "(4, 0, 9, 1)[rank]");
  EXPECT_EQ(number_of({4, 8}, {1, 3}, 4).text({}), "2 * rank + 2");
}

/// Statements of ranks, given for one and turned for the others.
std::string python(const std::vector<std::vector<Statement>>& by_rank) {
  const auto groups = alike_ranks(by_rank);
  EXPECT_EQ(groups.size(), 1U);
  return python_of(with_loops(joined_ranks(by_rank, groups.front())), 0);
}

TEST(TorchLoops, take_what_repeats_in_steps_and_in_distances) {
  std::vector<std::vector<Statement>> by_rank(4);
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    for (std::int64_t step = 0; step < 3; ++step) {
      for (std::int64_t d = 1; d < 4; ++d)
        by_rank[static_cast<std::size_t>(rank)].push_back(
            {"copies[{}].copy(a[{}, {:8}], b[{}])",
             {d - 1, (rank + d) % 4, 8 * step, (rank + d) % 4}});
      by_rank[static_cast<std::size_t>(rank)].push_back({"compute[{}].mm(a[{:8}])", {0, 8 * step}});
    }
  }
  EXPECT_EQ(python(by_rank),
            "for step in range(3):\n"
            "    for d in range(1, 4):\n"
            "        peer = (rank + d) % 4\n"
            "        copies[d - 1].copy(a[peer, 8 * step:8 * (step + 1)], b[peer])\n"
            "    compute[0].mm(a[8 * step:8 * (step + 1)])\n");
}

TEST(TorchLoops, leave_a_first_step_that_differs_in_front) {
  std::vector<std::vector<Statement>> by_rank(2);
  for (std::vector<Statement>& all : by_rank) {
    all.push_back({"compute[{}].mm(a[{:4}])", {0, 0}});
    for (std::int64_t step = 1; step < 4; ++step)
      all.push_back({"compute[{}].addmm(a[{:4}])", {0, 4 * step}});
  }
  EXPECT_EQ(python(by_rank),
            "compute[0].mm(a[0:4])\n"
            "for step in range(1, 4):\n"
            "    compute[0].addmm(a[4 * step:4 * (step + 1)])\n");
}

TEST(TorchLoops, are_not_made_of_what_does_not_grow_evenly) {
  std::vector<std::vector<Statement>> by_rank(2);
  for (std::vector<Statement>& all : by_rank)
    for (const std::int64_t at : {0, 1, 3, 7}) all.push_back({"f({})", {at}});
  EXPECT_EQ(python(by_rank), "f(0)\nf(1)\nf(3)\nf(7)\n");
}

TEST(TorchLoops, name_peers_apart_in_nested_loops) {
  std::vector<std::vector<Statement>> by_rank(4);
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    for (std::int64_t d = 1; d < 4; ++d) {
      const std::int64_t outer = (rank + d) % 4;
      for (std::int64_t e = 1; e < 4; ++e)
        by_rank[static_cast<std::size_t>(rank)].push_back(
            {"f({}, {}, {}, {})", {(rank - e + 4) % 4, (rank - e + 4) % 4, outer, outer}});
      by_rank[static_cast<std::size_t>(rank)].push_back({"g({}, {})", {outer, outer}});
    }
  }
  EXPECT_EQ(python(by_rank),
            "for d in range(1, 4):\n"
            "    other = (rank + d) % 4\n"
            "    for e in range(1, 4):\n"
            "        peer = (rank - e) % 4\n"
            "        f(peer, peer, other, other)\n"
            "    g(other, other)\n");
}

}  // namespace
}  // namespace hemiola::compile
