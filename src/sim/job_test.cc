// Jobs of several launches: the same as a program alone where there is one launch, the same in both
// exact engines, and what launches do to each other.
#include "program/jobs/job.h"

#include <gtest/gtest.h>

#include <numeric>

#include "program/built_in.h"
#include "program/jobs/launch_programs.h"
#include "sim/alike/classes.h"
#include "sim/simulate.h"
#include "sim/testing/compare_results.h"
#include "sim/testing/machines.h"

namespace hemiola::sim::jobs {  // a Launch is a job's here
namespace {

using program::Bound;
using program::Job;
using program::Launch;

machine::SharedMachine dgx() {
  static const machine::SharedMachine machine = machine::share(machine::load("dgx-h100"));
  return machine;
}

Launch launch(const std::string& name, const std::string& program, Bytes size,
              std::vector<int> ranks, std::vector<std::pair<std::string, std::string>> with = {}) {
  Launch result;
  result.name = name;
  machine::Machine some = *dgx();
  some.place(ranks);
  result.program = std::make_shared<const program::Program>(
      program::load(program, {.ranks = static_cast<int>(ranks.size()),
                              .parameters = std::move(with),
                              .machine = machine::share(std::move(some))}));
  result.options = {size, DataType::float32, ReduceOp::sum};
  result.ranks = std::move(ranks);
  return result;
}

Launch product(const std::string& name, std::int64_t m, std::vector<int> ranks) {
  Launch result;
  result.name = name;
  result.program = std::make_shared<const program::Program>(
      program::product_program({m, 256, 128}, DataType::bfloat16, dgx()->model(0)));
  result.options = {result.program->fixed_size, DataType::bfloat16, ReduceOp::sum};
  result.ranks = std::move(ranks);
  result.alone = true;
  result.stream = "compute";
  return result;
}

std::vector<int> ranks(int first, int count, int step = 1) {
  std::vector<int> all;
  for (int i = 0; i < count; ++i) all.push_back(first + i * step);
  return all;
}

Bound linked(std::vector<Launch> launches,
             std::map<std::string, program::StreamOptions> streams = {}) {
  auto job = std::make_shared<Job>();
  job->name = "job";
  job->streams = std::move(streams);
  job->launches = std::move(launches);
  return program::link(std::move(job), dgx());
}

Result run(const Bound& bound, Engine engine = Engine::line, bool fold = false) {
  return simulate(bound, {.engine = engine, .fold = fold});
}

void expect_equal_engines(const Bound& bound) {
  const Result line = run(bound);
  const Result reference = run(bound, Engine::reference);
  EXPECT_EQ(line.time, reference.time);
  EXPECT_EQ(line.attribution, reference.attribution);
  EXPECT_EQ(line.counters, reference.counters);
  ASSERT_EQ(line.launches.size(), reference.launches.size());
  for (std::size_t l = 0; l < line.launches.size(); ++l) {
    EXPECT_EQ(line.launches[l].begin, reference.launches[l].begin) << line.launches[l].name;
    EXPECT_EQ(line.launches[l].end, reference.launches[l].end) << line.launches[l].name;
    EXPECT_EQ(line.launches[l].attribution, reference.launches[l].attribution);
    const Attribution& spent = line.launches[l].attribution;
    EXPECT_EQ(std::accumulate(spent.begin(), spent.end(), std::int64_t{0}),
              (line.launches[l].end - line.launches[l].begin).fs);
  }
  for (const Attribution& spent : line.attribution)
    EXPECT_EQ(std::accumulate(spent.begin(), spent.end(), std::int64_t{0}), line.time.fs);
}

// Counters of workgroups that are known by the number of the call alone go on in calls of the same
// program only, whatever another one is called and looks like.
TEST(Jobs, share_counters_of_calls_with_calls_of_the_same_program_only) {
  const std::vector<std::pair<std::string, std::string>> bulk{{"realization", "bulk"}};
  const Launch first = launch("first", "all-gather/direct", KiB(64), ranks(0, 8), bulk);
  Launch again = first, other = first;
  again.name = "again";
  other.name = "other";
  other.program = std::make_shared<const program::Program>(*first.program);
  const Bound bound = linked({first, again, other});
  const auto& frames = bound.linked()->frames;
  ASSERT_EQ(frames.size(), 3U);
  EXPECT_EQ(frames[0].first_semaphore, frames[1].first_semaphore);
  EXPECT_EQ(frames[1].call, 1);
  EXPECT_NE(frames[0].first_semaphore, frames[2].first_semaphore);
  EXPECT_EQ(frames[2].call, 0);
}

// A call of a library after another on its stream takes what the next call of a program that is
// repeated takes: launch.library_interval passes between the two.
TEST(Jobs, call_a_library_not_faster_than_its_host_can) {
  Launch first = launch("first", "all-reduce/nccl", KiB(64), ranks(0, 8));
  first.memory = {{"input", "sent"}, {"output", "received"}};
  ASSERT_TRUE(first.program->library_call);
  Launch second = first, third = first;
  second.name = "second";
  third.name = "third";
  third.stream = "other";
  third.communicator = "other";
  for (const Engine engine : {Engine::line, Engine::reference, Engine::fluid}) {
    const Result twice = run(linked({first, second}), engine);
    const Bound alone = program::bind(*first.program, dgx(), first.options);
    const Result repeated =
        simulate(alone, {.engine = engine, .warmup = 1, .iterations = 1, .fold = false});
    const auto next = static_cast<double>((twice.launches[1].end - twice.launches[0].end).fs);
    // The fluid engine takes what a call reads as cold, and the repetitions of a program as warm.
    const double tolerance = engine == Engine::fluid ? 0.1 : 0.001;
    EXPECT_NEAR(next, static_cast<double>(repeated.time.fs), tolerance * next);
    const Result beside = run(linked({first, third}), engine);
    EXPECT_EQ(beside.launches[1].begin, beside.launches[0].begin);
  }
}

TEST(Jobs, of_one_launch_take_what_its_program_takes) {
  for (const char* name : {"all-reduce/ring", "all-reduce/two-shot", "all-gather/direct"}) {
    const Launch one = launch("one", name, KiB(64), ranks(0, 8));
    const Bound alone = program::bind(*one.program, dgx(), one.options);
    for (const Engine engine : {Engine::line, Engine::reference, Engine::fluid}) {
      const Result expected = run(alone, engine);
      const Result found = run(linked({one}), engine);
      if (engine != Engine::fluid) {
        EXPECT_EQ(found.time, expected.time) << name;
        EXPECT_EQ(found.attribution, expected.attribution) << name;
        EXPECT_EQ(found.counters, expected.counters) << name;
      } else {
        EXPECT_NEAR(static_cast<double>(found.time.fs), static_cast<double>(expected.time.fs),
                    0.01 * static_cast<double>(expected.time.fs));
      }
    }
  }
}

TEST(Jobs, repeated_take_the_period_of_the_program) {
  const Launch one = launch("one", "all-reduce/two-shot", KiB(64), ranks(0, 8));
  const Options options{.warmup = 1, .iterations = 2, .fold = false};
  const Bound alone = program::bind(*one.program, dgx(), one.options);
  EXPECT_EQ(simulate(linked({one}), options).time, simulate(alone, options).time);
}

TEST(Jobs, on_groups_at_once_are_the_same_in_both_engines) {
  std::vector<Launch> launches{launch("low", "all-reduce/ring", KiB(64), ranks(0, 4)),
                               launch("high", "all-reduce/ring", KiB(64), ranks(4, 4)),
                               launch("all", "all-reduce/two-shot", KiB(64), ranks(0, 8)),
                               launch("even", "all-reduce/ring", KiB(64), ranks(0, 4, 2)),
                               launch("odd", "all-reduce/ring", KiB(64), ranks(1, 4, 2))};
  launches[2].stream = "other";
  launches[3].after = launches[4].after = {2};
  expect_equal_engines(linked(std::move(launches)));
}

TEST(Jobs, whose_calls_share_fifos_and_semaphores_count_on) {
  std::vector<Launch> launches;
  for (const char* name : {"first", "second", "third"})
    launches.push_back(launch(name, "all-reduce/ring", KiB(256), ranks(0, 8), {{"channels", "2"}}));
  launches[1].options.size = KiB(128);
  launches.push_back(launch("packets", "all-reduce/two-shot", KiB(16), ranks(0, 8),
                            {{"protocol", "ll"}, {"transfer", "push"}}));
  launches.push_back(launches.back());
  launches.back().name = "packets again";
  const Bound bound = linked(launches);
  const auto& frames = bound.linked()->frames;
  EXPECT_EQ(frames[0].first_semaphore, frames[2].first_semaphore);
  EXPECT_EQ(frames[0].calls, 3);  // the sizes differ, the connections do not
  EXPECT_EQ(frames[2].call, 2);
  EXPECT_EQ(frames[4].calls, 2);
  expect_equal_engines(bound);
  EXPECT_GT(simulate(bound, {.warmup = 1, .iterations = 2}).time.fs, 0);
}

TEST(Jobs, whose_calls_may_be_under_way_together_have_their_own) {
  std::vector<Launch> launches{launch("a", "all-reduce/ring", KiB(64), ranks(0, 8)),
                               launch("b", "all-reduce/ring", KiB(64), ranks(0, 8))};
  launches[1].stream = "other";
  const Bound bound = linked(launches);
  EXPECT_NE(bound.linked()->frames[0].first_semaphore, bound.linked()->frames[1].first_semaphore);
  EXPECT_EQ(bound.linked()->frames[0].calls, 1);
  expect_equal_engines(bound);
}

TEST(Jobs, fold_where_ranks_do_the_same) {
  std::vector<Launch> launches{launch("all", "all-reduce/ring", KiB(128), ranks(0, 8)),
                               product("product", 512, ranks(0, 8)),
                               launch("low", "all-gather/direct", KiB(64), ranks(0, 4)),
                               launch("high", "all-gather/direct", KiB(64), ranks(4, 4))};
  launches[3].program = launches[2].program;
  launches[2].after = launches[3].after = {1};
  launches[2].stream = launches[3].stream = "third";
  const Bound bound = linked(std::move(launches));
  const Result folded = run(bound, Engine::line, true), whole = run(bound);
  EXPECT_EQ(folded.simulated_ranks, 4);
  EXPECT_EQ(folded.time, whole.time);
  EXPECT_EQ(folded.attribution, whole.attribution);
  for (std::size_t l = 0; l < whole.launches.size(); ++l) {
    EXPECT_EQ(folded.launches[l].begin, whole.launches[l].begin);
    EXPECT_EQ(folded.launches[l].end, whole.launches[l].end);
  }
}

// Of ranks that do the same one stands for all. Of workgroups, too, if asked: members of a class
// are dispatched one after the other, but for that it stands for all of them.
void expect_fluid_folds(const Bound& bound, std::int32_t classes) {
  const Classes fold(*bound.machine(), bound, {}, AlikeBy::time);
  EXPECT_EQ(fold.rank_classes(), classes);
  const auto run = [&](bool folds, bool workgroups) {
    return simulate(bound, {.engine = Engine::fluid,
                            .warmup = 1,
                            .iterations = 2,
                            .fold = folds,
                            .fold_workgroups = workgroups});
  };
  const Result whole = run(false, false), folded = run(true, false), coarse = run(true, true);
  EXPECT_NEAR(folded.time.us() / whole.time.us(), 1, 1e-3);
  EXPECT_NEAR(coarse.time.us() / whole.time.us(), 1, 0.01);
  ASSERT_EQ(folded.launches.size(), whole.launches.size());
  for (std::size_t l = 0; l < whole.launches.size(); ++l) {
    const double time = (whole.launches[l].end - whole.launches[l].begin).us();
    EXPECT_NEAR((folded.launches[l].end - folded.launches[l].begin).us() / time, 1, 1e-3) << l;
    EXPECT_NEAR((coarse.launches[l].end - coarse.launches[l].begin).us() / time, 1, 0.02) << l;
    EXPECT_EQ(folded.launches[l].ranks, whole.launches[l].ranks);
  }
  for (const Result* result : {&coarse, &folded, &whole})
    for (const Attribution& spent : result->attribution)
      EXPECT_EQ(std::accumulate(spent.begin(), spent.end(), std::int64_t{0}), result->time.fs);
}

TEST(Jobs, fold_in_fluid_where_ranks_do_the_same) {
  std::vector<Launch> launches{launch("first", "all-reduce/ring", KiB(256), ranks(0, 8)),
                               product("product", 512, ranks(0, 8)),
                               launch("again", "all-reduce/ring", KiB(128), ranks(0, 8)),
                               launch("low", "all-gather/direct", KiB(64), ranks(0, 4)),
                               launch("high", "all-gather/direct", KiB(64), ranks(4, 4))};
  launches[2].program = launches[0].program;
  launches[4].program = launches[3].program;
  launches[3].after = launches[4].after = {1};
  launches[3].stream = launches[4].stream = "third";
  expect_fluid_folds(linked(launches), 4);        // places in the groups of the last two
  launches.push_back(product("more", 256, {0}));  // one rank has more to do
  expect_fluid_folds(linked(launches), 8);
  launches.back() = launch("of two", "send-recv/direct", KiB(64), ranks(2, 2));
  const Bound odd = linked(launches);
  EXPECT_GT(Classes(*odd.machine(), odd, {}, AlikeBy::time).rank_classes(), 2);
}

TEST(Jobs, fold_in_fluid_where_a_library_is_called_again) {
  std::vector<Launch> launches;
  for (const char* name : {"first", "second", "third"})
    launches.push_back(launch(name, "all-gather/nccl", MiB(32), ranks(0, 8)));
  launches[1].options.size = MiB(16);
  launches[1].program = launches[2].program = launches[0].program;
  const Bound bound = linked(launches);
  EXPECT_LT(Classes(*bound.machine(), bound, {}, AlikeBy::time).rank_classes(), 8);
  const auto time = [&](bool folds) {
    return simulate(bound, {.engine = Engine::fluid,
                            .warmup = 1,
                            .iterations = 1,
                            .fold = folds,
                            .fold_workgroups = folds})
        .time.us();
  };
  EXPECT_NEAR(time(true) / time(false), 1, 0.02);
}

TEST(Jobs, with_a_product_beside_a_gather_take_longer_than_each_alone) {
  const std::vector<Launch> both{product("product", 1024, ranks(0, 8)),
                                 launch("gather", "all-gather/direct", MiB(1), ranks(0, 8))};
  const Bound together = linked(both);
  const Result result = run(together, Engine::line, true);
  for (std::size_t l = 0; l < both.size(); ++l) {
    const Result alone = run(linked({both[l]}), Engine::line, true);
    EXPECT_GT(result.launches[l].end - result.launches[l].begin,
              alone.launches[0].end - alone.launches[0].begin)
        << both[l].name;
  }
}

TEST(Jobs, give_room_by_priority_and_keep_to_parts_of_the_compute_units) {
  const auto ends = [](std::map<std::string, program::StreamOptions> streams) {
    std::vector<Launch> launches;
    for (const char* name : {"long", "short"}) {
      Launch one;
      one.name = one.stream = name;
      one.program = std::make_shared<const program::Program>(program::work_program(
          {.duration = {20'000'000'000}, .workgroups = name[0] == 'l' ? 1056 : 792},
          dgx()->model(0)));
      one.options.size = one.program->fixed_size;
      one.ranks = {0};
      one.alone = true;
      launches.push_back(std::move(one));
    }
    const Bound bound = linked(std::move(launches), std::move(streams));
    expect_equal_engines(bound);
    const Result result = run(bound);
    return std::pair(result.launches[0].end, result.launches[1].end);
  };
  const auto plain = ends({});
  const auto first = ends({{"short", {.priority = 1}}});
  EXPECT_LT(first.second, plain.second);
  const auto wide = ends({{"long", {.first_unit = 0, .units = 100}}});
  const auto narrow = ends({{"long", {.first_unit = 0, .units = 50}}});
  EXPECT_GT(narrow.first, wide.first);
}

TEST(Jobs, have_a_librarys_collective_wait_for_the_compute_units_of_a_product) {
  const auto both = [](bool registers) {
    machine::Machine some = *dgx();
    if (!registers) some.models.at(0).cu_registers = {0};
    const machine::SharedMachine machine = machine::share(std::move(some));
    auto job = std::make_shared<Job>();
    job->name = "job";
    Launch first;
    first.name = "product";
    first.program = std::make_shared<const program::Program>(
        program::product_program({2048, 2048, 256}, DataType::bfloat16, machine->model(0)));
    first.options = {first.program->fixed_size, DataType::bfloat16, ReduceOp::sum};
    first.ranks = ranks(0, 2);
    first.alone = true;
    first.stream = "compute";
    Launch gather = launch("gather", "all-gather/nccl", KiB(64), ranks(0, 2), {{"channels", "8"}});
    gather.at = {4'000'000'000};  // when the product has begun
    job->launches = {first, gather};
    return program::link(std::move(job), machine);
  };
  const Bound bound = both(true);
  expect_equal_engines(bound);
  const Result apart = run(bound), together = run(both(false));
  // All units have a workgroup of the product until it ends.
  EXPECT_GE(apart.launches[1].end, apart.launches[0].end);
  EXPECT_LT(together.launches[1].end, apart.launches[1].end);
  EXPECT_GT(run(bound, Engine::fluid).launches[1].end,
            run(both(false), Engine::fluid).launches[1].end);
}

TEST(Jobs, start_side_by_side_on_parts_of_the_compute_units) {
  const auto of = [](bool with_other) {
    std::vector<Launch> launches;
    for (const char* name : {"left", "right"}) {
      if (name[0] == 'r' && !with_other) continue;
      Launch one;
      one.name = one.stream = name;
      one.program = std::make_shared<const program::Program>(
          program::work_program({.flop = 10'000'000'000, .workgroups = 60}, dgx()->model(0)));
      one.options.size = one.program->fixed_size;
      one.ranks = {0};
      one.alone = true;
      launches.push_back(std::move(one));
    }
    const Bound bound = linked(std::move(launches), {{"left", {.first_unit = 0, .units = 60}},
                                                     {"right", {.first_unit = 60, .units = 60}}});
    expect_equal_engines(bound);
    return run(bound).launches[0].end.fs;
  };
  // Each workgroup has a compute unit of its own, whoever was placed last.
  EXPECT_NEAR(static_cast<double>(of(true)), static_cast<double>(of(false)),
              0.02 * static_cast<double>(of(false)));
}

TEST(Jobs, copy_and_wait_until_a_time) {
  std::vector<Launch> launches;
  Launch copy;
  copy.name = "copy";
  copy.program = std::make_shared<const program::Program>(program::copy_program(MiB(1), 2));
  copy.options.size = copy.program->fixed_size;
  copy.ranks = {0, 3};
  launches.push_back(copy);
  launches.push_back(product("late", 128, {5}));
  launches.back().at = {50'000'000'000};
  const Bound bound = linked(std::move(launches));
  const Result result = run(bound);
  EXPECT_GE(result.launches[1].begin.fs, 50'000'000'000);
  EXPECT_GT(result.launches[0].end, result.launches[0].begin);
  EXPECT_EQ(result.time, run(bound, Engine::reference).time);
}

// What is written into a launch's buffers makes no other launch find its inputs in the L2.
TEST(Jobs, take_equally_long_in_fluid_for_equal_products) {
  const std::vector<int> all = ranks(0, 4);
  Launch call = launch("call", "all-reduce/ring", Bytes{64 << 10}, all);
  call.stream = "compute";
  const Result result =
      run(linked({product("first", 4096, all), call, product("last", 4096, all)}), Engine::fluid);
  const auto length = [&](std::size_t l) {
    return result.launches[l].end - result.launches[l].begin;
  };
  EXPECT_EQ(length(0), length(2));
}

TEST(Jobs, find_less_in_caches_that_others_fill) {
  const Bound bound = linked({product("product", 32768, ranks(0, 2))});
  const auto time = [&](std::int64_t touched) {
    const Options again{.engine = Engine::fluid, .warmup = 1, .iterations = 1, .touched = touched};
    return simulate(bound, again).time;
  };
  const std::int64_t size = dgx()->model(0).l2_size.count;
  EXPECT_EQ(time(size), time(0));
  EXPECT_GT(time(3 * size / 2), time(0));
  EXPECT_GT(time(2 * size), time(3 * size / 2));
  EXPECT_EQ(time(4 * size), time(2 * size));
}

TEST(Jobs, look_for_operands_in_memory_side_caches_that_others_fill) {
  machine::Machine one = machine::load("mi300x-8");
  one.place(std::vector<int>{0});
  const machine::SharedMachine machine = machine::share(std::move(one));
  const program::Program program =
      program::product_program({1024, 2048, 1024}, DataType::bfloat16, machine->model(0));
  const Bound bound =
      program::bind(program, machine, {.size = program.fixed_size, .type = DataType::bfloat16});
  const auto time = [&](std::int64_t touched) {
    return simulate(bound, {.engine = Engine::fluid, .touched = touched}).time;
  };
  // Inputs come from behind it anyway.
  EXPECT_GE(time(2 * machine->model(0).msc_size.count), time(0));
}

// A step of a library's product is a line of a row, whatever the type: 128 elements of 8 bits.
TEST(Jobs, multiply_8_bits_twice_as_fast_as_16) {
  machine::Machine one = *dgx();
  one.place(std::vector<int>{0});
  const machine::SharedMachine machine = machine::share(std::move(one));
  const auto time = [&](DataType type) {
    const program::Program program =
        program::product_program({8192, 8192, 8192}, type, machine->model(0));
    const Bound bound = program::bind(program, machine, {.size = program.fixed_size, .type = type});
    return static_cast<double>(simulate(bound, {.engine = Engine::fluid}).time.fs);
  };
  EXPECT_NEAR(time(DataType::bfloat16) / time(DataType::fp8_e4m3), 2, 0.1);
}

}  // namespace
}  // namespace hemiola::sim::jobs
