// Matrix products alone in the engine against the model of products: `tools/study products`.

#include <fmt/core.h>

#include <array>
#include <cmath>

#include "machine/devices/gemm_model.h"
#include "machine/machine.h"
#include "program/lower/lower.h"
#include "sim/simulate.h"

namespace {

using namespace hemiola;

constexpr std::array<machine::GemmShape, 8> kShapes{{{512, 512, 512},
                                                     {1024, 1024, 1024},
                                                     {1024, 4096, 1024},
                                                     {2048, 1792, 2048},
                                                     {2048, 2048, 512},
                                                     {2048, 2048, 4096},
                                                     {4096, 1792, 4096},
                                                     {4096, 4096, 1024}}};

/// One rank that holds a and b and computes c, in tiles of the kernel's size.
plan::Plan product_of(const machine::GemmShape& shape, machine::MatrixTile tile) {
  plan::Plan plan;
  plan.name = "product";
  plan.collective = Collective::custom;
  plan.ranks = 1;
  plan.tensors = {{"a", plan::Role::input, {shape.m, shape.k}, shape.type},
                  {"b", plan::Role::input, {shape.k, shape.n}, shape.type},
                  {"c", plan::Role::output, {shape.m, shape.n}, shape.type}};
  plan::Compute gemm{.name = "gemm", .kernel = "gemm", .axes = {}, .operands = {}};
  gemm.axes = {
      {"m", shape.m, tile.m, false}, {"n", shape.n, tile.n, false}, {"k", shape.k, 64, true}};
  gemm.operands = {{0, plan::Use::read, {0, 2}},
                   {1, plan::Use::read, {2, 1}},
                   {2, plan::Use::accumulate, {0, 1}}};
  plan::Code code;
  code.computes = {gemm};
  plan.codes = {code};
  plan.code_of = {0};
  return plan;
}

/// The period of repetitions in a graph, with the caches as the one before left them.
double simulated_us(const machine::Machine& machine, const plan::Plan& plan) {
  // Nothing moves: with copy engines no workgroup of communication takes a compute unit.
  const program::Program program =
      program::lower(plan, {.compute_workgroups = static_cast<int>(machine.model(0).cu_count),
                            .realization = program::Realization::copy_engine});
  const program::Bound bound = program::bind(
      program, machine::share(machine), {.size = program.fixed_size, .type = *program.fixed_type});
  return sim::simulate(bound, {.launch = sim::Launch::graph, .warmup = 1, .iterations = 1})
      .time.us();
}

}  // namespace

int main() {
  machine::Machine machine = machine::load("dgx-h100");
  machine.place(std::vector<int>{0});
  fmt::print("| m x n x k | tile | model (us) | engine (us) | difference |\n");
  fmt::print("| --- | --- | ---: | ---: | ---: |\n");
  for (const machine::GemmShape& shape : kShapes) {
    const machine::GemmEstimate model =
        machine::estimate_gemm(machine.model(0), shape, {.split_k = 1});
    const double engine = simulated_us(machine, product_of(shape, model.tile));
    fmt::print("| {} x {} x {} | {}x{} | {:.1f} | {:.1f} | {:+.1f} % |\n", shape.m, shape.n,
               shape.k, model.tile.m, model.tile.n, model.time.us(), engine,
               100 * (engine / model.time.us() - 1));
  }
}
