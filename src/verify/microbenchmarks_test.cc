// Microbenchmarks are free of races and deadlock; those that promise a result have it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machine/machine.h"
#include "plan/template.h"
#include "program/kernels/kernel.h"
#include "verify/verify.h"

namespace hemiola::verify {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Proof micro_proof(const std::string& name, const plan::Parameters& parameters = {}) {
  const program::Program program = program::load(name, {.ranks = 2, .parameters = parameters});
  return check(program::bind(program, nullptr, {.size = KiB(4)}));
}

/// A custom program promises nothing; all else was proven.
void expect_micro_right(const std::string& name, const plan::Parameters& parameters = {}) {
  const Proof proof = micro_proof(name, parameters);
  std::string what = name;
  for (const auto& [parameter, value] : parameters) what += ' ' + parameter + '=' + value;
  EXPECT_EQ(proof.verdict, Verdict::partial) << what << ": " << proof.summary;
  EXPECT_THAT(proof.reasons, ElementsAre(HasSubstr("no postcondition"))) << what;
}

TEST(Microbenchmarks, are_free_of_races_and_deadlock) {
  int found = 0;
  for (const program::KernelInfo& info : program::kernels()) {
    if (!info.name.starts_with("micro/")) continue;
    ++found;
    expect_micro_right(info.name);
  }
  EXPECT_GE(found, 7);
  expect_micro_right("micro/ping-pong", {{"memory", "peer"}});
  expect_micro_right("micro/ping-pong", {{"release", "1"}});
  expect_micro_right("micro/pointer-chase", {{"memory", "peer"}});
  expect_micro_right("micro/hand-over", {{"blocks", "7"}});
  for (const std::string engine : {"cu", "dma", "proxy"})
    for (const std::string ways : {"one", "both", "all"})
      expect_micro_right("micro/copy", {{"engine", engine}, {"ways", ways}});
}

TEST(Microbenchmarks, the_port_channel_delivers) {
  EXPECT_EQ(micro_proof("send-recv/mscclpp-port").verdict, Verdict::proven);
}

TEST(Microbenchmarks, two_that_take_the_same_turn_are_found) {
  program::Program program = program::load("micro/hand-over", {.ranks = 2}).sized({.size = KiB(4)});
  for (program::Body& body : program.bodies) {
    for (program::Op& op : body.ops)
      if (op.kind == program::OpKind::compare_swap) op.target = 0;
  }
  const Proof proof = check(program::bind(program, nullptr, {.size = KiB(4)}));
  EXPECT_EQ(proof.verdict, Verdict::partial);
  EXPECT_EQ(proof.reasons.size(), 2u) << "who goes first is not determined";
}

TEST(Microbenchmarks, a_turn_that_nobody_takes_is_found) {
  program::Program program = program::load("micro/hand-over", {.ranks = 2}).sized({.size = KiB(4)});
  for (program::Op& op : program.bodies[0].ops)
    if (op.kind == program::OpKind::compare_swap) op.target = 1;  // both wait for the other
  EXPECT_EQ(check(program::bind(program, nullptr, {.size = KiB(4)})).verdict, Verdict::deadlock);
}

}  // namespace
}  // namespace hemiola::verify
