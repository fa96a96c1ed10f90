// Sweeps carried out: the same rows however they were come by.
#include "study/sweep/sweep_run.h"

#include <gmock/gmock.h>

#include <thread>

#include "core/monitor.h"
#include "core/testing/failure.h"
#include "core/text.h"
#include "machine/machine.h"
#include "sim/simulate.h"
#include "study/testing/sweep.h"
#include "verify/verify.h"

namespace hemiola::study {
namespace {

using test::SweepFolder;
using testing::HasSubstr;
using testing::SizeIs;

const std::string kSweep =
    "machine: [ring:2, switch:4]\nprogram: [all-reduce/ring, all-gather/direct]\n"
    "size: [1KiB, 4KiB, 100B]\nset: {gpu.l2.size: [1MiB, 4MiB]}\nengine: [line, reference]\n";

SweepDatabase::Head head_of(const Sweep& sweep, Shard shard = {}) {
  return {.version = "test",
          .sweep = sweep.text,
          .points = std::ssize(sweep.points),
          .shard = shard,
          .inputs = sweep.inputs};
}

std::vector<SweepRow> rows_of(const SweepDatabase& database) {
  std::vector<SweepRow> rows;
  database.read([&](const SweepRow& row) { rows.push_back(row); });
  return rows;
}

/// All that a row holds.
std::string text_of(const SweepRow& r) {
  std::string text = std::to_string(r.number);
  for (const std::string* part :
       {&r.machine, &r.gpu, &r.set, &r.ranks, &r.program, &r.parameters, &r.dtype, &r.op, &r.engine,
        &r.launch, &r.skew, &r.error, &r.checked, &r.bound_program, &r.counters, &r.attribution})
    text += '|' + *part;
  for (const std::int64_t number : {r.size.count, r.count, r.time.fs, r.bound_bandwidth.fs,
                                    r.bound_latency.fs, r.ideal.fs, r.line_hops})
    text += '|' + std::to_string(number);
  return text + '|' + std::string(name_of(r.status)) + '|' + std::to_string(r.algbw_GBps) + '|' +
         std::to_string(r.busbw_GBps);
}
std::vector<std::string> texts_of(const SweepDatabase& database) {
  std::vector<std::string> texts;
  for (const SweepRow& row : rows_of(database)) texts.push_back(text_of(row));
  return texts;
}

std::vector<std::string> texts_with(const Sweep& sweep, const std::string& file,
                                    const SweepRunOptions& options) {
  SweepDatabase database(file, head_of(sweep));
  run_sweep(sweep, database, options);
  return texts_of(database);
}

TEST(Sweeps, give_the_same_rows_for_any_number_of_threads) {
  const SweepFolder folder;
  const Sweep sweep = folder.sweep(kSweep);
  const auto one = texts_with(sweep, folder.path("1"), {.threads = 1});
  EXPECT_THAT(one, SizeIs(48));
  EXPECT_EQ(texts_with(sweep, folder.path("3"), {.threads = 3}), one);
  EXPECT_EQ(texts_with(sweep, folder.path("9"), {.threads = 9}), one);
}

TEST(Sweeps, say_what_a_single_run_says) {
  const SweepFolder folder;
  const Sweep sweep = folder.sweep(kSweep);
  SweepDatabase database(folder.path("rows"), head_of(sweep));
  run_sweep(sweep, database, {});
  const machine::Machine machine = machine::load("switch:4", {.set = {{"gpu.l2.size", "4MiB"}}});
  const program::Bound bound = program::bind(
      program::load("all-reduce/ring", {.ranks = 4, .machine = machine::share(machine)}),
      machine::share(machine), {.size = KiB(4)});
  const sim::Result result = sim::simulate(bound, {.engine = sim::Engine::reference});
  int compared = 0;
  for (const SweepRow& row : rows_of(database)) {
    if (row.machine != "switch:4" || row.set != "gpu.l2.size=4MiB" || row.size != KiB(4) ||
        row.program != "all-reduce/ring")
      continue;
    ++compared;
    EXPECT_EQ(row.time, result.time) << row.engine;
    EXPECT_EQ(row.bound(), result.bound.time());
    EXPECT_EQ(row.line_hops, result.line_hops);
    EXPECT_EQ(row.busbw_GBps, result.busbw_GBps);
    EXPECT_EQ(row.checked, "full");
    EXPECT_THAT(row.counters,
                HasSubstr("\"l2.hits\":" + std::to_string(result.counters.at("l2.hits"))));
  }
  EXPECT_EQ(compared, 2) << "one for each engine";
}

TEST(Sweeps, start_ranks_later_as_a_single_run_does) {
  const SweepFolder folder;
  const Sweep sweep = folder.sweep(
      "machine: ring:2\nprogram: all-reduce/ring\nsize: 1KiB\n"
      "skew: ['0ns', '0ns,7us', '0ns,0ns,7us']\n");
  SweepDatabase database(folder.path("rows"), head_of(sweep));
  run_sweep(sweep, database, {.threads = 2});
  const std::vector<SweepRow> rows = rows_of(database);
  ASSERT_EQ(rows.size(), 3u);
  const machine::Machine machine = machine::load("ring:2");
  const program::Bound bound = program::bind(
      program::load("all-reduce/ring", {.ranks = 2, .machine = machine::share(machine)}),
      machine::share(machine), {.size = KiB(1)});
  const Time together = sim::simulate(bound, {}).time;
  const Time late = sim::simulate(bound, {.skew = {{}, Time::from_ns(7000)}}).time;
  EXPECT_GT(late, together);
  EXPECT_EQ(rows[0].time, together);
  EXPECT_EQ(rows[1].time, late);
  EXPECT_EQ(rows[1].skew, "0ns,7us");
  EXPECT_EQ(rows[2].status, SweepStatus::refused);
  EXPECT_EQ(rows[2].error, "lists 3 starts, but the program has 2 ranks");
}

TEST(Sweeps, go_on_after_points_that_cannot_be_run) {
  const SweepFolder folder;
  for (const char* name : {"faulty_wrong_sum", "faulty_missing_signal", "allreduce_push_2g"})
    folder.write(name,
                 read_file(std::string(HEMIOLA_SOURCE_DIR "/examples/") + name + "/plan.json"));
  const Sweep sweep = folder.sweep(
      "machine: ring:2\nranks: ['2', '3']\nsize: [1KiB, 17B]\n"
      "program: [faulty_wrong_sum, faulty_missing_signal, allreduce_push_2g]\n");
  SweepDatabase database(folder.path("rows"), head_of(sweep));
  run_sweep(sweep, database, {.threads = 2});
  const std::vector<SweepRow> rows = rows_of(database);
  ASSERT_EQ(rows.size(), 12u);
  const auto expect = [&](std::size_t number, SweepStatus status, const std::string& error) {
    EXPECT_EQ(rows[number].status, status) << number << ": " << rows[number].error;
    EXPECT_THAT(rows[number].error, HasSubstr(error)) << number;
    EXPECT_EQ(rows[number].error.find(folder.path("")), std::string::npos) << "no places";
  };
  expect(0, SweepStatus::wrong, "the program is wrong and was not simulated");
  expect(1, SweepStatus::refused, "cannot take a size of 17 B");
  expect(2, SweepStatus::deadlock, "the program is wrong and was not simulated");
  expect(4, SweepStatus::done, "");
  for (std::size_t number = 6; number < 12; ++number)
    expect(number, SweepStatus::refused, "the machine has 2 GPUs, not 3");
}

TEST(Sweeps, find_deadlocks_in_the_simulation_where_nothing_is_checked) {
  const SweepFolder folder;
  folder.write("plan.json",
               read_file(HEMIOLA_SOURCE_DIR "/examples/faulty_missing_signal/plan.json"));
  const Sweep sweep =
      folder.sweep("machine: ring:2\nsize: 1KiB\nprogram: plan.json\ncheck: false\n");
  SweepDatabase database(folder.path("rows"), head_of(sweep));
  run_sweep(sweep, database, {});
  EXPECT_EQ(rows_of(database).at(0).status, SweepStatus::deadlock);
}

TEST(Sweeps, that_were_stopped_go_on_to_the_same_rows) {
  const SweepFolder folder;
  const Sweep sweep = folder.sweep(kSweep);
  const auto whole = texts_with(sweep, folder.path("whole"), {});
  std::size_t runs = 0, before = 0;
  while (true) {
    SweepDatabase database(folder.path("part"), head_of(sweep));
    std::atomic<bool> stop{false};
    // Stopped as soon as this run has done something.
    const auto on_progress = [&](const SweepProgress& now) {
      stop = now.done > static_cast<std::int64_t>(before);
    };
    ++runs;
    try {
      run_sweep(sweep, database, {.stop = &stop, .on_progress = on_progress});
    } catch (const Interrupted&) {
      ASSERT_GT(database.known().size(), before) << "it must come nearer to the end";
      before = database.known().size();
      continue;
    }
    EXPECT_EQ(texts_of(database), whole);
    break;
  }
  EXPECT_GT(runs, 1u);
}

TEST(Sweeps, of_shards_join_to_the_whole) {
  const SweepFolder folder;
  const Sweep sweep = folder.sweep(kSweep);
  const auto whole = texts_with(sweep, folder.path("whole"), {});
  std::vector<std::string> files;
  for (std::int64_t number = 1; number <= 3; ++number) {
    files.push_back(folder.path("shard" + std::to_string(number)));
    SweepDatabase database(files.back(), head_of(sweep, {number, 3}));
    run_sweep(sweep, database, {});
  }
  EXPECT_EQ(merge_sweeps(folder.path("joined"), files), 48);
  EXPECT_EQ(texts_of(SweepDatabase(folder.path("joined"))), whole);
  EXPECT_EQ(SweepDatabase(folder.path("joined")).head(), head_of(sweep));

  // Two of three: the rest is run into what they joined to.
  files.pop_back();
  EXPECT_EQ(merge_sweeps(folder.path("two"), files), 32);
  EXPECT_EQ(texts_with(sweep, folder.path("two"), {}), whole);

  EXPECT_THAT(test::message_of([&] { merge_sweeps(folder.path("two"), files); }),
              HasSubstr("is there already"));
  files.push_back(files.front());
  EXPECT_THAT(test::message_of([&] { merge_sweeps(folder.path("new"), files); }),
              HasSubstr("point 0 is in "));
  EXPECT_FALSE(std::filesystem::exists(folder.path("new"))) << "nothing half done is left";
  EXPECT_FALSE(std::filesystem::exists(folder.path("new.part")));
}

TEST(SweepDatabases, keep_to_one_sweep_version_shard_and_input) {
  const SweepFolder folder;
  const Sweep sweep = folder.sweep(kSweep);
  const SweepDatabase::Head head = head_of(sweep);
  const std::string file = folder.path("rows");
  { const SweepDatabase created(file, head); }
  const auto message = [&](const SweepDatabase::Head& other) {
    return test::message_of([&] { const SweepDatabase opened(file, other); });
  };
  EXPECT_EQ(message(head), "no failure");
  SweepDatabase::Head other = head;
  other.sweep += "# more\n";
  EXPECT_THAT(message(other), HasSubstr("rows: error: holds another sweep"));
  other = head;
  other.version = "2";
  EXPECT_THAT(message(other), HasSubstr("was written by Hemiola test, this is 2"));
  other = head;
  other.shard = {1, 2};
  EXPECT_THAT(message(other), HasSubstr("holds shard 1/1 of this sweep, not 1/2"));
  other = head;
  other.inputs.emplace_back("plan.json", "0");
  EXPECT_THAT(message(other), HasSubstr("for other contents of the files"));
  folder.write("text", std::string(2000, 'x'));
  EXPECT_THAT(test::message_of([&] { const SweepDatabase opened(folder.path("text"), head); }),
              HasSubstr("is not a database"));
  EXPECT_THAT(test::message_of([&] { const SweepDatabase opened(folder.path("absent")); }),
              HasSubstr("cannot be opened"));
}

TEST(SweepDatabases, with_a_point_that_the_sweep_does_not_have_are_refused) {
  const SweepFolder folder;
  const Sweep sweep = folder.sweep(kSweep);
  SweepDatabase database(folder.path("rows"), head_of(sweep));
  std::vector<SweepRow> rows(1);
  rows[0].number = std::ssize(sweep.points);
  database.write(rows);
  EXPECT_THAT(test::message_of([&] { database.known(); }),
              HasSubstr("is damaged: column 'point' holds"));
  EXPECT_THAT(test::message_of([&] { database.read([](const SweepRow&) {}); }),
              HasSubstr("at row 1 of SELECT"));
}

TEST(SweepDatabases, write_all_rows_of_a_call_or_none) {
  const SweepFolder folder;
  const Sweep sweep = folder.sweep(kSweep);
  SweepDatabase database(folder.path("rows"), head_of(sweep));
  std::vector<SweepRow> rows(2);
  rows[1].number = 1;
  database.write(rows);
  rows[0].number = 2;  // new, but the other one is there
  EXPECT_THAT(test::message_of([&] { database.write(rows); }),
              HasSubstr("another process has written"));
  EXPECT_THAT(database.known(), testing::ElementsAre(0, 1));
}

}  // namespace
}  // namespace hemiola::study
