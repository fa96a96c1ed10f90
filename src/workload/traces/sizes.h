// Sizes of calls that a trace does not say, from a file of the user.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace hemiola::workload {

/// By name of the call, or by its number among the communications of its rank, from 0 in the order
/// of their launches. A number goes before a name.
class CallSizes {
 public:
  CallSizes() = default;
  /// YAML (`nccl:all_reduce: 64 MiB`) or CSV (`nccl:all_reduce,67108864`); bytes, with a unit or
  /// without one. Failure with the line for what is neither.
  explicit CallSizes(const std::string& path);

  std::optional<std::int64_t> find(std::int64_t number, std::string_view name) const;

 private:
  std::map<std::string, std::int64_t, std::less<>> by_name_;
  std::map<std::int64_t, std::int64_t> by_number_;
};

}  // namespace hemiola::workload
