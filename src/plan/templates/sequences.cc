#include "plan/templates/sequences.h"

#include <algorithm>
#include <utility>

#include "plan/templates/expert_load.h"
#include "plan/templates/families.h"

namespace hemiola::plan {

namespace {

std::vector<ParameterInfo> with_own_tiles(std::vector<ParameterInfo> all) {
  all.push_back({"own_tile_m", "0", {}, "rows of a tile of the own block's product; 0: tile_m"});
  all.push_back({"own_tile_n", "0", {}, "columns of it; 0: tile_n"});
  return all;
}

}  // namespace

std::vector<ParameterInfo> with_load(std::vector<ParameterInfo> parameters) {
  parameters.push_back(
      {"load",
       kEvenLoad,
       {},
       "tokens of the experts of each rank: even, a weight for each rank as 4/2/1/1, or zipf/S"});
  return parameters;
}

std::vector<ParameterInfo> sequence_parameters(const char* transfer, const char* columns) {
  return with_own_tiles(
      {transfer_parameter(transfer),
       {"degree", "4", {}, "steps that each rank's block goes in"},
       {"axis",
        "m",
        {"m", columns},
        std::string("what steps divide: rows, or ") +
            (*columns == 'k' ? "what is summed over (C += A B)" : "columns of the result")},
       {"steps",
        "uniform",
        {"uniform", "hetero"},
        "hetero: the own block is one product of its own"},
       {"products", "fused", {"fused", "unfused"}, "one product per step, or one per block"},
       {"placement",
        "direct",
        {"direct", "copy"},
        "products use blocks in their places, or copies that lie beside each other"},
       {"streams", "1", {}, "streams of unfused products"}});
}

std::vector<ParameterInfo> shards_parameters(const char* transfer) {
  return with_own_tiles({transfer_parameter(transfer)});
}

SequenceShape sequence_shape(const TemplateArguments& arguments) {
  SequenceShape shape;
  shape.degree = parts_of(arguments, "degree");
  shape.by_rows = arguments.word("axis") == "m";
  shape.hetero = arguments.word("steps") == "hetero";
  shape.fused = arguments.word("products") == "fused";
  shape.copies = arguments.word("placement") == "copy";
  shape.pulls = arguments.word("transfer") == "pull";
  shape.compute_streams = parts_of(arguments, "streams");
  const auto refuse = [&](const char* what, const char* hint) {
    throw Failure("'" + arguments.name + "' " + what, kOption, hint);
  };
  if (shape.copies && !shape.by_rows)
    refuse("has nothing to copy where steps divide columns: all rows are in their places",
           "leave placement out");
  if (shape.copies && !shape.fused)
    refuse("has nothing to copy where every block is a product of its own",
           "leave placement out, or choose products=fused");
  if (shape.compute_streams > 1 && shape.fused)
    refuse("has one product per step, each after the one before",
           "leave streams out, or choose products=unfused");
  return shape;
}

SequenceShape serial_shape(const TemplateArguments& arguments) {
  return {.pulls = arguments.word("transfer") == "pull"};
}

SequenceShape shards_shape(const TemplateArguments& arguments) {
  return {.one_by_one = true,
          .hetero = true,
          .fused = false,
          .pulls = arguments.word("transfer") == "pull"};
}

SequenceMaker::SequenceMaker(const TemplateArguments& arguments, const SequenceShape& shape,
                             std::vector<std::int64_t> rows, std::int64_t length,
                             const char* name_of_length)
    : arguments_(arguments),
      shape_(shape),
      ranks_(arguments.ranks),
      rows_(rows.front()),
      step_rows_(shape.by_rows ? divided(arguments, "rows of a block", rows_, shape.degree)
                               : rows_),
      step_length_(shape.by_rows ? length
                                 : divided(arguments, name_of_length, length, shape.degree)) {
  if (std::ranges::adjacent_find(rows, std::not_equal_to<>()) != rows.end())
    rows_by_expert_ = std::move(rows);
}

std::int64_t SequenceMaker::rows_of_rank(const TemplateArguments& arguments) {
  return divided(arguments, "m", positive(arguments, "m"), arguments.ranks);
}

std::vector<std::int64_t> SequenceMaker::rows_for_experts(const TemplateArguments& arguments) {
  const std::int64_t rows = rows_of_rank(arguments);
  const std::string& load = arguments.word("load");
  if (load == kEvenLoad) return {divided(arguments, "m / ranks", rows, arguments.ranks)};
  return expert_rows(load, arguments.ranks, rows, kOption);
}

void SequenceMaker::use_rows_of(std::int64_t rank) {
  if (is_even()) return;
  rows_ = rows_by_expert_[index(rank)];
  step_rows_ =
      shape_.by_rows ? divided(arguments_, "rows of a block", rows_, shape_.degree) : rows_;
}

std::int64_t SequenceMaker::most_rows() const {
  return is_even() ? rows_ : *std::ranges::max_element(rows_by_expert_);
}

Region SequenceMaker::rows_of_blocks(std::int32_t tensor) const {
  return slab(plan_, tensor, 1, {}, rows_);
}

Region SequenceMaker::rows_of_block(std::int32_t tensor, const Affine& block) const {
  Region region = rows_of_blocks(tensor);
  region.boxes.front()[0] = {block, 1};
  return region;
}

Affine SequenceMaker::taker_at(std::int64_t distance) const {
  return distance == 0 ? own_rank() : around(ranks_, shape_.pulls ? -distance : distance);
}

Affine SequenceMaker::sender_at(std::int64_t distance) const {
  return distance == 0 ? own_rank() : around(ranks_, shape_.pulls ? distance : -distance);
}

Transfer SequenceMaker::moved(const Affine& peer, const Region& from, const Region& to) const {
  return shape_.pulls ? pull(peer, from, to) : push(peer, from, to);
}

Stream SequenceMaker::stream_over(std::int64_t distance, const char* what) const {
  return {
      what + std::string(shape_.pulls ? "from rank + " : "to rank + ") + std::to_string(distance),
      {}};
}

Dependency SequenceMaker::arrived(std::int64_t distance, const Affine& step) const {
  return {.rank = shape_.pulls ? own_rank() : sender_at(distance),
          .stream = shape_.one_by_one ? 0 : static_cast<std::int32_t>(distance - 1),
          .transfer = shape_.one_by_one ? constant(distance - 1) : step};
}

Box SequenceMaker::chunk(const Affine& block, const Affine& at) const {
  const bool rows = shape_.by_rows;
  return {{block, 1},
          {rows ? scaled(at, step_rows_) : Affine{}, step_rows_},
          {rows ? Affine{} : scaled(at, step_length_), step_length_}};
}

Region SequenceMaker::beside(std::int32_t tensor, const Affine& at, const Affine& row) const {
  Region region = slab(plan_, tensor, 0, at, 1);
  region.boxes.front()[1] = {row, step_rows_};
  return region;
}

Compute SequenceMaker::launched_product(std::string name, std::int64_t blocks, std::int64_t rows,
                                        std::int64_t columns, std::int64_t depth, bool own) const {
  const auto tile = [&](const char* of_own, const char* of_all, std::int64_t extent) {
    const std::int64_t chosen = own ? arguments_.number(of_own) : 0;
    return std::min(chosen > 0 ? chosen : positive(arguments_, of_all), extent);
  };
  Compute gemm{.name = std::move(name), .kernel = "gemm", .axes = {}, .operands = {}};
  gemm.axes = {{"block", blocks, 1, false},
               {"m", rows, tile("own_tile_m", "tile_m", rows), false},
               {"n", columns, tile("own_tile_n", "tile_n", columns), false},
               {"k", depth, std::min(positive(arguments_, "tile_k"), depth), true}};
  gemm.stream = "compute";
  gemm.waits = Waits::launch;
  return gemm;
}

Compute SequenceMaker::launched_block(std::int64_t step, std::int64_t distance,
                                      std::int64_t columns, std::int64_t depth) const {
  Compute product =
      launched_product("step " + std::to_string(step) + " block +" + std::to_string(distance), 1,
                       step_rows_, columns, depth, false);
  if (shape_.compute_streams > 1)
    product.stream = "compute " + std::to_string(distance % shape_.compute_streams);
  return product;
}

}  // namespace hemiola::plan
