// The command line as people type it: help, nccl-tests' flags, `-`, completions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "program.h"

namespace hemiola::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Outcome run(const std::string& arguments) {
  return Workplace().run(arguments);
}

TEST(Typed, help_and_version_are_verbs_too) {
  EXPECT_EQ(run("help run").out, run("run --help").out);
  EXPECT_EQ(run("help plan make").out, run("plan make --help").out);
  EXPECT_EQ(run("help").out, run("--help").out);
  for (const char* word : {"version", "-v"}) EXPECT_EQ(run(word).out, run("--version").out);
}

TEST(Typed, help_has_groups_in_order_and_is_as_wide_as_the_terminal) {
  const std::string help = run("help run").out;
  std::size_t before = 0;
  for (const char* group : {"\nInput:\n", "\nMachine:\n", "\nEngine:\n", "\nOutput:\n"}) {
    const std::size_t at = help.find(group);
    ASSERT_NE(at, help.npos) << group;
    EXPECT_GT(at, before);
    before = at;
  }
}

TEST(Typed, a_program_and_the_flags_of_nccl_tests) {
  const Outcome outcome =
      run("run all_reduce_perf -b 8 -e 1K -f 2 -g 4 -d half -o avg -G 1 -c 0 -p 1");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("all-reduce/nccl, all-reduce on 4 ranks"));
  EXPECT_THAT(outcome.out, HasSubstr("out of place and in place"));
  EXPECT_THAT(outcome.out, HasSubstr("launch   graph"));
  EXPECT_THAT(outcome.out, HasSubstr("\n  1024         512  half    sum"));
  EXPECT_THAT(outcome.out, HasSubstr("skipped"));
  for (const char* note :
       {"machine dgx-h100", "avg is a sum", "-p (parallel_init)", "one call is measured"})
    EXPECT_THAT(outcome.err, HasSubstr(note));
}

TEST(Typed, sizes_of_nccl_tests_are_rounded_down) {
  const Outcome outcome =
      run("run ./build/all_gather_perf_mpi --minbytes=1000 --maxbytes 1300 -i 100 -g 4 --machine "
          "ring:4 -n 1 -w 0");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("1000 B is run as 960 B"));
  EXPECT_THAT(outcome.out, HasSubstr("1300 B is run as 1280 B"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("one call is measured")));
}

TEST(Typed, times_in_place_stand_beside_those_out_of_place) {
  const std::string size = " -b 64K -e 64K -g 4 --machine ring:4 -n 1 --quiet";
  const Outcome gather = run("run all_gather_perf" + size + " --json -");
  EXPECT_EQ(gather.code, 0) << gather.err;
  EXPECT_THAT(gather.err, HasSubstr("in place   algbw   busbw"));
  const nlohmann::json results = nlohmann::json::parse(gather.out)["results"];
  ASSERT_EQ(results.size(), 2U);
  EXPECT_FALSE(results[0].contains("settings"));
  EXPECT_EQ(results[1]["settings"]["in_place"], "1");
  EXPECT_LT(results[1]["time_fs"], results[0]["time_fs"]);  // its own part is not copied
  EXPECT_THAT(run("run alltoall_perf" + size).out, Not(HasSubstr("in place")));
  const Outcome pulled = run("run all-reduce/one-shot --machine ring:4 --in-place-too");
  EXPECT_EQ(pulled.code, 2);
  EXPECT_THAT(pulled.err, HasSubstr("cannot run in place"));
  for (const char* words : {"all-reduce/ring --param in_place=1", "auto/nccl", "all-reduce/vllm"}) {
    const Outcome refused =
        run(std::string("run ") + words + " --machine ring:4 --size 64KiB --in-place-too");
    EXPECT_EQ(refused.code, 2) << words;
    EXPECT_THAT(refused.err, HasSubstr("--in-place-too: error")) << words;
  }
}

TEST(Typed, what_is_wrong_with_a_flag_of_nccl_tests_is_said) {
  for (const auto& [arguments, words] :
       {std::pair("run all_reduce_perf -b", "-b: error: needs a value"),
        std::pair("run all_reduce_perf -b 8X", "'8X' is no size"),
        std::pair("run all_reduce_perf -g two", "'two' is not a whole number"),
        std::pair("run all_reduce_perf -o all", "one run is of one operation"),
        std::pair("run all_reduce_perf -b 64M", "is more than the largest size, 33554432 B"),
        std::pair("run all_reduce_perf -e 9999999999T", "is no size"),
        std::pair("run all_reduce_perf -g 99999999999", "-g: error"),
        std::pair("run broadcast_perf -g 8 -r 3", "the root is rank 0"),
        std::pair("run all_reduce_perf -b 1 -e 1G -i 1", "more than 4096 sizes"),
        std::pair("run gather_perf -g 8", "there is no 'gather_perf' here")}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(words));
  }
}

