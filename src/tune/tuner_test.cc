#include "tune/tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "compile/fused/fused_file.h"
#include "core/testing/failure.h"
#include "tune/database.h"

namespace hemiola::tune {
namespace {

using testing::HasSubstr;

constexpr const char* kKernel = R"(import triton
import triton.language as tl

@triton.jit
def gemm(a_ptr, b_ptr, c_ptr, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        offs_k = k + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + offs_m[:, None] * K + offs_k[None, :])
        b = tl.load(b_ptr + offs_k[:, None] * N + offs_n[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc.to(tl.float16))
)";

compile::Configuration blocks(const std::string& m, const std::string& n) {
  compile::Configuration one;
  one.constants = {{"BLOCK_M", m}, {"BLOCK_N", n}, {"BLOCK_K", "64"}};
  return one;
}

/// Twelve points that can be written, of 24: those of 512 rows straddle chunks.
Request small_tuning() {
  Request request;
  request.kernel.describe.file = "gemm.py";
  request.kernel.text = kKernel;
  request.kernel.configurations = {blocks("64", "64"), blocks("128", "64"), blocks("512", "64")};
  request.plan = "ag-gemm/swizzle";
  request.parameters.buckets = {{{"m", "512"}, {"n", "512"}, {"k", "256"}}};
  request.parameters.choices = {{"split", {"1", "2"}},
                                {"stages", {"2", "3"}},
                                {"realization", {"copy-engine"}},
                                {"transfer", {"pull", "push"}},
                                {"order", {"clockwise"}}};
  request.machine = {.name = "dgx-h100", .ranks = "4"};
  request.budget = 8;
  return request;
}

Bucket tuned(const Request& request) {
  study::Laboratory laboratory;
  return tune(laboratory, request).buckets.front();
}

std::vector<std::pair<std::string, std::int64_t>> times_of(const Bucket& bucket) {
  std::vector<std::pair<std::string, std::int64_t>> all;
  for (const Candidate& one : bucket.candidates) all.emplace_back(one.text, one.time().fs);
  return all;
}

class Tuners : public testing::Test {
  void SetUp() override {
    if (!compile::can_parse()) GTEST_SKIP() << compile::why_it_cannot_parse();
  }
};

TEST_F(Tuners, keep_to_their_budget_and_find_what_is_best) {
  Request request = small_tuning();
  const Bucket found = tuned(request);
  EXPECT_EQ(found.simulations, request.budget);
  ASSERT_NE(found.winner(), nullptr);
  EXPECT_TRUE(found.winner()->sampled);
  request.method = Method::exhaustive;
  const Bucket all = tuned(request);
  EXPECT_EQ(all.candidates.size(), 12u);
  EXPECT_EQ(all.simulations, 12) << "by both engines";
  EXPECT_EQ(all.dropped.at(Dropped::fusion).count, 12);
  EXPECT_THAT(all.dropped.at(Dropped::fusion).first, HasSubstr("straddle chunks"));
  EXPECT_LE(static_cast<double>(found.winner()->time().fs),
            1.03 * static_cast<double>(all.winner()->time().fs));
  for (const Candidate& one : all.candidates) {
    EXPECT_LE(one.bound, one.fluid->fluid) << one.text;
    EXPECT_LE(one.bound, one.sampled->time) << one.text;
  }
}

TEST_F(Tuners, give_the_same_for_any_number_of_threads_and_whatever_is_known) {
  const std::string file = testing::TempDir() + "tuner_test.sqlite";
  std::filesystem::remove(file);
  for (const Method method : {Method::descent, Method::random}) {
    Request request = small_tuning();
    request.method = method;
    request.seed = 5;
    const Bucket alone = tuned(request);
    request.options.threads = 3;
    EXPECT_EQ(times_of(tuned(request)), times_of(alone));
    study::Laboratory laboratory;
    Database database(file, study::head_of_machine(request.machine,
                                                   *laboratory.machine(request.machine), "test"));
    request.database = &database;
    for (int i = 0; i < 2; ++i) {  // the second time all of it is known
      const Bucket kept = tune(laboratory, request).buckets.front();
      EXPECT_EQ(times_of(kept), times_of(alone));
      EXPECT_EQ(kept.simulations, alone.simulations);
      EXPECT_EQ(kept.candidates.front().sampled->attribution,
                alone.candidates.front().sampled->attribution);
    }
  }
}

TEST_F(Tuners, search_elsewhere_with_another_seed) {
  Request request = small_tuning();
  request.method = Method::random;
  request.budget = 4;
  std::set<std::string> first;
  for (request.seed = 0; request.seed < 4; ++request.seed)
    first.insert(tuned(request).candidates.front().text);
  EXPECT_GT(first.size(), 1u);
}

TEST_F(Tuners, write_what_wins) {
  const Request request = small_tuning();
  study::Laboratory laboratory;
  const Tuning tuning = tune(laboratory, request);
  const Candidate& winner = *tuning.buckets.front().winner();
  const plan::Plan plan = plan_of(laboratory, request, winner);
  const compile::TorchFile file =
      fused_of(request, winner, plan)
          .write({.file = "plan", .command = "c", .version = "v", .movers = winner.movers},
                 "out.py");
  EXPECT_THAT(file.text, HasSubstr("\"num_stages\": " + winner.configuration.stages));
  EXPECT_THAT(file.text, HasSubstr("\"BLOCK_M\": " + winner.configuration.constants.at("BLOCK_M")));
  const auto realization = std::find_if(plan.lowering.begin(), plan.lowering.end(),
                                        [](const auto& one) { return one.first == "realization"; });
  ASSERT_NE(realization, plan.lowering.end());
  EXPECT_EQ(realization->second, compile::emitted_realization(plan));
}

TEST_F(Tuners, leave_out_who_moves_data_as_the_compiler_does_not_unless_asked) {
  Request request = small_tuning();
  request.parameters.choices["realization"] = {"load-store", "copy-engine"};
  request.parameters.choices["workgroups"] = {"16"};
  request.budget = 20;
  const Bucket written = tuned(request);
  EXPECT_GT(written.dropped.at(Dropped::realization).count, 0);
  for (const Candidate& one : written.candidates) EXPECT_EQ(one.workgroups, 0) << one.text;
  request.any_realization = true;
  const Bucket all = tuned(request);
  EXPECT_FALSE(all.candidates.front().is_written) << "workgroups are faster for so few bytes";
  ASSERT_NE(all.winner(), nullptr);
  EXPECT_TRUE(all.winner()->is_written);
  EXPECT_TRUE(all.winner()->sampled);
  EXPECT_GT(all.pareto().size(), 1u) << "copy engines take no workgroups";
}

TEST_F(Tuners, write_workgroups_that_move_data_where_they_are_asked_for) {
  Request request = small_tuning();
  request.kernel.describe.file = HEMIOLA_SOURCE_DIR "/examples/kernels/gemm_persistent.py";
  request.kernel.describe.constants = {{"GROUP_M", "2"}};
  request.kernel.text.reset();
  request.kernel.configurations = {blocks("64", "64")};
  request.parameters.choices["realization"] = {"load-store", "bulk"};
  request.parameters.choices["workgroups"] = {"8"};
  study::Laboratory laboratory;
  const Tuning tuning = tune(laboratory, request);
  const Candidate* winner = tuning.buckets.front().winner();
  ASSERT_NE(winner, nullptr);
  EXPECT_EQ(winner->movers.workgroups, 8);
  const plan::Plan plan = plan_of(laboratory, request, *winner);
  const compile::TorchFile file =
      fused_of(request, *winner, plan)
          .write({.file = "plan", .command = "c", .version = "v", .movers = (*winner).movers},
                 "out.py");
  EXPECT_THAT(file.text, HasSubstr("movers=8"));
}

TEST_F(Tuners, say_why_nothing_is_left) {
  Request request = small_tuning();
  request.kernel.configurations = {blocks("512", "64")};
  EXPECT_THAT(test::message_of([&] { tuned(request); }),
              HasSubstr("none of 8 points can be tried; of 8 of them the fusion is the reason"));
  request = small_tuning();
  request.parameters.buckets = {{{"m", "510"}, {"n", "512"}, {"k", "256"}}};
  EXPECT_THAT(test::message_of([&] { tuned(request); }), HasSubstr("cannot divide"));
  request = small_tuning();
  request.plan = "ag-gemm/swizle";
  EXPECT_THAT(test::message_of([&] { tuned(request); }), HasSubstr("ag-gemm/swizzle"));
}

}  // namespace
}  // namespace hemiola::tune
