#include "core/data_type.h"

#include <gtest/gtest.h>

namespace hemiola {
namespace {

TEST(DataType, every_type_reads_back_from_its_name_and_has_a_size) {
  for (int i = 0; i <= static_cast<int>(DataType::fp8_e5m2); ++i) {
    const auto type = static_cast<DataType>(i);
    EXPECT_EQ(parse_data_type(name_of(type)), type) << name_of(type);
    EXPECT_GT(size_of(type), 0);
  }
}

TEST(DataType, names_of_nccl_tests_and_of_frameworks_are_the_same_types) {
  EXPECT_EQ(parse_data_type("float"), DataType::float32);
  EXPECT_EQ(parse_data_type("half"), DataType::float16);
  EXPECT_EQ(parse_data_type("bf16"), DataType::bfloat16);
  EXPECT_EQ(parse_data_type("fp32"), DataType::float32);
  EXPECT_EQ(parse_data_type("float128"), std::nullopt);
  EXPECT_EQ(parse_data_type(""), std::nullopt);
}

TEST(DataType, sizes_are_those_of_the_formats) {
  EXPECT_EQ(size_of(DataType::fp8_e4m3), 1);
  EXPECT_EQ(size_of(DataType::bfloat16), 2);
  EXPECT_EQ(size_of(DataType::float32), 4);
  EXPECT_EQ(size_of(DataType::float64), 8);
}

TEST(ReduceOp, every_operation_reads_back_from_its_name) {
  for (int i = 0; i <= static_cast<int>(ReduceOp::prod); ++i) {
    const auto op = static_cast<ReduceOp>(i);
    EXPECT_EQ(parse_reduce_op(name_of(op)), op);
  }
  EXPECT_EQ(parse_reduce_op("avg"), std::nullopt);
}

TEST(Collective, hyphen_underscore_and_neither_are_one_name) {
  for (int i = 0; i <= static_cast<int>(Collective::custom); ++i) {
    const auto collective = static_cast<Collective>(i);
    EXPECT_EQ(parse_collective(name_of(collective)), collective);
  }
  EXPECT_EQ(parse_collective("allreduce"), Collective::all_reduce);
  EXPECT_EQ(parse_collective("reduce_scatter"), Collective::reduce_scatter);
  EXPECT_EQ(parse_collective("AllToAll"), Collective::all_to_all);
  EXPECT_EQ(parse_collective("all-reduces"), std::nullopt);
}

TEST(Collective, bus_factors_are_those_of_nccl_tests) {
  EXPECT_DOUBLE_EQ(bus_factor(Collective::all_reduce, 8), 1.75);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::all_gather, 8), 0.875);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::reduce_scatter, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::all_to_all, 2), 0.5);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::broadcast, 8), 1);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::all_reduce, 1), 0);
}

}  // namespace
}  // namespace hemiola
