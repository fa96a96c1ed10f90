// Microbenchmarks are free of races and deadlock; those that promise a result have it.
#include <gtest/gtest.h>

#include "machine/machine.h"
#include "program/kernel.h"
#include "verify/verify.h"

namespace hemiola::verify {
namespace {

Proof proof_of(const std::string& name, const plan::Parameters& parameters = {}) {
  const program::Program program = program::load(name, {.ranks = 2, .parameters = parameters});
  return check(program::bind(program, nullptr, {.size = KiB(4)}));
}

TEST(Microbenchmarks, are_proven) {
  int found = 0;
  for (const program::KernelInfo& info : program::kernels()) {
    if (!info.name.starts_with("micro/")) continue;
    ++found;
    EXPECT_EQ(proof_of(info.name).verdict, Verdict::proven)
        << info.name << ": " << proof_of(info.name).summary;
  }
  EXPECT_GE(found, 7);
  EXPECT_EQ(proof_of("micro/ping-pong", {{"memory", "peer"}}).verdict, Verdict::proven);
  EXPECT_EQ(proof_of("micro/ping-pong", {{"release", "1"}}).verdict, Verdict::proven);
  EXPECT_EQ(proof_of("micro/pointer-chase", {{"memory", "peer"}}).verdict, Verdict::proven);
  EXPECT_EQ(proof_of("micro/hand-over", {{"blocks", "7"}}).verdict, Verdict::proven);
  for (const std::string engine : {"cu", "dma", "proxy"}) {
    for (const std::string ways : {"one", "both", "all"})
      EXPECT_EQ(proof_of("micro/copy", {{"engine", engine}, {"ways", ways}}).verdict,
                Verdict::proven)
          << engine << ' ' << ways;
  }
}

TEST(Microbenchmarks, the_port_channel_delivers) {
  EXPECT_EQ(proof_of("send-recv/mscclpp-port").verdict, Verdict::proven);
}

TEST(Microbenchmarks, a_turn_that_nobody_takes_is_found) {
  program::Program program = program::load("micro/hand-over", {.ranks = 2});
  program.by_size = nullptr;
  for (program::Op& op : program.bodies[0].ops) {
    if (op.kind == program::OpKind::compare_swap) op.target = 1;  // both wait for the other
  }
  EXPECT_EQ(check(program::bind(program, nullptr, {.size = KiB(4)})).verdict, Verdict::deadlock);
}

}  // namespace
}  // namespace hemiola::verify
