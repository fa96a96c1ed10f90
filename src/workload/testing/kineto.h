// Kineto traces as text.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hemiola::workload::test {

/// A trace, event by event. Times are microseconds.
class KinetoText {
 public:
  explicit KinetoText(std::string job = {}) : job_(std::move(job)) {}
  KinetoText& add(std::string_view category, std::string_view name, int thread, double begin,
                  double duration, std::string_view arguments = {}) {
    events_.push_back(fmt::format(
        R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": 9, "tid": {}, "ts": {:.3f}, "dur": {:.3f}, "args": {{{}}}}})",
        category, name, thread, 1e15 + begin, duration, arguments));
    return *this;
  }
  /// A call of the host at `begin` that takes 2 us, and what it launches.
  KinetoText& launch(int correlation, double begin, std::string_view kernel, int stream,
                     double kernel_begin, double duration, std::string_view arguments = {}) {
    add("cuda_runtime", "cudaLaunchKernel", 1, begin, 2,
        fmt::format(R"("correlation": {})", correlation));
    return add("kernel", kernel, stream, kernel_begin, duration,
               fmt::format(R"("device": 0, "stream": {}, "correlation": {}{}{})", stream,
                           correlation, arguments.empty() ? "" : ", ", arguments));
  }
  std::string str() const {
    return fmt::format("{{\"schemaVersion\": 1, {}\"traceEvents\": [\n{}\n]}}", job_,
                       fmt::join(events_, ",\n"));
  }

 private:
  std::string job_;
  std::vector<std::string> events_;
};

inline constexpr std::string_view kJob =
    R"("distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2}, )";
inline constexpr std::string_view kAllReduce =
    R"("Collective name": "allreduce", "In msg nelems": 1024, "Out msg nelems": 1024, "Group size": 2, )"
    R"("dtype": "BFloat16", "Process Group Name": "7", "Process Group Ranks": "[0, 1]")";

}  // namespace hemiola::workload::test
