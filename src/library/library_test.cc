// The library as its users see it: only headers of include/hemiola.
#include <gtest/gtest.h>

#include <atomic>
#include <sstream>
#include <thread>

#include "hemiola/experiment.h"
#include "hemiola/report.h"

namespace hemiola {
namespace {

const std::string kExamples = std::string(HEMIOLA_SOURCE_DIR) + "/examples/";

Experiment ring_on(const Machine& machine, Bytes size = KiB(64)) {
  return {.machine = machine, .program = Program::load("all-reduce/ring"), .size = size};
}

template <typename Call>
Failure failure_of(const Call& call) {
  try {
    call();
  } catch (const Failure& failure) {
    return failure;
  }
  return Failure("nothing failed");
}

TEST(Library, RunsAProgramAndReportsIt) {
  const Outcome outcome = run(ring_on(Machine::load("dgx-h100")));
  EXPECT_EQ(outcome.program, "all-reduce/ring");
  EXPECT_EQ(outcome.ranks, 8);
  EXPECT_EQ(outcome.result.checked, "full");
  ASSERT_TRUE(outcome.proof.has_value());
  EXPECT_EQ(outcome.proof->verdict, Verdict::proven);
  EXPECT_GE(outcome.result.time, outcome.result.bound());
  ASSERT_EQ(outcome.result.attribution.size(), 8U);
  for (const Attribution& rank : outcome.result.attribution) {
    Time sum{};
    for (const auto& [reason, time] : rank) sum += time;
    EXPECT_EQ(sum, outcome.result.time);
  }
  std::ostringstream table;
  print_table(table, outcome);
  EXPECT_NE(table.str().find("# machine  dgx-h100\n"), std::string::npos) << table.str();
  EXPECT_NE(to_json({&outcome, 1}).find("\"time_fs\": " + std::to_string(outcome.result.time.fs)),
            std::string::npos);
}

TEST(Library, AMachineWithSettingsIsAnotherOne) {
  const Machine machine = Machine::load("dgx-h100");
  const Time before = run(ring_on(machine, MiB(1))).result.time;
  const Machine slow = machine.with({{"link.*.bandwidth", "5 GB/s"}});
  const Outcome outcome = run(ring_on(slow, MiB(1)));
  EXPECT_GT(outcome.result.time, before);
  EXPECT_EQ(outcome.machine, "dgx-h100 link.*.bandwidth=5 GB/s");
  EXPECT_EQ(run(ring_on(machine, MiB(1))).result.time, before);
  EXPECT_EQ(machine.with_ranks({0, 1, 2, 3}).ranks(), 4);
  EXPECT_EQ(machine.ranks(), 8);
}

TEST(Library, ParametersSayTheirSource) {
  for (const MachineParameter& parameter : Machine::load("dgx-h100").parameters()) {
    if (parameter.name != "gpu.l2.size") continue;
    EXPECT_EQ(parameter.value, "50 MiB");
    EXPECT_FALSE(parameter.source.empty());
    return;
  }
  FAIL() << "there is no gpu.l2.size";
}

TEST(Library, APlanIsAProgram) {
  const Machine machine = Machine::load("ring:4");
  const Plan plan = Plan::make("all-gather/direct", 4);
  EXPECT_EQ(Plan::from_json(plan.to_json()).to_json(), plan.to_json());
  EXPECT_EQ(plan.transfers(), 16);
  const Outcome own = run({.machine = machine, .program = plan, .size = KiB(64)});
  const Outcome built_in =
      run({.machine = machine, .program = Program::load("all-gather/direct"), .size = KiB(64)});
  EXPECT_EQ(own.result.time, built_in.result.time);
}

TEST(Library, ACollectiveIsItsFastestBuiltIn) {
  const Machine machine = Machine::load("ring:4");
  const Outcome outcome =
      run({.machine = machine, .program = Program::load("all-gather"), .size = KiB(64)});
  EXPECT_EQ(outcome.collective, Collective::all_gather);
  ASSERT_FALSE(outcome.notices.empty());
  EXPECT_NE(outcome.notices.back().message.find(outcome.program), std::string::npos);
  EXPECT_NE(outcome.notices.back().message.find("is the fastest of"), std::string::npos);
}

TEST(Library, AWrongProgramIsAResultOfCheckAndAnErrorOfRun) {
  const Program program = Program::load(kExamples + "faulty_wrong_sum/plan.json");
  const Machine machine = Machine::load("dgx-h100");
  const std::vector<Proof> proofs = check(program);
  EXPECT_EQ(verdict_of(proofs), Verdict::wrong);
  EXPECT_FALSE(proofs.front().counterexample.empty());
  try {
    run({.machine = machine, .program = program});
    FAIL() << "it was simulated";
  } catch (const WrongProgram& wrong) {
    EXPECT_EQ(wrong.code(), ExitCode::wrong_program);
    EXPECT_EQ(wrong.proof().counterexample.size(), proofs.front().counterexample.size());
  }
}

TEST(Library, AWaitThatCannotEndHasItsExitCode) {
  const Program program = Program::load(kExamples + "faulty_missing_signal/plan.json");
  EXPECT_EQ(verdict_of(check(program)), Verdict::deadlock);
  Experiment experiment{.machine = Machine::load("dgx-h100"), .program = program};
  EXPECT_EQ(failure_of([&] { run(experiment); }).code(), ExitCode::deadlock);
  experiment.check = false;  // the simulation finds it, too
  EXPECT_EQ(failure_of([&] { run(experiment); }).code(), ExitCode::deadlock);
}

TEST(Library, ErrorsHaveFileAndPlace) {
  EXPECT_NE(std::string(failure_of([] { Machine::load("dgx-h10"); }).what()).find("dgx-h100"),
            std::string::npos);
  const Failure failure =
      failure_of([] { Plan::from_json("{\"hemiola_plan\": 1,\n \"mesh\": 7}", "mine.json"); });
  EXPECT_EQ(failure.code(), ExitCode::bad_input);
  ASSERT_FALSE(failure.diagnostics().items().empty());
  EXPECT_EQ(failure.diagnostics().items().front().where.file, "mine.json");
  EXPECT_FALSE(failure.diagnostics().items().front().where.pointer.empty());
  EXPECT_EQ(failure_of([] { Program::load("all-reduce/rings"); }).code(), ExitCode::bad_input);
}

TEST(Library, PointsKeepTheirOrderWhateverTheThreads) {
  const Machine machine = Machine::load("ring:4");
  std::vector<Experiment> experiments;
  for (const std::int64_t size : {16, 1, 64, 4}) experiments.push_back(ring_on(machine, KiB(size)));
  experiments[1].size = Bytes{100};  // none that a ring of four can take
  Laboratory laboratory;
  const std::vector<Point> alone = laboratory.run_all(experiments);
  const std::vector<Point> together = laboratory.run_all(experiments, 3);
  ASSERT_EQ(alone.size(), 4U);
  for (std::size_t i = 0; i < alone.size(); ++i) {
    ASSERT_EQ(alone[i].outcome.has_value(), i != 1);
    if (i == 1) continue;
    EXPECT_EQ(alone[i].outcome->result.size, experiments[i].size);
    EXPECT_EQ(alone[i].outcome->result.time, together[i].outcome->result.time);
  }
  EXPECT_EQ(failure_of([&] { std::rethrow_exception(together[1].failure); }).code(),
            ExitCode::bad_input);
}

TEST(Library, ARunCanBeStopped) {
  Experiment experiment = ring_on(Machine::load("dgx-h100"), GiB(1));
  experiment.check = false;
  std::atomic<bool> stop{false};
  std::thread watcher([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    stop = true;
  });
  EXPECT_THROW(run(experiment, {.stop = &stop}), Interrupted);
  watcher.join();
}

TEST(Library, ATimelineIsPerfettos) {
  const Outcome outcome = run(ring_on(Machine::load("ring:2"), KiB(4)));
  EXPECT_GT(perfetto_trace(outcome).size(), 1000U);
}

}  // namespace
}  // namespace hemiola
