// Who has which task, and what of it is there when processes are killed.
#include "study/support/parts.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/testing/failure.h"
#include "core/text.h"
#include "study/testing/sweep.h"

namespace hemiola::study {
namespace {

using test::SweepFolder;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

TEST(Parts, a_task_is_one_process_s_until_it_is_made) {
  const SweepFolder place;
  Parts one(place.path("parts"), "head"), two(place.path("parts"), "head");
  EXPECT_TRUE(one.claim("a"));
  EXPECT_FALSE(two.claim("a"));
  EXPECT_FALSE(two.is_made("a"));
  EXPECT_EQ(two.part("a"), std::nullopt);
  one.put("a", std::string("x\0y", 3));
  EXPECT_TRUE(two.is_made("a"));
  EXPECT_EQ(two.part("a"), std::string("x\0y", 3));
  EXPECT_FALSE(two.claim("a")) << "it is made";
  EXPECT_TRUE(two.claim("b"));
}

TEST(Parts, claims_are_given_back_at_the_end) {
  const SweepFolder place;
  Parts one(place.path("parts"), "head");
  {
    Parts two(place.path("parts"), "head");
    EXPECT_TRUE(two.claim("a"));
    EXPECT_FALSE(one.claim("a"));
  }
  EXPECT_TRUE(one.claim("a"));
}

TEST(Parts, a_claim_of_a_process_that_is_gone_is_taken_over_and_one_of_another_host_is_not_yet) {
  const SweepFolder place;
  Parts one(place.path("parts"), "head"), two(place.path("parts"), "head");
  char host[256] = {};
  ASSERT_EQ(gethostname(host, sizeof host - 1), 0);
  place.write("parts/gone.claim", std::string(host) + " 999999999");
  place.write("parts/far.claim", "another_host 1");
  EXPECT_TRUE(one.claim("gone"));
  EXPECT_FALSE(two.claim("gone")) << "this process is there";
  EXPECT_FALSE(one.claim("far")) << "it may have been touched just now";
}

TEST(Parts, of_something_else_are_refused) {
  const SweepFolder place;
  { const Parts one(place.path("parts"), "head"); }
  EXPECT_THAT(test::message_of([&] { Parts(place.path("parts"), "other"); }),
              HasSubstr("holds parts of something else"));
  place.write("file", "x");
  EXPECT_THAT(test::message_of([&] { Parts(place.path("file"), "head"); }),
              HasSubstr("is no folder"));
}

TEST(Parts, are_joined_in_order_and_gone_then) {
  const SweepFolder place;
  Parts one(place.path("parts"), "head"), two(place.path("parts"), "head");
  one.put("a", "1");
  two.put("b", "2");
  std::string joined;
  const auto take = [&](const std::string& part) { joined += part; };
  one.join({"a", "b"}, take, nullptr);
  EXPECT_EQ(joined, "12");
  EXPECT_FALSE(std::filesystem::exists(place.path("parts")));
  two.join({"a", "b"}, take, nullptr);
  EXPECT_EQ(joined, "12") << "another process has joined them";
  two.put("b", "2");  // made a second time, too late
  EXPECT_FALSE(std::filesystem::exists(place.path("parts")));
}

TEST(Parts, made_together_are_made_once_each_and_there_for_all) {
  const SweepFolder place;
  const std::vector<std::string> tasks{"a", "b", "c", "d", "e", "f"};
  std::mutex mutex;
  std::vector<std::string> made;
  const auto process = [&] {
    Parts parts(place.path("parts"), "head");
    make_together(
        parts, 2, tasks,
        [&](std::size_t task) {
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
          const std::lock_guard lock(mutex);
          made.push_back(tasks[task]);
          return "part of " + tasks[task];
        },
        nullptr);
    for (const std::string& task : tasks) EXPECT_EQ(parts.part_of_made(task), "part of " + task);
  };
  std::thread other(process);
  process();
  other.join();
  EXPECT_THAT(made, UnorderedElementsAre("a", "b", "c", "d", "e", "f"));
}

/// Sets variables, and takes them back.
class Environment {
 public:
  explicit Environment(std::vector<std::pair<const char*, const char*>> variables)
      : variables_(std::move(variables)) {
    for (const auto& [name, value] : variables_) ::setenv(name, value, 1);
  }
  ~Environment() {
    for (const auto& [name, value] : variables_) ::unsetenv(name);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::vector<std::pair<const char*, const char*>> variables_;
};

TEST(Team, is_what_the_launcher_says) {
  EXPECT_EQ(team_of_environment().size, 1);
  {
    const Environment mpi({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "3"}});
    EXPECT_EQ(team_of_environment().rank, 2);
    EXPECT_EQ(team_of_environment().size, 3);
    EXPECT_EQ(team_of_environment().said_by, "OMPI_COMM_WORLD_SIZE");
  }
  {
    // Every task of an array is a step of one process.
    const Environment slurm({{"SLURM_ARRAY_TASK_ID", "7"},
                             {"SLURM_ARRAY_TASK_COUNT", "4"},
                             {"SLURM_ARRAY_TASK_MIN", "5"},
                             {"SLURM_PROCID", "0"},
                             {"SLURM_STEP_NUM_TASKS", "1"}});
    EXPECT_EQ(team_of_environment().rank, 2);
    EXPECT_EQ(team_of_environment().size, 4);
  }
  const Environment odd({{"PMI_RANK", "x"}, {"PMI_SIZE", "2"}});
  EXPECT_THAT(test::message_of([] { team_of_environment(); }), HasSubstr("PMI_RANK=x"));
}

}  // namespace
}  // namespace hemiola::study
