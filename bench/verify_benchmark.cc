// How the cost of proving a plan grows with its transfers: time, and the exponent. Making the plan
// is not timed.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "plan/template.h"
#include "verify/testing/plans.h"
#include "verify/verify.h"

namespace {

using namespace hemiola;

struct Sample {
  double transfers = 0;
  double seconds = 0;
};
std::map<std::string, std::vector<Sample>>& samples() {
  static std::map<std::string, std::vector<Sample>> all;
  return all;
}

constexpr const char* kGemm = "all-gather and GEMM";

plan::Plan make_plan(const std::string& name, int ranks) {
  if (plan::find_template(name) != nullptr) return plan::make(name, ranks);
  if (name != kGemm) return verify::test::exchange_twice(ranks);
  return verify::test::gather_and_multiply(
      ranks, false, {.rows = 256, .k = 4096, .n = 2048, .tile = 128, .k_tile = 4096});
}

void prove(benchmark::State& state, const std::string& name) {
  const plan::Plan plan = make_plan(name, static_cast<int>(state.range(0)));
  std::int64_t transfers = 0;
  double seconds = 0;
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    const verify::Proof proof = verify::check(plan);
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (proof.verdict != verify::Verdict::proven) state.SkipWithError(proof.summary.c_str());
    transfers = proof.operations;
  }
  state.SetComplexityN(transfers);
  state.counters["transfers"] = static_cast<double>(transfers);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["peak_rss_MiB"] = static_cast<double>(usage.ru_maxrss) / 1024;
  samples()[name].push_back(
      {static_cast<double>(transfers), seconds / static_cast<double>(state.iterations())});
}

/// Of the straight line through the logarithms.
double exponent(const std::vector<Sample>& list) {
  double x = 0, y = 0, xx = 0, xy = 0;
  for (const Sample& sample : list) {
    const double a = std::log(sample.transfers), b = std::log(sample.seconds);
    x += a;
    y += b;
    xx += a * a;
    xy += a * b;
  }
  const auto n = static_cast<double>(list.size());
  return (n * xy - x * y) / (n * xx - x * x);
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::RegisterBenchmark(kGemm, [](benchmark::State& state) { prove(state, kGemm); })
      ->RangeMultiplier(2)
      ->Range(8, 128)
      ->Unit(benchmark::kMillisecond)
      ->Complexity();
  for (const char* name : {"all-reduce/ring", "all-to-all/direct", "all-reduce/two-shot",
                           "all-gather/ring", "two exchanges and a barrier"}) {
    benchmark::RegisterBenchmark(name, [name](benchmark::State& state) { prove(state, name); })
        ->RangeMultiplier(2)
        ->Range(64, 1024)
        ->Unit(benchmark::kMillisecond)
        ->Complexity();
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  for (const auto& [name, list] : samples()) {
    if (list.size() > 1) std::cout << name << ": time ~ transfers^" << exponent(list) << '\n';
  }
  return 0;
}
