// A verdict is one for an executor: how many operations fit into a FIFO, how chunks are cut, which
// thread waits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "program/semantics/executor.h"
#include "verify/execute.h"
#include "verify/programs/sizes.h"
#include "verify/testing/programs.h"

namespace hemiola::verify {
namespace {

using ::testing::HasSubstr;

struct MscclStep {
  const char* type;  ///< "s", "r"
  int offset, count;
};

/// Two ranks with one thread block each, which run `first` and `second` of an all-to-all of
/// `chunks` chunks. Copies of what stays are added in front.
std::string exchange_xml(const char* protocol, int chunks, const std::vector<MscclStep>& first,
                         const std::vector<MscclStep>& second) {
  const auto step = [](std::size_t number, const char* type, int from, int to, int count) {
    return "<step s=\"" + std::to_string(number) + "\" type=\"" + type +
           "\" srcbuf=\"i\" srcoff=\"" + std::to_string(from) + "\" dstbuf=\"o\" dstoff=\"" +
           std::to_string(to) + "\" cnt=\"" + std::to_string(count) +
           "\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>";
  };
  const std::string number = std::to_string(chunks);
  std::string xml = "<algo name=\"exchange\" proto=\"" + std::string(protocol) +
                    "\" nchannels=\"1\" nchunksperloop=\"" + number +
                    "\" ngpus=\"2\" coll=\"alltoall\" inplace=\"0\" outofplace=\"1\">";
  for (int rank = 0; rank < 2; ++rank) {
    const std::string peer = std::to_string(1 - rank);
    xml += "<gpu id=\"" + std::to_string(rank) + "\" i_chunks=\"" + number + "\" o_chunks=\"" +
           number + "\" s_chunks=\"0\"><tb id=\"0\" send=\"" + peer + "\" recv=\"" + peer +
           "\" chan=\"0\">";
    xml += step(0, "cpy", rank * chunks / 2, rank * chunks / 2, chunks / 2);
    std::size_t at = 1;
    for (const MscclStep& one : rank == 0 ? first : second)
      xml += step(at++, one.type, one.offset, one.offset, one.count);
    xml += "</tb></gpu>";
  }
  return xml + "</algo>";
}

/// `count` sends, then as many receives, on both.
std::string exchanges(const char* protocol, int count) {
  std::vector<MscclStep> first, second;
  for (int i = 0; i < count; ++i) {
    first.push_back({"s", count + i, 1});
    second.push_back({"s", i, 1});
  }
  for (int i = 0; i < count; ++i) {
    first.push_back({"r", count + i, 1});
    second.push_back({"r", i, 1});
  }
  return exchange_xml(protocol, 2 * count, first, second);
}

program::Bound under(const std::string& xml, std::string_view executor, Bytes size) {
  const program::Program program = program::read_msccl(xml, "exchange.xml", executor);
  return program::bind(program, nullptr,
                       {.size = program.next_legal_size(size, DataType::float32)});
}

struct Room {
  const char* executor;
  const char* protocol;
  int fits;  ///< sends that nobody has received yet
};

TEST(Executors, have_room_for_so_many_operations_as_their_source_says) {
  for (const Room& room :
       {Room{"msccl", "Simple", 2}, Room{"rccl", "Simple", 2}, Room{"msccl-slice1", "Simple", 2},
        Room{"hemiola", "Simple", 4}, Room{"msccl", "LL", 8}, Room{"rccl", "LL128", 8}}) {
    SCOPED_TRACE(std::string(room.executor) + " " + room.protocol);
    for (const Bytes size : {Bytes{64}, KiB(100)}) {
      const Proof right = check(under(exchanges(room.protocol, room.fits), room.executor, size));
      EXPECT_EQ(right.verdict, Verdict::proven) << right.summary;
      EXPECT_EQ(right.executor, room.executor);
      const program::Bound hangs =
          under(exchanges(room.protocol, room.fits + 1), room.executor, size);
      const Proof wrong = check(hangs);
      EXPECT_EQ(wrong.verdict, Verdict::deadlock);
      EXPECT_THAT(wrong.summary, HasSubstr("2 workgroups wait for each other"));
      EXPECT_EQ(wrong.counterexample.size(), 2u);
      EXPECT_EQ(execute(hangs).outcome, Outcome::hang);
    }
  }
}

/// Rank 1 sends three chunks as one operation, of which rank 0 receives two.
std::string mismatch(const char* protocol) {
  return exchange_xml(protocol, 4, {{"s", 2, 2}, {"r", 2, 2}}, {{"s", 0, 3}, {"r", 0, 2}});
}

TEST(Executors, that_cut_a_send_otherwise_than_its_receive_move_wrong_bytes) {
  for (const char* executor : {"msccl", "rccl"}) {
    const program::Bound cut = under(mismatch("Simple"), executor, MiB(1));
    const Proof proof = check(cut);
    EXPECT_EQ(proof.verdict, Verdict::wrong) << executor;
    EXPECT_THAT(proof.summary, HasSubstr("wrong result"));
    EXPECT_EQ(execute(cut).outcome, Outcome::wrong);
    const Proof small = check(under(mismatch("Simple"), executor, KiB(16)));
    EXPECT_EQ(small.verdict, Verdict::proven) << "one slice has all: " << small.summary;
  }
  for (const char* executor : {"hemiola", "msccl-slice1"})
    EXPECT_EQ(check(under(mismatch("Simple"), executor, MiB(1))).verdict, Verdict::proven);
  EXPECT_EQ(check(under(mismatch("LL"), "msccl", KiB(16))).verdict, Verdict::proven)
      << "lines have flags of their own, and an operation is one step";
}

TEST(Executors, take_chunks_together_as_far_as_a_call_has_room) {
  // 24 KiB each: one to a call of LL (32 KiB), and of these rank 0 receives one less.
  const program::Bound bound = under(mismatch("LL"), "msccl", KiB(96));
  const Proof proof = check(bound);
  EXPECT_EQ(proof.verdict, Verdict::wrong) << proof.summary;
  EXPECT_EQ(execute(bound).outcome, Outcome::wrong);
}

TEST(Executors, of_a_class_of_sizes_all_have_the_verdict_of_one) {
  const std::string xml =
      exchange_xml("Simple", 6, {{"s", 3, 3}, {"r", 3, 3}}, {{"s", 0, 3}, {"r", 0, 3}});
  const program::Program program = program::read_msccl(xml, "exchange.xml");
  for (const Bytes size : {Bytes{240}, KiB(60), KiB(96), KiB(768), MiB(3)}) {
    const program::Bound bound = program::bind(program, nullptr, {.size = size});
    const Proof proof = check(bound);
    ASSERT_EQ(proof.verdict, Verdict::proven) << proof.summary;
    const SizeClass sizes = size_class(program, bound, proof);
    EXPECT_TRUE(sizes.contains(size)) << to_string(size);
    EXPECT_LT(sizes.min, sizes.max) << to_string(size) << sizes.why;
    const std::int64_t step =
        std::max(sizes.multiple, program.next_legal_size({1}, DataType::float32)).count;
    for (const std::int64_t at : {sizes.min.count, sizes.min.count + step, sizes.max.count}) {
      const Proof there = check(program::bind(program, nullptr, {.size = {at}}));
      EXPECT_EQ(there.verdict, Verdict::proven) << to_string(Bytes{at}) << there.summary;
    }
  }
}

/// What is proven for an executor ends, and gives what it should, where that executor runs it.
TEST(Executors, that_a_program_is_proven_for_run_it) {
  std::mt19937 random(7);
  int proven = 0, deadlocks = 0;
  for (int trial = 0; trial < 120; ++trial) {
    constexpr int kHalf = 4;  // chunks that each rank gets
    std::vector<MscclStep> sides[2];
    for (int rank = 0; rank < 2; ++rank) {
      // Cut into operations of 1 to 3 chunks on each side by itself, receives among the sends.
      const auto cut = [&](const char* type, int begin) {
        std::vector<MscclStep> all;
        for (int at = 0; at < kHalf;) {
          const int count = std::min(1 + static_cast<int>(random() % 3), kHalf - at);
          all.push_back({type, begin + at, count});
          at += count;
        }
        return all;
      };
      std::vector<MscclStep> sends = cut("s", rank == 0 ? kHalf : 0);
      std::vector<MscclStep> receives = cut("r", rank == 0 ? kHalf : 0);
      while (!sends.empty() || !receives.empty()) {
        auto& from = receives.empty() || (!sends.empty() && random() % 3 != 0) ? sends : receives;
        sides[rank].push_back(from.front());
        from.erase(from.begin());
      }
    }
    const char* protocols[] = {"Simple", "LL", "LL128"};
    const char* protocol = protocols[random() % 3];
    const std::string xml = exchange_xml(protocol, 2 * kHalf, sides[0], sides[1]);
    const auto& executor = program::executors()[random() % program::executors().size()];
    if (!executor.format.empty() && executor.format != "msccl") continue;
    const program::Bound bound =
        under(xml, executor.name, Bytes{static_cast<std::int64_t>(random() % 4096) * 256});
    const Proof proof = check(bound);
    const Execution run = execute(bound, {.rounds = proof.calls > 0 ? proof.calls : 1});
    if (proof.verdict == Verdict::proven) {
      ++proven;
      EXPECT_EQ(run.outcome, Outcome::right) << executor.name << protocol << run.summary << xml;
    }
    deadlocks += proof.verdict == Verdict::deadlock ? 1 : 0;
    if (proof.verdict == Verdict::deadlock) {
      EXPECT_EQ(run.outcome, Outcome::hang) << executor.name << protocol << proof.summary << xml;
    }
  }
  EXPECT_GT(proven, 10);
  EXPECT_GT(deadlocks, 5);
}

// --- MSCCL++ -------------------------------------------------------------------------------------

/// Two GPUs with two channels of a type to each other; they run `first` and `second`.
std::string channels_json(const std::string& type, const std::string& first,
                          const std::string& second) {
  std::string gpus;
  for (int rank = 0; rank < 2; ++rank) {
    const std::string peer = std::to_string(1 - rank);
    gpus += std::string(rank > 0 ? ", " : "") + "{\"id\": " + std::to_string(rank) +
            R"(, "input_chunks": 1, "output_chunks": 1, "scratch_chunks": 0, "threadblocks": )" +
            R"([{"id": 0, "ops": [)" + (rank == 0 ? first : second) +
            R"(], "channels": [{"channel_type": ")" + type +
            R"(", "channel_ids": [0, 1]}]}], "channels": [{"channel_type": ")" + type +
            R"(", "connected_to": [)" + peer + ", " + peer + R"(]}], "semaphores": []})";
  }
  return R"({"name": "wait", "collective": "custom", "protocol": "Simple", "inplace": true, )"
         R"("gpus": [)" +
         gpus + "]}";
}

