// The GEMM model: its limits, its orders, and its error on the rows it was fitted to.

#include "machine/devices/gemm_model.h"
#include "core/testing/failure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include "machine/testing/gemm_table.h"

namespace hemiola::machine {
namespace {

using ::testing::HasSubstr;

using test::message_of;

double flop(const GemmShape& s) {
  return 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k) *
         static_cast<double>(s.batch);
}

const std::vector<std::string> kGpus{"v100", "a100",  "h100",   "h200",
                                     "b200", "gb200", "mi300x", "mi355x"};

std::string gpu() {
  return *rc::gen::elementOf(kGpus);
}

// Whole tiles and steps of every tile in the lists, so that quantisation does not speak.
GemmShape whole_shape() {
  return {.m = 256 * *rc::gen::inRange(1, 40),
          .n = 256 * *rc::gen::inRange(1, 40),
          .k = 1024 * *rc::gen::inRange(1, 12),
          .batch = *rc::gen::inRange(1, 4)};
}

// The library's choice among kernels is a minimum of functions that grow; what is left of
// quantisation (waves, rows of tiles in a wave) is 2 %.
constexpr double kSlack = 1.02;

RC_GTEST_PROP(Gemm, a_larger_product_takes_longer, ()) {
  const GpuModel& model = gpu_model(gpu());
  const GemmShape small = whole_shape();
  GemmShape large = small;
  large.m += 256 * *rc::gen::inRange(0, 8);
  large.n += 256 * *rc::gen::inRange(0, 8);
  large.k += 1024 * *rc::gen::inRange(0, 4);
  RC_ASSERT(gemm_time_us(model, small) <= kSlack * gemm_time_us(model, large));
}

RC_GTEST_PROP(Gemm, more_compute_units_are_never_slower, ()) {
  const GpuModel& model = gpu_model(gpu());
  const GemmShape shape = whole_shape();
  const auto few = *rc::gen::inRange<std::int64_t>(1, model.cu_count + 1);
  const auto many = *rc::gen::inRange<std::int64_t>(few, model.cu_count + 1);
  RC_ASSERT(gemm_time_us(model, shape, {.cus = many}) <=
            kSlack * gemm_time_us(model, shape, {.cus = few}));
}

RC_GTEST_PROP(Gemm, the_choice_is_the_fastest_of_all_tiles_and_splits, ()) {
  const GpuModel& model = gpu_model(gpu());
  const GemmShape shape = whole_shape();
  const GemmEstimate best = estimate_gemm(model, shape);
  const MatrixTile tile = *rc::gen::elementOf(model.gemm_tiles);
  RC_ASSERT(best.time <= estimate_gemm(model, shape, {.split_k = 1, .tile = tile}).time);
  RC_ASSERT(best.time ==
            estimate_gemm(model, shape, {.split_k = best.split_k, .tile = best.tile}).time);
}

RC_GTEST_PROP(Gemm, its_parts_make_the_time_and_no_bound_is_broken, ()) {
  const GpuModel& model = gpu_model(gpu());
  const GemmShape shape = whole_shape();
  const GemmEstimate found = estimate_gemm(model, shape, {.cold = true});
  const Time parts = found.launch + found.setup + found.body + found.throttled;
  RC_ASSERT(std::abs(parts.fs - found.time.fs) <= 4);
  const double peak = static_cast<double>(matrix_rate(model, shape.type) * model.cu_count) *
                      static_cast<double>(model.gemm_clock.hertz);
  RC_ASSERT(flop(shape) / peak <= found.time.us() * 1e-6);
  const double least = 2.0 * static_cast<double>(shape.batch) *
                       static_cast<double>(shape.m * shape.n + shape.k * (shape.m + shape.n));
  RC_ASSERT(static_cast<double>(found.hbm_bytes) >= least * 0.999999);
  RC_ASSERT(found.hbm <= found.body);
}

TEST(Gemm, a_large_product_runs_at_the_sustained_peak) {
  for (const std::string& name : kGpus) {
    const GpuModel& model = gpu_model(name);
    const GemmShape shape{.m = 16384, .n = 16384, .k = 16384};
    const double sustained = static_cast<double>(matrix_rate(model, shape.type) * model.cu_count) *
                             static_cast<double>(model.gemm_sustained_clock.hertz);
    const double rate = flop(shape) / (gemm_time_us(model, shape, {.steady = true}) * 1e-6);
    EXPECT_LE(rate, sustained) << name;
    EXPECT_GE(rate, 0.75 * sustained) << name;
  }
}

TEST(Gemm, a_product_with_one_row_runs_at_the_bandwidth_of_the_memory) {
  for (const std::string& name : kGpus) {
    const GpuModel& model = gpu_model(name);
    const GemmShape shape{.m = 16, .n = 65536, .k = 16384};
    const double bandwidth = static_cast<double>(model.hbm_rate.bytes_per_second) *
                             static_cast<double>(model.hbm_efficiency_permille) / 1000;
    const GemmEstimate found = estimate_gemm(model, shape, {.cold = true});
    const double rate = 2.0 * 65536 * 16384 / (found.time.us() * 1e-6);
    EXPECT_LE(rate, bandwidth) << name;
    EXPECT_GE(rate, 0.7 * bandwidth) << name;
    const double half = gemm_time_us(model, shape, {.hbm_share = 0.5, .cold = true});
    EXPECT_GE(half, 1.4 * found.time.us()) << name;
  }
}

TEST(Gemm, one_tile_more_than_compute_units_takes_another_wave) {
  const GpuModel& model = gpu_model("h100");
  const GemmOptions fixed{.split_k = 1, .tile = MatrixTile{128, 128}};
  const GemmShape full{.m = 128 * 12, .n = 128 * 11, .k = 8192};
  GemmShape more = full;
  more.n += 128;
  const GemmEstimate one = estimate_gemm(model, full, fixed);
  const GemmEstimate two = estimate_gemm(model, more, fixed);
  EXPECT_EQ(one.waves, 1);
  EXPECT_EQ(two.waves, 2);
  EXPECT_EQ(two.workgroups, 144);
  EXPECT_DOUBLE_EQ(one.tail, 0);
  EXPECT_NEAR(two.tail, 120.0 / 264, 1e-12);
  EXPECT_GT(two.body.us(), 1.8 * one.body.us());
}

TEST(Gemm, a_product_of_few_tiles_and_much_depth_splits_its_depth) {
  const GpuModel& model = gpu_model("h100");
  const GemmShape deep{.m = 256, .n = 256, .k = 16384};
  const GemmEstimate found = estimate_gemm(model, deep);
  EXPECT_GT(found.split_k, 1);
  EXPECT_LT(found.time.us(), 0.6 * gemm_time_us(model, deep, {.split_k = 1}));
  EXPECT_EQ(estimate_gemm(model, {.m = 8192, .n = 8192, .k = 4096}).split_k, 1);
}

TEST(Gemm, accumulating_reads_what_it_writes) {
  const GpuModel& model = gpu_model("h100");
  GemmShape shape{.m = 8192, .n = 8192, .k = 256};
  const GemmEstimate plain = estimate_gemm(model, shape, {.cold = true});
  shape.accumulate = true;
  const GemmEstimate added = estimate_gemm(model, shape, {.cold = true});
  EXPECT_EQ(added.hbm_bytes - plain.hbm_bytes, 8192 * 8192 * 2);
  EXPECT_GT(added.time, plain.time);
}

TEST(Gemm, operands_in_the_cache_save_time_only_while_they_fit) {
  const GpuModel& model = gpu_model("h100");
  const GemmShape fits{.m = 256, .n = 4096, .k = 2048};
  EXPECT_LT(gemm_time_us(model, fits), gemm_time_us(model, fits, {.cold = true}));
  EXPECT_EQ(estimate_gemm(model, fits).hbm_bytes, 0);
  const GemmShape large{.m = 8192, .n = 8192, .k = 8192};
  EXPECT_EQ(gemm_time_us(model, large), gemm_time_us(model, large, {.cold = true}));
}

TEST(Gemm, a_memory_side_cache_takes_what_the_l2s_miss) {
  GpuModel model = gpu_model("mi300x");
  const GemmShape shape{.m = 8192, .n = 8192, .k = 4096};
  const GemmEstimate with = estimate_gemm(model, shape, {.cold = true});
  EXPECT_EQ(with.hbm_bytes, 2 * (2 * 8192 * 4096 + 8192 * 8192));  // each operand once
  EXPECT_GT(with.msc.fs, 0);
  model.msc_size = {};
  const GemmEstimate without = estimate_gemm(model, shape, {.cold = true});
  EXPECT_GT(without.hbm_bytes, 2 * with.hbm_bytes);
  EXPECT_EQ(without.msc.fs, 0);
  // One L2 in place of eight loads each row and column for one, not for all of them.
  model.gemm_l2_domains = 1;
  EXPECT_LT(estimate_gemm(model, shape, {.cold = true}).hbm_bytes, without.hbm_bytes);
}

TEST(Gemm, a_pair_of_compute_units_halves_what_each_loads) {
  GpuModel model = gpu_model("b200");
  const GemmShape large{.m = 2048, .n = 2048, .k = 4096};
  const GemmEstimate pair = estimate_gemm(model, large);
  EXPECT_EQ(pair.tile_cus, 2);
  const GemmEstimate asked = estimate_gemm(model, large, {.tile_cus = 1});
  EXPECT_THROW(estimate_gemm(model, large, {.tile_cus = 3}), Failure);
  model.gemm_tile_cus = 1;
  const GemmEstimate alone = estimate_gemm(model, large);
  EXPECT_EQ(alone.tile_cus, 1);
  EXPECT_EQ(alone.time, asked.time);
  EXPECT_LT(pair.body, alone.body);
}

TEST(Gemm, the_power_limit_holds_after_the_burst) {
  GpuModel model = gpu_model("h100");
  const GemmShape large{.m = 8192, .n = 8192, .k = 8192};
  const GemmShape small{.m = 512, .n = 512, .k = 512};
  EXPECT_GT(estimate_gemm(model, large).throttled.fs, 0);
  EXPECT_EQ(estimate_gemm(model, small).throttled.fs, 0);
  EXPECT_GT(gemm_time_us(model, large, {.steady = true}), gemm_time_us(model, large));
  model.gemm_sustained_clock = model.gemm_clock;
  EXPECT_EQ(estimate_gemm(model, large).throttled.fs, 0);
}

TEST(Gemm, the_time_of_a_tile_is_that_of_its_matrix_instructions_and_its_loop) {
  const GpuModel& model = gpu_model("h100");
  const double instructions = 2.0 * 128 * 256 * 4096 / (4096 * 1.98e3);  // us
  const Time tile = gemm_tile_time(model, {128, 256}, 4096, DataType::bfloat16);
  EXPECT_GT(tile.us(), instructions);
  EXPECT_LT(tile.us(), 1.2 * instructions);
  // A smaller tile has as much overhead for less work.
  const Time quarters = 4 * gemm_tile_time(model, {64, 128}, 4096, DataType::bfloat16);
  EXPECT_GT(quarters, tile);
}

TEST(Gemm, bad_input_is_named) {
  const GpuModel& model = gpu_model("h100");
  const GemmShape good{.m = 512, .n = 512, .k = 512};
  GemmShape bad = good;
  bad.n = 0;
  EXPECT_THAT(message_of([&] { estimate_gemm(model, bad); }), HasSubstr("n of a GEMM is 0"));
  bad = good;
  bad.batch = -1;
  EXPECT_THAT(message_of([&] { estimate_gemm(model, bad); }), HasSubstr("batch of a GEMM is -1"));
  EXPECT_THAT(message_of([&] { estimate_gemm(model, good, {.cus = 133}); }),
              HasSubstr("compute units of a GEMM is 133"));
  EXPECT_THAT(message_of([&] { estimate_gemm(model, good, {.hbm_share = 0}); }),
              HasSubstr("memory share"));
  EXPECT_THAT(message_of([&] {
                estimate_gemm(model, good, {.tile = MatrixTile{0, 64}});
              }),
              HasSubstr("m of the tile"));
  bad = good;
  bad.type = DataType::fp8_e4m3;
  EXPECT_THAT(message_of([&] { estimate_gemm(gpu_model("v100"), bad); }),
              HasSubstr("the matrix units of v100 have no fp8_e4m3"));
}

std::string text_of(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

GemmErrors errors_of(const std::string& file, const std::string& gpu,
                     const std::vector<DataType>& types, const GemmOptions& options) {
  const auto rows = parse_gemm_table(text_of(file), file, types);
  std::vector<double> modelled;
  for (const GemmRow& row : rows)
    modelled.push_back(gemm_time_us(gpu_model(gpu), row.shape, options));
  return gemm_errors(rows, modelled, 512);
}

const std::string kSource = HEMIOLA_SOURCE_DIR;

TEST(Gemm, the_rows_it_was_fitted_to_are_met_within_10_percent) {
  const std::string file = kSource + "/data/measured/xla_gemm_h100.csv";
  const GemmErrors half = errors_of(file, "h100", {DataType::bfloat16}, {});
  EXPECT_EQ(half.rows, 192);
  EXPECT_LT(half.median, 0.03);
  EXPECT_LT(half.worst, 0.15);
  const GemmErrors all = errors_of(file, "h100", {DataType::bfloat16, DataType::float32}, {});
  EXPECT_EQ(all.rows, 384);
  EXPECT_LT(all.median, 0.10);
}

TEST(Gemm, a_roofline_fitted_to_the_same_rows_is_worse) {
  const std::string file = kSource + "/data/measured/xla_gemm_h100.csv";
  const GpuModel& model = gpu_model("h100");
  const auto rows = parse_gemm_table(text_of(file), file, {DataType::bfloat16});
  const GemmRoofline roofline = fit_roofline(model, rows);
  std::vector<double> trivial;
  for (const GemmRow& row : rows) trivial.push_back(roofline.time_us(model, row.shape));
  EXPECT_GT(gemm_errors(rows, trivial, 512).median,
            errors_of(file, "h100", {DataType::bfloat16}, {}).median);
}

// Rows that nothing was fitted to and nothing may be: the errors are printed, not judged.
TEST(Gemm, shared_tables_that_nothing_was_fitted_to_are_reported) {
  const std::string folder = kSource + "/../shared/measured/check/";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no tables in " << folder;
  for (const auto& [file, gpu, steady] :
       {std::tuple{"aic_gemm_h100_sxm.csv", "h100", true}, {"xla_gemm_b200.csv", "b200", false}}) {
    const GemmErrors errors =
        errors_of(folder + file, gpu, {DataType::bfloat16}, {.steady = steady});
    ASSERT_GT(errors.rows, 0) << file;
    std::cout << file << ", bf16, m, n, k >= 512: " << errors.rows << " rows, median "
              << 100 * errors.median << " %, worst " << 100 * errors.worst << " %\n";
  }
}

TEST(GemmTable, columns_stand_in_any_order_and_types_are_picked) {
  const auto rows =
      parse_gemm_table("# a comment\ndtype,m,n,k,time_us\nbfloat16,1,2,3,4.5\nfp8,1,2,3,4\n",
                       "t.csv", {DataType::bfloat16});
  ASSERT_EQ(rows.size(), 1);
  EXPECT_EQ(rows[0].shape.k, 3);
  EXPECT_EQ(rows[0].measured_us, 4.5);
  const auto other = parse_gemm_table("time_us,k,n,m,b,dtypes\n9,3,2,1,7,f32xf32->f32\n", "t.csv",
                                      {DataType::float32});
  ASSERT_EQ(other.size(), 1);
  EXPECT_EQ(other[0].shape.batch, 7);
}

TEST(GemmTable, bad_rows_are_named_with_their_line) {
  const auto read = [](const std::string& text) {
    return message_of([&] { parse_gemm_table(text, "t.csv", {DataType::bfloat16}); });
  };
  EXPECT_THAT(read("dtype,m,n,time_us\n"), HasSubstr("lacks a column"));
  EXPECT_THAT(read("dtype,m,n,k,time_us\nbf16,1,2,3\n"), HasSubstr("t.csv:2"));
  EXPECT_THAT(read("dtype,m,n,k,time_us\nbf16,1,2,3,x\n"), HasSubstr("'x' is not a number"));
  EXPECT_THAT(read("dtype,m,n,k,time_us\nbf99,1,2,3,4\n"), HasSubstr("unknown type 'bf99'"));
  EXPECT_THAT(read("# nothing\n"), HasSubstr("without a header"));
}

TEST(GemmTable, a_fitted_roofline_finds_the_rows_that_it_made) {
  const GpuModel& model = gpu_model("a100");
  const GemmRoofline made{.latency_us = 5, .matrix_share = 0.7, .memory_share = 0.8};
  std::vector<GemmRow> rows;
  for (const std::int64_t size : {128, 512, 1024, 4096, 8192}) {
    const GemmShape shape{.m = size, .n = size, .k = size};
    rows.push_back({shape, made.time_us(model, shape)});
  }
  const GemmRoofline found = fit_roofline(model, rows);
  std::vector<double> modelled;
  for (const GemmRow& row : rows) modelled.push_back(found.time_us(model, row.shape));
  EXPECT_LT(gemm_errors(rows, modelled, 0).median, 0.01);
}

}  // namespace
}  // namespace hemiola::machine
