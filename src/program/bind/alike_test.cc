// Programs for many ranks are checked on one rank where that is enough, and only there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machine/machine.h"
#include "program/bind/bound.h"
#include "program/bind/check.h"

namespace hemiola::program {
namespace {

using ::testing::HasSubstr;

constexpr int kRanks = 32;

/// Every rank stores a chunk into the output of the next one.
Program storing(const Affine& chunk, std::int64_t chunks = 1) {
  Program program;
  program.name = program.source = "test";
  program.collective = Collective::all_gather;
  program.ranks = kRanks;
  program.buffers = {{.name = "input", .kind = BufferKind::input, .chunks = {chunks}},
                     {.name = "output", .kind = BufferKind::output, .chunks = {kRanks}}};
  Op put{.kind = OpKind::put, .channel = Channel::memory};
  put.src = {{.buffer = 0, .chunks = chunks}};
  put.dst = {{.rank = neighbour(1, kRanks), .buffer = 1, .chunk = chunk, .chunks = chunks}};
  program.bodies = {{{put}}};
  program.kernels = {{.threads = 32, .bodies = {0}}};
  program.codes = {{{{StreamItem{}}}}};
  program.code_of.assign(kRanks, 0);
  program.chunks_per_size = kRanks;
  program.finish();
  return program;
}

std::string bind_refusal(const Program& program, machine::SharedMachine machine = nullptr) {
  try {
    const Bytes size =
        program.fixed_size.count > 0 ? program.fixed_size : Bytes{16 * program.chunks_per_size};
    bind(program, std::move(machine), {.size = size, .type = DataType::float16});
  } catch (const Failure& failure) {
    return failure.diagnostics().items().front().message;
  }
  return "taken";
}

TEST(BindAlike, chunks_that_are_there_on_every_rank_need_one_look) {
  for (const Affine& chunk : {own_rank(), constant(3), neighbour(5, kRanks),
                              Affine{.constant = 2, .rank = 2, .modulus = kRanks}}) {
    const Program program = storing(chunk);
    for (const Op& op : program.bodies.front().ops)
      EXPECT_TRUE(is_alike_everywhere(program, op, {.rank = kRanks - 1})) << to_string(chunk);
    EXPECT_EQ(bind_refusal(program), "taken") << to_string(chunk);
  }
}

TEST(BindAlike, one_that_is_missing_on_some_rank_is_found) {
  EXPECT_THAT(bind_refusal(storing({.constant = 1, .rank = 1})),
              HasSubstr("chunks [32, 33) of output"));
  EXPECT_THAT(bind_refusal(storing({.constant = 20, .rank = -1})), HasSubstr("chunks [-1, 0)"));
  EXPECT_THAT(bind_refusal(storing(neighbour(1, kRanks), 2)),
              HasSubstr("chunks [31, 33) of output"));
  EXPECT_EQ(bind_refusal(storing({.constant = 2, .rank = 2, .modulus = kRanks}, 2)), "taken");
}

TEST(BindAlike, loops_that_stay_within_a_block_of_each_rank_need_one_look) {
  const auto op_of = [](const Affine& chunk) { return storing(chunk).bodies.front().ops.front(); };
  const Program program = storing(own_rank());  // one chunk of each rank
  const auto asks = [&](Affine chunk, std::int64_t rounds) {
    return is_alike_everywhere(program, op_of(chunk),
                               {.rank = kRanks - 1, .loop = {rounds - 1, 0}});
  };
  Affine blocks{.rank = 4, .loop = {1, 0}, .modulus = kRanks};
  EXPECT_TRUE(asks(blocks, 4));
  EXPECT_TRUE(asks(blocks, 5));                        // goes round, to chunks that are there
  EXPECT_FALSE(asks({.rank = 1, .loop = {1, 0}}, 2));  // beyond the last one's
  EXPECT_TRUE(asks({.rank = 1, .loop = {1, 0}}, 1));
  blocks.offset = 1;
  EXPECT_FALSE(asks(blocks, 4));
}

TEST(BindAlike, a_rank_that_stores_cannot_reach_is_found) {
  const machine::Machine nodes = machine::load("dgx-h100:4");
  EXPECT_THAT(bind_refusal(storing(own_rank()), machine::share(nodes)),
              HasSubstr("only reached through a NIC"));
  const machine::Machine one = machine::load("switch:32");
  EXPECT_EQ(bind_refusal(storing(own_rank()), machine::share(one)), "taken");
  const machine::Machine ring = machine::load("ring:32");  // no switch: every pair is looked at
  EXPECT_EQ(bind_refusal(storing(own_rank()), machine::share(ring)), "taken");
}

}  // namespace
}  // namespace hemiola::program
