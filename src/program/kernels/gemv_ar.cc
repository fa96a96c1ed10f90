// GEMV + AllReduce, after Punniyamurthy, Hamidouche, Beckmann: "Optimizing Distributed ML
// Communication with Fused Computation-Collective Operations" (SC'24, arXiv 2305.06942): y[m, n] =
// a[m, k] x[k, n], k divided among the ranks (docs/fused.md).
#include <fmt/format.h>

#include "program/kernels/fused.h"

namespace hemiola::program {
namespace {

/// What both kernels compute; bytes but for rows.
struct Gemv {
  explicit Gemv(const KernelArguments& arguments)
      : type(element_of(arguments)),
        m(size_of_parameter(arguments, "m")),
        n(size_of_parameter(arguments, "n")),
        k(divided(arguments, "k", size_of_parameter(arguments, "k"), arguments.ranks,
                  fmt::format("{} slices", arguments.ranks))),
        tile_m(size_of_parameter(arguments, "tile_m")) {
    const std::int64_t element = hemiola::size_of(type);
    tiles = divided(arguments, "m", m, arguments.ranks * tile_m,
                    fmt::format("{} chunks of whole tiles of {} rows", arguments.ranks, tile_m));
    a_row = k * element;
    y_row = n * element;
    x_bytes = k * y_row;
    unit = {std::gcd(std::gcd(tile_m * a_row, tile_m * y_row), x_bytes)};
  }

  std::int64_t a_tile() const { return tile_m * a_row; }
  std::int64_t y_tile() const { return tile_m * y_row; }
  std::int64_t a_chunk() const { return tiles * a_tile(); }
  std::int64_t y_chunk() const { return tiles * y_tile(); }

  DataType type;
  std::int64_t m, n, k, tile_m;
  std::int64_t tiles = 0;  ///< of the chunk of a rank
  std::int64_t a_row = 0, y_row = 0, x_bytes = 0;
  Bytes unit{};
};

class GemvWriter {
 public:
  explicit GemvWriter(const KernelArguments& arguments)
      : arguments_(arguments),
        gemv_(arguments),
        writer_(arguments, Collective::all_reduce, gemv_.type, gemv_.unit, {gemv_.m * gemv_.y_row}),
        n_(arguments.ranks),
        chunk_(gemv_.y_chunk()) {
    a_ = writer_.buffer("a", BufferKind::resident, gemv_.m * gemv_.a_row);
    x_ = writer_.buffer("x", BufferKind::resident, gemv_.x_bytes);
    output_ = writer_.buffer("y", BufferKind::output, n_ * chunk_);
    slots_ = writer_.buffer("slots", BufferKind::scratch, (n_ - 1) * chunk_);
    Computation all{.shape = {gemv_.m, gemv_.n, gemv_.k}, .left = a_, .right = x_};
    writer_.program().computation = std::make_shared<const Computation>(std::move(all));
  }

  Program fused() {
    const Dealing dealing{n_, gemv_.tiles, workgroups_of(arguments_), order_of(arguments_)};
    const std::int32_t own = writer_.buffer("own partial", BufferKind::scratch, chunk_);
    const auto ready = writer_.flags("ready", dealing.groups());
    const auto gathered = writer_.flags("gathered", dealing.groups());
    writer_.begin_kernel("gemv + all-reduce", static_cast<int>(threads_of(arguments_)), 128);
    for (std::int64_t w = 0; w < dealing.workgroups; ++w) {
      writer_.begin_workgroup();
      std::int64_t mine = -1;  // group of the own chunk
      dealing.each_group(w, [&](std::int64_t group, int d) {
        if (d == 0) mine = group;
        compute(dealing, group, d, [&](std::int64_t offset, std::int64_t step) {
          return d == 0 ? Target{own_rank(), own, writer_.place(offset, step)}
                        : Target{neighbour(d, n_), slots_,
                                 writer_.place((d - 1) * chunk_ + offset, step)};
        });
        writer_.sync();
        if (d != 0) writer_.tell(ready, group, d);
      });
      if (mine >= 0) reduce_group(dealing, mine, own, ready, gathered);
    }
    return writer_.finish(arguments_);
  }

  Program unfused() {
    const Dealing dealing{n_, gemv_.tiles, workgroups_of(arguments_), Dealing::Order::own_first};
    const std::int32_t partial = writer_.buffer("partial", BufferKind::scratch, n_ * chunk_);
    writer_.begin_kernel("gemv", static_cast<int>(threads_of(arguments_)), 128);
    for (std::int64_t w = 0; w < dealing.workgroups; ++w) {
      writer_.begin_workgroup();
      dealing.each_group(w, [&](std::int64_t group, int d) {
        compute(dealing, group, d, [&](std::int64_t offset, std::int64_t step) {
          return Target{own_rank(), partial, writer_.block(d, chunk_, offset, step)};
        });
        writer_.sync();
      });
    }
    all_reduce(partial);
    return writer_.finish(arguments_);
  }

 private:
  struct Target {
    Affine rank;
    std::int32_t buffer;
    Affine chunk;
  };

