// What a runtime pays for a pick: build/release/bench/rule_benchmark.
#include <benchmark/benchmark.h>

#include "explore/rules.h"
#include "machine/machine.h"

namespace hemiola::explore {
namespace {

const Operator kOperator{.ranks = 8, .m = 8192, .n = 28672, .k = 8192};

const RuleMachine& constants() {
  static const RuleMachine rule = RuleMachine::of(machine::load("mi300x-8"), DataType::bfloat16);
  return rule;
}

/// Features of an operator, and the walk down a tree.
void tree_pick(benchmark::State& state) {
  const Rule& rule = shipped_rules().front();
  Operator op = kOperator;
  for (auto turn : state) {
    (void)turn;
    op.m = op.m == 8192 ? 4096 : 8192;
    benchmark::DoNotOptimize(rule.pick(op, constants()));
  }
}
BENCHMARK(tree_pick);

void analytic(benchmark::State& state) {
  const Rule rule = Rule::analytic();
  Operator op = kOperator;
  for (auto turn : state) {
    (void)turn;
    op.m = op.m == 8192 ? 4096 : 8192;
    benchmark::DoNotOptimize(rule.pick(op, constants()));
  }
}
BENCHMARK(analytic);

}  // namespace
}  // namespace hemiola::explore

BENCHMARK_MAIN();