TEST(Typed, names_in_part_are_suggested_whole) {
  EXPECT_THAT(run("run all-reduce/ring --machine h100").err, HasSubstr("did you mean 'dgx-h100'?"));
  const std::string err = run("run all-reduce/ring --machine dgx-h100 --set l2.size=4MiB").err;
  EXPECT_THAT(err, HasSubstr("did you mean 'gpu.l2.size'?"));
  EXPECT_THAT(err, Not(HasSubstr("<option>")));
}

TEST(Typed, without_a_program_there_are_examples) {
  const std::string err = run("run").err;
  EXPECT_THAT(err, HasSubstr("hemiola run all_reduce_perf"));
  EXPECT_LT(err.size(), 600U);
  EXPECT_THAT(run("plan list").out, HasSubstr("all-reduce/nccl"));
}

TEST(Typed, a_dash_is_standard_input_or_output) {
  const Workplace place;
  const Outcome made = place.run("plan make all-gather/ring --ranks 4 -o -");
  EXPECT_EQ(made.code, 0);
  EXPECT_EQ(made.out.front(), '{');
  EXPECT_EQ(place.files(), "");
  place.write("plan", made.out);
  EXPECT_THAT(place.run("check - < plan").out, HasSubstr("check: proven"));
  EXPECT_THAT(place.run("run - --machine ring:4 < plan").out, Not(HasSubstr("/proc")));
  place.write("bad", "{\"tensors");
  EXPECT_THAT(place.run("check - < bad").err, HasSubstr("standard input:1:"));
  const Outcome json = run("run all-gather/ring --machine ring:4 --size 64KiB --json -");
  EXPECT_EQ(json.out.front(), '{');
  EXPECT_THAT(json.err, HasSubstr("# machine"));
  EXPECT_EQ(run("run all-gather/ring --machine ring:4 --size 64KiB --json=-").out.front(), '{');
  EXPECT_EQ(run("run all-gather/ring --machine ring:4 --size 64KiB --csv ring_perf").code, 0);
  EXPECT_EQ(run("sweep - --output -").code, 2);
  EXPECT_EQ(run("run - --machine -").code, 2);
  EXPECT_THAT(run("run all-gather/ring --machine ring:4 --json=x --csv x").err,
              HasSubstr("write to one place"));
}

TEST(Typed, old_names_of_options_say_the_new_ones) {
  const Outcome sizes = run("run all-gather/ring --machine ring:4 --sizes 1KiB,2KiB");
  EXPECT_EQ(sizes.code, 0);
  EXPECT_THAT(sizes.err, HasSubstr("note: --sizes is --size now (docs/migrations.md)"));
  EXPECT_THAT(run("run all-gather/ring --machine ring:4 --sizes=1KiB").err,
              HasSubstr("--sizes is --size now"));
  const Outcome file = run("run all-gather/ring --machine ring:4 --sizes /dev/null");
  EXPECT_EQ(file.code, 2);
  EXPECT_THAT(file.err, HasSubstr("--call-sizes"));
  EXPECT_THAT(run("sweep absent.yaml --out x").err, HasSubstr("--out is --output now"));
  EXPECT_THAT(run("explore --suite absent.yaml --out x -m mi300x-8").err,
              HasSubstr("--out is --database now"));
  EXPECT_THAT(run("replay absent.csv --save x").err, HasSubstr("--save is --output now"));
  EXPECT_EQ(run("compile --out x").code, 2) << "it never had that";
}

TEST(Typed, completions_and_man_pages_are_of_all_verbs) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string text = run(std::string("completion ") + shell).out;
    for (const char* word : {"explore", "machine", "all-reduce"})
      EXPECT_EQ(text.find(word) != text.npos, std::string(word) != "all-reduce") << shell;
  }
  EXPECT_EQ(run("completion tcsh").code, 2);
}

}  // namespace
}  // namespace hemiola::test
