// Embedding pooling + All-to-All, the forward pass of a DLRM whose tables are divided among the
// ranks (docs/fused.md): every rank adds up rows of its tables for the whole batch, and block r of
// the batch goes to rank r, slice by slice. After Punniyamurthy et al. (SC'24, arXiv 2305.06942).
#include <fmt/format.h>

#include "program/kernels/fused.h"

namespace hemiola::program {
namespace {

class EmbeddingWriter {
 public:
  explicit EmbeddingWriter(const KernelArguments& arguments)
      : arguments_(arguments),
        n_(arguments.ranks),
        tables_(size_of_parameter(arguments, "tables")),
        rows_(size_of_parameter(arguments, "rows")),
        lookups_(size_of_parameter(arguments, "lookups")),
        dim_(size_of_parameter(arguments, "dim")),
        tile_(size_of_parameter(arguments, "tile")),
        bags_(divided(arguments, "batch", size_of_parameter(arguments, "batch"), n_,
                      fmt::format("{} blocks", n_)) *
              tables_),
        slice_tiles_(divided(arguments, "slice", size_of_parameter(arguments, "slice"), tile_,
                             fmt::format("tiles of {} bags", tile_))),
        slices_(divided(arguments, "batch / ranks * tables", bags_, tile_ * slice_tiles_,
                        fmt::format("slices of {} bags", tile_ * slice_tiles_))),
        row_(dim_ * hemiola::size_of(element_of(arguments))),
        block_(bags_ * row_),
        writer_(arguments, Collective::all_to_all, element_of(arguments), {row_}, {n_ * block_}) {
    table_ = writer_.buffer("tables", BufferKind::resident, tables_ * rows_ * row_);
    output_ = writer_.buffer("pooled", BufferKind::output, n_ * block_);
    draw_rows();
  }

  Program fused() {
    const Dealing dealing{n_, slices_ * slice_tiles_, workgroups_of(arguments_),
                          order_of(arguments_)};
    const std::int32_t staging = writer_.buffer("staging", BufferKind::scratch, (n_ - 1) * block_);
    const auto ready = writer_.flags("slice", slices_);
    if (slice_tiles_ > 1) {
      done_ = static_cast<std::int32_t>(writer_.program().semaphores.size());
      for (std::int64_t s = 0; s < (n_ - 1) * slices_; ++s)
        writer_.semaphore(fmt::format("tiles of slice {}", s), true);
    }
    writer_.begin_kernel("embedding + all-to-all", static_cast<int>(threads_of(arguments_)), 128);
    for (std::int64_t w = 0; w < dealing.workgroups; ++w) {
      writer_.begin_workgroup();
      dealing.each_group(w, [&](std::int64_t group, int d) {
        dealing.each_tile(group, [&](std::int64_t tile) {
          if (d == 0) {
            pool(tile, 0, output_, writer_.own_block(block_, tile * tile_ * row_));
          } else {
            pool(tile, d, staging, writer_.place((d - 1) * block_ + tile * tile_ * row_));
            finish_tile(tile, d, staging, ready);
          }
        });
      });
      for (std::int64_t s = w; s < slices_; s += dealing.workgroups) writer_.hear_all(ready, s);
    }
    return writer_.finish(arguments_);
  }

  Program unfused() {
    const Dealing dealing{n_, slices_ * slice_tiles_, workgroups_of(arguments_),
                          Dealing::Order::own_first};
    const std::int32_t result = writer_.buffer("result", BufferKind::scratch, n_ * block_);
    writer_.begin_kernel("embedding", static_cast<int>(threads_of(arguments_)), 128);
    for (std::int64_t w = 0; w < dealing.workgroups; ++w) {
      writer_.begin_workgroup();
      dealing.each_group(w, [&](std::int64_t group, int d) {
        dealing.each_tile(group, [&](std::int64_t tile) {
          pool(tile, d, result, writer_.block(d, block_, tile * tile_ * row_));
        });
      });
    }
    write_all_to_all(writer_, arguments_, result, output_, block_);
    return writer_.finish(arguments_);
  }

