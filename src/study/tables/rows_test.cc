// Tables of others by their own columns and words.
#include "study/tables/rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "study/tables/row_summary.h"

namespace hemiola::study {
namespace {

using ::testing::HasSubstr;

struct Words {
  explicit Words(const std::string& text, const std::string& file = "table.csv")
      : table(read_measured(read_table(text, file), file, {}, {})), words(table, laboratory) {}
  Laboratory laboratory;
  MeasuredTable table;
  TableWords words;
};

JudgedTable judged(const std::string& text, const std::string& file, JudgeOptions options = {}) {
  Laboratory laboratory;
  options.check = false;
  const TableText table = read_table(text, file);
  const JudgeRow judge = kind_of(table, file).kind == RowKind::product
                             ? judge_products(laboratory)
                             : judge_collectives(laboratory, options);
  return judge_rows(laboratory, table, file, options, judge);
}

TEST(TableWords, kinds_are_known_by_columns) {
  const auto kind = [](const std::string& columns) {
    return kind_of(read_table(columns + "\n", "t.csv"), "t.csv").name;
  };
  EXPECT_EQ(kind("size_bytes,time_us"), "collective");
  EXPECT_EQ(kind("gpus,size_bytes,busbw_GBps,time_us_derived"), "collective");
  EXPECT_EQ(kind("dtype,m,n,k,time_us"), "product");
  EXPECT_EQ(kind("pattern,M,N,K,variant,time_us"), "overlap");
  EXPECT_EQ(kind("op,m,n,k,baseline_us,fused_us"), "overlap");
  EXPECT_EQ(kind("model,gpus,tp,pp,dp,mbs,gbs,step_time_s"), "iteration");
  EXPECT_EQ(kind("tokens_per_rank,phase,time_us"), "experts");
  EXPECT_THROW(kind("alpha,beta"), Failure);
}

TEST(TableWords, a_time_is_in_the_unit_of_its_column) {
  const auto time = [](const std::string& column) {
    return Words("size_bytes," + column + "\n1024,2\n").table.rows.front().time_us;
  };
  EXPECT_EQ(time("time_us"), 2);
  EXPECT_EQ(time("step_time_s"), 2e6);
  EXPECT_EQ(time("iteration time (ms)"), 2e3);
}

TEST(TableWords, cells_come_before_the_head_and_that_before_the_name) {
  const Words cells(
      "# measured on A100, 8 ranks\ngpu,ranks,op,size_bytes,time_us\nNVIDIA H100 80GB HBM3,4,"
      "all_gather,1024,5\n");
  const RowPlace place = cells.words.place_of(cells.table.rows.front());
  EXPECT_EQ(place.device, "h100");
  EXPECT_EQ(place.machine, "dgx-h100");
  EXPECT_EQ(place.ranks, 4);
  EXPECT_EQ(cells.words.words_of(cells.table.rows.front()).program, "all-gather/nccl");
  const Words head("# allreduce, 8 ranks | 8x MI300X, HIP graph mode\nsize_bytes,time_us\n8,5\n",
                   "a100_2x_allgather.csv");
  const RowPlace said = head.words.place_of(head.table.rows.front());
  EXPECT_EQ(said.device, "mi300x");
  EXPECT_EQ(said.ranks, 8);
  const RowWords words = head.words.words_of(head.table.rows.front());
  EXPECT_EQ(words.program, "all-reduce/nccl");
  EXPECT_EQ(words.library, "RCCL");
  EXPECT_EQ(words.launch, sim::Launch::graph);
  const Words name("size_bytes,time_us\n8,5\n", "a100_4x_allgather.csv");
  EXPECT_EQ(name.words.place_of(name.table.rows.front()).device, "a100");
  EXPECT_EQ(name.words.words_of(name.table.rows.front()).program, "all-gather/nccl");
}

TEST(TableWords, the_first_device_of_a_text_is_meant_and_its_number) {
  const auto place = [](const std::string& head, const std::string& gpu) {
    const Words words("# " + head + "\n" + (gpu.empty() ? "" : "gpu,") + "op,size_bytes,time_us\n" +
                      (gpu.empty() ? "" : gpu + ",") + "all_reduce,1024,5\n");
    return words.words.place_of(words.table.rows.front());
  };
  EXPECT_EQ(place("8x H100 SXM; labelled NVLS, which cannot hold for A100", "").device, "h100");
  for (const char* four : {"4x A100", "4xA100", "4 x A100", "4x a100"})
    EXPECT_EQ(place("", four).ranks, 4) << four;
  EXPECT_EQ(place("", "16x H100").nodes, 2);
  for (const char* other : {"h100 pcie", "H100 NVL 94GB"})
    EXPECT_FALSE(place("", other).refused.empty()) << other;
}

TEST(TableWords, more_ranks_than_a_node_has_are_on_several) {
  const Words two("gpu,ranks,op,size_bytes,time_us\nH100,16,all_reduce,1024,5\n");
  const RowPlace place = two.words.place_of(two.table.rows.front());
  EXPECT_EQ(place.nodes, 2);
  EXPECT_EQ(place.machine, "dgx-h100:2");
}

TEST(TableWords, a_kernel_is_its_program_at_the_sizes_where_it_runs) {
  const Words kernels(
      "gpu,collection,kernel,num_gpus,op,size_bytes,time_us\n"
      "A100,trtllm 1.0.0,TRTLLM,4,all_reduce,1024,5\n"
      "A100,trtllm 1.0.0,TRTLLM,4,all_reduce,4194304,5\n"
      "A100,vllm 0.14.0,vLLM_custom_graph,4,all_reduce,1024,5\n"
      "H100,x,\"multimem, 8 CTAs\",8,all_reduce,1024,5\n");
  const auto said = [&](std::size_t row) {
    return kernels.words.words_of(kernels.table.rows[row]);
  };
  EXPECT_EQ(said(0).program, "all-reduce/trtllm-one-shot");
  EXPECT_EQ(said(1).program, "all-reduce/nccl");
  EXPECT_EQ(said(2).program, "auto/custom-allreduce");
  EXPECT_EQ(said(2).launch, sim::Launch::graph);
  EXPECT_THAT(said(3).refused, HasSubstr("multimem"));
}

TEST(TableWords, a_framework_sets_what_it_ran) {
  const Words rows(
      "source,model,gpu,gpus,tp,pp,dp,mbs,gbs,seq,dtype,step_time_s,note\n"
      "Megatron-Bridge,LLAMA3_70B,H100,64,4,8,2,1,128,8192,FP8-CS,10,VP=5; FSDP=0\n");
  const IterationWords said = rows.words.iteration_of(rows.table.rows.front());
  EXPECT_EQ(said.framework, "Megatron-Bridge");
  EXPECT_EQ(said.model, "llama-3-70b");
  EXPECT_THAT(said.set, ::testing::Contains(std::pair<std::string, std::string>("chunks", "5")));
  EXPECT_THAT(said.set,
              ::testing::Contains(std::pair<std::string, std::string>("dtype", "fp8_e4m3")));
}

TEST(Rows, what_cannot_be_said_has_its_reason) {
  const JudgedTable table = judged(
      "gpu,ranks,op,kernel,size_bytes,time_us\n"
      "NVIDIA L40S,2,all_gather,NCCL,512,5\n"
      "H100,2,shuffle,NCCL,512,5\n"
      "H100 PCIe,2,all_gather,NCCL,512,5\n"
      "H100,2,all_gather,NCCL,1073741824,5\n",
      "t.csv");
  ASSERT_EQ(table.rows.size(), 4U);
  EXPECT_THAT(table.rows[0].refused, HasSubstr("no device model of 'NVIDIA L40S'"));
  EXPECT_THAT(table.rows[1].refused, HasSubstr("names a collective"));
  EXPECT_THAT(table.rows[2].refused, HasSubstr("another card"));
  EXPECT_THAT(table.rows[3].refused, HasSubstr("larger than"));
  EXPECT_EQ(refusals_of(table.rows).size(), 4U);
}

TEST(Rows, a_product_is_judged_by_the_model) {
  const JudgedTable table =
      judged("dtype,m,n,k,time_us\nbf16xbf16->bf16,4096,4096,4096,174\n", "gemm_h100.csv");
  ASSERT_EQ(table.rows.size(), 1U);
  ASSERT_TRUE(table.rows.front().simulated_us);
  EXPECT_NEAR(*table.rows.front().error(), 0, 0.1);
  EXPECT_EQ(table.rows.front().like.kind, "product");
}

TEST(Rows, the_filters_of_a_table_choose_rows) {
  JudgeOptions options;
  options.where = {{"dtype", {"bf16"}}};
  const JudgedTable table = judged("dtype,m,n,k,time_us\nbf16,4096,4096,4096,174\nf16,64,64,64,2\n",
                                   "gemm_h100.csv", options);
  EXPECT_EQ(table.rows.size(), 1U);
}

}  // namespace
}  // namespace hemiola::study
