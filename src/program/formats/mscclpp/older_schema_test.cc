// Plans in MSCCL++'s older schema are the same programs as in today's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "program/program.h"

namespace hemiola::program {
namespace {

using ::testing::HasSubstr;

/// Two GPUs with the same thread block; `ops` and the channels of GPU and block in either schema.
std::string plan_text(const std::string& head, const std::string& gpu, const std::string& block,
                      const std::string& peers, const std::string& ops) {
  const auto one = [&](int id) {
    const std::string peer = std::to_string(1 - id);
    std::string text = "{\"id\":" + std::to_string(id) + "," + gpu +
                       ",\"threadblocks\":[{\"id\":0," + block + ",\"ops\":[" + ops + "]}]," +
                       peers + "}";
    for (auto at = text.find("PEER"); at != std::string::npos; at = text.find("PEER"))
      text.replace(at, 4, peer);
    return text;
  };
  return "{\"name\":\"p\"," + head + ",\"protocol\":\"LL\",\"inplace\":false,\"gpus\":[" + one(0) +
         "," + one(1) + "]}";
}

std::string older_text(const std::string& ops) {
  return plan_text(R"("colletive":"allreduce")",
                   R"("inputChunks":4,"outputChunks":4,"scratchChunks":4,"chunkGroups":1)",
                   R"("channels":[{"src":"i","dst":"s","ctype":"sm","cids":[0]},)"
                   R"({"src":"o","dst":"o","ctype":"proxy","cids":[0]},)"
                   R"({"src":"i","dst":"i","ctype":"sm","cids":[0]},)"
                   R"({"src":"o","dst":"o","ctype":"nvls","cids":[0]}])",
                   R"("channels":[{"srcbuff":"i","dstbuff":"i","type":"sm","connectedTo":[PEER]},)"
                   R"({"srcbuff":"i","dstbuff":"s","type":"sm","connectedTo":[PEER]},)"
                   R"({"srcbuff":"o","dstbuff":"o","type":"proxy","connectedTo":[PEER]},)"
                   R"({"buff":"o","type":"nvls","rankGroups":[{"size":4,"ranks":[0,1]}]}])",
                   ops);
}

/// Remote buffers: 0 the peer's input (memory channel 0), 1 its scratch (1), 2 its output (port 0).
std::string todays_text(const std::string& ops) {
  return plan_text(
      R"("collective":"allreduce")", R"("input_chunks":4,"output_chunks":4,"scratch_chunks":4)",
      R"("channels":[{"channel_type":"memory","channel_ids":[1,0]},)"
      R"({"channel_type":"port","channel_ids":[0]},{"channel_type":"switch","channel_ids":[0]}],)"
      R"("remote_buffer_refs":[{"access_channel_type":"memory","remote_buffer_ids":[1,0]},)"
      R"({"access_channel_type":"port","remote_buffer_ids":[2]}])",
      R"("channels":[{"channel_type":"memory","connected_to":[PEER,PEER]},)"
      R"({"channel_type":"port","connected_to":[PEER]},)"
      R"({"channel_type":"switch","buffer_type":"o","rank_groups":[{"size":4,"ranks":[0,1]}]}],)"
      R"("remote_buffers":[{"rank":PEER,"type":"i","access_channel_types":["memory"]},)"
      R"({"rank":PEER,"type":"s","access_channel_types":["memory"]},)"
      R"({"rank":PEER,"type":"o","access_channel_types":["port"]}])",
      ops);
}

struct OlderCase {
  const char* older;
  const char* now;
};

// i>s is the first memory channel of the block, i>i its second.
const OlderCase kOps[] = {
    {R"({"name":"nop","deps":[{"tb":0,"step":0}]})", R"({"name":"nop"})"},
    {R"({"name":"barrier","nthread_blocks":1,"barrier_id":0})",
     R"({"name":"barrier","num_threadblocks":1,"barrier_id":0})"},
    {R"({"name":"signal","o_buff":{"src":"i","dst":"i"},"o_cids":[{"id":0,"off":1}],"ctype":"sm","cnt":1})",
     R"({"name":"signal","channel_type":"memory","channel_ids":[1]})"},
    {R"({"name":"wait","i_buff":{"src":"i","dst":"s"},"i_cids":[{"id":0,"off":0}],"ctype":"sm","cnt":1})",
     R"({"name":"wait","channel_type":"memory","channel_ids":[0]})"},
    {R"({"name":"flush","o_buff":{"src":"o","dst":"o"},"o_cids":[{"id":0,"off":0}],"ctype":"proxy","cnt":1})",
     R"({"name":"flush","channel_type":"port","channel_ids":[0]})"},
    {R"({"name":"pws","o_buff":{"src":"o","dst":"o"},"o_cids":[{"id":0,"off":2}],"srcs":[{"buff":"o","off":1}],"ctype":"proxy","cnt":2})",
     R"({"name":"pws","channel_type":"port","channel_ids":[0],"src_buff":[{"type":"o","index":1,"size":2}],"dst_buff":[{"buffer_id":0,"index":2,"size":2}]})"},
    {R"({"name":"put","o_buff":{"src":"i","dst":"s"},"o_cids":[{"id":0,"off":2}],"srcs":[{"buff":"i","off":1}],"ctype":"sm","cnt":2})",
     R"({"name":"put","channel_type":"memory","src_buff":[{"type":"i","index":1,"size":2}],"dst_buff":[{"buffer_id":0,"index":2,"size":2}]})"},
    {R"({"name":"get","i_buff":{"src":"i","dst":"i"},"i_cids":[{"id":0,"off":1}],"dsts":[{"buff":"i","off":0}],"ctype":"sm","cnt":1})",
     R"({"name":"get","channel_type":"memory","src_buff":[{"buffer_id":1,"index":1,"size":1}],"dst_buff":[{"type":"i","index":0,"size":1}]})"},
    {R"({"name":"copy","src":0,"srcbuff":"i","srcoff":1,"dst":0,"dstbuff":"o","dstoff":2,"ctype":"none","cnt":1})",
     R"({"name":"copy","src_buff":[{"type":"i","index":1,"size":1}],"dst_buff":[{"type":"o","index":2,"size":1}]})"},
    {R"({"name":"re","srcs":[{"buff":"i","off":1},{"buff":"i","off":2}],"src":0,"srcbuff":"o","srcoff":0,"dst":0,"dstbuff":"o","dstoff":0,"ctype":"none","cnt":1})",
     R"({"name":"re","src_buff":[{"type":"o","index":0,"size":1},{"type":"i","index":1,"size":1},{"type":"i","index":2,"size":1}],"dst_buff":[{"type":"o","index":0,"size":1}]})"},
    {R"({"name":"rrcs","i_buff":{"src":"i","dst":"i"},"i_cids":[{"id":0,"off":1}],"o_buff":{"src":"i","dst":"i"},"o_cids":[{"id":0,"off":3}],"src":0,"srcbuff":"i","srcoff":1,"dst":0,"dstbuff":"o","dstoff":1,"ctype":"sm","cnt":1})",
     R"({"name":"rres","channel_type":"memory","src_buff":[{"type":"i","index":1,"size":1},{"buffer_id":1,"index":1,"size":1}],"dst_buff":[{"type":"o","index":1,"size":1},{"buffer_id":1,"index":3,"size":1}]})"},
    {R"({"name":"rspkt","o_buff":{"src":"i","dst":"s"},"o_cids":[{"id":0,"off":3}],"srcs":[{"buff":"s","off":1}],"src":0,"srcbuff":"i","srcoff":1,"dst":0,"dstbuff":"o","dstoff":1,"ctype":"sm","cnt":1})",
     R"({"name":"respkt","channel_type":"memory","src_buff":[{"type":"i","index":1,"size":1},{"type":"s","index":1,"size":1}],"dst_buff":[{"type":"o","index":1,"size":1},{"buffer_id":0,"index":3,"size":1}]})"},
    // The older cpkt unpacks, the older tpkt packs.
    {R"({"name":"cpkt","src":0,"srcbuff":"s","srcoff":1,"dst":0,"dstbuff":"o","dstoff":2,"ctype":"none","cnt":1})",
     R"({"name":"upkt","src_buff":[{"type":"s","index":1,"size":1}],"dst_buff":[{"type":"o","index":2,"size":1}]})"},
    {R"({"name":"tpkt","src":0,"srcbuff":"i","srcoff":1,"dst":0,"dstbuff":"s","dstoff":2,"ctype":"none","cnt":1})",
     R"({"name":"cpkt","src_buff":[{"type":"i","index":1,"size":1}],"dst_buff":[{"type":"s","index":2,"size":1}]})"},
    {R"({"name":"rppkt","o_buff":{"src":"i","dst":"s"},"o_cids":[{"id":0,"off":2},{"id":0,"off":3}],"srcs":[{"buff":"s","off":1},{"buff":"s","off":1}],"ctype":"sm","cnt":1})",
     R"({"name":"rppkt","channel_type":"memory","src_buff":[{"type":"s","index":1,"size":1}],"dst_buff":[{"buffer_id":0,"index":2,"size":1},{"buffer_id":0,"index":3,"size":1}]})"},
    {R"({"name":"glres","src":0,"srcbuff":"o","srcoff":1,"dst":0,"dstbuff":"o","dstoff":2,"i_cids":[{"id":0}],"o_cids":[{"id":0}],"ctype":"nvls","cnt":1})",
     R"({"name":"glres","channel_type":"switch","src_buff":[{"switch_channel_id":0,"index":1,"size":1}],"dst_buff":[{"switch_channel_id":0,"index":2,"size":1}]})"},
};

TEST(MscclppOlderSchema, every_operation_is_what_it_is_in_todays) {
  for (const OlderCase& each : kOps) {
    const Program older = read_mscclpp(older_text(each.older), "older.json");
    const Program now = read_mscclpp(todays_text(each.now), "now.json");
    ASSERT_EQ(older.bodies.size(), now.bodies.size());
    for (std::size_t b = 0; b < now.bodies.size(); ++b)
      EXPECT_TRUE(older.bodies[b].ops == now.bodies[b].ops) << each.older;
    EXPECT_EQ(older.collective, Collective::all_reduce);
    EXPECT_EQ(older.buffers.at(2).chunks, now.buffers.at(2).chunks);
    EXPECT_EQ(older.groups, now.groups);
  }
}

TEST(MscclppOlderSchema, one_message_names_it) {
  const Program program = read_mscclpp(older_text(kOps[2].older), "older.json");
  EXPECT_EQ(program.warnings.items().size(), 1U);
  EXPECT_THAT(program.warnings.render(),
              HasSubstr("older.json:1:25: warning: converted: the plan has the schema that MSCCL++ "
                        "had before August 2025 ('colletive' is now 'collective', and "));
  EXPECT_TRUE(read_mscclpp(todays_text(kOps[2].now), "now.json").warnings.items().empty());
}

TEST(MscclppOlderSchema, one_older_key_in_a_plan_of_today_is_converted_too) {
  std::string text = todays_text(kOps[15].now);
  for (auto at = text.find("buffer_type"); at != std::string::npos; at = text.find("buffer_type"))
    text.replace(at, 11, "buff");
  const Program program = read_mscclpp(text, "mixed.json");
  EXPECT_THAT(program.warnings.render(), HasSubstr("'buff' is now 'buffer_type', and 1 more)"));
  EXPECT_EQ(program.groups.size(), 1U);
}

std::string refusal_of_older(const std::string& text) {
  try {
    read_mscclpp(text, "older.json");
  } catch (const Failure& failure) {
    return failure.diagnostics().render();
  }
  return "read";
}

TEST(MscclppOlderSchema, refusals_point_into_the_file_as_it_is) {
  EXPECT_THAT(
      refusal_of_older(older_text(
          R"({"name":"wait","i_buff":{"src":"o","dst":"s"},"i_cids":[{"id":0}],"ctype":"sm"})")),
      HasSubstr("there is no memory channel from buffer 'o' to 's' here (at "
                "/gpus/0/threadblocks/0/ops/0/i_cids/0/id)"));
  EXPECT_THAT(
      refusal_of_older(older_text(
          R"({"name":"wait","i_buff":{"src":"i","dst":"s"},"i_cids":[{"id":7}],"ctype":"sm"})")),
      HasSubstr("7 is not in the range 0 to 0"));
  EXPECT_THAT(refusal_of_older(older_text(R"({"name":"copy","srcbuf":"i","cnt":1})")),
              HasSubstr("unknown key 'srcbuf' (at /gpus/0/threadblocks/0/ops/0/srcbuf)"));
  EXPECT_THAT(
      refusal_of_older(older_text(R"({"name":"cpkt","srcbuff":"s","srcoff":1e400,"cnt":1})")),
      HasSubstr("the number here is too large"));
}

TEST(MscclppOlderSchema, truncated_plans_fail_and_never_crash) {
  const std::string text = older_text(kOps[5].older);
  for (std::size_t length = 0; length + 1 < text.size(); length += 7)
    EXPECT_THAT(refusal_of_older(text.substr(0, length)), HasSubstr("error")) << length;
}

}  // namespace
}  // namespace hemiola::program
