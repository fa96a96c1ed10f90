// Attention over a sequence that is divided among the ranks: every rank keeps its queries, keys and
// values go round (Ring Attention, arXiv 2310.01889; double rings, arXiv 2406.18485 LoongTrain). A
// tile of the compute takes a block of queries and one of keys and values; results of tiles are
// merged.
#include "hemiola/parts/build_plan.h"
#include "plan/templates/families.h"
#include "plan/templates/pipelines.h"

namespace hemiola::plan {
namespace {

const std::int32_t kQueries = 0, kKeys = 1, kValues = 2, kAttended = 3;

/// Keys and values move together: parts 0, 2, ... are keys.
Blocks keys_and_values(const TemplateArguments& arguments, const Plan& plan) {
  const std::int64_t split = split_of(arguments);
  const Blocks keys = blocks_along(arguments, plan, kKeys, 1, split);
  const Blocks values = blocks_along(arguments, plan, kValues, 1, split);
  const Blocks::Place place = [keys, values](const Affine& owner, std::int64_t part) {
    return part % 2 == 0 ? keys.own(owner, part / 2) : values.own(owner, part / 2);
  };
  return {place, place, 2 * split};
}

template <GatherBlocks gather>
Plan make_attention(const TemplateArguments& arguments) {
  const DataType type = data_type_of(arguments);
  const std::int64_t heads = positive(arguments, "heads"), depth = positive(arguments, "head");
  const std::int64_t sequence = positive(arguments, "sequence");
  const std::int64_t own = divided(arguments, "sequence", sequence, arguments.ranks);
  Plan plan = start_plan(arguments, 1);
  plan.tensors = {{"q", Role::input, {heads, own, depth}, type},
                  {"k", Role::input, {heads, sequence, depth}, type},
                  {"v", Role::input, {heads, sequence, depth}, type},
                  {"o", Role::output, {heads, own, depth}, type}};
  gather(arguments, plan, keys_and_values(arguments, plan));
  Compute attention{.name = "attention", .kernel = "attention", .axes = {}, .operands = {}};
  attention.axes = {{"h", heads, 1, false},
                    {"q", own, positive(arguments, "tile_q"), false},
                    {"kv", sequence, positive(arguments, "tile_kv"), true}};
  attention.operands = {{kQueries, Use::read, {0, 1, -1}},
                        {kKeys, Use::read, {0, 2, -1}},
                        {kValues, Use::read, {0, 2, -1}},
                        {kAttended, Use::accumulate, {0, 1, -1}}};
  attention.flop_per_point = 4 * depth;  // two products of 2 flop per element of a head
  const auto own_part = [&](std::int32_t tensor) {
    return slab(plan, tensor, 1, scaled(own_rank(), own), own);
  };
  compute_everywhere(plan, attention, {all_of(plan, kQueries), own_part(kKeys), own_part(kValues)},
                     {all_of(plan, kAttended), false});
  return plan;
}

}  // namespace

std::vector<TemplateInfo> attention_templates() {
  return of_elements({{"ring-attention/ring",
                       "keys and values go around a ring",
                       {},
                       make_attention<ring_of_blocks>},
                      {"ring-attention/swizzle",
                       "keys and values are gathered directly",
                       {transfer_parameter("pull"), order_parameter()},
                       make_attention<exchange_blocks>},
                      {"double-ring-attention/ring",
                       "keys and values go around two levels of rings",
                       {inner_parameter()},
                       make_attention<double_ring_of_blocks>}},
                     {size_parameter("heads", "32", "heads"),
                      size_parameter("sequence", "32768", "queries and keys, over all ranks"),
                      size_parameter("head", "128", "elements of a head"),
                      size_parameter("tile_q", "128", "queries of a tile"),
                      size_parameter("tile_kv", "128", "keys and values of a tile"),
                      data_type_parameter(), split_parameter()});
}

}  // namespace hemiola::plan
