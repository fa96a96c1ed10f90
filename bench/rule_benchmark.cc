// What a runtime pays for a pick: build/release/bench/rule_benchmark.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <string_view>

#include "explore/rules/rules.h"
#include "machine/machine.h"

namespace hemiola::explore {
namespace {

const RuleMachine& constants() {
  static const RuleMachine rule = RuleMachine::of(machine::load("mi300x-8"), DataType::bfloat16);
  return rule;
}

/// `tree`: features of an operator, and the walk down. `analytic`: the times of all families.
void pick(benchmark::State& state, std::string_view name) {
  const Rule& rule = *std::find_if(shipped_rules().begin(), shipped_rules().end(),
                                   [&](const Rule& one) { return one.name() == name; });
  Operator op{.ranks = 8, .m = 8192, .n = 28672, .k = 8192};
  for (auto turn : state) {
    (void)turn;
    op.m = op.m == 8192 ? 4096 : 8192;
    benchmark::DoNotOptimize(rule.pick(op, constants()));
  }
}
BENCHMARK_CAPTURE(pick, tree, "tree");
BENCHMARK_CAPTURE(pick, analytic, "analytic");

}  // namespace
}  // namespace hemiola::explore

BENCHMARK_MAIN();
