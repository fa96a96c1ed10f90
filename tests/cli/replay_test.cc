// hemiola run --record and hemiola replay as a user runs them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "program.h"

namespace hemiola::test {
namespace {

constexpr const char* kRun = "all-reduce/two-shot --machine dgx-h100 --size 64KiB";
constexpr const char* kReplay = " --machine dgx-h100 --program all-reduce/two-shot --size 64KiB";

std::int64_t time_of(const std::string& json) {
  return nlohmann::json::parse(json).at("results").at(0).at("time_fs").get<std::int64_t>();
}

/// Whether the replay fails as bad input does, and says so.
void expect_refused(const Workplace& place, const std::string& arguments,
                    const std::string& words) {
  const Outcome outcome = place.run("replay " + arguments);
  EXPECT_EQ(outcome.code, 2) << arguments << outcome.err;
  EXPECT_NE(outcome.err.find(words), std::string::npos) << outcome.err;
}

TEST(ReplayVerb, gives_the_recorded_time) {
  const Workplace place;
  const std::string record = std::string("run ") + kRun + " --no-check --quiet --json full.json ";
  ASSERT_EQ(place.run(record + "--record rank0.csv").code, 0);
  ASSERT_EQ(place.run(record + "--record rank5.json --record-rank 5").code, 0);
  for (const std::string profile : {"rank0.csv", "rank5.json"}) {
    const Outcome outcome = place.run("replay " + profile + kReplay + " --json alone.json");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    // All ranks of this program end together.
    EXPECT_EQ(time_of(place.read("alone.json")), time_of(place.read("full.json")));
    EXPECT_NE(outcome.out.find("is simulated"), std::string::npos) << outcome.out;
  }
  EXPECT_EQ(place.files(), "alone.json full.json rank0.csv rank5.json ");
}

TEST(ReplayVerb, refuses_what_does_not_belong_to_the_program) {
  const Workplace place;
  ASSERT_EQ(place.run(std::string("run ") + kRun + " --no-check --quiet --record p.csv").code, 0);
  expect_refused(place, "p.csv --machine dgx-h100 --program all-reduce/ring --size 64KiB",
                 "in the profile");
  expect_refused(place,
                 "p.csv --machine dgx-h100 --ranks 4 --program all-reduce/two-shot --size 64KiB",
                 "the profile is of 8 ranks, the program of 4");
  expect_refused(place, "p.csv --machine dgx-h100:2 --program all-reduce/two-shot", "NICs");
  expect_refused(place, std::string("p.csv --rank 8") + kReplay, "--rank");
  expect_refused(place, std::string("p.csv --set gpu.l2.sise=1MiB") + kReplay, "l2.sise");
  expect_refused(place, std::string("missing.csv") + kReplay, "missing.csv");
  expect_refused(place, "p.csv --machine dgx-h100", "no program");
  expect_refused(place, "--machine dgx-h100 --program all-reduce/ring", "no profile");
  const std::string text = place.read("p.csv");
  place.write("cut.csv", text.substr(0, text.size() / 2));
  expect_refused(place, std::string("cut.csv") + kReplay, "columns");
  place.write("short.csv",
              text.substr(0, text.find('\n', text.size() / 2) + 1) + "# end 99999 rows\n");
  expect_refused(place, std::string("short.csv") + kReplay, "was it cut off?");
}

TEST(ReplayVerb, of_writes_to_buffers_and_semaphores_takes_rows_of_any_size) {
  const Workplace place;
  const std::string head =
      "# ranks 2\n# buffer @semaphores 8\n# buffer @memory 8192\n"
      "source:rank,destination:rank,time:ns,kind:kind,buffer:name,offset:bytes,size:bytes,value:"
      "int\n";
  const std::string run =
      " --machine dgx-h100 --ranks 2 --program all-gather/direct --size 16KiB --rank 0";
  // The answers to rank 0's own stores are missing, so that it never ends.
  place.write("p.csv",
              head + "1,0,5000,write,@memory,100,4000,0\n1,0,6000,add,@semaphores,0,8,1\n");
  const Outcome outcome = place.run("replay p.csv" + run);
  EXPECT_EQ(outcome.code, 4) << outcome.err << outcome.out;
  place.write("p.csv", head + "1,0,6000,add,@memory,0,8,1\n");
  expect_refused(place, "p.csv" + run, "adds to no semaphore");
  place.write("p.csv", head + "1,0,6000,write,@semaphores,0,8,1\n");
  expect_refused(place, "p.csv" + run, "is for a semaphore");
  place.write("p.csv", head + "1,0,6000,write,@memory,0,8,1\n1,0,7000,response,,,8,\n");
  expect_refused(place, "p.csv" + run, "to the how-manieth request");
}

}  // namespace
}  // namespace hemiola::test
