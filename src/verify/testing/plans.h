// Good plans for tests and mutants: every template, and plans over matrices with computes, groups,
// collectives and several streams.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "hemiola/parts/build_plan.h"
#include "machine/machine.h"
#include "plan/template.h"
#include "plan/testing/small_sizes.h"

namespace hemiola::verify::test {

/// `rows` rows from `row` on, and all `columns` columns.
inline plan::Region rows_of(std::int32_t tensor, const Affine& row, std::int64_t rows,
                            std::int64_t columns) {
  return {tensor, {{{row, rows}, {{}, columns}}}};
}
/// Block number `block` of `size` elements.
inline Affine block(Affine number, std::int64_t size) {
  number.scale *= size;
  return number;
}
inline plan::Dependency computed(const Affine& rank, plan::Region region) {
  return {.rank = rank, .stream = 0, .transfer = {}, .computed = std::move(region)};
}

inline plan::Compute gemm(std::int32_t a, std::int32_t b, std::int32_t c, std::int64_t m,
                          std::int64_t n, std::int64_t k, std::int64_t tile, std::int64_t k_tile) {
  plan::Compute compute;
  compute.name = compute.kernel = "gemm";
  compute.axes = {{"m", m, tile, false}, {"n", n, tile, false}, {"k", k, k_tile, true}};
  compute.operands = {{a, plan::Use::read, {0, 2}},
                      {b, plan::Use::read, {2, 1}},
                      {c, plan::Use::accumulate, {0, 1}}};
  return compute;
}

inline plan::Plan start(std::string name, int ranks) {
  plan::Plan plan;
  plan.name = std::move(name);
  plan.ranks = ranks;
  return plan;
}

struct GemmSizes {
  std::int64_t rows = 4;  ///< of A, on each rank
  std::int64_t k = 6, n = 4;
  std::int64_t tile = 3, k_tile = 4;
};

/// Rows of A are gathered while tiles of C = A B are computed.
inline plan::Plan gather_and_multiply(int ranks, bool pull, const GemmSizes& sizes = {}) {
  plan::Plan plan =
      start(pull ? "pulled all-gather and GEMM" : "pushed all-gather and GEMM", ranks);
  const auto [rows, k, n, tile, k_tile] = sizes;
  const std::int64_t m = rows * ranks;
  plan.tensors = {{"a", plan::Role::input, {m, k}, DataType::float32},
                  {"b", plan::Role::input, {k, n}, DataType::float32},
                  {"c", plan::Role::output, {m, n}, DataType::float32}};
  plan::Stream stream{"gather", {}};
  const Affine peer = plan::around(ranks, 1, 1);
  const auto own = rows_of(0, block(own_rank(), rows), rows, k);
  const auto other = rows_of(0, block(peer, rows), rows, k);
  repeat(stream, ranks - 1, pull ? plan::pull(peer, other, other) : plan::push(peer, own, own));
  run_everywhere(plan, stream);
  plan.codes[0].resident = {own, rows_of(1, {}, k, n)};
  plan.codes[0].computes = {gemm(0, 1, 2, m, n, k, tile, k_tile)};
  plan.codes[0].expected = {{rows_of(2, {}, m, n), false}, {rows_of(0, {}, m, k), false}};
  return plan;
}

/// Rows of partial products are reduced as they become ready, straight into their owner's.
inline plan::Plan multiply_and_scatter(int ranks) {
  plan::Plan plan = start("GEMM and reduce-scatter", ranks);
  const std::int64_t rows = 4, k = 6, n = 4, m = rows * ranks;
  plan.tensors = {{"a", plan::Role::input, {m, k}, DataType::float32},
                  {"b", plan::Role::input, {k, n}, DataType::float32},
                  {"c", plan::Role::output, {m, n}, DataType::float32}};
  const auto own = rows_of(2, block(own_rank(), rows), rows, n);
  const Affine peer = plan::around(ranks, 1, 1);
  plan::Transfer transfer = plan::accumulating(plan::pull(peer, own, own));
  transfer.after = {computed(peer, own), computed(own_rank(), own)};
  plan::Stream stream{"reduce", {}};
  repeat(stream, ranks - 1, transfer);
  run_everywhere(plan, stream);
  plan.codes[0].computes = {gemm(0, 1, 2, m, n, k, 2, 3)};
  plan.codes[0].expected = {{own, true}};
  return plan;
}

/// The same as launches: the second half of what is summed over adds to the first on another
/// stream, whole rows are reduced when both are done, and a third launch multiplies the own ones,
/// whose result is copied.
inline plan::Plan launch_and_scatter(int ranks) {
  plan::Plan plan = start("launches and reduce-scatter", ranks);
  const std::int64_t rows = 4, k = 6, n = 4, m = rows * ranks;
  plan.tensors = {{"a", plan::Role::input, {m, k}, DataType::float32},
                  {"b", plan::Role::input, {k, n}, DataType::float32},
                  {"c", plan::Role::output, {m, n}, DataType::float32},
                  {"w", plan::Role::input, {n, n}, DataType::float32},
                  {"d", plan::Role::scratch, {rows, n}, DataType::float32},
                  {"e", plan::Role::output, {rows, n}, DataType::float32}};
  const auto own = rows_of(2, block(own_rank(), rows), rows, n);
  const Affine peer = plan::around(ranks, 1, 1);
  plan::Transfer reduce = plan::accumulating(plan::pull(peer, own, own));
  reduce.after = {computed(peer, own), computed(own_rank(), own)};
  plan::Transfer keep = plan::copy(rows_of(4, {}, rows, n), rows_of(5, {}, rows, n));
  keep.after = {{.rank = own_rank(), .compute = constant(2)}};
  plan::Code code;
  code.streams = {{"reduce", {}}, {"keep", {keep}}};
  repeat(code.streams[0], ranks - 1, reduce);
  plan::Compute first = gemm(0, 1, 2, m, n, k / 2, 2, 2), second = first;
  first.name = "first";
  first.stream = "x";
  second.name = "second";
  second.operands[0].begin = {{}, constant(k / 2)};
  second.operands[1].begin = {constant(k / 2), {}};
  second.operands[2].use = plan::Use::add;
  second.stream = "y";
  second.after = {{.rank = own_rank(), .compute = constant(0)}};
  second.waits = plan::Waits::launch;
  plan::Compute third = gemm(2, 3, 4, rows, n, n, 3, 3);
  third.name = "third";
  third.operands[0].begin = {block(own_rank(), rows), {}};
  third.stream = "x";
  third.after = {{.rank = own_rank(), .compute = constant(1)},
                 {.rank = own_rank(), .stream = 0, .transfer = constant(ranks - 2)}};
  third.waits = plan::Waits::launch;
  code.computes = {first, second, third};
  code.expected = {{own, true},
                   {rows_of(5, {}, rows, n), false, rows_of(4, {}, rows, n), own_rank()}};
  plan.codes = {code};
  plan.code_of.assign(static_cast<std::size_t>(ranks), 0);
  return plan;
}

/// The product is all-reduced by a library, half after half, in two streams.
inline plan::Plan multiply_and_all_reduce(int ranks) {
  plan::Plan plan = start("GEMM and collective", ranks);
  const std::int64_t k = 6, n = 4, m = 8;
  plan.tensors = {{"a", plan::Role::input, {m, k}, DataType::float32},
                  {"b", plan::Role::input, {k, n}, DataType::float32},
                  {"c", plan::Role::output, {m, n}, DataType::float32}};
  plan.groups.emplace_back();
  for (int rank = 0; rank < ranks; ++rank) plan.groups[0].push_back(rank);
  plan::Code code;
  for (int half = 0; half < 2; ++half) {
    const auto region = rows_of(2, constant(half * m / 2), m / 2, n);
    plan::Transfer transfer = plan::copy(region, region);
    transfer.kind = plan::TransferKind::collective;
    transfer.collective = Collective::all_reduce;
    transfer.reduce = ReduceOp::sum;
    transfer.group = 0;
    transfer.after = {computed(own_rank(), region)};
    code.streams.push_back({"half " + std::to_string(half), {transfer}});
  }
  code.computes = {gemm(0, 1, 2, m, n, k, 2, 6)};
  code.expected = {{rows_of(2, {}, m, n), true}};
  plan.codes = {code};
  plan.code_of.assign(static_cast<std::size_t>(ranks), 0);
  return plan;
}

/// Each rank sums up its columns in the switch and multicasts them; a second stream keeps a copy.
inline plan::Plan multicast_and_reduce(int ranks) {
  plan::Plan plan = start("multicast and in-network reduction", ranks);
  const std::int64_t rows = 3, columns = 2, all = columns * ranks;
  plan.tensors = {{"x", plan::Role::input, {rows, all}, DataType::float32},
                  {"y", plan::Role::output, {rows, all}, DataType::float32},
                  {"z", plan::Role::output, {rows, columns}, DataType::float32}};
  plan.groups.emplace_back();
  for (int rank = 0; rank < ranks; ++rank) plan.groups[0].push_back(rank);
  const auto own = [&](std::int32_t tensor) {
    return plan::Region{tensor, {{{{}, rows}, {block(own_rank(), columns), columns}}}};
  };
  plan::Transfer reduce = plan::pull(own_rank(), own(0), own(1));
  reduce.reduce = ReduceOp::sum;
  reduce.group = 0;
  plan::Transfer multicast = plan::push(own_rank(), own(1), own(0));
  multicast.group = 0;
  plan::Transfer keep =
      after(plan::copy(own(1), rows_of(2, {}, rows, columns)), own_rank(), constant(0));
  plan.codes = {plan::Code{{{"switch", {reduce, multicast}}, {"copy", {keep}}}}};
  plan.codes[0].expected = {{rows_of(0, {}, rows, all), true}};
  plan.code_of.assign(static_cast<std::size_t>(ranks), 0);
  return plan;
}

/// An all-gather through scratch, in two streams that wait for each other.
inline plan::Plan staged_gather(int ranks) {
  plan::Plan plan = start("staged all-gather", ranks);
  plan.collective = Collective::all_gather;
  plan.chunks_per_size = ranks;
  plan.tensors = {{"input", plan::Role::input, 1},
                  {"output", plan::Role::output, ranks},
                  {"slots", plan::Role::scratch, ranks}};
  const Affine peer = plan::around(ranks, 1, 1), from = plan::around(ranks, -1, -1);
  plan::Stream send{"send", {}}, unpack{"unpack", {}};
  repeat(send, ranks - 1, plan::push(peer, plan::chunk_of(0), plan::chunk_of(2, own_rank())));
  repeat(
      unpack, ranks - 1,
      after(plan::copy(plan::chunk_of(2, from), plan::chunk_of(1, from)), from, plan::counting()));
  unpack.items.emplace_back(plan::copy(plan::chunk_of(0), plan::chunk_of(1, own_rank())));
  plan.codes = {plan::Code{{send, unpack}}};
  plan.code_of.assign(static_cast<std::size_t>(ranks), 0);
  return plan;
}

/// Chunks go to the next rank through one slot, which is used again once it was emptied.
inline plan::Plan send_with_credits(int ranks) {
  plan::Plan plan = start("send through one slot", ranks);
  plan.collective = Collective::send_recv;
  const std::int64_t chunks = 4;
  plan.chunks_per_size = chunks;
  plan.tensors = {{"input", plan::Role::input, chunks},
                  {"output", plan::Role::output, chunks},
                  {"slot", plan::Role::scratch, 1}};
  const Affine right = neighbour(1, ranks), left = neighbour(-1, ranks);
  plan::Stream send{"send", {plan::push(right, plan::chunk_of(0), plan::chunk_of(2))}};
  repeat(send, chunks - 1,
         after(plan::push(right, plan::chunk_of(0, plan::counting(1)), plan::chunk_of(2)), right,
               plan::counting(), 1));
  plan::Stream empty{"empty", {}};
  repeat(empty, chunks,
         after(plan::copy(plan::chunk_of(2), plan::chunk_of(1, plan::counting())), left,
               plan::counting()));
  plan.codes = {plan::Code{{send, empty}}};
  plan.code_of.assign(static_cast<std::size_t>(ranks), 0);
  return plan;
}

/// Everybody sends to everybody, first to wrong places, then to the right ones, with a barrier at
/// rank 0 between: every overwriting is ordered through three streams.
inline plan::Plan exchange_twice(int ranks) {
  plan::Plan plan = start("two exchanges and a barrier", ranks);
  plan.collective = Collective::all_gather;
  plan.chunks_per_size = ranks;
  plan.tensors = {{"input", plan::Role::input, 1},
                  {"output", plan::Role::output, ranks},
                  {"token", plan::Role::scratch, 1}};
  plan::Stream gather{"gather", {}};
  const auto exchange = [&](plan::Stream& stream, const Affine& place) {
    repeat(stream, ranks - 1,
           plan::push(plan::around(ranks, 1, 1), plan::chunk_of(0), plan::chunk_of(1, place)));
  };
  exchange(gather, neighbour(1, ranks));
  plan::Stream release = gather;
  plan::Transfer all = plan::copy(plan::chunk_of(0), plan::chunk_of(2));
  release.items.emplace_back(after(all, constant(0), constant(ranks - 1)));
  for (int rank = 1; rank < ranks; ++rank) all = after(all, constant(rank), constant(ranks - 2));
  gather.items.emplace_back(all);
  for (plan::Stream* stream : {&gather, &release}) {
    exchange(*stream, own_rank());
    stream->items.emplace_back(plan::copy(plan::chunk_of(0), plan::chunk_of(1, own_rank())));
  }
  plan.codes = {plan::Code{{gather}}, plan::Code{{release}}};
  plan.code_of.assign(static_cast<std::size_t>(ranks), 1);
  plan.code_of[0] = 0;
  return plan;
}

/// The last rank pulls and adds up what all have.
inline plan::Plan reduce_to_root(int ranks) {
  plan::Plan plan = start("reduce to a root", ranks);
  plan.collective = Collective::reduce;
  plan.root = ranks - 1;
  plan.tensors = {{"input", plan::Role::input, 1}, {"output", plan::Role::output, 1}};
  plan::Stream stream{"reduce", {plan::copy(plan::chunk_of(0), plan::chunk_of(1))}};
  repeat(stream, ranks - 1,
         plan::accumulating(plan::pull(plan::counting(), plan::chunk_of(0), plan::chunk_of(1))));
  plan.codes = {plan::Code{{plan::Stream{"idle", {}}}}, plan::Code{{stream}}};
  plan.code_of.assign(static_cast<std::size_t>(ranks), 0);
  plan.code_of.back() = 1;
  return plan;
}

/// Everything above for a number of ranks; templates, those of elements with small sizes, with
/// their defaults and with each other choice that their parameters have.
inline std::vector<plan::Plan> good_plans(int ranks) {
  std::vector<plan::Plan> plans;
  const machine::Machine ring = machine::load("ring:" + std::to_string(ranks));
  for (const plan::TemplateInfo& info : plan::templates()) {
    const machine::Machine* machine = info.needs_machine ? &ring : nullptr;
    const plan::Parameters sizes = plan::small_sizes(info, ranks);
    plans.push_back(plan::make(info.name, ranks, sizes, machine));
    for (const plan::ParameterInfo& parameter : info.parameters) {
      if (parameter.name == "dtype") continue;
      for (const std::string& choice : parameter.choices) {
        if (choice == parameter.default_value) continue;
        plan::Parameters chosen = sizes;
        chosen.emplace_back(parameter.name, choice);
        plans.push_back(plan::make(info.name, ranks, chosen, machine));
      }
    }
  }
  plans.push_back(gather_and_multiply(ranks, false));
  plans.push_back(gather_and_multiply(ranks, true));
  plans.push_back(multiply_and_scatter(ranks));
  plans.push_back(multiply_and_all_reduce(ranks));
  plans.push_back(launch_and_scatter(ranks));
  plans.push_back(multicast_and_reduce(ranks));
  plans.push_back(staged_gather(ranks));
  plans.push_back(send_with_credits(ranks));
  plans.push_back(exchange_twice(ranks));
  plans.push_back(reduce_to_root(ranks));
  return plans;
}

}  // namespace hemiola::verify::test
