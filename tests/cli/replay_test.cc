// hemiola run --record and hemiola replay as a user runs them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "program.h"

namespace hemiola::test {
namespace {

constexpr const char* kRunWords = "all-reduce/two-shot --machine dgx-h100 --size 64KiB";
constexpr const char* kReplayWords =
    " --machine dgx-h100 --program all-reduce/two-shot --size 64KiB";

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
  const std::string record =
      std::string("run ") + kRunWords + " --no-check --quiet --json full.json ";
  ASSERT_EQ(place.run(record + "--record rank0.csv").code, 0);
  ASSERT_EQ(place.run(record + "--record rank5.json --record-rank 5").code, 0);
  for (const std::string profile : {"rank0.csv", "rank5.json"}) {
    const Outcome outcome = place.run("replay " + profile + kReplayWords + " --json alone.json");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    // All ranks of this program end together.
    EXPECT_EQ(time_of(place.read("alone.json")), time_of(place.read("full.json")));
    EXPECT_NE(outcome.out.find("is simulated"), std::string::npos) << outcome.out;
  }
  EXPECT_EQ(place.files(), "alone.json full.json rank0.csv rank5.json ");
}

/// When a rank ended: what remains of the run's time then is `finished`.
std::int64_t end_of(const std::string& json, int rank) {
  const nlohmann::json result = nlohmann::json::parse(json).at("results").at(0);
  for (const nlohmann::json& one : result.at("attribution"))
    if (one.at("rank") == rank)
      return result.at("time_fs").get<std::int64_t>() -
             one.at("fs").value("finished", std::int64_t{0});
  ADD_FAILURE() << "no rank " << rank;
  return 0;
}

TEST(ReplayVerb, goes_past_nics_port_channels_and_nvls) {
  const Workplace place;
  const std::pair<std::string, std::string> cases[] = {
      {"all-to-all/direct", "--machine dgx-h100:2 --size 32KiB"},
      {"send-recv/mscclpp-port", "--machine dgx-h100 --ranks 2 --size 64KiB"},
      {"all-reduce/nvls", "--machine dgx-h100 --param realization=multicast --size 32KiB"},
  };
  for (const auto& [program, options] : cases) {
    const std::string ran = "run " + program + ' ' + options + " --no-check --quiet";
    ASSERT_EQ(place.run(ran + " --json full.json --record p.json --record-rank 1").code, 0);
    const Outcome outcome =
        place.run("replay p.json --program " + program + ' ' + options + " --json alone.json");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(time_of(place.read("alone.json")), end_of(place.read("full.json"), 1)) << program;
  }
  const Outcome refused = place.run(
      "run all-reduce/nvls --machine dgx-h100 --param realization=multicast --size 32KiB "
      "--no-check "
      "--quiet --record p.csv --record-rank 0,1");
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("at the ingress of one rank"), std::string::npos) << refused.err;
}