  /// The tiles of a group for the rank `d` behind, one after the other.
  template <class To>
  void compute(const Dealing& dealing, std::int64_t group, int d, To&& to) {
    const std::int64_t count = dealing.in_group(group), step = count > 1 ? dealing.groups() : 0;
    const Target target = to(group * gemv_.y_tile(), step * gemv_.y_tile());
    Op op{.kind = OpKind::compute};
    op.src = {writer_.memory(
                  own_rank(), a_,
                  writer_.block(d, gemv_.a_chunk(), group * gemv_.a_tile(), step * gemv_.a_tile()),
                  gemv_.a_tile()),
              writer_.memory(own_rank(), x_, writer_.place(0), gemv_.x_bytes)};
    op.dst = {writer_.memory(target.rank, target.buffer, target.chunk, gemv_.y_tile())};
    op.flop = 2 * gemv_.tile_m * gemv_.n * gemv_.k;
    op.values = {gemv_.tile_m, gemv_.n, gemv_.k};
    op.made = writer_.block(d, chunk_, group * gemv_.y_tile(), step * gemv_.y_tile());
    writer_.loop(count, {op});
  }

  /// Waits for the others' partial sums of the tiles of a group, and stores their sums everywhere.
  void reduce_group(const Dealing& dealing, std::int64_t group, std::int32_t own,
                    const FusedWriter::Flags& ready, const FusedWriter::Flags& gathered) {
    const std::int64_t count = dealing.in_group(group), tile = gemv_.y_tile();
    const std::int64_t offset = group * tile, step = count > 1 ? dealing.groups() * tile : 0;
    writer_.hear_all(ready, group);
    writer_.sync();
    Op op{.kind = OpKind::reduce_send, .channel = Channel::memory};
    op.src = {writer_.memory(own_rank(), own, writer_.place(offset, step), tile)};
    for (int d = 1; d < n_; ++d)
      op.src.push_back(
          writer_.memory(own_rank(), slots_, writer_.place((d - 1) * chunk_ + offset, step), tile));
    store_everywhere(op, offset, step, tile);
    writer_.loop(count, {op});
    writer_.sync();
    writer_.tell_all(gathered, group);
    writer_.hear_all(gathered, group);
  }

  void store_everywhere(Op& op, std::int64_t offset, std::int64_t step, std::int64_t bytes) {
    for (int i = 0; i < n_; ++i) {
      op.dst.push_back(writer_.memory(i == 0 ? own_rank() : neighbour(i, n_), output_,
                                      writer_.own_block(chunk_, offset, step), bytes));
    }
  }

  /// The same two phases, on partial sums in memory.
  void all_reduce(std::int32_t partial) {
    const std::int64_t count = collective_workgroups(arguments_, n_ * chunk_);
    const auto ready = writer_.flags("ready", count), gathered = writer_.flags("gathered", count);
    writer_.begin_kernel("all-reduce", 512, 16);
    for (std::int64_t w = 0; w < count; ++w) {
      writer_.begin_workgroup();
      const auto share = [&](Op op) {
        op.slice = static_cast<std::int32_t>(w);
        op.slices = static_cast<std::int32_t>(count);
        return op;
      };
      for (int i = 0; i < n_ - 1; ++i) {
        const int d = nth_peer(n_, w, i);
        Op op{.kind = OpKind::put, .channel = Channel::memory};
        op.src = {writer_.memory(own_rank(), partial, writer_.block(d, chunk_, 0), chunk_)};
        op.dst = {
            writer_.memory(neighbour(d, n_), slots_, writer_.place((d - 1) * chunk_), chunk_)};
        writer_.add(share(std::move(op)));
      }
      writer_.sync();
      writer_.tell_all(ready, w);
      writer_.hear_all(ready, w);
      writer_.sync();
      Op op{.kind = OpKind::reduce_send, .channel = Channel::memory};
      op.src = {writer_.memory(own_rank(), partial, writer_.block(0, chunk_, 0), chunk_)};
      for (int d = 1; d < n_; ++d)
        op.src.push_back(
            writer_.memory(own_rank(), slots_, writer_.place((d - 1) * chunk_), chunk_));
      store_everywhere(op, 0, 0, chunk_);
      writer_.add(share(std::move(op)));
      writer_.sync();
      writer_.tell_all(gathered, w);
      writer_.hear_all(gathered, w);
    }
  }

  const KernelArguments& arguments_;
  Gemv gemv_;
  FusedWriter writer_;
  int n_;
  std::int64_t chunk_;
  std::int32_t a_ = 0, x_ = 0, output_ = 0, slots_ = 0;
};

}  // namespace

std::vector<KernelInfo> gemv_ar_kernels() {
  return fused_and_unfused<GemvWriter>("gemv-ar", Collective::all_reduce,
                                       "a matrix-vector product whose tiles go to who reduces them",
                                       "the same, an all-reduce launched behind the product",
                                       {{"m", "8192", {}, "rows of the matrix"},
                                        {"n", "1", {}, "vectors"},
                                        {"k", "8192", {}, "columns, over all ranks"},
                                        {"tile_m", "16", {}, "rows of a tile"}});
}

}  // namespace hemiola::program
