// Loads a machine and a program, binds, checks and times it, with the installed library only.
#include <iostream>

#include "core/diagnostics.h"
#include "machine/machine.h"
#include "program/program.h"
#include "report/report.h"
#include "sim/simulate.h"
#include "verify/verify.h"

int main() {
  using namespace hemiola;
  try {
    const machine::Machine machine = machine::load("dgx-h100");
    const program::Program program = program::bind(
        program::load("all-reduce/ring", {.ranks = machine.ranks()}), &machine, {.size = KiB(64)});
    const verify::Proof proof = verify::check(program);
    report::print_proof(std::cout, proof);
    if (proof.verdict != verify::Verdict::proven) return 1;
    const sim::Result result = sim::simulate(machine, program);
    report::print_table(std::cout,
                        {"consumer", machine.name, program.name, "reference", "stream", &program},
                        {result});
    return result.time >= result.bound.time() && result.bound.time() > Time{} ? 0 : 1;
  } catch (const Failure& failure) {
    std::cerr << failure.what() << '\n';
    return 1;
  }
}