TEST(ReplayVerb, refuses_what_does_not_belong_to_the_program) {
  const Workplace place;
  ASSERT_EQ(place.run(std::string("run ") + kRunWords + " --no-check --quiet --record p.csv").code,
            0);
  expect_refused(place, "p.csv --machine dgx-h100 --program all-reduce/ring --size 64KiB",
                 "in the profile");
  expect_refused(place,
                 "p.csv --machine dgx-h100 --ranks 4 --program all-reduce/two-shot --size 64KiB",
                 "the profile is of 8 ranks, the program of 4");
  expect_refused(place, "p.csv --machine dgx-h100:2 --program all-reduce/two-shot",
                 "the profile is of 8 ranks, the program of 16");
  expect_refused(place, std::string("p.csv --rank 8") + kReplayWords, "--rank");
  expect_refused(place, std::string("p.csv --set gpu.l2.sise=1MiB") + kReplayWords, "l2.sise");
  expect_refused(place, std::string("missing.csv") + kReplayWords, "missing.csv");
  expect_refused(place, "p.csv --machine dgx-h100", "no program");
  expect_refused(place, "--machine dgx-h100 --program all-reduce/ring", "no profile");
  const std::string text = place.read("p.csv");
  place.write("cut.csv", text.substr(0, text.size() / 2));
  expect_refused(place, std::string("cut.csv") + kReplayWords, "columns");
  place.write("short.csv",
              text.substr(0, text.find('\n', text.size() / 2) + 1) + "# end 99999 rows\n");
  expect_refused(place, std::string("short.csv") + kReplayWords, "was it cut off?");
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

/// "fs" of a replay's result.
std::int64_t replay_time(const Workplace& place, const std::string& arguments) {
  const Outcome outcome = place.run("replay " + arguments + " --json out.json");
  EXPECT_EQ(outcome.code, 0) << arguments << outcome.err;
  return time_of(place.read("out.json"));
}

TEST(ReplayVerb, of_several_ranks_from_ports_or_ingress_gives_the_recorded_time) {
  const Workplace place;
  const std::string record =
      std::string("run ") + kRunWords + " --no-check --quiet --json full.json --record-rank 0,3 ";
  ASSERT_EQ(place.run(record + "--record two.csv").code, 0);
  ASSERT_EQ(place.run(record + "--record-at port --record ports.json").code, 0);
  for (const std::string profile : {"two.csv", "ports.json"}) {
    EXPECT_EQ(replay_time(place, profile + kReplayWords + " --rank 0,3"),
              time_of(place.read("full.json")));
    EXPECT_EQ(replay_time(place, profile + kReplayWords + " --rank 0,3 --table polled"),
              time_of(place.read("full.json")));
  }
  EXPECT_EQ(replay_time(place, std::string("two.csv") + kReplayWords),
            time_of(place.read("full.json")))
      << "the ranks of the recording";
  std::string text = place.read("two.csv");  // as if by hand
  text.erase(text.find("# recorded"), text.find("# buffer") - text.find("# recorded"));
  place.write("unknown.csv", text);
  expect_refused(place, std::string("unknown.csv") + kReplayWords, "--rank R,...");
  expect_refused(place, std::string("two.csv --rank 0,8") + kReplayWords,
                 "there is no rank 8 of 8");
  expect_refused(place, std::string("two.csv --rank 0 --mode fibre") + kReplayWords, "--mode");
  expect_refused(place, std::string("two.csv --rank 0 --table lists") + kReplayWords, "--table");
  const Outcome late =
      place.run(std::string("run ") + kRunWords + " --record x.csv --record-rank 8");
  EXPECT_EQ(late.code, 2);
  EXPECT_NE(late.err.find("there is no rank 8 of 8"), std::string::npos) << late.err;
}

TEST(ReplayVerb, takes_the_rows_of_a_recording_through_the_fabric) {
  const Workplace place;
  ASSERT_EQ(place.run(std::string("run ") + kRunWords + " --no-check --quiet --record p.csv").code,
            0);
  const std::int64_t ingress = replay_time(place, std::string("p.csv") + kReplayWords);
  // The times at ingress are now those of injection: everything comes later by the way at least.
  EXPECT_GT(replay_time(place, std::string("p.csv --mode fabric") + kReplayWords), ingress);
  EXPECT_GT(replay_time(place, std::string("p.csv --mode fabric --set link.nvlink4.latency=5us") +
                                   kReplayWords),
            replay_time(place, std::string("p.csv --mode fabric") + kReplayWords));
}

TEST(ReplayVerb, adds_traffic_and_says_what_that_of_each_peer_costs) {
  const Workplace place;
  ASSERT_EQ(place.run(std::string("run ") + kRunWords + " --no-check --quiet --record p.csv").code,
            0);
  place.write("traffic.yaml",
              "seed: 3\ntraffic:\n"
              "  - {peer: 5, pattern: burst, burst: 64, interval: 200 ns, count: 40, buffer: "
              "output, size: 1 KiB, span: 8 KiB}\n"
              "  - {peer: 2, interval: 1 us, count: 1, start: 1 s}\n");
  const std::string run =
      std::string("p.csv") + kReplayWords + " --traffic traffic.yaml --mode fabric --isolate";
  const Outcome outcome = place.run("replay " + run + " --json out.json --output mixed.csv");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("what the traffic of each peer adds"), std::string::npos);
  const nlohmann::json isolate = nlohmann::json::parse(place.read("out.json")).at("isolate");
  ASSERT_EQ(isolate.at("peers").size(), 2U);
  EXPECT_EQ(isolate["peers"][0]["peer"], 2);
  EXPECT_EQ(isolate["peers"][0]["cost_fs"], 0) << "it comes when all is over";
  EXPECT_GT(isolate["peers"][1]["cost_fs"].get<std::int64_t>(), 0);
  EXPECT_EQ(isolate["peers"][1]["cost_fs"], isolate["all_cost_fs"]);
  EXPECT_EQ(isolate["all_fs"].get<std::int64_t>(), time_of(place.read("out.json")));
  EXPECT_NE(place.read("mixed.csv").find("output"), std::string::npos);
  EXPECT_EQ(place.run("replay " + run + " --threads 3").out, outcome.out);
  place.write("traffic.yaml", "traffic:\n  - {peer: 5, interval: 200 ms, count: x}\n");
  expect_refused(place, run, "traffic.yaml:2:");
  expect_refused(place, std::string("p.csv --isolate") + kReplayWords, "--traffic FILE");
}

