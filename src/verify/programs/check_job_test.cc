// Proofs of jobs: launches one by one, room for those that wait for each other, memory in common;
// and what is no job at all.
#include "verify/programs/check_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machine/machine.h"
#include "program/jobs/job.h"
#include "program/jobs/launch_programs.h"

namespace hemiola::verify::jobs {
namespace {

using program::Job;
using program::Launch;
using testing::HasSubstr;

machine::SharedMachine four() {
  machine::Machine machine = machine::load("dgx-h100");
  machine.place(std::vector<int>{0, 1, 2, 3});
  return machine::share(std::move(machine));
}

Launch all_reduce(const std::string& name, const char* program = "all-reduce/two-shot") {
  Launch launch;
  launch.name = name;
  launch.program = std::make_shared<const program::Program>(program::load(program, {.ranks = 4}));
  launch.options.size = KiB(64);
  launch.ranks = {0, 1, 2, 3};
  return launch;
}

/// With so many workgroups of 1,024 threads, each of which keeps half of a compute unit.
Launch with_workgroups(const std::string& name, const char* workgroups) {
  Launch launch = all_reduce(name);
  launch.program = std::make_shared<const program::Program>(
      program::load("all-reduce/two-shot",
                    {.ranks = 4, .parameters = {{"workgroups", workgroups}, {"threads", "1024"}}}));
  launch.options.size = MiB(1);
  launch.stream = name;
  return launch;
}

Proof proof_of(std::vector<Launch> launches) {
  auto job = std::make_shared<Job>();
  job->name = "job";
  job->launches = std::move(launches);
  return check(program::link(std::move(job), four()));
}

std::string failure_of(std::vector<Launch> launches, ExitCode code) {
  try {
    proof_of(std::move(launches));
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), code) << failure.what();
    return failure.what();
  }
  return "nothing";
}

TEST(CheckJob, proves_launches_that_have_room_beside_each_other) {
  Launch other = all_reduce("b");
  other.stream = "other";
  const Proof proof = proof_of({all_reduce("a"), other});
  EXPECT_EQ(proof.verdict, Verdict::proven) << proof.summary;
}

TEST(CheckJob, finds_launches_that_can_starve_each_other) {
  const Proof proof = proof_of({with_workgroups("a", "100"), with_workgroups("b", "100")});
  EXPECT_EQ(proof.verdict, Verdict::deadlock) << proof.summary;
  EXPECT_THAT(proof.summary, HasSubstr("'a', 'b'"));
  EXPECT_THAT(proof.summary, HasSubstr("200 compute units of the 132"));
}

TEST(CheckJob, proves_them_where_one_comes_after_the_other) {
  Launch second = with_workgroups("b", "100");
  second.after = {0};
  EXPECT_EQ(proof_of({with_workgroups("a", "100"), second}).verdict, Verdict::proven);
}

TEST(CheckJob, finds_memory_that_launches_use_in_no_order) {
  Launch writer = all_reduce("writer"), reader = all_reduce("reader");
  writer.memory = {{"output", "shared"}};
  reader.memory = {{"input", "shared"}};
  EXPECT_EQ(proof_of({writer, reader}).verdict, Verdict::proven);
  reader.stream = "other";
  const Proof proof = proof_of({writer, reader});
  EXPECT_EQ(proof.verdict, Verdict::wrong);
  EXPECT_THAT(proof.summary, HasSubstr("use the memory 'shared' of rank 0 in no order"));
}

TEST(CheckJob, refuses_what_is_no_job) {
  Launch first = all_reduce("first"), second = all_reduce("second");
  second.stream = "other";
  first.after = {1};
  second.after = {0};
  EXPECT_THAT(failure_of({first, second}, ExitCode::deadlock),
              HasSubstr("launches wait for each other in a circle: first -> second -> first"));
  Launch far = all_reduce("far");
  far.ranks = {0, 1, 2, 9};
  EXPECT_THAT(failure_of({far}, ExitCode::bad_input), HasSubstr("launch 'far' names rank 9"));
  far.ranks = {0, 1, 1, 2};
  EXPECT_THAT(failure_of({far}, ExitCode::bad_input), HasSubstr("names rank 1 twice"));
  far.ranks = {0, 1};
  EXPECT_THAT(failure_of({far}, ExitCode::bad_input), HasSubstr("gives 2 ranks to"));
  EXPECT_THAT(failure_of({all_reduce("a"), all_reduce("a")}, ExitCode::bad_input),
              HasSubstr("has the name of another one"));
  Launch unknown = all_reduce("unknown");
  unknown.memory = {{"inptu", "x"}};
  EXPECT_THAT(failure_of({unknown}, ExitCode::bad_input), HasSubstr("has no memory 'inptu'"));
}

}  // namespace
}  // namespace hemiola::verify::jobs
