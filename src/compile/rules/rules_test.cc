// Rules of memory order, each with a kernel that keeps it and one that breaks it.
#include "compile/rules/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hemiola::compile {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kWait =
    "    while tl.atomic_add(flag, 0, sem=\"acquire\", scope=\"sys\") < 1:\n        pass\n";
constexpr const char* kBarrier = "    tl.debug_barrier()\n";
constexpr const char* kLoad = "    x = tl.load(a + i * 64 + tl.arange(0, 64))\n";
constexpr const char* kStore = "    tl.store(c + i * 64 + tl.arange(0, 64), x)\n";
constexpr const char* kSignal =
    "    peer = tl.load(peers).to(tl.pointer_type(tl.int32))\n"
    "    tl.atomic_xchg(peer + 3, 1, sem=\"release\", scope=\"sys\")\n";

/// Names of the rules that a kernel of these lines breaks.
std::vector<std::string> broken(const std::string& body, const std::string& target = "cuda",
                                const std::string& triton = "") {
  Library library;
  const Module& module = library.add(
      "k.py",
      "import triton\nimport triton.language as tl\n\n\n@triton.jit\n"
      "def spin(p, SCOPE: tl.constexpr):\n"
      "    while tl.atomic_cas(p, 1, 0, sem=\"acquire\", scope=SCOPE) != 1:\n        pass\n"
      "    tl.debug_barrier()\n\n\n@triton.jit\n"
      "def k(a, c, flag, counters, peers, n, M, N):\n    i = tl.program_id(0)\n" +
          body);
  const RuleReport report =
      check_rules(library, module, {.kernel = "k", .target = target, .triton = triton});
  std::vector<std::string> rules;
  for (const Violation& one : report.violations) rules.push_back(one.rule);
  return rules;
}

class Rules : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_parse()) GTEST_SKIP() << why_it_cannot_parse();
  }
};

TEST_F(Rules, are_kept_by_a_wait_in_front_and_a_signal_behind) {
  EXPECT_THAT(broken(std::string(kWait) + kBarrier + kLoad + kStore + kBarrier + kSignal),
              IsEmpty());
}

TEST_F(Rules, want_acquire_at_a_wait) {
  EXPECT_THAT(
      broken(
          "    while tl.atomic_add(flag, 0, sem=\"relaxed\", scope=\"sys\") < 1:\n        pass\n" +
          std::string(kBarrier) + kLoad + kStore),
      ElementsAre("wait-acquire"));
}

TEST_F(Rules, want_a_turn_that_is_given_on_to_be_taken) {
  const std::string take =
      "    while tl.atomic_cas(flag, 0, 1, sem=\"acquire\", scope=\"gpu\") != 0:\n        pass\n";
  const std::string give = "    tl.atomic_xchg(flag, 0, sem=\"release\", scope=\"gpu\")\n";
  EXPECT_THAT(broken(take + kBarrier + kLoad + kStore + kBarrier + give), IsEmpty());
  EXPECT_THAT(broken(kBarrier + std::string(kLoad) + kStore + kBarrier + give),
              ElementsAre("turn-taken"));
  EXPECT_THAT(broken(give), IsEmpty());  // makes it free for a kernel behind it
}

TEST_F(Rules, know_where_triton_puts_a_barrier_itself) {
  EXPECT_THAT(broken(std::string(kWait) + kLoad + kStore), IsEmpty());
  const std::string told = std::string(kLoad) + kStore + kSignal;
  EXPECT_THAT(broken(told, "cuda", "3.9"), IsEmpty());
  EXPECT_THAT(broken(told, "cuda", "3.8"), ElementsAre("signal-barrier"));
}

TEST_F(Rules, want_a_scope_that_reaches_peers) {
  // Who tells is not in the kernel: it may be a program of the same GPU.
  EXPECT_THAT(broken("    spin(flag, \"gpu\")\n" + std::string(kLoad) + kStore), IsEmpty());
  EXPECT_THAT(broken("    spin(flag, \"sys\")\n" + std::string(kLoad) + kStore), IsEmpty());
  EXPECT_THAT(broken(std::string(kLoad) + kStore + kBarrier +
                     "    peer = tl.load(peers).to(tl.pointer_type(tl.int32))\n"
                     "    tl.atomic_xchg(peer, 1, sem=\"release\")\n"),
              ElementsAre("scope"));
}

TEST_F(Rules, let_programs_of_one_gpu_meet_at_its_scope) {
  EXPECT_THAT(
      broken(
          std::string(kLoad) + kStore + kBarrier +
          "    tl.atomic_add(flag, 1)\n"
          "    while tl.atomic_add(flag, 0, sem=\"acquire\", scope=\"gpu\") < n:\n        pass\n" +
          kBarrier),
      IsEmpty());
}

