// MSCCL XML: what is refused, and that damaged files never crash the reader.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>

#include "program/program.h"
#include "program/testing/msccl_text.h"

namespace hemiola::program {
namespace {

using msccl::algo;
using msccl::gpu;
using msccl::replaced;
using msccl::tb;
using ::testing::HasSubstr;

Program read_xml(const std::string& xml) {
  return read_msccl(xml, "test.xml");
}

/// Everything that reading `xml` complains about, rendered; "" when it does not.
std::string complaint(const std::string& xml) {
  try {
    read_xml(xml);
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), ExitCode::bad_input);
    return failure.what();
  }
  return "";
}

// Each mistake is one change to this file of two gpus.
std::string good() {
  return algo({gpu(0, tb(0, 1, -1, {{"s", "i 0", "i 0", 2, 1, 0}}) +
                          tb(1, -1, -1, {{"cpy", "i 0", "s 0", 1, -1, -1, 1}})),
               gpu(1, tb(0, -1, 0, {{"r", "i 0", "o 6", 2}}))});
}

TEST(MscclErrors, the_file_that_the_mistakes_start_from_is_good) {
  EXPECT_EQ(complaint(good()), "");
}

struct Mistake {
  const char* name;
  const char* what;
  const char* with;
  const char* message;
};

class MscclMistake : public ::testing::TestWithParam<Mistake> {};

TEST_P(MscclMistake, is_reported_with_its_place) {
  const std::string text = complaint(replaced(good(), GetParam().what, GetParam().with));
  EXPECT_THAT(text, HasSubstr(GetParam().message));
  EXPECT_THAT(text, HasSubstr("test.xml:"));
}

const Mistake kMistakes[] = {
    {"unknown_protocol", "\"Simple\"", "\"LL12\"", "unknown proto 'LL12'"},
    {"unknown_collective", "\"allreduce\"", "\"allreduc\"", "did you mean 'allreduce'?"},
    {"collective_not_read", "\"allreduce\"", "\"scatter\"", "known but not read yet"},
    {"unknown_step_type", "type=\"s\"", "type=\"sr\"", "unknown type 'sr'"},
    {"unknown_buffer", "srcbuf=\"i\"", "srcbuf=\"x\"", "unknown srcbuf 'x'"},
    {"unknown_attribute", "nchannels=\"2\"", "nchannels=\"2\" nchannel=\"2\"",
     "did you mean 'nchannels'?"},
    {"missing_attribute", " cnt=\"2\"", "", "attribute 'cnt' of <step> is missing"},
    {"missing_ngpus", " ngpus=\"2\"", "", "attribute 'ngpus' of <algo> is missing"},
    {"doubled_attribute", "cnt=\"2\"", "cnt=\"2\" cnt=\"2\"", "attribute 'cnt' stands twice"},
    {"not_a_number", "cnt=\"2\"", "cnt=\"2x\"", "must be a whole number, not '2x'"},
    {"empty_number", "cnt=\"2\"", "cnt=\"\"", "must be a whole number"},
    {"negative_count", "cnt=\"2\"", "cnt=\"-2\"", "attribute 'cnt' is -2"},
    {"no_count", "cnt=\"2\"", "cnt=\"0\"", "attribute 'cnt' is 0"},
    {"huge_number", "cnt=\"2\"", "cnt=\"99999999999999999999\"", "outside"},
    {"flag_not_0_or_1", "hasdep=\"1\"", "hasdep=\"2\"", "attribute 'hasdep' is 2"},
    {"source_beyond_buffer", "srcoff=\"0\"", "srcoff=\"7\"",
     "srcoff 7 and cnt 2 reach beyond the 8 chunks of buffer 'i'"},
    {"destination_beyond_buffer", "dstoff=\"6\"", "dstoff=\"7\"",
     "dstoff 7 and cnt 2 reach beyond the 8 chunks of buffer 'o'"},
    {"negative_offset", "srcoff=\"0\"", "srcoff=\"-1\"", "reach beyond"},
    {"block_not_there", "depid=\"1\"", "depid=\"2\"",
     "waits for thread block 2, but the gpu has only 2"},
    {"step_not_there", "deps=\"0\"", "deps=\"1\"", "which has only 1 steps"},
    {"dependency_without_step", "deps=\"0\"", "deps=\"-1\"", "but deps is -1"},
    {"steps_out_of_order", "s=\"0\"", "s=\"3\"", "step 3 stands at position 0"},
    {"gpu_missing", "ngpus=\"2\"", "ngpus=\"3\"", "ngpus is 3, but the file has 2 <gpu> elements"},
    {"gpu_doubled", "gpu id=\"1\"", "gpu id=\"0\"", "gpu 0 stands twice"},
    {"gpu_out_of_range", "gpu id=\"1\"", "gpu id=\"2\"", "attribute 'id' is 2"},
    {"block_doubled", "tb id=\"1\"", "tb id=\"0\"", "thread block 0 stands twice"},
    {"block_missing", "tb id=\"1\"", "tb id=\"5\"", "thread block 1 is missing"},
    {"sends_to_itself", "send=\"1\"", "send=\"0\"", "gpu 0 sends to itself"},
    {"peer_not_there", "send=\"1\"", "send=\"2\"", "attribute 'send' is 2"},
    {"send_without_peer", "send=\"1\"", "send=\"-1\"", "has no send peer"},
    {"receive_without_peer", "recv=\"0\"", "recv=\"-1\"", "has no recv peer"},
    {"channel_out_of_range", "nchannels=\"2\"", "nchannels=\"0\"", "attribute 'nchannels' is 0"},
    {"unpaired_send", "recv=\"0\" chan=\"0\"", "recv=\"0\" chan=\"1\"",
     "but no thread block there receives from gpu 0 on channel 0"},
    {"too_many_chunks", "i_chunks=\"8\"", "i_chunks=\"9\"", "i_chunks is 9"},
    {"range_reversed", "inplace=\"0\"", "inplace=\"0\" minBytes=\"2\" maxBytes=\"1\"",
     "minBytes is more than maxBytes"},
    {"unexpected_element", "</gpu>", "<block/></gpu>", "unexpected element <block> in <gpu>"},
    {"unexpected_text", "</gpu>", "hello</gpu>", "unexpected text in <gpu>"},
    {"mismatched_tags", "</gpu>", "</gpus>", "not well-formed XML"},
    {"opening_tag_changed", "<algo", "<algorithm", "not well-formed XML"},
};

