// Verdicts that name their executor, and the exit code of what is not proven.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "program.h"

namespace hemiola::test {
namespace {

using Json = nlohmann::json;

/// Two GPUs that both send `count` chunks one by one, and then receive as many.
std::string sends_then_receives(int count) {
  const std::string chunks = std::to_string(2 * count);
  const auto step = [](int number, const char* type, int chunk, int chunks_of_it) {
    const std::string at = std::to_string(chunk);
    return "<step s=\"" + std::to_string(number) + "\" type=\"" + type +
           "\" srcbuf=\"i\" srcoff=\"" + at + "\" dstbuf=\"o\" dstoff=\"" + at + "\" cnt=\"" +
           std::to_string(chunks_of_it) + "\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>\n";
  };
  std::string xml = "<algo name=\"exchange\" proto=\"Simple\" nchannels=\"1\" nchunksperloop=\"" +
                    chunks + "\" ngpus=\"2\" coll=\"alltoall\" inplace=\"0\" outofplace=\"1\">\n";
  for (int rank = 0; rank < 2; ++rank) {
    const std::string peer = std::to_string(1 - rank);
    xml += "<gpu id=\"" + std::to_string(rank) + "\" i_chunks=\"" + chunks + "\" o_chunks=\"" +
           chunks + "\" s_chunks=\"0\"><tb id=\"0\" send=\"" + peer + "\" recv=\"" + peer +
           "\" chan=\"0\">\n" + step(0, "cpy", rank * count, count);
    for (int i = 0; i < 2 * count; ++i)
      xml += step(1 + i, i < count ? "s" : "r", (1 - rank) * count + i % count, 1);
    xml += "</tb></gpu>\n";
  }
  return xml + "</algo>\n";
}

TEST(Executor, of_a_file_is_named_by_verdicts_and_results) {
  const Workplace place;
  place.write("three.xml", sends_then_receives(3));
  place.write("two.xml", sends_then_receives(2));
  for (const char* executor : {"", " --executor msccl", " --executor rccl"}) {
    const Outcome check = place.run(std::string("check three.xml --size 96KiB") + executor);
    EXPECT_EQ(check.code, 4) << check.out << check.err;
    EXPECT_TRUE(contains(check.out, "2 workgroups wait for each other")) << check.out;
    EXPECT_TRUE(contains(check.out, "2 slices for each operation")) << check.out;
  }
  EXPECT_TRUE(contains(place.run("check three.xml --size 96KiB").out, "; assumed, --executor"));
  EXPECT_EQ(place.run("check three.xml --size 96KiB --executor hemiola").code, 0);
  const std::string two = " two.xml --size 64KiB --quiet --json r --executor rccl";
  EXPECT_EQ(place.run("check" + two).code, 0);
  EXPECT_EQ(Json::parse(place.read("r"))["executor"], "rccl");
  const Outcome run = place.run("run --machine ring:2" + two);
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(contains(run.out, ", executor rccl")) << run.out;
  EXPECT_EQ(Json::parse(place.read("r"))["executor"], "rccl");
  EXPECT_EQ(place.run("run three.xml --machine ring:2 --size 96KiB").code, 4);
}

TEST(Executor, that_is_none_of_the_input_is_refused) {
  const Workplace place;
  place.write("two.xml", sends_then_receives(2));
  const Outcome unknown = place.run("check two.xml --executor nccl");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_TRUE(contains(unknown.err, "--executor: error: 'nccl' is no executor")) << unknown.err;
  EXPECT_TRUE(contains(unknown.err, "msccl, rccl, msccl-slice1, hemiola")) << unknown.err;
  const Outcome built_in = place.run("check all-reduce/ring --executor msccl");
  EXPECT_EQ(built_in.code, 2);
  EXPECT_TRUE(contains(built_in.err, "only files of MSCCL and MSCCL++")) << built_in.err;
}

TEST(Check, what_is_not_proven_ends_with_six_and_is_run_all_the_same) {
  const Workplace place;
  place.write("plan", edited("pair.json", "\"allreduce\"", "\"custom\""));
  const Outcome check = place.run("check plan --size 64KiB");
  EXPECT_EQ(check.code, 6) << check.out << check.err;
  EXPECT_TRUE(contains(check.out, "check: partial")) << check.out;
  EXPECT_EQ(place.run("check plan --size 64KiB --allow-partial").code, 0);
  const Outcome run = place.run("run plan --machine ring:2 --size 64KiB --quiet");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(contains(run.out, "partial")) << run.out;
}

}  // namespace
}  // namespace hemiola::test
