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

#include "plan/build.h"
#include "plan/template.h"
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

/// Two exchanges through the same slots, with a barrier at rank 0 between them: every overwriting
/// is ordered through three streams.
plan::Plan exchange_twice(int ranks) {
  plan::Plan plan;
  plan.name = "two exchanges and a barrier";
  plan.ranks = ranks;
  plan.tensors = {{"input", plan::Role::input, 1},
                  {"slots", plan::Role::scratch, ranks},
                  {"token", plan::Role::scratch, 1}};
  const Affine peer = plan::around(ranks, 1, 1);
  plan::Stream first{"exchange", {}};
  const auto exchange = [&](const Affine& slot) {
    plan::repeat(first, ranks - 1, plan::push(peer, plan::chunk_of(0), plan::chunk_of(1, slot)));
  };
  exchange(own_rank());
  plan::Stream rest = first;
  plan::Transfer all = plan::copy(plan::chunk_of(0), plan::chunk_of(2));
  plan::Transfer go = all;
  for (int rank = 1; rank < ranks; ++rank)
    all = plan::after(all, constant(rank), constant(ranks - 2));
  go = plan::after(go, constant(0), constant(ranks - 1));
  first.items.emplace_back(all);
  rest.items.emplace_back(go);
  for (plan::Stream* stream : {&first, &rest})
    plan::repeat(*stream, ranks - 1,
                 plan::push(peer, plan::chunk_of(0), plan::chunk_of(1, neighbour(1, ranks))));
  plan.codes = {plan::Code{{first}}, plan::Code{{rest}}};
  plan.code_of.assign(static_cast<std::size_t>(ranks), 1);
  plan.code_of[0] = 0;
  return plan;
}

/// Rows of A come from all ranks while tiles of 128 by 128 of C = A B are computed.
plan::Plan gather_and_multiply(int ranks) {
  plan::Plan plan;
  plan.name = "all-gather and GEMM";
  plan.ranks = ranks;
  const std::int64_t rows = 256, k = 4096, n = 2048, m = rows * ranks;
  plan.tensors = {{"a", plan::Role::input, {m, k}, DataType::bfloat16},
                  {"b", plan::Role::input, {k, n}, DataType::bfloat16},
                  {"c", plan::Role::output, {m, n}, DataType::bfloat16}};
  const plan::Region own{0, {{{{.rank = rows}, rows}, {{}, k}}}};
  plan::Stream stream{"gather", {}};
  plan::repeat(stream, ranks - 1, plan::push(plan::around(ranks, 1, 1), own, own));
  plan::Compute gemm;
  gemm.name = gemm.kernel = "gemm";
  gemm.axes = {{"m", m, 128, false}, {"n", n, 128, false}, {"k", k, k, true}};
  gemm.operands = {{0, plan::Use::read, {0, 2}},
                   {1, plan::Use::read, {2, 1}},
                   {2, plan::Use::accumulate, {0, 1}}};
  plan.codes = {plan::Code{{stream}, {gemm}}};
  plan.codes[0].resident = {own, {1, {{{{}, k}, {{}, n}}}}};
  plan.codes[0].expected = {{{2, {{{{}, m}, {{}, n}}}}, false}};
  plan.code_of.assign(static_cast<std::size_t>(ranks), 0);
  return plan;
}

plan::Plan make_plan(const std::string& name, int ranks) {
  if (plan::find_template(name) != nullptr) return plan::make(name, ranks);
  return name == kGemm ? gather_and_multiply(ranks) : exchange_twice(ranks);
}

void prove(benchmark::State& state, const std::string& name) {
  const plan::Plan plan = make_plan(name, static_cast<int>(state.range(0)));
  std::int64_t transfers = 0;
  double seconds = 0;
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    const verify::Proof proof = verify::check(plan);
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (proof.verdict == verify::Verdict::wrong || proof.verdict == verify::Verdict::deadlock)
      state.SkipWithError(proof.summary.c_str());
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
