// The MLP of a transformer: rows are gathered, go up (with SwiGLU to a gate as well), through the
// activation, which is local to a row, and down, and are scattered. Nothing mixes rows, so a step
// goes through all of it alone.
#include "plan/templates/blocks.h"
#include "plan/templates/families.h"

namespace hemiola::plan {
namespace {

/// Of a tile of the activation: a few KiB of each operand, enough for all compute units.
constexpr std::int64_t kRows = 32, kColumns = 256;

class MlpMaker final : public BlockMaker {
 public:
  MlpMaker(const TemplateArguments& arguments, bool in_steps)
      : BlockMaker(arguments, 1, {columns_of(arguments) * (is_gated(arguments) ? 2 : 1)},
                   {columns_of(arguments)}, in_steps),
        columns_(columns_of(arguments)),
        gated_(is_gated(arguments)) {}

 private:
  static bool is_gated(const TemplateArguments& arguments) {
    return arguments.word("activation") == "swiglu";
  }
  static std::int64_t columns_of(const TemplateArguments& arguments) {
    return divided(arguments, "f", positive(arguments, "f"), arguments.ranks);
  }

  void add_steps() override {
    for (std::int64_t inner = 0; inner < inners(); ++inner) {
      const Piece piece = step(0, inner);
      add_input_product(piece);
      add_activation(piece);
      add_output_product(piece);
      made(0, inner);
    }
  }
  void add_own_first(const Piece& own) override {
    add_input_product(own);
    add_activation(own);
  }

  std::vector<ComputeAxis> columns_of_input(const Piece& piece) const override {
    const std::int64_t all = gated_ ? 2 * columns_ : columns_;
    return {{"n", all, tile("in_tile_n", piece, all), false}};
  }
  std::vector<ComputeAxis> sums_of_output() const override {
    return {{"k", columns_, std::min(positive(arguments_, "tile_k"), columns_), true}};
  }

  /// Gates are the first half of the columns.
  void add_activation(const Piece& piece) {
    Compute compute = launch("activation", piece, arguments_.word("activation").c_str(), kRows);
    compute.axes.push_back({"n", columns_, std::min(kColumns, columns_), false});
    compute.operands = {operand(kMiddle, Use::read, piece, {3})};
    if (gated_)
      compute.operands.push_back(operand(kMiddle, Use::read, piece, {3}, {constant(columns_)}));
    compute.operands.push_back(operand(kInner, Use::write, piece, {3}));
    add(std::move(compute));
  }

  std::int64_t columns_;
  bool gated_;
};

std::vector<ParameterInfo> mlp_parameters(bool in_steps) {
  return block_parameters({size_parameter("m", "8192", "rows (tokens), over all ranks"),
                           size_parameter("h", "8192", "columns of a row (hidden size)"),
                           size_parameter("f", "28672", "intermediate size, over all ranks"),
                           {"activation",
                            "swiglu",
                            {"swiglu", "gelu"},
                            "swiglu: the first product has a gate for each column"}},
                          in_steps);
}

template <bool in_steps>
Plan make_mlp(const TemplateArguments& arguments) {
  return MlpMaker(arguments, in_steps).make();
}

}  // namespace

std::vector<TemplateInfo> block_mlp_templates() {
  return of_elements(
      {{"block-mlp/sequence",
        "an MLP in steps of rows: all-gather, up, activation, down, reduce-scatter",
        mlp_parameters(true), make_mlp<true>},
       {"block-mlp/serial",
        "an MLP at once: a whole all-gather, up, activation, down, a whole reduce-scatter",
        mlp_parameters(false), make_mlp<false>}});
}

}  // namespace hemiola::plan
