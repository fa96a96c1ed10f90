// GEMM + All-to-All, the combine step of a layer of experts (docs/fused.md): every rank multiplies
// the tokens that all ranks have sent to its expert, c[m, n] = a[m, k] b[k, n], and block r of the
// rows goes back to rank r. After Punniyamurthy et al. (SC'24, arXiv 2305.06942).
#include <fmt/format.h>

#include "program/kernels/fused.h"

namespace hemiola::program {
namespace {

class GemmWriter {
 public:
  explicit GemmWriter(const KernelArguments& arguments)
      : arguments_(arguments),
        shape_{size_of_parameter(arguments, "m"), size_of_parameter(arguments, "n"),
               size_of_parameter(arguments, "k")},
        tile_{size_of_parameter(arguments, "tile_m"), size_of_parameter(arguments, "tile_n"),
              size_of_parameter(arguments, "tile_k")},
        element_(hemiola::size_of(element_of(arguments))),
        tile_rows_(
            divided(arguments, "m", shape_.m, arguments.ranks * tile_.m,
                    fmt::format("{} blocks of whole tiles of {} rows", arguments.ranks, tile_.m))),
        tile_columns_(divided(arguments, "n", shape_.n, tile_.n,
                              fmt::format("tiles of {} columns", tile_.n))),
        steps_(divided(arguments, "k", shape_.k, tile_.k, fmt::format("steps of {}", tile_.k))),
        n_(arguments.ranks),
        block_(shape_.m / n_ * shape_.n * element_),
        writer_(arguments, Collective::all_to_all, element_of(arguments),
                {element_ * std::gcd(tile_.n, tile_.k)}, {n_ * block_}) {
    a_ = writer_.buffer("a", BufferKind::resident, shape_.m * shape_.k * element_);
    b_ = writer_.buffer("b", BufferKind::resident, shape_.k * shape_.n * element_);
    output_ = writer_.buffer("c", BufferKind::output, n_ * block_);
    Computation all{.shape = shape_, .left = a_, .right = b_};
    writer_.program().computation = std::make_shared<const Computation>(std::move(all));
  }

  Program fused() {
    const Dealing dealing{n_, tile_rows_ * tile_columns_, workgroups_of(arguments_),
                          order_of(arguments_)};
    const auto ready = writer_.flags("ready", dealing.groups());
    writer_.begin_kernel("gemm + all-to-all", static_cast<int>(threads_of(arguments_)), 128);
    for (std::int64_t w = 0; w < dealing.workgroups; ++w) {
      writer_.begin_workgroup();
      dealing.each_group(w, [&](std::int64_t group, int d) {
        dealing.each_tile(group, [&](std::int64_t tile) {
          compute(tile, d, [&](std::int64_t offset) {
            return writer_.memory(d == 0 ? own_rank() : neighbour(d, n_), output_,
                                  writer_.own_block(block_, offset), tile_bytes());
          });
        });
        writer_.sync();
        if (d != 0) writer_.tell(ready, group, d);
      });
      if (w < dealing.groups()) writer_.hear_all(ready, w);
    }
    return writer_.finish(arguments_);
  }

  Program unfused() {
    const Dealing dealing{n_, tile_rows_ * tile_columns_, workgroups_of(arguments_),
                          Dealing::Order::own_first};
    const std::int32_t result = writer_.buffer("result", BufferKind::scratch, n_ * block_);
    writer_.begin_kernel("gemm", static_cast<int>(threads_of(arguments_)), 128);
    for (std::int64_t w = 0; w < dealing.workgroups; ++w) {
      writer_.begin_workgroup();
      dealing.each_group(w, [&](std::int64_t group, int d) {
        dealing.each_tile(group, [&](std::int64_t tile) {
          compute(tile, d, [&](std::int64_t offset) {
            return writer_.memory(own_rank(), result, writer_.block(d, block_, offset),
                                  tile_bytes());
          });
        });
      });
    }
    write_all_to_all(writer_, arguments_, result, output_, block_);
    return writer_.finish(arguments_);
  }

 private:
  std::int64_t tile_bytes() const { return tile_.m * tile_.n * element_; }

  /// A tile of the block for the rank `d` behind, step by step along k; stored where `to` says.
  template <class To>
  void compute(std::int64_t tile, int d, To&& to) {
    const std::int64_t row = tile / tile_columns_ * tile_.m;
    const std::int64_t column = tile % tile_columns_ * tile_.n;
    const std::int64_t a_row = shape_.k * element_, c_row = shape_.n * element_;
    const std::int64_t step = tile_.k * element_;
    Op op{.kind = OpKind::compute};
    op.flop = 2 * tile_.m * tile_.n * tile_.k;
    op.product = op.values = tile_;
    // Step `number`, and as many further ones as a loop has.
    const auto load = [&](std::int64_t number, std::int64_t more) {
      const std::int64_t along_a = more > 0 ? step : 0;
      const std::int64_t along_b = more > 0 ? tile_.k * c_row : 0;
      const Affine rows_of_a =
          writer_.block(d, shape_.m / n_ * a_row, row * a_row + number * step, along_a);
      const Affine rows_of_b = writer_.place(number * tile_.k * c_row + column * element_, along_b);
      op.src = {
          writer_.rows(writer_.memory(own_rank(), a_, rows_of_a, tile_.m * step), step, a_row),
          writer_.rows(writer_.memory(own_rank(), b_, rows_of_b, tile_.k * tile_.n * element_),
                       tile_.n * element_, c_row)};
    };
    if (steps_ > 1) {
      load(0, steps_ - 2);
      writer_.loop(steps_ - 1, {op});
    }
    load(steps_ - 1, 0);
    const std::int64_t offset = row * c_row + column * element_;
    op.dst = {writer_.rows(to(offset), tile_.n * element_, c_row)};
    op.made = writer_.block(d, block_, offset);
    writer_.add(std::move(op));
  }

  const KernelArguments& arguments_;
  MatrixProduct shape_, tile_;
  std::int64_t element_, tile_rows_, tile_columns_, steps_;
  int n_;
  std::int64_t block_;
  FusedWriter writer_;
  std::int32_t a_ = 0, b_ = 0, output_ = 0;
};

}  // namespace

std::vector<KernelInfo> gemm_a2a_kernels() {
  return fused_and_unfused<GemmWriter>("gemm-a2a", Collective::all_to_all,
                                       "a product whose tiles go to the ranks that they are for",
                                       "the same, an all-to-all launched behind the product",
                                       {{"m", "4096", {}, "tokens of an expert, of all ranks"},
                                        {"n", "4096", {}, "columns of the result"},
                                        {"k", "1024", {}, "what is summed over"},
                                        {"tile_m", "128", {}, "rows of a tile"},
                                        {"tile_n", "128", {}, "columns of a tile"},
                                        {"tile_k", "64", {}, "what a tile sums over in a step"}});
}

}  // namespace hemiola::program
