#include "core/data_type.h"

#include <array>
#include <cstddef>
#include <string>

namespace hemiola {
namespace {

/// A value with its name; the first row of a value is the name that is printed.
template <typename T>
struct Name {
  T value;
  std::string_view name;
};

constexpr std::array<Name<DataType>, 28> kDataTypes{{
    {DataType::int8, "int8"},         {DataType::uint8, "uint8"},
    {DataType::int32, "int32"},       {DataType::uint32, "uint32"},
    {DataType::int64, "int64"},       {DataType::float16, "half"},
    {DataType::bfloat16, "bfloat16"}, {DataType::float32, "float"},
    {DataType::float64, "double"},    {DataType::fp8_e4m3, "fp8_e4m3"},
    {DataType::fp8_e5m2, "fp8_e5m2"}, {DataType::float16, "float16"},
    {DataType::float16, "fp16"},      {DataType::bfloat16, "bf16"},
    {DataType::float32, "float32"},   {DataType::float32, "fp32"},
    {DataType::float64, "float64"},   {DataType::float64, "fp64"},
    {DataType::int8, "char"},         {DataType::int32, "int"},
    {DataType::fp8_e4m3, "f8e4m3"},   {DataType::fp8_e4m3, "float8_e4m3"},
    {DataType::fp8_e5m2, "f8e5m2"},   {DataType::fp8_e5m2, "float8_e5m2"},
    {DataType::float16, "f16"},       {DataType::fp8_e4m3, "f8e4m3fn"},
    {DataType::fp8_e4m3, "fp8"},      {DataType::float32, "f32"},
}};

constexpr std::array<Name<ReduceOp>, 5> kReduceOps{{
    {ReduceOp::none, "none"},
    {ReduceOp::sum, "sum"},
    {ReduceOp::max, "max"},
    {ReduceOp::min, "min"},
    {ReduceOp::prod, "prod"},
}};

constexpr std::array<Name<Collective>, 8> kCollectives{{
    {Collective::all_reduce, "all-reduce"},
    {Collective::all_gather, "all-gather"},
    {Collective::reduce_scatter, "reduce-scatter"},
    {Collective::all_to_all, "all-to-all"},
    {Collective::broadcast, "broadcast"},
    {Collective::reduce, "reduce"},
    {Collective::send_recv, "send-recv"},
    {Collective::custom, "custom"},
}};

template <typename T, std::size_t n>
std::string_view find_name(const std::array<Name<T>, n>& names, T value) {
  for (const Name<T>& entry : names)
    if (entry.value == value) return entry.name;
  return "?";
}

/// Lower case without separators, so that "all-reduce", "all_reduce" and "AllReduce" are one name.
std::string plain(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (c == '-' || c == '_') continue;
    text += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return text;
}

template <typename T, std::size_t n>
std::optional<T> find_value(const std::array<Name<T>, n>& names, std::string_view name) {
  const std::string wanted = plain(name);
  for (const Name<T>& entry : names)
    if (plain(entry.name) == wanted) return entry.value;
  return std::nullopt;
}

}  // namespace

int size_of(DataType type) {
  switch (type) {
    case DataType::int8:
    case DataType::uint8:
    case DataType::fp8_e4m3:
    case DataType::fp8_e5m2:
      return 1;
    case DataType::float16:
    case DataType::bfloat16:
      return 2;
    case DataType::int32:
    case DataType::uint32:
    case DataType::float32:
      return 4;
    case DataType::int64:
    case DataType::float64:
      return 8;
  }
  return 1;
}

std::string_view name_of(DataType type) {
  return find_name(kDataTypes, type);
}
std::optional<DataType> parse_data_type(std::string_view name) {
  return find_value(kDataTypes, name);
}

std::string_view name_of(ReduceOp op) {
  return find_name(kReduceOps, op);
}
std::optional<ReduceOp> parse_reduce_op(std::string_view name) {
  return find_value(kReduceOps, name);
}

std::string_view name_of(Collective collective) {
  return find_name(kCollectives, collective);
}
std::optional<Collective> parse_collective(std::string_view name) {
  return find_value(kCollectives, name);
}

double bus_factor(Collective collective, int ranks) {
  if (ranks < 1) return 1;
  const double n = ranks;
  switch (collective) {
    case Collective::all_reduce:
      return 2 * (n - 1) / n;
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
      return (n - 1) / n;
    case Collective::broadcast:
    case Collective::reduce:
    case Collective::send_recv:
    case Collective::custom:
      return 1;
  }
  return 1;
}

}  // namespace hemiola
