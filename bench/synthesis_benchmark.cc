// How long it takes to derive a plan from a machine of 256 GPUs; `estimate_us` is how good it is.
#include <benchmark/benchmark.h>

#include <string>

#include "plan/estimate.h"
#include "plan/template.h"

namespace {

using namespace hemiola;

void synthesise(benchmark::State& state, const std::string& name, const std::string& machine_name) {
  const machine::Machine machine = machine::load(machine_name);
  constexpr std::int64_t kSize = std::int64_t{1} << 28;
  const plan::Parameters parameters = {{"size", std::to_string(kSize)}};
  Time time{0};
  for (auto _ : state) {
    const plan::Plan made = plan::make(name, machine.ranks(), parameters, &machine);
    state.PauseTiming();
    time = plan::estimate(made, machine, kSize / made.chunks_per_size);
    state.ResumeTiming();
  }
  state.counters["estimate_us"] = time.us();
}

}  // namespace

int main(int argc, char** argv) {
  for (const char* machine : {"torus:16x16", "mesh:16x16", "switch:256", "dgx-h100:32"}) {
    for (const char* name : {"all-gather/synth", "all-reduce/synth", "all-to-all/synth"}) {
      benchmark::RegisterBenchmark(
          (std::string(name) + "/" + machine).c_str(),
          [=](benchmark::State& state) { synthesise(state, name, machine); })
          ->Unit(benchmark::kMillisecond);
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
}
