// The attention of a transformer: rows are gathered and multiplied to queries, keys and values of
// the own heads; every query meets all keys of its sequence; results are multiplied to rows and
// scattered.
//
// A sequence's queries meet its keys only when all rows of it have arrived: that is a barrier by
// nature. Steps before it (rows arriving, first products) and behind it (queries, second products,
// results leaving) flow, and so do sequences.
#include "plan/templates/blocks.h"
#include "plan/templates/families.h"

namespace hemiola::plan {
namespace {

struct Heads {
  std::int64_t groups = 1;     ///< of keys and values, of one rank
  std::int64_t each = 1;       ///< heads of queries that share one
  std::int64_t dimension = 1;  ///< elements of a head

  static Heads of(const TemplateArguments& arguments) {
    const std::int64_t heads = positive(arguments, "heads"), kv = positive(arguments, "kv_heads");
    return {.groups = divided(arguments, "kv_heads", kv, arguments.ranks),
            .each = divided(arguments, "heads", heads, kv),
            .dimension = positive(arguments, "head")};
  }
};

/// The largest divisor of `extent` that is not above `most`.
std::int64_t largest_divisor(std::int64_t extent, std::int64_t most) {
  std::int64_t best = 1;
  for (std::int64_t d = 1; d <= std::min(extent, most); ++d)
    if (extent % d == 0) best = d;
  return best;
}

/// A group's heads of queries lie before its keys and its values, as Megatron-LM has them.
class AttentionMaker final : public BlockMaker {
 public:
  AttentionMaker(const TemplateArguments& arguments, bool in_steps)
      : AttentionMaker(arguments, Heads::of(arguments), in_steps) {}

 private:
  AttentionMaker(const TemplateArguments& arguments, const Heads& heads, bool in_steps)
      : BlockMaker(arguments, positive(arguments, "sequences"),
                   {heads.groups, heads.each + 2, heads.dimension},
                   {heads.groups, heads.each * heads.dimension}, in_steps),
        heads_(heads) {}

  void add_steps() override {
    for (std::int64_t outer = 0; outer < outers(); ++outer) {
      for (std::int64_t inner = 0; inner < inners(); ++inner) add_input_product(step(outer, inner));
      for (std::int64_t inner = 0; inner < inners(); ++inner) {
        add_attention(of_all_ranks(step(outer, inner)));
        add_output_product(step(outer, inner));
        made(outer, inner);
      }
    }
  }
  void add_own_first(const Piece& own) override { add_input_product(own); }

  std::vector<ComputeAxis> columns_of_input(const Piece& piece) const override {
    const std::int64_t columns = (heads_.each + 2) * heads_.dimension;
    const std::int64_t wide = tile("in_tile_n", piece, heads_.groups * columns);
    const std::int64_t tile_heads = largest_divisor(heads_.each + 2, wide / heads_.dimension);
    return {{"group", heads_.groups, 1, false},
            {"head", heads_.each + 2, tile_heads, false},
            {"n", heads_.dimension, std::min(wide, heads_.dimension), false}};
  }
  std::vector<ComputeAxis> sums_of_output() const override {
    const std::int64_t columns = heads_.each * heads_.dimension;
    return {{"group", heads_.groups, 1, true},
            {"k", columns, std::min(positive(arguments_, "tile_k"), columns), true}};
  }

  /// Of all queries of a piece, with all keys of their sequences. The heads of a group, which read
  /// the same keys, are in one tile.
  void add_attention(const Piece& piece) {
    const std::int64_t tile_rows =
        std::max<std::int64_t>(1, positive(arguments_, "tile_q") / heads_.each);
    Compute compute = launch("attention", piece, "attention", tile_rows);
    compute.axes.insert(compute.axes.end(),
                        {{"group", heads_.groups, 1, false},
                         {"head", heads_.each, heads_.each, false},
                         {"place", 1, 1, false},
                         {"kv_block", ranks_, 1, true},
                         {"kv", rows(), std::min(positive(arguments_, "tile_kv"), rows()), true}});
    constexpr std::int32_t kSequence = 1, kGroup = 3, kHead = 4, kPlace = 5, kBlock = 6, kRow = 7;
    const auto all_rows = [&](std::int64_t place) {
      return ComputeOperand{kMiddle,
                            Use::read,
                            {kBlock, kSequence, kRow, kGroup, kPlace, -1},
                            {{}, constant(piece.sequence), {}, {}, constant(place), {}}};
    };
    compute.operands = {operand(kMiddle, Use::read, piece, {kGroup, kHead, -1}),
                        all_rows(heads_.each), all_rows(heads_.each + 1),
                        operand(kInner, Use::accumulate, piece, {kGroup, -1})};
    // Two products of 2 flop per element of a head; with a mask half of the pairs are left.
    compute.flop_per_point = (arguments_.word("causal") == "yes" ? 2 : 4) * heads_.dimension;
    add(std::move(compute));
  }

  Heads heads_;
};

std::vector<ParameterInfo> attention_parameters(bool in_steps) {
  return block_parameters(
      {size_parameter("m", "8192", "rows (tokens) of all sequences, over all ranks"),
       size_parameter("h", "8192", "columns of a row (hidden size)"),
       size_parameter("heads", "64", "heads of queries, over all ranks"),
       size_parameter("kv_heads", "8", "heads of keys and values, over all ranks"),
       size_parameter("head", "128", "elements of a head"),
       size_parameter("sequences", "1", "that the rows belong to, each as long as the others"),
       {"causal", "yes", {"yes", "no"}, "queries meet keys before them only: half of the flop"},
       size_parameter("tile_q", "128",
                      "queries of a tile of attention, of all heads that share a key"),
       size_parameter("tile_kv", "128", "keys and values of a tile of attention")},
      in_steps);
}

template <bool in_steps>
Plan make_attention_block(const TemplateArguments& arguments) {
  return AttentionMaker(arguments, in_steps).make();
}

}  // namespace

std::vector<TemplateInfo> block_attention_templates() {
  return of_elements(
      {{"block-attention/sequence",
        "attention in steps: all-gather, queries keys and values, attention, output product, "
        "reduce-scatter",
        attention_parameters(true), make_attention_block<true>},
       {"block-attention/serial", "attention at once: each part after the whole of the one before",
        attention_parameters(false), make_attention_block<false>}});
}

}  // namespace hemiola::plan