using ChannelOps = std::vector<std::pair<const char*, int>>;  ///< name, channel; -1: both

std::string json_of(const std::string& type, const ChannelOps& list) {
  std::string ops;
  for (const auto& [name, channel] : list) {
    ops += std::string(ops.empty() ? "" : ", ") + "{\"name\": \"" + name + "\"";
    if (std::string_view(name) != "nop")
      ops += ", \"channel_type\": \"" + type + "\", \"channel_ids\": [" +
             (channel < 0 ? "0, 1" : std::to_string(channel)) + "]";
    ops += "}";
  }
  return ops;
}

Verdict verdict_of(const std::string& type, const ChannelOps& first, const ChannelOps& second,
                   std::string_view executor = {}) {
  const program::Program program = program::read_mscclpp(
      channels_json(type, json_of(type, first), json_of(type, second)), "wait.json", executor);
  return check(program::bind(program, nullptr, {.size = KiB(1)})).verdict;
}
/// Both run the same.
Verdict verdict_of(const std::string& type, const ChannelOps& ops, std::string_view executor = {}) {
  return verdict_of(type, ops, ops, executor);
}

TEST(Executors, of_mscclpp_wait_and_then_post_in_one_thread) {
  for (const char* type : {"port", "memory"}) {
    SCOPED_TRACE(type);
    EXPECT_EQ(verdict_of(type, {{"wait", 0}, {"signal", 0}}), Verdict::deadlock);
    EXPECT_EQ(verdict_of(type, {{"wait", 0}, {"signal", 0}, {"wait", 1}, {"signal", 1}}),
              Verdict::deadlock);
    EXPECT_EQ(verdict_of(type, {{"signal", 0}, {"wait", 0}}), Verdict::partial)
        << "a custom collective";
    EXPECT_EQ(verdict_of(type, {{"signal", -1}, {"wait", -1}}), Verdict::partial);
    EXPECT_EQ(verdict_of(type, {{"wait", -1}, {"signal", -1}}), Verdict::deadlock);
    EXPECT_EQ(verdict_of(type, {{"wait", 1}, {"nop", 0}, {"signal", 1}}), Verdict::deadlock);
  }
  EXPECT_EQ(verdict_of("port", {{"wait", 0}, {"signal", 0}}, "hemiola"), Verdict::deadlock);
}

