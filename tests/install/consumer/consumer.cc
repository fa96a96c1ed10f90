// Loads a machine and a program, binds, checks and times it, with the installed library only.
#include <iostream>

#include "core/diagnostics.h"
#include "machine/machine.h"
#include "program/bound.h"
#include "report/report.h"
#include "sim/simulate.h"
#include "verify/verify.h"

int main() {
  using namespace hemiola;
  try {
    const machine::SharedMachine machine = machine::share(machine::load("dgx-h100"));
    const program::Bound bound = program::bind(
        program::load("all-reduce/ring", {.ranks = machine->ranks()}), machine, {.size = KiB(64)});
    const verify::Proof proof = verify::check(bound);
    report::print_proof(std::cout, proof);
    if (proof.verdict != verify::Verdict::proven) return 1;
    const sim::Result result = sim::simulate(bound);
    report::print_table(std::cout,
                        {"consumer", machine->name, bound.name(), "reference", "stream", bound},
                        {result});
    return result.time >= result.bound.time() && result.bound.time() > Time{} ? 0 : 1;
  } catch (const Failure& failure) {
    std::cerr << failure.what() << '\n';
    return 1;
  }
}
