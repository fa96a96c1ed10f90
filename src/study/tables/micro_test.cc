#include "study/tables/micro.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "program/program.h"

namespace hemiola::study {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kNoMarks =
    "marks:\n  graph: {<1MB: {}, 1-64MB: {}, 64-128MB: {}, '>=128MB': {}}\n"
    "  stream: {<1MB: {}, 1-64MB: {}, 64-128MB: {}, '>=128MB': {}}\nentries:\nmicro:\n";
/// A row in ns, one in us and one in GB/s.
const std::string kLoad =
    "{name: a, hardware: V100, metric: L2 latency, machine: ring:2, program: micro/pointer-chase";
const std::string kLaunch =
    "{name: b, hardware: H100, metric: per launch on a stream, machine: ring:2, program: "
    "micro/launch, launch: graph, warmup: 1, iterations: 3";
const std::string kCopy =
    "{name: c, hardware: H100 SXM, metric: HBM copy bandwidth (BabelStream), machine: ring:2, "
    "program: micro/copy, parameters: {blocks: 2, memory: own}, size: 64KiB";

Suite suite_of(const std::string& entry) {
  return parse_suite(kNoMarks + "- " + entry + "}\n", "s.yaml");
}
MicroResult run(const std::string& entry, const Settings& set = {}) {
  const Suite suite = suite_of(entry);
  Laboratory laboratory;
  const auto results =
      MicroRunner(laboratory, true, set, {}).run(suite, {suite.micro.front().name, "other"});
  return results.at(0);
}
std::string micro_failure(const std::string& entry) {
  try {
    run(entry);
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), ExitCode::bad_input);
    return failure.what();
  }
  return "no failure";
}

Time simulated(const std::string& name, const Settings& parameters, Bytes size,
               const sim::Options& options = {}, const Settings& set = {}) {
  const machine::Machine machine = machine::load("ring:2", {.set = set});
  const program::Program program = program::load(name, {.ranks = 2, .parameters = parameters});
  return sim::simulate(program::bind(program, machine::share(machine), {.size = size}), options)
      .time;
}

TEST(Micro, a_time_is_by_operation) {
  const MicroResult result = run(kLoad + ", size: 4KiB, operations: 32");
  const Time time = simulated("micro/pointer-chase", {}, KiB(4));
  EXPECT_DOUBLE_EQ(result.simulated, time.us() * 1e3 / 32);
  EXPECT_EQ(result.measured.value, 155.8);
  EXPECT_DOUBLE_EQ(result.error, result.simulated / 155.8 - 1);
  EXPECT_EQ(result.checked, "partial") << "what a custom program has to give is not known";
  EXPECT_EQ(result.program, "micro/pointer-chase --size 4 KiB");
}

TEST(Micro, the_time_of_the_base_does_not_count) {
  const MicroResult result =
      run(kLoad + ", parameters: {hops: 9, memory: peer}, base: {hops: 4}, operations: 5");
  const Time more = simulated("micro/pointer-chase", {{"memory", "peer"}, {"hops", "9"}}, MiB(1));
  const Time base = simulated("micro/pointer-chase", {{"memory", "peer"}, {"hops", "4"}}, MiB(1));
  EXPECT_NEAR(result.simulated, (more.us() - base.us()) * 1e3 / 5, 1e-9);
}

TEST(Micro, a_rate_is_bytes_over_time) {
  const MicroResult result = run(kCopy + ", base: {size: 16KiB}, bytes: 48KiB");
  const Settings parameters{{"blocks", "2"}, {"memory", "own"}};
  const Time time =
      simulated("micro/copy", parameters, KiB(64)) - simulated("micro/copy", parameters, KiB(16));
  EXPECT_NEAR(result.simulated, 49152 / time.us() / 1e3, 1e-9);
}

TEST(Micro, the_way_of_launching_and_settings_are_those_of_the_entry_and_the_caller) {
  const Settings set{{"gpu.launch.graph_interval", "7 us"}};
  EXPECT_DOUBLE_EQ(run(kLaunch, set).simulated, 7);
  const sim::Options options{.launch = sim::Launch::graph, .warmup = 1, .iterations = 3};
  EXPECT_DOUBLE_EQ(run(kLaunch).simulated, simulated("micro/launch", {}, MiB(1), options).us());
}

TEST(Micro, what_is_wrong_with_an_entry_has_its_line) {
  const auto said = [](const std::string& words) {
    return AllOf(HasSubstr("s.yaml:6"), HasSubstr(words));
  };
  EXPECT_THAT(micro_failure(kLoad + ", hops: 3"), said("'hops'"));
  EXPECT_THAT(micro_failure(kLoad + ", bytes: 4KiB"), said("its row is in ns"));
  EXPECT_THAT(micro_failure(kCopy), said("its row is in GB/s"));
  EXPECT_THAT(micro_failure(kLoad + ", operations: 0"), said("'operations'"));
  EXPECT_THAT(micro_failure(kLoad + ", ranks: 3"), said("has 2 GPUs"));
  EXPECT_THAT(micro_failure(kLoad + ", base: {hops: 8192}"), said("no more time"));
  std::string other = kLoad;
  other.replace(other.find("L2 latency"), 2, "L7");
  EXPECT_THAT(micro_failure(other), said("there is no row"));
  EXPECT_THAT(micro_failure("{name: a"), said("'hardware' is missing"));
  EXPECT_THAT(micro_failure(kLoad + "}\n- " + kLoad), HasSubstr("two entries named 'a'"));
}

TEST(ShippedMicro, every_entry_has_its_row_and_every_row_an_entry) {
  const Suite suite = shipped_suite();
  const std::vector<MicroRow> rows = micro_rows();
  std::set<int> used;
  for (const MicroEntry& entry : suite.micro) {
    EXPECT_TRUE(used.insert(row_of(entry, rows).line).second) << entry.name;
    EXPECT_TRUE(program::is_built_in(entry.program)) << entry.name;
    EXPECT_TRUE(entry.name.starts_with("micro-")) << entry.name;
  }
  EXPECT_EQ(used.size(), rows.size());
  for (const MicroRow& row : rows) EXPECT_FALSE(row.source.empty()) << row.line;
}

TEST(ShippedMicro, some_are_near) {
  Laboratory laboratory;
  const auto results =
      MicroRunner(laboratory, true, {}, {})
          .run(shipped_suite(), {"micro-h100-launch-graph", "micro-v100-l2", "micro-h100-peer-l2"});
  ASSERT_EQ(results.size(), 3u);
  for (const MicroResult& result : results) EXPECT_LT(std::abs(result.error), 0.03) << result.name;
}

}  // namespace
}  // namespace hemiola::study