TEST_F(Rules, want_release_at_a_signal_and_a_barrier_before_it) {
  EXPECT_THAT(broken(std::string(kLoad) + kStore + kBarrier +
                     "    tl.atomic_xchg(flag, 1, sem=\"relaxed\", scope=\"sys\")\n"),
              ElementsAre("signal-release"));
  EXPECT_THAT(broken(std::string(kLoad) + kStore + kSignal), ElementsAre("signal-barrier"));
}

TEST_F(Rules, want_acq_rel_at_a_counter_whose_last_program_signals) {
  const auto counted = [](const char* sem) {
    return std::string(kLoad) + kStore + kBarrier +
           "    before = tl.atomic_add(counters, 1, sem=\"" + sem +
           "\", scope=\"gpu\")\n    if before == n - 1:\n"
           "        tl.atomic_xchg(flag, 1, sem=\"release\", scope=\"sys\")\n";
  };
  EXPECT_THAT(broken(counted("acq_rel")), IsEmpty());
  EXPECT_THAT(broken(counted("release")), ElementsAre("counter-acq-rel"));
  EXPECT_THAT(broken(counted("relaxed")), ElementsAre("counter-acq-rel"));
}

TEST_F(Rules, want_bulk_stores_complete_before_they_are_told_of) {
  const std::string stored =
      "    d = tl.make_tensor_descriptor(c, shape=[M, N], strides=[N, 1], block_shape=[64, 64])\n"
      "    d.store([i * 64, 0], tl.zeros((64, 64), dtype=tl.float32))\n";
  EXPECT_THAT(broken(stored + kBarrier + kSignal), ElementsAre("bulk-completion"));
  EXPECT_THAT(broken(stored + kBarrier + kSignal, "cdna"), IsEmpty());
  const auto wait = [](const char* kind) {
    return std::string("    tl.inline_asm_elementwise(\"cp.async.bulk.wait_group") + kind +
           " 0; mov.u32 $0, 0;\", \"=r\", [], dtype=tl.int32, is_pure=False, pack=1)\n";
  };
  EXPECT_THAT(broken(stored + wait("") + kBarrier + kSignal), IsEmpty());
  // That they are read from shared memory says nothing of where they go.
  EXPECT_THAT(broken(stored + wait(".read") + kBarrier + kSignal), ElementsAre("bulk-completion"));
}

TEST_F(Rules, do_not_take_plain_loads_and_stores_for_flags) {
  EXPECT_THAT(broken("    while tl.load(flag) != 1:\n        pass\n" + std::string(kBarrier) +
                     kLoad + kStore),
              ElementsAre("plain-flag"));
  EXPECT_THAT(broken("    seen = tl.load(flag, volatile=True)\n    while seen != 1:\n        seen "
                     "= tl.load(flag, volatile=True)\n" +
                     std::string(kLoad) + kStore + kBarrier + "    tl.store(flag, 2)\n"),
              ElementsAre("plain-flag", "plain-flag"));  // and it sets what nobody awaits
  // One element of data is no flag.
  EXPECT_THAT(broken(std::string(kLoad) + kStore + "    tl.store(c + i, 1.0)\n"), IsEmpty());
}

TEST_F(Rules, take_sums_of_one_element_that_nobody_waits_for_as_data) {
  EXPECT_THAT(broken(std::string(kLoad) + kStore + "    tl.atomic_add(flag, 1.0)\n"), IsEmpty());
  EXPECT_THAT(broken(std::string(kLoad) + kStore + "    tl.atomic_add(flag, 1, sem=\"relaxed\")\n"),
              IsEmpty());
  EXPECT_THAT(broken(std::string(kLoad) + kStore +
                     "    tl.atomic_add(flag, 1, sem=\"relaxed\", scope=\"sys\")\n"),
              ElementsAre("signal-release", "signal-barrier"));
}

TEST_F(Rules, take_reductions_of_data_for_stores) {
  EXPECT_THAT(broken(std::string(kLoad) +
                     "    tl.atomic_add(c + i * 64 + tl.arange(0, 64), x, sem=\"relaxed\")\n" +
                     kBarrier + kSignal),
              IsEmpty());
}

TEST_F(Rules, accuse_no_protocol_of_which_a_call_was_not_followed) {
  const auto report = [](const std::string& told) {
    Library library;
    const Module& module = library.add(
        "k.py",
        "import triton\nimport triton.language as tl\nimport lib\n\n\n@triton.jit\n"
        "def k(flag, n):\n    tl.atomic_xchg(flag + 1, 1, sem=\"release\", scope=\"sys\")\n" +
            told +
            "    while tl.atomic_add(flag, 0, sem=\"acquire\", scope=\"sys\") < 1:\n"
            "        pass\n");
    return check_rules(library, module, {});
  };
  EXPECT_EQ(report("").violations.at(0).rule, "endless");
  const RuleReport open = report("    lib.tell(flag)\n");
  EXPECT_THAT(open.violations, IsEmpty());
  ASSERT_EQ(open.not_judged.size(), 2);
  EXPECT_EQ(open.not_judged[0], "k.py:9: lib.tell() is not followed");
}

}  // namespace
}  // namespace hemiola::compile
