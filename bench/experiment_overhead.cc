// What experiments take beside their simulations: `tools/study experiments`.

#include <fmt/core.h>

#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "study/laboratory/experiment.h"

namespace {

using namespace hemiola;

/// CPU time of this thread.
double now_s() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

struct Series {
  std::string name;
  study::Experiment experiment;
  std::function<void(study::Experiment&, int)> change;  ///< makes the i-th of it
};

void set_latency(study::Experiment& experiment, int i) {
  experiment.machine.settings = {{"gpu.l2.latency", std::to_string(150 + i) + "ns"}};
}
void set_size(study::Experiment& experiment, int i) {
  experiment.size = Bytes{experiment.size->count + std::int64_t{4096} * i};
}
void set_skew(study::Experiment& experiment, int i) {
  experiment.options.skew = {Time::from_ns(i)};
}

std::vector<Series> all_series() {
  std::vector<Series> all;
  const auto add = [&](const std::string& machine, const std::string& program, Bytes size,
                       sim::Engine engine, const char* what, auto change) {
    study::Experiment experiment{.machine = {.name = machine}, .subject = program, .size = size};
    experiment.options.engine = engine;
    all.push_back({fmt::format("{} {} {} {}, {}", program, to_string(size), machine,
                               sim::name_of(engine), what),
                   std::move(experiment), change});
  };
  using sim::Engine;
  const char* setting = "a --set";
  add("dgx-h100", "all-reduce/ring", KiB(64), Engine::line, setting, set_latency);
  add("dgx-h100", "all-reduce/ring", MiB(1), Engine::line, setting, set_latency);
  add("dgx-h100", "all-reduce/one-shot", KiB(64), Engine::line, setting, set_latency);
  add("dgx-h100", "all-reduce/nccl", KiB(64), Engine::line, setting, set_latency);
  add("dgx-h100:2", "all-gather/direct", KiB(64), Engine::line, setting, set_latency);
  add("dgx-h100", "all-gather/direct", KiB(64), Engine::line, "the size", set_size);
  add("dgx-h100", "all-reduce/ring", KiB(64), Engine::line, "the size", set_size);
  add("dgx-h100", "all-reduce/ring", KiB(64), Engine::line, "the start of a rank", set_skew);
  add("dgx-h100", "all-reduce/ring", MiB(1), Engine::fluid, setting, set_latency);
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::stoi(argv[1]) : 1000;
  fmt::print("{} experiments that differ in one thing; CPU seconds\n\n", count);
  fmt::print(
      "| experiments | all | simulations | beside (%) | proofs |\n"
      "| --- | ---: | ---: | ---: | ---: |\n");
  for (const Series& series : all_series()) {
    study::Laboratory laboratory;
    double begin = 0, simulating = 0;
    const study::Watch watch{.on_step = [&](const study::Step& step) {
      if (step.kind == study::Step::Kind::simulating) begin = now_s();
    }};
    const double start = now_s();
    for (int i = 0; i < count; ++i) {
      study::Experiment experiment = series.experiment;
      series.change(experiment, i);
      laboratory.run(experiment, watch);
      simulating += now_s() - begin;
    }
    const double all = now_s() - start;
    fmt::print("| {} | {:.2f} | {:.2f} | {:.1f} | {} |\n", series.name, all, simulating,
               (all / simulating - 1) * 100, laboratory.made().proofs);
    std::fflush(stdout);
  }
}
