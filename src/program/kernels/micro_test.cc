// What the microbenchmarks do, and what they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/template.h"
#include "program/testing/cursor.h"

namespace hemiola::program {
namespace {

using namespace testing_support;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Bound micro(const std::string& name, const plan::Parameters& parameters, int ranks = 2) {
  return bind(load(name, {.ranks = ranks, .parameters = parameters}), nullptr, {.size = KiB(1)});
}

std::string micro_failure(const std::string& name, const plan::Parameters& parameters,
                          int ranks = 2) {
  try {
    micro(name, parameters, ranks);
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "no failure";
}

/// Offset of each load of rank 0.
std::vector<std::int64_t> chain(const Bound& program) {
  std::vector<std::int64_t> offsets;
  Cursor cursor(program, 0, 0);
  for (Primitive p; cursor.next(p);) {
    EXPECT_EQ(p.kind, PrimitiveKind::move);
    EXPECT_EQ(p.bytes, 8);
    EXPECT_TRUE(p.dst.empty());
    offsets.push_back(p.src.front().offset);
  }
  return offsets;
}

TEST(PointerChase, is_a_chain_of_loads_that_returns_to_its_start) {
  EXPECT_THAT(
      chain(micro("micro/pointer-chase", {{"footprint", "512"}, {"stride", "128"}, {"hops", "6"}})),
      ElementsAre(0, 128, 256, 384, 0, 128));
  EXPECT_THAT(chain(micro("micro/pointer-chase",
                          {{"footprint", "500"}, {"stride", "256"}, {"start", "128"}})),
              ElementsAre(128, 384));
  EXPECT_EQ(chain(micro("micro/pointer-chase", {})).size(), 8u) << "--size 1 KiB, once around";
}

TEST(CompareSwap, is_a_relaxed_wait_and_what_it_adds) {
  Op op{.kind = OpKind::compare_swap, .semaphores = {{own_rank(), 0}}, .target = 1, .count = 2};
  Op loop{.kind = OpKind::loop, .count = 2};
  EXPECT_EQ(expand(bound(program_of({loop, op, {.kind = OpKind::end_loop}}))),
            (Lines{"wait 0:a=1", "signal 0:a=1", "wait 0:a=3", "signal 0:a=1"}));
}

TEST(ChainOfLoads, must_fit_its_memory) {
  const auto failure_of = [](std::int64_t count, std::int64_t unit) {
    Program program = program_of({{.kind = OpKind::load,
                                   .src = {{.buffer = 3}},
                                   .count = count,
                                   .unit = {unit},
                                   .bytes = {16}}});
    program.buffers[3] = {.name = "memory", .bytes = {96}};
    try {
      bound(program);
    } catch (const Failure& failure) {
      return std::string(failure.what());
    }
    return std::string("no failure");
  };
  EXPECT_EQ(failure_of(9, 48), "no failure");
  EXPECT_EQ(failure_of(1, 0), "no failure");
  EXPECT_THAT(failure_of(2, 0), HasSubstr("chain of loads"));
  EXPECT_THAT(failure_of(2, 40), HasSubstr("chain of loads"));
  EXPECT_THAT(failure_of(2, 64), HasSubstr("chain of loads"));
}

TEST(Microbenchmarks, local_ones_run_on_one_rank) {
  for (const std::string name :
       {"pointer-chase", "ping-pong", "hand-over", "fence", "barrier", "launch"})
    EXPECT_EQ(micro("micro/" + name, {}, 1).ranks(), 1);
  EXPECT_EQ(micro("micro/copy", {{"memory", "own"}}, 1).ranks(), 1);
}

TEST(Microbenchmarks, say_what_they_cannot_do) {
  EXPECT_THAT(micro_failure("micro/pointer-chase", {{"memory", "peer"}}, 1), HasSubstr("2 ranks"));
  EXPECT_THAT(micro_failure("micro/copy", {}, 1), HasSubstr("2 ranks"));
  EXPECT_THAT(micro_failure("micro/ping-pong", {{"memory", "peer"}}, 1), HasSubstr("2 ranks"));
  EXPECT_THAT(micro_failure("micro/pointer-chase", {{"stride", "4"}}), HasSubstr("8 B"));
  EXPECT_THAT(micro_failure("micro/pointer-chase", {{"footprint", "far"}}),
              HasSubstr("'footprint'"));
  EXPECT_THAT(micro_failure("micro/pointer-chase", {{"start", "1KiB"}}), HasSubstr("'start'"));
  EXPECT_THAT(micro_failure("micro/pointer-chase", {{"memory", "host"}}), HasSubstr("own, peer"));
  EXPECT_THAT(micro_failure("micro/copy", {{"engine", "proxy"}, {"direction", "read"}}),
              HasSubstr("only writes"));
  EXPECT_THAT(micro_failure("micro/copy", {{"threads", "2048"}}), HasSubstr("from 1 to 1024"));
  EXPECT_THAT(micro_failure("micro/hand-over", {{"blocks", "1"}}), HasSubstr("from 2"));
  EXPECT_THAT(micro_failure("micro/fence", {{"rounds", "0"}}), HasSubstr("from 1"));
  EXPECT_THAT(micro_failure("micro/launch", {{"grid", "1"}}), HasSubstr("no parameter 'grid'"));
}

}  // namespace
}  // namespace hemiola::program
