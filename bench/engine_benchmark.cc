// Line hops per second of the engine, on one core. A line hop is a visit of a request to a shared
// resource (sim::Result::line_hops), represented by the run: folded, only some of them are
// executed. Loading and checking are not timed.
#include <benchmark/benchmark.h>

#include <string>
#include <tuple>

#include "machine/machine.h"
#include "program/program.h"
#include "sim/simulate.h"

namespace {

using namespace hemiola;

/// What one benchmark runs: the words of `hemiola run`.
struct Case {
  const char* name;
  const char* machine;
  const char* program;
  std::vector<std::pair<std::string, std::string>> parameters;
  Bytes size;
  std::vector<std::pair<std::string, std::string>> settings{};
};

void simulate(benchmark::State& state, const Case& run, sim::Engine engine, bool fold) {
  const machine::Machine machine = machine::load(run.machine, {.set = run.settings});
  const program::Program program =
      program::load(run.program, {.ranks = machine.ranks(), .parameters = run.parameters});
  const program::Bound bound = program::bind(program, machine::share(machine), {.size = run.size});
  std::int64_t hops = 0;
  for (auto _ : state) hops += sim::simulate(bound, {.engine = engine, .fold = fold}).line_hops;
  state.counters["line_hops"] =
      benchmark::Counter(static_cast<double>(hops), benchmark::Counter::kAvgIterations);
  state.counters["line_hops/s"] =
      benchmark::Counter(static_cast<double>(hops), benchmark::Counter::kIsRate);
}

const Case kCases[] = {
    {"ring_all_reduce/dgx-h100/16MiB", "dgx-h100", "all-reduce/ring", {}, MiB(16)},
    {"all_to_all_put/dgx-h100/16MiB", "dgx-h100", "all-to-all/direct", {}, MiB(16)},
    {"two_shot_all_reduce/dgx-h100/4MiB", "dgx-h100", "all-reduce/two-shot", {}, MiB(4)},
    {"all_gather_get/dgx-h100/16MiB",
     "dgx-h100",
     "all-gather/direct",
     {{"transfer", "pull"}},
     MiB(16)},
    // Irregular: sizes drawn at random, and links of half the rate, at which switches hold up what
    // several send to one.
    {"all_to_all_uneven/dgx-h100/16MiB",
     "dgx-h100",
     "all-to-all/uneven",
     {},
     MiB(16),
     {{"link.nvlink4.bandwidth", "12.5 GB/s"}}},
    {"ring_all_reduce/switch:64/16MiB", "switch:64", "all-reduce/ring", {}, MiB(16)},
    {"all_gather_put/astra3:8/4MiB", "astra3:8", "all-gather/direct", {}, MiB(4)},
};

}  // namespace

int main(int argc, char** argv) {
  for (const Case& run : kCases) {
    for (const auto& [name, engine, fold] :
         {std::tuple("/reference", sim::Engine::reference, false),
          std::tuple("/line", sim::Engine::line, false),
          std::tuple("/line_folded", sim::Engine::line, true)}) {
      benchmark::RegisterBenchmark((std::string(run.name) + name).c_str(),
                                   [&run, engine = engine, fold = fold](benchmark::State& state) {
                                     simulate(state, run, engine, fold);
                                   })
          ->Unit(benchmark::kMillisecond);
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
