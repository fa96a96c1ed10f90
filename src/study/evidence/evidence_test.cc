#include "study/evidence/evidence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/diagnostics.h"
#include "machine/builders.h"
#include "study/laboratory/experiment.h"

namespace hemiola::study {
namespace {

using ::testing::HasSubstr;

constexpr const char* kHead =
    "device,kind,op,library,launch,ranks,nodes,amount,measured_us,simulated_us,table,line\n";

Likeness all_gather(const std::string& device, int ranks, double bytes, int nodes = 1) {
  return {.device = device,
          .kind = "library call",
          .op = "all-gather",
          .library = "NCCL",
          .ranks = ranks,
          .nodes = nodes,
          .amount = bytes};
}

/// Measured over simulated from 1.00 to 1.19.
EvidenceRows twenty(const Likeness& like, const std::string& table) {
  std::string text =
      "# stamp: abc\n# distance of another ranks: 0.5\n# distance of another device: 3\n"
      "# widening of library call: 0.05\n# widening by distance: 0.1\n";
  text += kHead;
  for (int i = 0; i < 20; ++i)
    text += like.device + ',' + like.kind + ',' + like.op + ",NCCL,," + std::to_string(like.ranks) +
            ',' + std::to_string(like.nodes) + ',' + std::to_string(like.amount) + ',' +
            std::to_string(100 + i) + ",100," + table + ',' + std::to_string(i + 1) + '\n';
  return read_evidence(text, "rows.csv");
}

TEST(Evidence, rows_that_are_the_same_give_their_range_and_a_little_more) {
  const EvidenceRows rows = twenty(all_gather("h100", 8, 1e6), "a.csv");
  EXPECT_EQ(rows.stamp, "abc");
  const auto found = evidence_of(all_gather("h100", 8, 1e6), rows);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rows, 16);
  EXPECT_EQ(found->distance, 0);
  EXPECT_NEAR(found->low, 1.015 * 0.9512 - 1, 0.003);
  EXPECT_NEAR(found->high, 1.135 * 1.0513 - 1, 0.003);
  EXPECT_THAT(evidence_line(all_gather("h100", 8, 1e6), found),
              HasSubstr("evidence: 16 measured rows like this (8 H100, NCCL all-gather"));
}

TEST(Evidence, farther_rows_give_wider_intervals) {
  const EvidenceRows rows = twenty(all_gather("h100", 8, 1e6), "a.csv");
  const auto found = [&](Likeness like) { return *evidence_of(like, rows); };
  const Evidence same = found(all_gather("h100", 8, 1e6));
  const Evidence half = found(all_gather("h100", 4, 1e6));
  const Evidence other = found(all_gather("a100", 8, 1e6));
  EXPECT_DOUBLE_EQ(half.distance, 0.5);
  EXPECT_DOUBLE_EQ(other.distance, 3);
  EXPECT_LT(half.low, same.low);
  EXPECT_GT(half.high, same.high);
  EXPECT_LT(other.low, half.low);
  EXPECT_GT(other.high, half.high);
}

TEST(Evidence, other_nodes_kinds_and_vendors_are_none) {
  const EvidenceRows rows = twenty(all_gather("h100", 8, 1e6), "a.csv");
  const auto two = evidence_of(all_gather("h100", 16, 1e6, 2), rows);
  ASSERT_TRUE(two);
  EXPECT_EQ(two->rows, 0);
  EXPECT_THAT(evidence_line(all_gather("h100", 16, 1e6, 2), two),
              HasSubstr("none for 2 nodes of h100; nearest: 8 H100"));
  EXPECT_FALSE(evidence_of(all_gather("mi300x", 8, 1e6), rows));
  EXPECT_FALSE(evidence_of(all_gather("ideal", 8, 1e6), rows));
  Likeness product = all_gather("h100", 8, 1e6);
  product.kind = "product";
  EXPECT_FALSE(evidence_of(product, rows));
  EXPECT_THAT(evidence_line(product, std::nullopt), HasSubstr("evidence: none"));
}

TEST(Evidence, a_table_can_be_left_out) {
  const EvidenceRows rows = twenty(all_gather("h100", 8, 1e6), "a.csv");
  EXPECT_FALSE(evidence_of(all_gather("h100", 8, 1e6), rows, "a.csv"));
  EXPECT_TRUE(evidence_of(all_gather("h100", 8, 1e6), rows, "b.csv"));
}

TEST(Evidence, several_answers_have_one_line) {
  const EvidenceRows rows = twenty(all_gather("h100", 8, 1e6), "a.csv");
  const std::vector<Likeness> likes{all_gather("h100", 8, 1e6), all_gather("h100", 4, 1e6)};
  const auto found = evidence_of(likes, rows);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rows, 16);
  EXPECT_DOUBLE_EQ(found->distance, 0.5);
}

TEST(Evidence, a_damaged_file_is_refused_with_its_line) {
  EXPECT_THROW(read_evidence("device,kind\n", "rows.csv"), Failure);
  try {
    read_evidence(std::string(kHead) + "h100,product,bf16,,1,1,none,2,3,t,1\n", "rows.csv");
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.diagnostics().items().front().where.line, 2);
  }
}

TEST(Evidence, the_shipped_rows_are_of_devices_and_kinds_that_are_known) {
  const EvidenceRows& rows = EvidenceRows::shipped();
  EXPECT_GT(rows.rows.size(), 1000U);
  EXPECT_FALSE(rows.stamp.empty());
  for (const EvidenceRow& row : rows.rows) EXPECT_FALSE(row.vendor.empty()) << row.like.device;
  for (const double far : rows.distances) EXPECT_GT(far, 0);
  EXPECT_GT(rows.by_distance, 0);
}

TEST(Evidence, what_a_bound_program_is_like) {
  Laboratory laboratory;
  const auto like = [&](const std::string& machine, const std::string& program,
                        const std::string& launch) {
    Experiment experiment{.machine = {.name = machine}, .subject = program, .size = MiB(1)};
    return likeness_of(laboratory.prepare(experiment), launch, MiB(1));
  };
  const auto nccl = like("dgx-h100", "all-gather/nccl", "stream");
  ASSERT_TRUE(nccl);
  EXPECT_EQ(nccl->kind, "library call");
  EXPECT_EQ(nccl->library, "NCCL");
  EXPECT_EQ(nccl->ranks, 8);
  EXPECT_EQ(nccl->nodes, 1);
  EXPECT_EQ(like("dgx-h100:2", "all-reduce/nccl", "stream")->nodes, 2);
  EXPECT_EQ(like("switch:8", "all-reduce/one-shot", "graph")->nodes, 1);
  EXPECT_EQ(like("dgx-h100", "all-reduce/vllm", "graph")->kind, "kernel");
  EXPECT_EQ(like("mi300x-8", "all-reduce/nccl", "stream")->library, "RCCL");
  const Experiment fused{.machine = {.name = "dgx-h100"},
                         .subject = std::string("micro/ping-pong")};
  const auto custom = likeness_of(laboratory.prepare(fused), "stream", MiB(1));
  EXPECT_EQ(custom->kind, "custom program");
}

}  // namespace
}  // namespace hemiola::study
