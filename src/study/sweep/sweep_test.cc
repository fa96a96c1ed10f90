// What a sweep file means, and what is refused in one.
#include "study/sweep/sweep.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "core/testing/failure.h"
#include "core/text.h"
#include "study/testing/sweep.h"

namespace hemiola::study {
namespace {

using test::SweepFolder;
using testing::ElementsAre;
using testing::HasSubstr;

/// "machine program size" of each point.
std::vector<std::string> names(const Sweep& sweep) {
  std::vector<std::string> names;
  for (const SweepPoint& point : sweep.points)
    names.push_back(point.machine + ' ' + point.program + ' ' + std::to_string(point.size.count));
  return names;
}

std::string sweep_failure(const std::string& yaml) {
  const SweepFolder folder;
  return test::message_of([&] { folder.sweep(yaml); });
}

TEST(SweepFile, makes_the_product_of_its_axes_machines_slowest) {
  const Sweep sweep = SweepFolder().sweep(
      "machine: [ring:2, ring:3]\nprogram: [all-reduce/ring, all-reduce/one-shot]\n"
      "size: 1KiB:2KiB:x2\n");
  EXPECT_THAT(names(sweep),
              ElementsAre("ring:2 all-reduce/ring 1024", "ring:2 all-reduce/ring 2048",
                          "ring:2 all-reduce/one-shot 1024", "ring:2 all-reduce/one-shot 2048",
                          "ring:3 all-reduce/ring 1024", "ring:3 all-reduce/ring 2048",
                          "ring:3 all-reduce/one-shot 1024", "ring:3 all-reduce/one-shot 2048"));
}

TEST(SweepFile, every_key_reaches_the_points) {
  const Sweep sweep = SweepFolder().sweep(
      "machine: switch:4\ngpu: a100\nranks: ['2', '0,3']\nset: {gpu.l2.size: [1MiB, 2MiB]}\n"
      "program: all-reduce/ring\nparam: {channels: 2, protocol: ll}\ndtype: half\nop: max\n"
      "size: 4KiB\nengine: [line, reference]\nlaunch: graph\nskew: '0ns,5us'\nwarmup: "
      "1\niterations: 2\n"
      "check: false\n");
  ASSERT_EQ(sweep.points.size(), 8u);
  const SweepPoint& last = sweep.points.back();
  EXPECT_EQ(last, (SweepPoint{.machine = "switch:4",
                              .gpu = "a100",
                              .set = {{"gpu.l2.size", "2MiB"}},
                              .ranks = "0,3",
                              .program = "all-reduce/ring",
                              .parameters = {{"channels", "2"}, {"protocol", "ll"}},
                              .type = DataType::float16,
                              .op = ReduceOp::max,
                              .size = KiB(4),
                              .engine = sim::Engine::reference,
                              .launch = sim::Launch::graph,
                              .skew = "0ns,5us"}));
  EXPECT_EQ(sweep.points[0].engine, sim::Engine::line) << "engines vary fastest";
  EXPECT_EQ(sweep.warmup, 1);
  EXPECT_EQ(sweep.iterations, 2);
  EXPECT_FALSE(sweep.check);
}

TEST(SweepFile, adds_what_it_includes_and_leaves_out_what_it_excludes) {
  const Sweep sweep = SweepFolder().sweep(
      "machine: ring:2\nprogram: all-reduce/ring\nsize: [1KiB, 2KiB, 4KiB]\n"
      "include:\n- {size: [4KiB, 8KiB]}\n- {machine: ring:3, size: 1KiB}\n"
      "exclude:\n- {size: 2KiB, machine: ring:2}\n");
  EXPECT_THAT(names(sweep),
              ElementsAre("ring:2 all-reduce/ring 1024", "ring:2 all-reduce/ring 4096",
                          "ring:2 all-reduce/ring 8192", "ring:3 all-reduce/ring 1024"));
}

TEST(SweepFile, excludes_by_settings) {
  const Sweep sweep = SweepFolder().sweep(
      "machine: ring:2\nprogram: all-reduce/ring\nsize: [1KiB, 2KiB]\n"
      "set: {gpu.l2.size: [1MiB, 2MiB]}\nexclude:\n- {set: {gpu.l2.size: 2MiB}, size: 1KiB}\n");
  ASSERT_EQ(sweep.points.size(), 3u);
  EXPECT_EQ(to_text(sweep.points[2].set), "gpu.l2.size=2MiB");
  EXPECT_EQ(sweep.points[2].size, KiB(2));
}

TEST(SweepFile, a_collective_is_all_its_built_ins) {
  const Sweep sweep = SweepFolder().sweep("machine: ring:2\nprogram: all-reduce\nsize: 1KiB\n");
  EXPECT_GT(sweep.points.size(), 3u);
  for (const SweepPoint& point : sweep.points)
    EXPECT_THAT(point.program, testing::StartsWith("all-reduce/"));
}

TEST(SweepFile, files_are_beside_it_and_their_contents_are_noted) {
  const SweepFolder folder;
  folder.write("plan.json", "{}");
  const std::string yaml = "machine: ring:2\nprogram: [plan.json, all-reduce/ring]\nsize: 1KiB\n";
  const Sweep before = folder.sweep(yaml);
  ASSERT_EQ(before.inputs.size(), 1u);
  EXPECT_EQ(before.inputs[0].first, "plan.json");
  EXPECT_EQ(before.path_of("plan.json"), folder.path("plan.json"));
  EXPECT_EQ(before.path_of("all-reduce/ring"), "all-reduce/ring");
  folder.write("plan.json", "{ }");
  EXPECT_NE(folder.sweep(yaml).inputs, before.inputs);
  folder.write("device.yaml", read_file(HEMIOLA_SOURCE_DIR "/data/devices/a100.yaml"));
  EXPECT_EQ(folder.sweep(yaml + "gpu: device.yaml\n").inputs.front().first, "device.yaml");
}

TEST(SweepFile, refuses_what_it_does_not_know_with_line_and_suggestion) {
  const std::string good = "machine: ring:2\nprogram: all-reduce/ring\nsize: 1KiB\n";
  const auto expect = [&](const std::string& more, const std::string& message) {
    EXPECT_THAT(sweep_failure(good + more), HasSubstr(message)) << more;
  };
  expect("sizes: 2KiB\n", "sweep.yaml:4: error: unknown key 'sizes'\n  hint: did you mean 'size'?");
  expect("size: 2KiB\n", "sweep.yaml:4: error: the key 'size' stands here twice");
  expect("engine: lime\n", "sweep.yaml:4: error: 'lime' is not among them\n  hint: did you mean");
  expect("launch: [graph, graph]\n", "sweep.yaml:4: error: 'graph' stands here twice");
  expect("skew: [1us, 5]\n", "sweep.yaml:4: error: '5' is not a time\n  hint: a time looks like");
  expect("skew: '0ns,late'\n", "sweep.yaml:4: error: 'late' is not a time");
  expect("skew: [1us, 1us]\n", "sweep.yaml:4: error: '1us' stands here twice");
  expect("exclude:\n  - {skew: 1us}\n", "sweep.yaml:5: error: no point is like this");
  expect("dtype: floot\n", "sweep.yaml:4: error: 'floot' is not an element type");
  expect("op: plus\n", "sweep.yaml:4: error: 'plus' is not a reduction");
  expect("ranks: [0]\n", "sweep.yaml:4: error: '0' is not a whole number from 1");
  expect("ranks: []\n", "sweep.yaml:4: error: 'ranks' must be a value or a list of values");
  expect("set: [a]\n", "sweep.yaml:4: error: 'set' must be a map");
  expect("set: {gpu.l2.sice: 1MiB}\n", "sweep.yaml:4: error: gpu.l2.sice=1MiB: ");
  expect("warmup: 1\n", "sweep.yaml:4: error: a warm-up needs measured repetitions");
  expect("check: maybe\n", "sweep.yaml:4: error: 'check' must be true or false");
  expect("include: {size: 1KiB}\n", "sweep.yaml:4: error: 'include' must be a list");
  expect("include:\n- {threads: 2}\n", "sweep.yaml:5: error: unknown key 'threads'");
  expect("exclude:\n- {size: 4KiB}\n", "sweep.yaml:5: error: no point is like this");
  expect("exclude:\n- {machine: ring:2}\n", "the sweep has no point");
}

TEST(SweepFile, refuses_machines_programs_and_sizes_that_are_not_there) {
  EXPECT_THAT(sweep_failure("machine: ring:2\nsize: 1KiB\n"),
              HasSubstr("sweep.yaml:1: error: the key 'program' is missing"));
  EXPECT_THAT(sweep_failure("machine: ring:2\nprogram: all-reduce/rings\nsize: 1KiB\n"),
              HasSubstr("sweep.yaml:2: error: there is no program and no file 'all-reduce/rings'\n"
                        "  hint: did you mean 'all-reduce/ring'?"));
  EXPECT_THAT(sweep_failure("machine: dgx-h10\nprogram: all-reduce/ring\nsize: 1KiB\n"),
              HasSubstr("sweep.yaml:1: error: "));
  EXPECT_THAT(sweep_failure("machine: ring:2\nprogram: all-reduce/ring\nsize: 64 bytes\n"),
              HasSubstr("sweep.yaml:3: error: '64 bytes' is not a size"));
  EXPECT_THAT(sweep_failure("machine: ring:2\nprogram: all-reduce/ring\nsize: 1KiB:2MiB\n"),
              HasSubstr("sweep.yaml:3: error: '1KiB:2MiB' is not a range of sizes"));
  EXPECT_THAT(sweep_failure("machine: [ring:2\n"), HasSubstr("this is not YAML"));
  EXPECT_THAT(sweep_failure("- 1\n"), HasSubstr("this must be a map"));
}

TEST(SweepFile, refuses_more_points_than_anybody_can_mean) {
  std::string axes = "set: {";
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g"})
    axes += std::string(name) + ": [1, 2, 3, 4, 5, 6, 7, 8, 9], ";
  EXPECT_THAT(
      sweep_failure("machine: ring:2\nprogram: all-reduce/ring\nsize: 1KiB\n" + axes + "}\n"),
      HasSubstr("the sweep has more than 1000000 points"));
}

TEST(Shards, have_every_point_once) {
  for (std::int64_t point = 0; point < 20; ++point) {
    int owners = 0;
    for (std::int64_t number = 1; number <= 3; ++number) owners += Shard{number, 3}.has(point);
    EXPECT_EQ(owners, 1) << point;
  }
}

}  // namespace
}  // namespace hemiola::study
