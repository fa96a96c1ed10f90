// Job files: what they make, and one message with its line for everything that is wrong.
#include "study/laboratory/job_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "study/laboratory/job_run.h"

namespace hemiola::study {
namespace {

using testing::HasSubstr;

class JobFile : public testing::Test {
 protected:
  std::shared_ptr<const program::Job> parse(const std::string& text) {
    return parse_job(text, "job.yaml", machine_, laboratory_);
  }
  std::string failure(const std::string& text) {
    try {
      parse(text);
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), ExitCode::bad_input);
      return failure.what();
    }
    return "nothing";
  }

  Laboratory laboratory_;
  machine::SharedMachine machine_ = laboratory_.machine({.name = "dgx-h100"});
};

TEST_F(JobFile, makes_launches_of_every_kind) {
  const auto job = parse(R"(
dtype: bf16
streams: {comm: {priority: 2, units: 0-15}}
launches:
  - {name: gather, run: all-gather/direct, size: 1MiB, groups: [0-3, [4, 5, 6, 7]], stream: comm}
  - {name: product, product: {m: 256, n: 256, k: 128}, after: gather}
  - {attention: {queries: 64, keys: 64, heads: 8, dim: 128, causal: true}, ranks: 0}
  - {compute: {read: 1MiB, write: 1MiB, flop: 2e9}, at: 5us}
  - {name: copy, copy: {from: 1, to: 6, size: 4KiB}, after: [product, "gather[1]"]}
)");
  ASSERT_EQ(job->launches.size(), 6U);
  EXPECT_EQ(job->launches[1].name, "gather[1]");
  EXPECT_EQ(job->launches[1].ranks, (std::vector<int>{4, 5, 6, 7}));
  EXPECT_EQ(job->launches[0].program, job->launches[1].program);  // groups that are alike
  EXPECT_EQ(job->launches[0].options.type, DataType::bfloat16);
  EXPECT_EQ(job->streams.at("comm").units, 16);
  EXPECT_EQ(job->launches[2].after, (std::vector<std::int32_t>{0, 1}));
  EXPECT_TRUE(job->launches[2].alone);
  EXPECT_EQ(job->launches[3].ranks, (std::vector<int>{0}));
  EXPECT_EQ(job->launches[4].at.fs, 5'000'000'000);
  EXPECT_EQ(job->launches[5].ranks, (std::vector<int>{1, 6}));
  EXPECT_EQ(job->launches[5].after, (std::vector<std::int32_t>{2, 1}));
}

TEST_F(JobFile, says_what_is_wrong_and_where) {
  EXPECT_THAT(failure("launches: []"), HasSubstr("a list of at least one launch"));
  EXPECT_THAT(failure("lunches: 3\nlaunches: [{}]"), HasSubstr("lunches"));
  EXPECT_THAT(failure("launches:\n  - {run: all-reduce/ring}"), HasSubstr("size"));
  EXPECT_THAT(failure("launches:\n  - {sise: 1MiB, run: all-reduce/ring}"),
              HasSubstr("job.yaml:2"));
  EXPECT_THAT(failure("launches:\n  - {name: a}"), HasSubstr("says what it runs"));
  EXPECT_THAT(failure("launches:\n  - {compute: {time: 1us}, product: {m: 1, n: 1, k: 1}}"),
              HasSubstr("runs one thing"));
  EXPECT_THAT(failure("launches:\n  - {compute: {time: 1us}, after: nobody}"),
              HasSubstr("there is no launch 'nobody'"));
  EXPECT_THAT(failure("launches:\n  - {copy: {from: 0, to: 8, size: 1KiB}}"),
              HasSubstr("'to' must be a number from 0 to 7"));
  EXPECT_THAT(failure("launches:\n  - {compute: {time: 1us}, ranks: 0-9}"),
              HasSubstr("there is no rank 8"));
  EXPECT_THAT(failure("launches:\n  - {compute: {flop: lots}}"), HasSubstr("'lots'"));
  EXPECT_THAT(failure("launches:\n  - {compute: {workgroups: 3}}"), HasSubstr("nothing to do"));
  EXPECT_THAT(failure("streams: {a: {units: 100-200}}\nlaunches: [{compute: {time: 1us}}]"),
              HasSubstr("no row of compute units"));
  EXPECT_THAT(failure("launches:\n  - {compute: {time: 1us}, ranks: 0-1, groups: [0-1]}"),
              HasSubstr("exclude each other"));
}

TEST_F(JobFile, launches_after_others_have_a_rank_in_common) {
  const auto job = parse(
      "launches:\n"
      "  - {name: a, compute: {time: 1us}, ranks: 0}\n"
      "  - {name: b, compute: {time: 1us}, ranks: 1, after: a}\n");
  EXPECT_THROW(program::link(job, machine_), Failure);
}

TEST(RunJob, says_who_slows_down_whom) {
  Laboratory laboratory;
  const Outcome outcome = run_job(
      laboratory, {.machine = {.name = "dgx-h100"},
                   .file = std::string(HEMIOLA_SOURCE_DIR) + "/examples/job_overlap/job.yaml"});
  ASSERT_EQ(outcome.result.launches.size(), 2U);
  EXPECT_EQ(outcome.result.checked, "full");
  for (const sim::LaunchResult& launch : outcome.result.launches) {
    const Time extra = launch.end - launch.begin - launch.alone;
    EXPECT_GT(extra.fs, 0) << launch.name;
    ASSERT_EQ(launch.slowed_by.size(), 1U);
    EXPECT_NE(launch.slowed_by.front().launch, launch.name);
    EXPECT_EQ(launch.slowed_by.front().share, extra);
  }
}

}  // namespace
}  // namespace hemiola::study