 private:
  /// A bag reads rows at equal distances from a random one on, as if drawn from the whole table.
  void draw_rows() {
    Computation all{
        .kind = Computation::Kind::pooling, .shape = {n_ * bags_, dim_, lookups_}, .left = table_};
    if (lookups_ > rows_)
      throw Failure(
          fmt::format("'{}' cannot look up {} of {} rows", arguments_.name, lookups_, rows_),
          kOption, "choose more rows or fewer lookups");
    all.pitch = std::max<std::int64_t>(1, rows_ / lookups_);
    const std::int64_t starts = rows_ - (lookups_ - 1) * all.pitch;
    std::uint64_t state = 1;
    for (std::int64_t bag = 0; bag < n_ * bags_; ++bag) {
      state = state * 6364136223846793005u + 1442695040888963407u;  // Knuth's MMIX generator
      const auto start =
          static_cast<std::int64_t>((state >> 33) % static_cast<std::uint64_t>(starts));
      all.first_rows.push_back(bag % tables_ * rows_ + start);
    }
    computation_ = std::make_shared<const Computation>(std::move(all));
    writer_.program().computation = computation_;
  }

  /// Tile `tile` of the bags for the rank `d` behind.
  void pool(std::int64_t tile, int d, std::int32_t buffer, const Affine& chunk) {
    Op op{.kind = OpKind::compute};
    for (std::int64_t bag = tile * tile_; bag < (tile + 1) * tile_; ++bag) {
      const std::int64_t first = computation_->first_rows[index(d * bags_ + bag)];
      op.src.push_back(writer_.rows(
          writer_.memory(own_rank(), table_, writer_.place(first * row_), lookups_ * row_), row_,
          computation_->pitch * row_));
    }
    op.dst = {writer_.memory(own_rank(), buffer, chunk, tile_ * row_)};
    op.flop = tile_ * lookups_ * dim_;
    op.values = {tile_, dim_, lookups_};
    op.made = writer_.block(d, block_, tile * tile_ * row_);
    writer_.add(std::move(op));
    writer_.sync();
  }

  /// Whoever has the last tile of a slice puts the slice, and tells.
  void finish_tile(std::int64_t tile, int d, std::int32_t staging,
                   const FusedWriter::Flags& ready) {
    const std::int64_t slice = tile / slice_tiles_;
    const SemaphoreRef done{own_rank(),
                            done_ + static_cast<std::int32_t>((d - 1) * slices_ + slice)};
    const bool last = (tile + 1) % slice_tiles_ == 0;
    if (!last) return writer_.add({.kind = OpKind::dep_signal, .semaphores = {done}});
    if (slice_tiles_ > 1) {
      writer_.add({.kind = OpKind::dep_wait,
                   .semaphores = {done},
                   .target = slice_tiles_ - 1,
                   .count = slice_tiles_ - 1});
      writer_.sync();
    }
    const std::int64_t bytes = slice_tiles_ * tile_ * row_;
    Op op{.kind = OpKind::put, .channel = Channel::memory};
    op.src = {writer_.memory(own_rank(), staging, writer_.place((d - 1) * block_ + slice * bytes),
                             bytes)};
    op.dst = {
        writer_.memory(neighbour(d, n_), output_, writer_.own_block(block_, slice * bytes), bytes)};
    writer_.add(std::move(op));
    writer_.sync();
    writer_.tell(ready, slice, d);
  }

  const KernelArguments& arguments_;
  int n_;
  std::int64_t tables_, rows_, lookups_, dim_, tile_;
  std::int64_t bags_;         ///< of a block: those of a rank's samples, in all tables
  std::int64_t slice_tiles_;  ///< tiles of a slice
  std::int64_t slices_;       ///< of a block
  std::int64_t row_, block_;  ///< bytes
  FusedWriter writer_;
  std::shared_ptr<const Computation> computation_;
  std::int32_t table_ = 0, output_ = 0, done_ = 0;
};

}  // namespace

std::vector<KernelInfo> embedding_a2a_kernels() {
  return fused_and_unfused<EmbeddingWriter>(
      "embedding-a2a", Collective::all_to_all,
      "pooled rows of tables go to their ranks slice by slice",
      "the same, an all-to-all launched behind the pooling",
      {{"batch", "1024", {}, "samples, over all ranks"},
       {"tables", "8", {}, "of a rank"},
       {"rows", "100000", {}, "of a table"},
       {"dim", "128", {}, "elements of a row"},
       {"lookups", "32", {}, "rows that a bag adds up"},
       {"tile", "16", {}, "bags that a workgroup computes at a time"},
       {"slice", "64", {}, "bags that are sent at a time: a multiple of `tile`"}},
      false);
}

}  // namespace hemiola::program