TEST(ReplayVerb, needs_no_profile_where_there_is_traffic) {
  const Workplace place;
  place.write("flags.yaml",
              "traffic:\n  - {peer: 1, start: 9 us, interval: 100 ns, count: 2, buffer: "
              "\"@semaphores\", size: 8}\n");
  const std::string program =
      " --machine dgx-h100 --ranks 2 --program all-gather/direct --param workgroups=1 --size ";
  const std::int64_t first = replay_time(place, "--traffic flags.yaml" + program + "16KiB");
  EXPECT_GT(first, 9'000'000'000);
  EXPECT_EQ(replay_time(place, "--traffic flags.yaml" + program + "16KiB"), first);
}

TEST(ReplayVerb, imports_traces_of_ranks_and_replays_their_waits) {
  const Workplace place;
  const auto trace = [](const std::string& rank, const std::string& events) {
    return R"({"distributedInfo": {"rank": )" + rank + R"(, "world_size": 2}, "traceEvents": [)" +
           events + "]}";
  };
  const std::string kernel = R"x({"cat": "kernel", "name": "ncclKernel_AllReduce()", )x";
  place.write("r0.json", trace("0", kernel + R"("ts": 100, "dur": 50})"));
  place.write("r1.json", trace("1", kernel + R"("ts": 140, "dur": 10.5})"));
  Outcome outcome = place.run("replay r0.json r1.json --output both.csv");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("2 ranks, 1 communications"), std::string::npos) << outcome.err;
  EXPECT_NE(place.read("both.csv").find("@semaphores"), std::string::npos);
  outcome = place.run("replay r0.json r1.json --machine dgx-h100 --rank 0");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("ends after 50.000 us"), std::string::npos) << outcome.out;
  expect_refused(place, "r0.json --output x.csv", "that of rank 1 is missing");
  place.write("cut.json", place.read("r1.json").substr(0, 60));
  expect_refused(place, "r0.json cut.json --output x.csv", "cut.json:1");
}

TEST(ReplayVerb, names_the_row_that_should_have_ended_a_wait) {
  const Workplace place;
  place.write("p.csv",
              "# ranks 2\n# buffer @semaphores 8\n"
              "source:rank,destination:rank,time:ns,kind:kind,buffer:name,offset:bytes,value:int,"
              "after:id,tag:text\n1,0,50,add,@semaphores,0,1,@semaphores+0>=9,ready\n");
  const Outcome outcome = place.run(
      "replay p.csv --machine dgx-h100 --ranks 2 --program all-gather/direct --size 16KiB");
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  EXPECT_NE(outcome.err.find("the row at line 4 'ready' of rank 1 would write it"),
            std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.err.find("workgroup"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace hemiola::test
