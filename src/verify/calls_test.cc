// Programs that are called again and again: what one call leaves to the next.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "verify/execute.h"
#include "verify/testing/programs.h"

namespace hemiola::verify {
namespace {

using namespace test;
using ::testing::HasSubstr;

using Bodies = std::vector<std::vector<std::vector<Op>>>;

/// All-reduce of two ranks that meet at the end of a call: nobody overwrites what is still read.
Bodies closed_exchange() {
  Bodies bodies = exchange_and_add();
  for (int rank = 0; rank < 2; ++rank) {
    auto& ops = bodies[static_cast<std::size_t>(rank)][0];
    ops.insert(ops.end(), {sync(), flag(OpKind::relaxed_signal, {{1 - rank, 1}}),
                           flag(OpKind::relaxed_wait, {{rank, 1}}), sync()});
  }
  return bodies;
}

program::Bound all_reduce_program(const Bodies& bodies) {
  return make(Collective::all_reduce, 2, bodies);
}

TEST(Calls, three_that_do_not_disturb_each_other_are_proven) {
  const Proof proof = check(all_reduce_program(closed_exchange()));
  EXPECT_EQ(proof.verdict, Verdict::proven) << proof.summary;
  EXPECT_EQ(proof.calls, 3);
  EXPECT_THAT(proof.proven, testing::Contains("calls back to back do not disturb each other"));
  EXPECT_TRUE(proof.warnings.empty()) << proof.warnings.render();
}

TEST(Calls, one_says_nothing_of_a_second) {
  const Proof proof = check(all_reduce_program(exchange_and_add()), {.calls = 1});
  EXPECT_EQ(proof.verdict, Verdict::proven) << proof.summary;
  EXPECT_EQ(proof.calls, 1);
  for (const std::string& what : proof.proven) EXPECT_EQ(what.find("back to back"), what.npos);
}

TEST(Calls, that_overwrite_what_the_one_before_still_reads_are_wrong) {
  const Proof proof = check(all_reduce_program(exchange_and_add()));
  EXPECT_EQ(proof.verdict, Verdict::wrong);
  EXPECT_THAT(proof.summary, HasSubstr("in call 2: data race on bytes"));
  ASSERT_EQ(proof.counterexample.size(), 2u);
  EXPECT_THAT(proof.counterexample[1].text, HasSubstr("(call 2)"));
}

TEST(Calls, find_a_signal_that_the_one_before_left) {
  Bodies bodies = closed_exchange();
  bodies[0][0].push_back(signal(1, 0));
  const Proof proof = check(all_reduce_program(bodies));
  EXPECT_EQ(proof.verdict, Verdict::wrong);
  ASSERT_GE(proof.counterexample.size(), 2u);
  EXPECT_EQ(proof.counterexample[0].operation, "op 10 (signal)");
  EXPECT_THAT(proof.counterexample[0].text, HasSubstr("channel 0 of rank 1 in call 1"));
  const Proof once = check(all_reduce_program(bodies), {.calls = 1});
  EXPECT_EQ(once.verdict, Verdict::proven) << once.summary;
  ASSERT_EQ(once.warnings.items().size(), 1u);
  EXPECT_THAT(once.warnings.items()[0].message, HasSubstr("a call leaves 1 signal in channel 0"));
  EXPECT_THAT(once.warnings.items()[0].hint, HasSubstr("a next call"));
}

TEST(Calls, are_wrong_where_signals_pile_up_even_if_the_next_results_are_right) {
  // Nothing depends on channel 2, but each call leaves one more signal in it.
  Bodies bodies = closed_exchange();
  bodies[0][0].insert(bodies[0][0].end(), {signal(1, 2), signal(1, 2)});
  bodies[1][0].push_back(wait(1, 2));
  const Proof proof = check(all_reduce_program(bodies));
  EXPECT_EQ(proof.verdict, Verdict::wrong);
  EXPECT_THAT(proof.summary, HasSubstr("a call leaves 1 signal in channel 2 of rank 1"));
  ASSERT_EQ(proof.counterexample.size(), 1u);
  EXPECT_EQ(proof.counterexample[0].rank, 0);
}

TEST(Calls, are_not_disturbed_by_signals_that_nobody_ever_waits_for) {
  Bodies bodies = closed_exchange();
  bodies[0][0].push_back(signal(1, 3));
  const Proof proof = check(all_reduce_program(bodies));
  EXPECT_EQ(proof.verdict, Verdict::proven) << proof.summary;
  ASSERT_EQ(proof.warnings.items().size(), 1u);
  EXPECT_THAT(proof.warnings.items()[0].message, HasSubstr("nobody waits for it"));
}

/// Rank 0's second workgroup may run when it finds a signal in a semaphore that has some.
program::Bound with_initial(std::int64_t initial, bool brings_back) {
  Bodies bodies = closed_exchange();
  bodies[0].push_back({wait(0, 2)});
  if (brings_back) bodies[0][1].push_back(signal(0, 2));
  return program::changed(all_reduce_program(bodies),
                          [&](program::Program& p) { p.semaphores[2].initial = initial; });
}

TEST(Calls, that_bring_back_what_they_take_keep_the_initial_value) {
  const Proof proof = check(with_initial(1, true));
  EXPECT_EQ(proof.verdict, Verdict::proven) << proof.summary;
  EXPECT_TRUE(proof.warnings.empty()) << proof.warnings.render();
}

TEST(Calls, use_up_an_initial_value_that_none_of_them_brings_back) {
  EXPECT_EQ(check(with_initial(2, false)).verdict, Verdict::deadlock) << "call 3 waits for ever";
  const Proof later = check(with_initial(9, false));
  EXPECT_EQ(later.verdict, Verdict::wrong);
  EXPECT_THAT(later.summary, HasSubstr("a call takes 1 signal more from channel 2 of rank 0"));
}

/// Two ranks that send to each other; rank 0 once more than rank 1 receives.
std::string gather(const char* protocol, bool extra) {
  const auto step = [](int number, const char* type, int offset) {
    const std::string s = std::to_string(offset);
    return "<step s=\"" + std::to_string(number) + "\" type=\"" + type +
           "\" srcbuf=\"o\" srcoff=\"" + s + "\" dstbuf=\"o\" dstoff=\"" + s +
           "\" cnt=\"1\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>";
  };
  std::string xml = "<algo name=\"gather\" proto=\"" + std::string(protocol) +
                    "\" nchannels=\"1\" nchunksperloop=\"2\" ngpus=\"2\" coll=\"allgather\" "
                    "inplace=\"1\">";
  for (int rank = 0; rank < 2; ++rank) {
    const std::string peer = std::to_string(1 - rank);
    xml += "<gpu id=\"" + std::to_string(rank) +
           "\" i_chunks=\"0\" o_chunks=\"2\" s_chunks=\"0\"><tb id=\"0\" send=\"" + peer +
           "\" recv=\"" + peer + "\" chan=\"0\">" + step(0, "s", rank) + step(1, "r", 1 - rank);
    if (rank == 0 && extra) xml += step(2, "s", rank);
    xml += "</tb></gpu>";
  }
  return xml + "</algo>";
}

program::Bound gather_of(const char* protocol, bool extra) {
  return program::bind(program::read_msccl(gather(protocol, extra), "gather.xml"), nullptr,
                       {.size = KiB(4)});
}

TEST(Calls, receive_first_what_the_one_before_sent_too_much) {
  for (const char* protocol : {"Simple", "LL", "LL128"}) {
    SCOPED_TRACE(protocol);
    const Proof right = check(gather_of(protocol, false));
    EXPECT_EQ(right.verdict, Verdict::proven) << right.summary;
    const Proof proof = check(gather_of(protocol, true));
    EXPECT_EQ(proof.verdict, Verdict::wrong);
    EXPECT_THAT(proof.summary, HasSubstr("in call 2: wrong result"));
    EXPECT_THAT(proof.summary, HasSubstr("of call 1"));
    ASSERT_EQ(proof.counterexample.size(), 2u);
    EXPECT_EQ(proof.counterexample[0].where, "/algo/gpu[0]/tb[0]/step[2]");
    EXPECT_EQ(check(gather_of(protocol, true), {.calls = 1}).verdict, Verdict::proven);
    EXPECT_EQ(execute(gather_of(protocol, true), {.rounds = 3}).outcome, Outcome::wrong);
  }
}

}  // namespace
}  // namespace hemiola::verify
