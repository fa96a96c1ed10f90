// Two products one after the other, with communication between them or behind parts of the second:
// what a kernel of each waits for and signals tile by tile. Tensor-parallel layers whose first
// weights are divided by columns.
//
// Both products are on one stream of launches, so that the second begins when the first is done on
// its rank, and their tiles wait for themselves.
#include <optional>

#include "hemiola/parts/build_plan.h"
#include "plan/templates/families.h"
#include "plan/templates/pipelines.h"

namespace hemiola::plan {
namespace {

constexpr std::int32_t kX = 0, kIn = 1, kMiddle = 2, kOut = 3;

/// x[m, h] and w_in[h, f / ranks], and what they make: middle[m, f / ranks].
Plan start_layer(const TemplateArguments& arguments) {
  const DataType type = data_type_of(arguments);
  const std::int64_t m = positive(arguments, "m"), h = positive(arguments, "h");
  const std::int64_t columns = divided(arguments, "f", positive(arguments, "f"), arguments.ranks);
  Plan plan = start_plan(arguments, 1);
  plan.tensors = {{"x", Role::input, {m, h}, type},
                  {"w_in", Role::input, {h, columns}, type},
                  {"middle", Role::scratch, {m, columns}, type}};
  return plan;
}

/// A product that comes after those before it on its rank.
Compute launched(std::string name, Compute product) {
  product.name = std::move(name);
  product.stream = "compute";
  return product;
}

/// The same of some rows of `a` and of what it makes.
Compute rows_of(Compute product, std::int64_t first, std::int64_t rows) {
  product.axes[0].extent = rows;
  for (const std::size_t operand : {std::size_t{0}, std::size_t{2}})
    product.operands[operand].begin = {constant(first), {}};
  return product;
}

/// GEMM-A2A-GEMM: middle[m, f / ranks] = x w_in on every rank; rows of it go to the ranks that they
/// belong to, gathered[m / ranks, f]; c[m / ranks, h] = gathered w_out.
Plan make_gemm_a2a_gemm(const TemplateArguments& arguments) {
  Plan plan = start_layer(arguments);
  const std::int64_t ranks = plan.ranks, waves = waves_of(arguments);
  const std::int64_t rows = divided(arguments, "m", plan.tensors[kX].shape[0], ranks);
  const std::int64_t wave_rows = divided(arguments, "m", rows, waves);
  const std::int64_t h = plan.tensors[kX].shape[1], columns = plan.tensors[kMiddle].shape[1];
  const std::optional<DataType> type = plan.tensors[kX].type;
  plan.tensors.push_back({"w_out", Role::input, {columns * ranks, h}, type});
  const std::int32_t gathered = kOut + 1, c = kOut + 2;
  plan.tensors.push_back({"gathered", Role::scratch, {rows, columns * ranks}, type});
  plan.tensors.push_back({"c", Role::output, {rows, h}, type});
  const bool is_push = arguments.word("transfer") == "push";
  const Affine peer = around(ranks, 1, 1), maker = is_push ? own_rank() : peer;
  Stream stream{"exchange", {}}, kept{"own part", {}};
  for (std::int64_t wave = 0; wave < waves; ++wave) {
    const auto from = [&](const Affine& to) {
      return slab(plan, kMiddle, 0, scaled(to, rows, wave * wave_rows), wave_rows);
    };
    const auto into = [&](const Affine& owner) {
      return Region{gathered,
                    {{{constant(wave * wave_rows), wave_rows}, {scaled(owner, columns), columns}}}};
    };
    const Region own = from(own_rank());
    const Transfer moved = exchanged(arguments, peer, from, into);
    repeat(stream, ranks - 1, when_computed(moved, maker, moved.source));
    kept.items.emplace_back(when_computed(copy(own, into(own_rank())), own_rank(), own));
  }
  run_everywhere(plan, std::move(stream));
  Code& code = plan.codes.front();
  code.streams.push_back(std::move(kept));
  code.computes = {launched("up", gemm_of(arguments, plan, kX, kIn, kMiddle)),
                   launched("down", gemm_of(arguments, plan, gathered, kOut, c))};
  code.resident = {all_of(plan, kX), all_of(plan, kIn), all_of(plan, kOut)};
  code.expected = {{all_of(plan, c), false}};
  for (std::int64_t owner = 0; owner < ranks; ++owner)
    code.expected.push_back({{gathered, {{{{}, rows}, {constant(owner * columns), columns}}}},
                             false,
                             slab(plan, kMiddle, 0, scaled(own_rank(), rows), rows),
                             constant(owner)});
  return plan;
}

/// The MLP of Domino (arXiv 2409.15241): rows in `parts`, each of which goes up and down; the
/// all-reduce of a part, in `split` pieces, goes on under the products of the next one.
Plan make_domino(const TemplateArguments& arguments) {
  Plan plan = start_layer(arguments);
  const std::int64_t parts = parts_of(arguments, "parts"), split = split_of(arguments);
  const std::int64_t m = plan.tensors[kX].shape[0], h = plan.tensors[kX].shape[1];
  const std::int64_t rows = divided(arguments, "m", m, parts);
  const std::int64_t piece_rows = divided(arguments, "m", rows, split);
  const std::optional<DataType> type = plan.tensors[kX].type;
  plan.tensors.push_back({"w_out", Role::input, {plan.tensors[kMiddle].shape[1], h}, type});
  const std::int32_t partial = kOut + 1, c = kOut + 2;
  plan.tensors.push_back({"partial", Role::scratch, {m, h}, type});
  plan.tensors.push_back({"c", Role::output, {m, h}, type});
  plan.groups = {everybody(plan.ranks)};
  Stream stream{"collectives", {}};
  for (std::int64_t piece = 0; piece < parts * split; ++piece) {
    const Region source = slab(plan, partial, 0, constant(piece * piece_rows), piece_rows);
    const Region sum = slab(plan, c, 0, constant(piece * piece_rows), piece_rows);
    stream.items.emplace_back(
        when_computed(collective_of(Collective::all_reduce, source, sum), own_rank(), source));
  }
  run_everywhere(plan, std::move(stream));
  Code& code = plan.codes.front();
  const Compute up = gemm_of(arguments, plan, kX, kIn, kMiddle);
  const Compute down = gemm_of(arguments, plan, kMiddle, kOut, partial);
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::string number = " " + std::to_string(part);
    code.computes.push_back(launched("up" + number, rows_of(up, part * rows, rows)));
    code.computes.push_back(launched("down" + number, rows_of(down, part * rows, rows)));
  }
  code.resident = {all_of(plan, kX), all_of(plan, kIn), all_of(plan, kOut)};
  code.expected = {{all_of(plan, c), true, all_of(plan, partial)}};
  return plan;
}

}  // namespace

std::vector<TemplateInfo> two_product_templates() {
  return of_elements(
      {{"gemm-a2a-gemm/direct",
        "a product, an all-to-all of its rows, and the product of what arrives",
        {transfer_parameter("push"), waves_parameter()},
        make_gemm_a2a_gemm},
       {"mlp/domino",
        "two products in parts of rows, each with its all-reduce under the next part (Domino)",
        {size_parameter("parts", "2", "of the rows, one after the other"), split_parameter("2")},
        make_domino}},
      with_tile({size_parameter("m", "2048", "rows (tokens)"),
                 size_parameter("h", "4096", "columns of a row (hidden size)"),
                 size_parameter("f", "14336", "intermediate size, over all ranks")}));
}

}  // namespace hemiola::plan
