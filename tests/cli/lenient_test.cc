// Files as other tools write them, which say more than their format, or say it as it used to be
// said: read with a warning that names what was ignored or converted, refused with --strict.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "program.h"

namespace hemiola::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct LenientInput {
  std::string name;     ///< of the test
  std::string verb;     ///< with its options
  std::string file;     ///< in tests/cli/inputs
  std::string result;   ///< that standard output contains
  std::string warning;  ///< that the messages contain
};

void PrintTo(const LenientInput& row, std::ostream* out) {
  *out << row.name;
}

class Lenient : public ::testing::TestWithParam<LenientInput> {};

TEST_P(Lenient, is_read_with_a_warning_and_refused_when_strict) {
  const LenientInput& row = GetParam();
  const Workplace place;
  const std::string arguments = row.verb + " " HEMIOLA_SOURCE_DIR "/tests/cli/inputs/" + row.file;
  const Outcome read = place.run(arguments);
  EXPECT_EQ(read.code, 0) << read.err;
  EXPECT_THAT(read.out, HasSubstr(row.result));
  EXPECT_THAT(read.err, HasSubstr(row.file + ":"));
  EXPECT_THAT(read.err, HasSubstr("warning: " + row.warning));
  const Outcome refused = place.run(arguments + " --strict");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("error: " + row.warning));
  EXPECT_THAT(refused.out, Not(HasSubstr(row.result)));
  // Not to be told is not to agree.
  EXPECT_EQ(place.run(arguments + " --strict --quiet").code, 2);
}

INSTANTIATE_TEST_SUITE_P(
    Files, Lenient,
    ::testing::Values(
        LenientInput{"mscclpp_rank_key", "check", "mscclpp_rank_key.json", "check: proven",
                     "ignored: the key 'rank' of a local operand, which says what is known (and 3 "
                     "more like it) (at /gpus/0/threadblocks/0/ops/3/src_buff/0/rank)"},
        LenientInput{"msccl_copy_elements", "check", "msccl_copy_elements.xml", "check: proven",
                     "ignored: <copy> of chunk 0 of the input to chunk 0 of the output, which are "
                     "one memory (and 2 more like it) (at /algo/gpu[0]/copy[0])"},
        LenientInput{"nccl_gpu_linked_to_itself", "machine validate",
                     "nccl_gpu_linked_to_itself.xml", "valid, 2 GPUs",
                     "ignored: 12 links of '0001:00:00.0' to itself (and 1 more like it)"},
        LenientInput{"rccl_busid_twice", "machine validate", "rccl_busid_twice.xml",
                     "valid, 2 GPUs",
                     "converted: the second NIC with the busid '0000:31:00.0': its ports are the "
                     "first's"}),
    [](const auto& info) { return info.param.name; });

TEST(LenientInputs, run_on_what_was_read) {
  const Workplace place;
  const std::string inputs = HEMIOLA_SOURCE_DIR "/tests/cli/inputs/";
  const Outcome run = place.run(
      "run " + inputs + "msccl_copy_elements.xml --machine switch:4 --ranks 3 --size 12KiB");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("all-gather"));
}

TEST(LenientInputs, are_points_of_a_sweep_unless_it_is_strict) {
  const Workplace place;
  place.write("sweep.yaml", "machine: switch:3\nprogram: " HEMIOLA_SOURCE_DIR
                            "/tests/cli/inputs/msccl_copy_elements.xml\nsize: 12KiB\n");
  const Outcome read = place.run("sweep sweep.yaml --output read.sqlite");
  EXPECT_EQ(read.code, 0) << read.err;
  EXPECT_THAT(read.err, HasSubstr("ignored: <copy>"));
  const Outcome refused = place.run("sweep sweep.yaml --output refused.sqlite --strict");
  EXPECT_EQ(refused.code, 2) << refused.err;
  EXPECT_THAT(refused.out, HasSubstr("ignored: <copy>"));
}

// A copy that no memory shares and no step makes is not there: the proof says what follows from it.
TEST(LenientInputs, of_which_an_executor_ignores_what_matters_are_wrong) {
  const Workplace place;
  std::string text = fixture("msccl_copy_elements.xml");
  const auto replace_all = [&text](const std::string& from, const std::string& to) {
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  };
  replace_all("inplace=\"1\" outofplace=\"0\"", "inplace=\"0\" outofplace=\"1\"");
  place.write("out_of_place.xml", text);
  const Outcome check = place.run("check out_of_place.xml");
  EXPECT_EQ(check.code, 3);
  EXPECT_THAT(check.err, HasSubstr("ignored: <copy> of chunk 0 of the input to chunk 0 of the "
                                   "output, which no interpreter carries out"));
  EXPECT_THAT(check.out, HasSubstr("of output of rank 0 holds memory that nobody wrote"));
}

TEST(Sizes, without_a_unit_count_bytes) {
  const Workplace place;
  const Outcome run = place.run("run all-reduce/ring --machine ring:4 --size 4096 --quiet");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.out, place.run("run all-reduce/ring --machine ring:4 --size 4KiB --quiet").out);
  EXPECT_EQ(place.run("run all-reduce/ring --machine ring:4 --size 4096:16384:x2").code, 0);
  EXPECT_EQ(place.run("check all-reduce/ring --ranks 4 --size 4096,8192").code, 0);
}

TEST(Sizes, that_are_not_legal_name_the_next_ones_and_are_rounded_when_asked) {
  const Workplace place;
  const std::string run = "run all-reduce/two-shot --machine ring:4 --size 1000";
  const Outcome refused = place.run(run);
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("the nearest legal sizes are 960 B and 1 KiB; --round-size "
                                     "takes 1 KiB"));
  const Outcome rounded = place.run(run + " --round-size");
  EXPECT_EQ(rounded.code, 0) << rounded.err;
  EXPECT_THAT(rounded.out, HasSubstr("# 1000 B is run as 1 KiB, the next size that "
                                     "all-reduce/two-shot takes"));
  const Outcome checked = place.run("check all-reduce/two-shot --ranks 4 --size 1000 --round-size");
  EXPECT_EQ(checked.code, 0) << checked.err;
  EXPECT_THAT(checked.err, HasSubstr("1000 B is run as 1 KiB"));
  // Sizes that are rounded to one are run once; a legal size is no other.
  const Outcome both = place.run(
      "run all-reduce/two-shot --machine ring:4 --size 1000,1001,1024 --round-size "
      "--csv t.csv");
  EXPECT_EQ(both.code, 0) << both.err;
  const std::string csv = place.read("t.csv");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 2) << csv;
}

TEST(Sizes, of_a_sweep_are_rounded_where_its_file_says_so) {
  const Workplace place;
  const std::string sweep = "machine: ring:4\nprogram: all-reduce/two-shot\nsize: 1000\n";
  place.write("exact.yaml", sweep);
  EXPECT_EQ(place.run("sweep exact.yaml --output exact.sqlite").code, 2);
  place.write("rounded.yaml", sweep + "round_size: true\n");
  const Outcome rounded = place.run("sweep rounded.yaml --output rounded.sqlite --csv t.csv");
  EXPECT_EQ(rounded.code, 0) << rounded.err;
  EXPECT_THAT(rounded.err, HasSubstr("1000 B is run as 1 KiB"));
  EXPECT_THAT(place.read("t.csv"), HasSubstr("1024"));
}

}  // namespace
}  // namespace hemiola::test
