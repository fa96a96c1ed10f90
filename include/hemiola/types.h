// Element types, reductions and collectives, by the names of nccl-tests and MSCCL++.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hemiola {

enum class DataType : std::uint8_t {
  int8,
  uint8,
  int32,
  uint32,
  int64,
  float16,
  bfloat16,
  float32,
  float64,
  fp8_e4m3,
  fp8_e5m2
};
int size_of(DataType type);  ///< bytes
std::string_view name_of(DataType type);
/// "float", "half", "bf16", ... too
std::optional<DataType> parse_data_type(std::string_view name);

enum class ReduceOp : std::uint8_t { none, sum, max, min, prod };
std::string_view name_of(ReduceOp op);
std::optional<ReduceOp> parse_reduce_op(std::string_view name);

enum class Collective : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  reduce,
  send_recv,
  custom
};
std::string_view name_of(Collective collective);  ///< "all-reduce"
/// "all-reduce", "allreduce", "all_reduce"
std::optional<Collective> parse_collective(std::string_view name);

/// busbw = algbw * factor, as in nccl-tests: 2(n-1)/n for all-reduce, (n-1)/n for all-gather,
/// reduce-scatter and all-to-all, else 1.
double bus_factor(Collective collective, int ranks);

}  // namespace hemiola