TEST(Executors, of_mscclpp_bring_the_threads_of_a_warp_together) {
  // Thread 1 could go on while thread 0 waits for what only thread 1's signal brings about.
  for (const char* type : {"port", "memory"}) {
    EXPECT_EQ(verdict_of(type, {{"wait", -1}, {"signal", -1}},
                         {{"signal", 1}, {"wait", 1}, {"signal", 0}, {"wait", 0}}),
              Verdict::deadlock);
    EXPECT_EQ(verdict_of(type, {{"wait", -1}, {"signal", -1}},
                         {{"signal", 1}, {"signal", 0}, {"wait", 1}, {"wait", 0}}),
              Verdict::partial);
  }
}

TEST(Executors, are_those_of_the_file_s_format) {
  const std::string xml = exchanges("Simple", 1);
  try {
    program::read_msccl(xml, "exchange.xml", "mscclpp");
    FAIL() << "it was read";
  } catch (const Failure& failure) {
    EXPECT_THAT(failure.diagnostics().render(), HasSubstr("'mscclpp' is no executor of this file"));
    EXPECT_THAT(failure.diagnostics().render(), HasSubstr("msccl, rccl, msccl-slice1, hemiola"));
  }
  EXPECT_TRUE(program::read_msccl(xml, "exchange.xml").executed_by.assumed);
  EXPECT_FALSE(program::read_msccl(xml, "exchange.xml", "msccl").executed_by.assumed);
}

}  // namespace
}  // namespace hemiola::verify
