// Pipelines of transfers and compute, executed on numbers, give the product and the attention.
#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/testing/failure.h"
#include "plan/template.h"
#include "plan/templates/expert_load.h"
#include "plan/testing/plans.h"

namespace hemiola::plan {
namespace {

using Value = Execution::Value;
using ::testing::HasSubstr;

/// As if all axes but the last of a matrix were one.
std::vector<std::int64_t> shape_of(const Plan& plan, std::int32_t tensor) {
  std::vector<std::int64_t> shape = plan.tensors[static_cast<std::size_t>(tensor)].shape;
  if (plan.name.find("gemm") == std::string::npos) return shape;
  while (shape.size() > 2) {
    shape[1] *= shape[0];
    shape.erase(shape.begin());
  }
  return shape;
}
std::int64_t extent(const Plan& plan, std::int32_t tensor, std::size_t axis) {
  return shape_of(plan, tensor)[axis];
}

/// Element [row, column] of a rank's input matrix.
Value entry(const Plan& plan, int rank, std::int32_t tensor, std::int64_t row,
            std::int64_t column) {
  return Execution::input(rank, row * extent(plan, tensor, 1) + column, tensor);
}

/// What c[row, column] of a rank has to be, by the family's definition.
Value product(const Plan& plan, int rank, std::int64_t row, std::int64_t column) {
  const std::string family = plan.name.substr(0, plan.name.find('/'));
  Value sum = 0;
  if (family == "ag-gemm") {
    const auto owner = static_cast<int>(row / (extent(plan, 0, 0) / plan.ranks));
    for (std::int64_t i = 0; i < extent(plan, 0, 1); ++i)
      sum += entry(plan, owner, 0, row, i) * entry(plan, rank, 1, i, column);
  } else if (family == "dispatch-gemm") {
    // Source s has in its input x, tensor 3, the rows of its tokens for this rank.
    const std::int64_t each = extent(plan, 0, 0) / plan.ranks;
    for (std::int64_t i = 0; i < extent(plan, 0, 1); ++i)
      sum += entry(plan, static_cast<int>(row / each), 3, rank * each + row % each, i) *
             entry(plan, rank, 1, i, column);
  } else if (family == "gemm-combine") {
    // Expert e has in its input a the rows of this rank's tokens.
    const std::int64_t each = extent(plan, 0, 0) / plan.ranks;
    const auto expert = static_cast<int>(row / each);
    for (std::int64_t i = 0; i < extent(plan, 0, 1); ++i)
      sum +=
          entry(plan, expert, 0, rank * each + row % each, i) * entry(plan, expert, 1, i, column);
  } else if (family == "a2a-gemm") {
    const std::int64_t columns = extent(plan, 0, 1), rows = extent(plan, 0, 0) / plan.ranks;
    for (std::int64_t i = 0; i < extent(plan, 1, 0); ++i)
      sum += entry(plan, static_cast<int>(i / columns), 0, rank * rows + row, i % columns) *
             entry(plan, rank, 1, i, column);
  } else if (family == "gemm-a2a-gemm" || family == "mlp") {
    // middle = x w_in; each other rank's columns of it are rows of the own, or of all, w_out.
    const bool is_exchange = family == "gemm-a2a-gemm";
    const std::int64_t columns = extent(plan, 2, 1);
    const std::int64_t first = is_exchange ? rank * (extent(plan, 0, 0) / plan.ranks) : 0;
    for (int other = 0; other < plan.ranks; ++other) {
      for (std::int64_t j = 0; j < columns; ++j) {
        Value middle = 0;
        for (std::int64_t i = 0; i < extent(plan, 0, 1); ++i)
          middle += entry(plan, other, 0, first + row, i) * entry(plan, other, 1, i, j);
        sum += middle * (is_exchange ? entry(plan, rank, 3, other * columns + j, column)
                                     : entry(plan, other, 3, j, column));
      }
    }
  } else {
    const std::int64_t first = family == "gemm-rs" ? rank * extent(plan, 3, 0) : 0;
    for (int other = 0; other < plan.ranks; ++other)
      for (std::int64_t i = 0; i < extent(plan, 0, 1); ++i)
        sum += entry(plan, other, 0, first + row, i) * entry(plan, other, 1, i, column);
  }
  return sum;
}

/// What o[head, query, d] of a rank has to be.
Value attended(const Plan& plan, int rank, std::int64_t head, std::int64_t query, std::int64_t d) {
  const std::int64_t own = extent(plan, 0, 1), sequence = extent(plan, 1, 1);
  const std::int64_t depth = extent(plan, 0, 2);
  Value sum = 0;
  for (std::int64_t key = 0; key < sequence; ++key) {
    const auto owner = static_cast<int>(key / own);
    const auto at = [&](std::int64_t i) { return (head * sequence + key) * depth + i; };
    Value dot = 0;
    for (std::int64_t i = 0; i < depth; ++i)
      dot += Execution::input(rank, (head * own + query) * depth + i, 0) *
             Execution::input(owner, at(i), 1);
    sum += dot * Execution::input(owner, at(d), 2);
  }
  return sum;
}

/// What y[head, query, d] of a rank has to be: all ranks have all heads of their own rows, and
/// heads of queries that follow each other share one of keys and values.
Value attended_by_heads(const Plan& plan, int rank, std::int64_t head, std::int64_t query,
                        std::int64_t d) {
  const std::int64_t own = extent(plan, 1, 1), depth = extent(plan, 1, 2);
  const std::int64_t heads = plan.tensors[0].elements() / (own * depth);
  const std::int64_t kv_head = head / (heads / extent(plan, 1, 0));
  const auto at_query = [&](std::int64_t i) { return (head * own + query) * depth + i; };
  const auto at = [&](std::int64_t row, std::int64_t i) {
    return (kv_head * own + row) * depth + i;
  };
  Value sum = 0;
  for (int owner = 0; owner < plan.ranks; ++owner) {
    for (std::int64_t key = 0; key < own; ++key) {
      Value dot = 0;
      for (std::int64_t i = 0; i < depth; ++i)
        dot += Execution::input(rank, at_query(i), 0) * Execution::input(owner, at(key, i), 1);
      sum += dot * Execution::input(owner, at(key, d), 2);
    }
  }
  return sum;
}

/// What c[expert, row, column] of a rank has to be: rows come rank by rank.
Value of_expert(const Plan& plan, int rank, std::int64_t expert, std::int64_t row,
                std::int64_t column) {
  const std::int64_t experts = extent(plan, 1, 0), rows = extent(plan, 0, 1);
  const std::int64_t depth = extent(plan, 0, 2), columns = extent(plan, 1, 2);
  Value sum = 0;
  for (std::int64_t i = 0; i < depth; ++i) {
    const std::int64_t token = (rank * experts + expert) * rows + row % rows;
    sum += Execution::input(static_cast<int>(row / rows), token * depth + i, 0) *
           Execution::input(rank, (expert * depth + i) * columns + column, 1);
  }
  return sum;
}

bool is_attention(const Plan& plan) {
  return plan.name.find("attention") != std::string::npos;
}

/// Whether a rank has anything in a row of what it gives out; of plans in which all ranks have all.
bool always(int, std::int64_t) {
  return true;
}

template <typename Has>
void expect_right_pipeline(const Plan& plan, std::uint32_t seed, const Has& has_row) {
  Execution execution(plan, seed);
  ASSERT_TRUE(execution.run()) << plan.name << " over " << plan.ranks << " ranks waits for ever";
  std::int32_t output = 0;
  while (plan.tensors[static_cast<std::size_t>(output)].role != Role::output) ++output;
  const std::vector<std::int64_t> shape = shape_of(plan, output);
  for (int rank = 0; rank < plan.ranks; ++rank) {
    ASSERT_GE(plan.code(rank).expected.size(), 1u);
    EXPECT_EQ(plan.code(rank).expected[0].region.tensor, output);
    std::int64_t promised = 0;
    for (const Expectation& expected : plan.code(rank).expected)
      if (expected.region.tensor == output) promised += expected.region.elements();
    std::int64_t there = 0;
    for (std::int64_t i = 0; i < plan.tensors[static_cast<std::size_t>(output)].elements(); ++i) {
      if (!has_row(rank, i / shape[1])) continue;
      ++there;
      const auto of_blocks = [&](const auto& value_of) {
        const std::int64_t rows = shape[shape.size() - 2], depth = shape.back();
        return value_of(plan, rank, i / (rows * depth), i / depth % rows, i % depth);
      };
      const Value wanted = plan.name.starts_with("ulysses-") ? of_blocks(attended_by_heads)
                           : is_attention(plan)              ? of_blocks(attended)
                           : plan.name.starts_with("moe/")
                               ? of_blocks(of_expert)
                               : product(plan, rank, i / shape[1], i % shape[1]);
      ASSERT_EQ(execution.value(rank, output, i), wanted)
          << plan.name << " over " << plan.ranks << " ranks: rank " << rank << ", element " << i;
    }
    EXPECT_EQ(promised, there) << plan.name;
  }
}
void expect_right_pipeline(const Plan& plan, std::uint32_t seed) {
  expect_right_pipeline(plan, seed, always);
}

/// Sizes that tiles do not divide.
Parameters small(const TemplateInfo& info, int ranks) {
  if (info.parameter("experts") != nullptr)
    return {{"rows", "3"},   {"experts", "2"}, {"n", "6"},     {"k", "4"},
            {"tile_m", "4"}, {"tile_n", "5"},  {"tile_k", "3"}};
  if (info.parameter("h") != nullptr)
    return {{"m", std::to_string(12 * ranks)},
            {"h", "6"},
            {"f", std::to_string(5 * ranks)},
            {"tile_m", "4"},
            {"tile_n", "5"},
            {"tile_k", "3"}};
  if (info.name.find("gemm") != std::string::npos) {
    const bool is_exchange =
        info.name.starts_with("dispatch-gemm") || info.name.starts_with("gemm-combine");
    Parameters sizes{{"m", std::to_string(6 * ranks * (is_exchange ? ranks : 1))},
                     {"n", std::to_string(6 * ranks)},
                     {"k", std::to_string(2 * ranks)},
                     {"tile_m", "4"},
                     {"tile_n", "5"},
                     {"tile_k", "3"}};
    if (info.name.ends_with("/sequence")) sizes.emplace_back("degree", "2");
    return sizes;
  }
  const bool divides_heads = info.name.starts_with("ulysses-");
  return {{"heads", std::to_string(divides_heads ? 2 * ranks : 2)},
          {"sequence", std::to_string(6 * ranks)},
          {"head", "2"},
          {"tile_q", "4"},
          {"tile_kv", "5"}};
}

/// Those of products and attention.
std::vector<TemplateInfo> pipelines() {
  std::vector<TemplateInfo> some;
  for (const TemplateInfo& info : templates())
    if (!info.in_chunks) some.push_back(info);
  return some;
}

/// The values of each parameter in turn that the pipelines share.
std::vector<Parameters> shared_variants_of(const TemplateInfo& info) {
  // What 2D steps divide, and whether partial results are added up: they have one place on all
  // ranks then, and cannot lie beside each other without the own one.
  const bool products_first = info.name.starts_with("gemm-rs") ||
                              info.name.starts_with("gemm-ar") ||
                              info.name.starts_with("gemm-combine");
  const bool adds_up = products_first && !info.name.starts_with("gemm-combine");
  const std::string columns = products_first ? "n" : "k";
  const std::vector<Parameters> all{{},
                                    {{"transfer", "push"}},
                                    {{"transfer", "pull"}},
                                    {{"order", "counter-clockwise"}},
                                    {{"split", "3"}, {"transfer", "push"}},
                                    {{"split", "2"}, {"transfer", "pull"}},
                                    {{"waves", "3"}},
                                    {{"kv_heads", "1"}},
                                    {{"kv_heads", "1"}, {"transfer", "pull"}, {"causal", "yes"}},
                                    {{"parts", "3"}, {"split", "1"}},
                                    {{"degree", "2"}, {"axis", "m"}, {"transfer", "push"}},
                                    {{"degree", "2"}, {"axis", columns}, {"transfer", "pull"}},
                                    {{"degree", "3"}, {"axis", "m"}},
                                    {{"steps", "hetero"}},
                                    {{"steps", "hetero"}, {"axis", columns}},
                                    {{"steps", "hetero"}, {"placement", "copy"}},
                                    {{"placement", "copy"}, {"transfer", "push"}},
                                    {{"products", "unfused"}, {"transfer", "push"}},
                                    {{"products", "unfused"}, {"axis", columns}, {"streams", "2"}},
                                    {{"products", "unfused"}, {"steps", "hetero"}},
                                    {{"inner", "1"}}};
  std::vector<Parameters> known;
  for (Parameters variant : all) {
    std::erase_if(variant,
                  [&](const auto& value) { return info.parameter(value.first) == nullptr; });
    if (variant.empty() && !known.empty()) continue;
    if (adds_up && variant == Parameters{{"steps", "hetero"}, {"placement", "copy"}}) continue;
    known.push_back(std::move(variant));
  }
  return known;
}

TEST(Pipelines, all_are_valid_and_right) {
  EXPECT_GE(pipelines().size(), 12u);
  for (const TemplateInfo& info : pipelines()) {
    for (const Parameters& variant : shared_variants_of(info)) {
      for (const int ranks : {2, 3, 4}) {
        Parameters parameters = small(info, ranks);
        parameters.insert(parameters.end(), variant.begin(), variant.end());
        const Plan plan = make(info.name, ranks, parameters);
        ASSERT_NO_THROW(validate(plan)) << info.name;
        expect_right_pipeline(plan, static_cast<std::uint32_t>(ranks));
      }
    }
  }
}

TEST(Pipelines, heads_of_queries_share_keys_of_one_rank_or_of_several) {
  for (const char* name : {"ulysses-attention/direct", "ulysses-attention/split-kv"}) {
    // Of 4 ranks: two heads of keys each, one each, one for two of them.
    for (const auto& [kv_heads, codes] :
         {std::pair("8", 1u), std::pair("4", 1u), std::pair("2", 4u)}) {
      const Plan plan = make(name, 4,
                             {{"heads", "16"},
                              {"kv_heads", kv_heads},
                              {"sequence", "24"},
                              {"head", "2"},
                              {"tile_q", "4"},
                              {"tile_kv", "5"}});
      ASSERT_NO_THROW(validate(plan));
      EXPECT_EQ(plan.codes.size(), codes);
      expect_right_pipeline(plan, 5);
    }
  }
}

TEST(Pipelines, experts_with_uneven_load_get_the_rows_that_are_theirs) {
  // By ranks; one after the other, as each plan is executed on numbers.
  const std::vector<std::pair<int, std::string>> loads{{2, "5/1"}, {3, "zipf/1"}, {4, "2/1/6/1"}};
  std::size_t plans = 0;
  for (const TemplateInfo& info : pipelines()) {
    if (info.parameter("load") == nullptr) continue;
    const bool is_dispatch = info.name.starts_with("dispatch-gemm");
    for (const Parameters& variant : shared_variants_of(info)) {
      if (std::count(variant.begin(), variant.end(),
                     std::pair<std::string, std::string>{"degree", "3"}) > 0)
        continue;  // does not divide units of rows
      const auto& [ranks, load] = loads[plans++ % loads.size()];
      Parameters parameters = small(info, ranks);
      parameters.insert(parameters.end(), variant.begin(), variant.end());
      parameters.emplace_back("load", load);
      const Plan plan = make(info.name, ranks, parameters);
      ASSERT_NO_THROW(validate(plan)) << info.name;
      const std::vector<std::int64_t> rows = expert_rows(load, ranks, 6 * ranks, {});
      const std::int64_t most = *std::max_element(rows.begin(), rows.end());
      ASSERT_GT(most, rows.back());
      expect_right_pipeline(plan, 1, [&](int rank, std::int64_t row) {
        const auto expert =
            is_dispatch ? static_cast<std::size_t>(rank) : static_cast<std::size_t>(row / most);
        return row % most < rows[expert];
      });
    }
  }
  EXPECT_GT(plans, 24U);
}

TEST(Pipelines, load_of_experts_is_shared_out_whole) {
  using Rows = std::vector<std::int64_t>;
  EXPECT_EQ(expert_rows("even", 4, 1024, {}), (Rows{256, 256, 256, 256}));
  EXPECT_EQ(expert_rows("1/1/1/1", 4, 1024, {}), (Rows{256, 256, 256, 256}));
  EXPECT_EQ(expert_rows("4/2/1/1", 4, 1024, {}), (Rows{512, 256, 128, 128}));
  EXPECT_EQ(expert_rows("1000/1/1", 3, 48, {}), (Rows{16, 16, 16})) << "a unit is 16 rows";
  EXPECT_EQ(expert_rows("1000/1/1", 3, 480, {}), (Rows{448, 16, 16})) << "each has one";
  for (const std::int64_t rows : {8, 100, 4096, 12345}) {
    const Rows zipf = expert_rows("zipf/1.2", 8, rows, {});
    EXPECT_EQ(std::accumulate(zipf.begin(), zipf.end(), std::int64_t{0}), rows);
    EXPECT_TRUE(std::is_sorted(zipf.rbegin(), zipf.rend()));
    EXPECT_GE(zipf.back(), 1);
  }
  const auto refusal = [](const std::string& load, std::int64_t rows) {
    return test::message_of([&] { expert_rows(load, 4, rows, {}); });
  };
  EXPECT_THAT(refusal("4/2/1", 1024), HasSubstr("has the load of 3 ranks, not of 4"));
  EXPECT_THAT(refusal("4/2/1/0", 1024), HasSubstr("'4/2/1/0' is not the load of experts"));
  EXPECT_THAT(refusal("4/2/1/x", 1024), HasSubstr("is not the load of experts"));
  EXPECT_THAT(refusal("", 1024), HasSubstr("is not the load of experts"));
  EXPECT_THAT(refusal("zipf/-1", 1024), HasSubstr("its exponent is a number above 0"));
  EXPECT_THAT(refusal("zipf/1", 3), HasSubstr("3 tokens of a rank are fewer than its 4 ranks"));
  EXPECT_THAT(refusal("even", 1023), HasSubstr("cannot be divided by 4 ranks"));
}

TEST(Pipelines, defaults_are_valid_over_8_ranks) {
  for (const TemplateInfo& info : pipelines()) EXPECT_NO_THROW(validate(make(info.name, 8)));
}

TEST(Pipelines, a_transfer_that_does_not_wait_for_its_tiles_is_wrong) {
  for (const char* name : {"gemm-rs/direct", "gemm-rs/ring", "gemm-ar/nvls"}) {
    Plan plan = make(name, 3, small(*find_template(name), 3));
    for (Item& item : plan.codes[0].streams[0].items)
      if (auto* transfer = std::get_if<Transfer>(&item)) transfer->after.clear();
    bool is_wrong = false;
    for (std::uint32_t seed = 0; seed < 20 && !is_wrong; ++seed) {
      ::testing::TestPartResultArray failures;
      ::testing::ScopedFakeTestPartResultReporter quiet(
          ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
      expect_right_pipeline(plan, seed);
      is_wrong = failures.size() > 0;
    }
    EXPECT_TRUE(is_wrong) << name;
  }
}

TEST(Pipelines, work_is_that_of_the_whole_product) {
  for (const char* name : {"ag-gemm/ring", "gemm-rs/direct", "a2a-gemm/direct"}) {
    const Plan plan = make(name, 8, {{"m", "1024"}, {"n", "512"}, {"k", "256"}});
    std::int64_t flop = 0;
    for (int rank = 0; rank < 8; ++rank) {
      std::int64_t points = 1;
      for (const ComputeAxis& axis : plan.code(rank).computes[0].axes) points *= axis.extent;
      flop += points * plan.code(rank).computes[0].flop_per_point;
    }
    EXPECT_EQ(flop, 2 * 1024 * 512 * 256) << name;
  }
}

TEST(Pipelines, sizes_that_do_not_divide_are_refused) {
  EXPECT_THAT(test::message_of([] { make("ag-gemm/ring", 3); }),
              HasSubstr("cannot divide n = 14336 into 3 parts"));
  EXPECT_THAT(test::message_of([] {
                make("gemm-ar/nvls", 4, {{"m", "12"}, {"split", "2"}});
              }),
              HasSubstr("cannot divide m = 12 into 8 parts"));
  EXPECT_THAT(test::message_of([] {
                make("ring-attention/ring", 4, {{"heads", "0"}});
              }),
              HasSubstr("parameter 'heads' of 'ring-attention/ring' cannot be 0"));
  EXPECT_THAT(test::message_of([] {
                make("ulysses-attention/direct", 4, {{"heads", "12"}, {"kv_heads", "3"}});
              }),
              HasSubstr("cannot give 4 ranks one of kv_heads = 3 each"));
  EXPECT_THAT(test::message_of([] {
                make("ulysses-attention/direct", 4, {{"heads", "12"}, {"kv_heads", "8"}});
              }),
              HasSubstr("cannot divide heads = 12 into 8 parts"));
  EXPECT_THAT(test::message_of([] {
                make("gemm-rs/sequence", 4, {{"n", "12"}, {"degree", "8"}, {"axis", "n"}});
              }),
              HasSubstr("cannot divide n = 12 into 8 parts"));
  EXPECT_THAT(test::message_of([] {
                make("gemm-rs/sequence", 4, {{"steps", "hetero"}, {"placement", "copy"}});
              }),
              HasSubstr("lie beside each other in another order on each"));
  EXPECT_THAT(test::message_of([] {
                make("ag-gemm/ring", 4, {{"split", "0"}});
              }),
              HasSubstr("parameter 'split' of 'ag-gemm/ring' cannot be 0"));
}

}  // namespace
}  // namespace hemiola::plan
