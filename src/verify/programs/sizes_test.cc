// For which sizes a proof of one size holds.
#include "verify/programs/sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "verify/testing/programs.h"

namespace hemiola::verify {
namespace {

using ::testing::HasSubstr;

/// An all-gather of two ranks through FIFOs, two chunks at a time.
std::string through_fifos() {
  const auto step = [](int s, const char* type, int offset, int count) {
    return "<step s=\"" + std::to_string(s) + "\" type=\"" + type + "\" srcbuf=\"o\" srcoff=\"" +
           std::to_string(offset) + "\" dstbuf=\"o\" dstoff=\"" + std::to_string(offset) +
           "\" cnt=\"" + std::to_string(count) + "\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>";
  };
  const auto gpu = [](int rank, const std::string& steps) {
    const std::string peer = std::to_string(1 - rank);
    return "<gpu id=\"" + std::to_string(rank) +
           "\" i_chunks=\"0\" o_chunks=\"4\" s_chunks=\"0\"><tb id=\"0\" send=\"" + peer +
           "\" recv=\"" + peer + "\" chan=\"0\">" + steps + "</tb></gpu>";
  };
  return "<algo name=\"fifos\" proto=\"Simple\" nchannels=\"1\" nchunksperloop=\"4\" "
         "ngpus=\"2\" coll=\"allgather\" inplace=\"1\">" +
         gpu(0, step(0, "s", 0, 2) + step(1, "r", 2, 2)) +
         gpu(1, step(0, "s", 2, 2) + step(1, "r", 0, 2)) + "</algo>";
}

struct SizedCase {
  program::Program program;
  program::Bound bound;
  Proof proof;
};
SizedCase at_size(program::Program program, Bytes size) {
  program::Bound bound = program::bind(program, nullptr, {.size = size});
  Proof proof = check(bound);
  return {std::move(program), std::move(bound), std::move(proof)};
}

SizeClass class_of(const SizedCase& it) {
  return size_class(it.program, it.bound, it.proof);
}

TEST(Sizes, where_everything_is_in_proportion_are_one_class) {
  const SizedCase it = at_size(program::load("all-gather/direct", {.ranks = 4}), KiB(64));
  const SizeClass sizes = class_of(it);
  EXPECT_EQ(it.proof.verdict, Verdict::proven);
  EXPECT_EQ(sizes.why, "");
  EXPECT_TRUE(sizes.open());
}

TEST(Sizes, at_which_as_many_slices_go_into_a_fifo_are_one_class) {
  // Half of the size is sent: up to a slot of 1 MiB, or to a slice that is not cut, of 32 KiB.
  for (const auto& [executor, most] : {std::pair("hemiola", MiB(2)), std::pair("msccl", KiB(64))}) {
    const program::Program program = program::read_msccl(through_fifos(), "fifos.xml", executor);
    const SizeClass one = class_of(at_size(program, KiB(64)));
    EXPECT_EQ(one.why, "");
    EXPECT_EQ(one.max, most) << executor;
    const SizedCase two =
        at_size(program, program.next_legal_size(one.max + Bytes{1}, DataType::float32));
    EXPECT_EQ(two.proof.verdict, Verdict::proven) << two.proof.summary;
    EXPECT_EQ(class_of(two).min, two.bound.size());
  }
}

TEST(Sizes, at_which_slices_are_halves_without_rounding_are_one_class) {
  const program::Program program = program::read_msccl(through_fifos(), "fifos.xml");
  const SizeClass halves = class_of(at_size(program, MiB(1)));
  EXPECT_EQ(halves.why, "");
  EXPECT_EQ(halves.multiple, Bytes{4 * 32 * 4}) << "32 elements in each of four chunks";
  EXPECT_TRUE(halves.contains(MiB(1) + halves.multiple));
  EXPECT_FALSE(halves.contains(MiB(1) + Bytes{16}));
  EXPECT_EQ(halves.max, MiB(4) - halves.multiple)
      << "slices of less than a slot; 2 MiB for each operation, of half of the size";
  EXPECT_THAT(class_of(at_size(program, MiB(1) + Bytes{16})).why, HasSubstr("rounded"));
}

TEST(Sizes, of_kernels_that_follow_the_size_are_looked_at_one_by_one) {
  const SizedCase it = at_size(program::load("all-reduce/trtllm-one-shot", {.ranks = 4}), KiB(16));
  const SizeClass sizes = class_of(it);
  EXPECT_EQ(sizes.min, sizes.max);
  EXPECT_THAT(sizes.why, HasSubstr("by the size"));
}

TEST(Sizes, beside_a_class_are_the_smallest_and_its_neighbours) {
  const program::Program program = program::read_msccl(through_fifos(), "fifos.xml");
  const SizedCase it = at_size(program, KiB(64));
  const Bytes step = program.next_legal_size({1}, DataType::float32);
  const std::vector<Bytes> beside =
      sizes_beside(program, it.bound, {.min = KiB(32), .max = KiB(128), .why = ""});
  ASSERT_EQ(beside.size(), 3u);
  EXPECT_EQ(beside[0], step);
  EXPECT_EQ(beside[1].count, KiB(32).count - step.count);
  EXPECT_EQ(beside[2].count, KiB(128).count + step.count);
}

/// The class that is claimed is right: the verdict at its ends, and between, is that of the size.
TEST(Sizes, of_a_class_all_have_the_verdict_of_one) {
  for (const char* name : {"all-reduce/ring", "all-gather/ring", "all-to-all/direct",
                           "reduce-scatter/direct", "all-reduce/two-shot"}) {
    const SizedCase it = at_size(program::load(name, {.ranks = 4}), KiB(192));
    ASSERT_EQ(it.proof.verdict, Verdict::proven) << name << it.proof.summary;
    const SizeClass sizes = class_of(it);
    const std::int64_t high = std::min(sizes.max.count, MiB(32).count);
    for (const std::int64_t size : {sizes.min.count, (sizes.min.count + high) / 2, high}) {
      const Bytes legal = it.program.next_legal_size({size}, DataType::float32);
      EXPECT_EQ(at_size(it.program, legal).proof.verdict, Verdict::proven)
          << name << to_string(legal);
    }
  }
}

}  // namespace
}  // namespace hemiola::verify
