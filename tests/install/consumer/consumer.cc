// Uses every public header of an installed Hemiola, and nothing else of it.
#include <iostream>

#include "hemiola/check.h"
#include "hemiola/error.h"
#include "hemiola/experiment.h"
#include "hemiola/explore.h"
#include "hemiola/machine.h"
#include "hemiola/plan.h"
#include "hemiola/program.h"
#include "hemiola/record.h"
#include "hemiola/report.h"
#include "hemiola/simulate.h"
#include "hemiola/types.h"
#include "hemiola/units.h"

namespace {

bool is_right(const hemiola::Outcome& outcome) {
  const hemiola::Result& result = outcome.result;
  return result.checked == "full" && result.time >= result.bound() &&
         result.bound() > hemiola::Time{};
}

}  // namespace

int main() {
  using namespace hemiola;
  try {
    const Machine machine = Machine::load("dgx-h100").with({{"gpu.l2.size", "25 MiB"}});
    const std::vector<Proof> proofs =
        check(Program::load("all-reduce/ring"), {.machine = machine, .size = KiB(64)});
    for (const Proof& proof : proofs) print_proof(std::cout, proof);
    if (verdict_of(proofs) != Verdict::proven) return 1;
    const Plan plan = Plan::make("all-gather/direct", machine.ranks());
    const Outcome outcome =
        run({.machine = machine, .program = plan, .size = KiB(64), .engine = Engine::reference});
    print_table(std::cout, outcome);
    print_attribution(std::cout, outcome);
    const Exploration found =
        explore_operator(Machine::load("mi300x-8"),
                         {.kind = "ag-gemm", .m = 512, .n = 1024, .k = 512}, {.degrees = {2}});
    return is_right(outcome) && found.best() != nullptr ? 0 : 1;
  } catch (const Failure& failure) {
    std::cerr << failure.what() << '\n';
    return static_cast<int>(failure.code());
  }
}