INSTANTIATE_TEST_SUITE_P(Each, MscclMistake, ::testing::ValuesIn(kMistakes),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(MscclErrors, another_root_element_is_refused) {
  EXPECT_THAT(complaint("<system version=\"1\"/>"),
              HasSubstr("the root element is <system>, not <algo>"));
  EXPECT_THAT(complaint(good() + "<algo/>"), HasSubstr("a second root element"));
}

TEST(MscclErrors, an_unpaired_send_names_both_places) {
  const std::string text =
      complaint(replaced(good(), "recv=\"0\" chan=\"0\"", "recv=\"0\" chan=\"1\""));
  EXPECT_THAT(text, HasSubstr("/algo/gpu[0]/tb[0]"));
  EXPECT_THAT(text, HasSubstr("gpu 1 is at /algo/gpu[1] (line "));
  EXPECT_THAT(text, HasSubstr("thread block 0 of gpu 1 receives from gpu 0 on channel 1"));
}

TEST(MscclErrors, two_blocks_on_one_connection_are_refused) {
  const std::string text = complaint(algo({gpu(0, tb(0, 1, -1, {{"s"}}) + tb(1, 1, -1, {{"s"}})),
                                           gpu(1, tb(0, -1, 0, {{"r"}, {"r"}}))}));
  EXPECT_THAT(text, HasSubstr("a second thread block of the gpu that sends to gpu 1 on channel 0"));
  EXPECT_THAT(text, HasSubstr("the first is at /algo/gpu[0]/tb[0]"));
}

TEST(MscclErrors, a_nop_chain_must_end_in_a_dependency) {
  const std::string text =
      complaint(algo({gpu(0, tb(0, -1, -1, {{"nop", "i 0", "i 0", 0, 1, 0}, {"cpy"}}) +
                                 tb(1, -1, -1, {{"cpy", "i 0", "s 0", 1, -1, -1, 1}}))}));
  EXPECT_THAT(text,
              HasSubstr("a chain of nops must end with a step that has a dependency of its own"));
  EXPECT_THAT(text, HasSubstr("/algo/gpu[0]/tb[0]/step[1]"));
}

TEST(MscclErrors, shards_must_be_whole_chunks) {
  const std::string text =
      complaint(algo({gpu(0, ""), gpu(1, ""), gpu(2, "")}, "", "LL", "allgather"));
  EXPECT_THAT(text, HasSubstr("nchunksperloop is 8, not a multiple of the 3 gpus"));
}

TEST(MscclErrors, threads_are_whole_warps) {
  EXPECT_THAT(complaint(replaced(good(), "ngpus=", "nthreads=\"100\" ngpus=")),
              HasSubstr("nthreads is 100, not a multiple of a warp's 32 threads"));
}

TEST(MscclErrors, several_mistakes_are_reported_together) {
  const std::string text =
      complaint(replaced(replaced(good(), "cnt=\"2\"", "cnt=\"x\""), "\"Simple\"", "\"Easy\""));
  EXPECT_THAT(text, HasSubstr("'x'"));
  EXPECT_THAT(text, HasSubstr("'Easy'"));
}

TEST(MscclErrors, truncated_files_fail_and_never_crash) {
  const std::string xml = good();
  for (std::size_t length = 0; length + 8 < xml.size(); ++length)
    EXPECT_THAT(complaint(xml.substr(0, length)), HasSubstr("test.xml")) << length;
}

TEST(MscclErrors, mutated_files_are_read_or_refused) {
  const std::string xml = good();
  EXPECT_TRUE(rc::check("one to four characters changed, inserted or removed", [&] {
    std::string text = xml;
    const int edits = *rc::gen::inRange(1, 5);
    for (int i = 0; i < edits; ++i) {
      const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
      const char c = *rc::gen::elementOf(std::string("0123456789-\"<>/= abcdiorstn&\0", 29));
      const int kind = *rc::gen::inRange(0, 3);
      if (kind == 0) text[at] = c;
      if (kind == 1) text.insert(at, 1, c);
      if (kind == 2) text.erase(at, 1);
    }
    try {
      const Program program = read_xml(text);
      RC_ASSERT(program.ranks >= 1);
    } catch (const Failure& failure) {
      RC_ASSERT(failure.diagnostics().has_errors());
    }
  }));
}

}  // namespace
}  // namespace hemiola::program
