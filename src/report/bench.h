// What `--bench` of explore and tune writes beside the schedules that it chose.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hemiola::report {

/// "schedule-1.py": the compiled file of one of the schedules, from 0.
std::string bench_file(std::size_t number);
/// The program that times them, for PyTorch. It reads schedules.json beside it: bench_schedules()
/// or bench_kernels().
std::string_view bench_program();

}  // namespace hemiola::report
