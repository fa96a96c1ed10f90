#include "program/jobs/launch_programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "core/index.h"
#include "machine/devices/gemm_model.h"

namespace hemiola::program {
namespace {

constexpr std::int64_t kUnit = 16;        // bytes of a chunk
constexpr std::int64_t kStepBytes = 128;  // of a row of a that a step of a product takes
constexpr std::int64_t kFewestSteps = 4;  // of a part of a split, as in the product model
constexpr std::int32_t kProductThreads = 256;
constexpr std::int32_t kWorkThreads = 512;
constexpr std::int64_t kPiece = 16 << 10;  // bytes that a workgroup of a Work reads at a time

std::int64_t ceil_of(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// A program of one size, all of whose ranks run the same.
Program start(std::string name, int ranks, std::int64_t size) {
  Program program;
  program.name = std::move(name);
  program.source = program.name;
  program.format = "launch";
  program.ranks = ranks;
  program.fixed_size = {size};
  program.chunks_per_size = size / kUnit;
  program.code_of.assign(index(ranks), 0);
  return program;
}

/// One kernel on every rank.
Program finish(Program program, Kernel kernel) {
  for (std::size_t b = 0; b < program.bodies.size(); ++b)
    kernel.bodies.push_back(static_cast<std::int32_t>(b));
  program.kernels.push_back(std::move(kernel));
  program.codes = {{{{StreamItem{.kind = StreamItem::Kind::kernel}}}}};
  program.finish();
  return program;
}

std::int32_t add_buffer(Program& program, const char* name, BufferKind kind, std::int64_t bytes) {
  program.buffers.push_back({.name = name, .kind = kind, .chunks = {ceil_of(bytes, kUnit)}});
  return static_cast<std::int32_t>(program.buffers.size()) - 1;
}

/// Kernels of libraries with small tiles hold more steps, so that as many bytes are on their way:
/// what half of the buffer holds, which leaves room for a second workgroup. CUTLASS
/// (tools/library/scripts/generator.py, 16 bit, k = 32) has 10 stages for 64x64, 6 for 128x64, 3 to
/// 5 for 128x128; cuBLAS on Ampere 6 of k = 64 for 64x64.
std::int32_t library_stages(machine::MatrixTile tile, const machine::GpuModel& model) {
  const std::int64_t step = (std::int64_t{tile.m} + tile.n) * kStepBytes;
  return static_cast<std::int32_t>(
      std::max<std::int64_t>(model.gemm_stages, model.gemm_buffer.count / 2 / step));
}

/// A product as its tiles: sizes in elements, rows in chunks.
class ProductWriter {
 public:
  ProductWriter(const MatrixProduct& shape, DataType type, const machine::GpuModel& model)
      : shape_(shape), step_(kStepBytes / size_of(type)), per_chunk_(kUnit / size_of(type)) {
    const machine::GemmEstimate chosen = product_kernel(shape, type, model);
    tile_m_ = chosen.tile.m;
    tile_n_ = ceil_of(chosen.tile.n, per_chunk_) * per_chunk_;
    parts_ = std::clamp<std::int64_t>(chosen.split_k, 1, steps());
    row_a_ = ceil_of(shape.k, per_chunk_);
    row_b_ = row_c_ = ceil_of(shape.n, per_chunk_);
    // As in the model of products: a wave is a square.
    const double tiles =
        std::ceil(static_cast<double>(model.cu_count) / static_cast<double>(parts_));
    const double side =
        std::sqrt(tiles * static_cast<double>(tile_n_) / static_cast<double>(tile_m_));
    group_ = std::clamp<std::int64_t>(std::llround(side), 1, tiles_m());
    workgroups_ = std::min(model.cu_count, tiles_m() * tiles_n() * parts_);
    stages_ = library_stages(
        {static_cast<std::int32_t>(tile_m_), static_cast<std::int32_t>(tile_n_)}, model);
    program_ = start(fmt::format("product {}x{}x{}", shape.m, shape.n, shape.k), 1,
                     shape.m * row_c_ * kUnit);
    program_.fixed_type = type;
    a_ = add_buffer(program_, "a", BufferKind::input, shape.m * row_a_ * kUnit);
    b_ = add_buffer(program_, "b", BufferKind::input, shape.k * row_b_ * kUnit);
    c_ = add_buffer(program_, "c", BufferKind::output, shape.m * row_c_ * kUnit);
    if (parts_ == 1) return;
    partial_ = add_buffer(program_, "partial sums", BufferKind::scratch,
                          tiles_m() * tiles_n() * parts_ * sums_of_part() * kUnit);
    for (std::int64_t i = 0; i < tiles_m() * tiles_n() * (parts_ - 1); ++i)
      program_.semaphores.push_back({.name = fmt::format("part {}", i)});
  }

  Program write() {
    for (std::int64_t w = 0; w < workgroups_; ++w) {
      Body body;
      // Parts of a tile lie beside each other, and the last one waits for those before it, which
      // other workgroups begin no later: nobody waits for ever.
      for (std::int64_t i = w; i < tiles_m() * tiles_n() * parts_; i += workgroups_)
        add_part(body, i / parts_, i % parts_);
      program_.bodies.push_back(std::move(body));
    }
    return finish(std::move(program_),
                  {.name = program_.name, .threads = kProductThreads, .stages = stages_});
  }

 private:
  std::int64_t tiles_m() const { return ceil_of(shape_.m, tile_m_); }
  std::int64_t tiles_n() const { return ceil_of(shape_.n, tile_n_); }

  std::int64_t steps() const { return ceil_of(shape_.k, step_); }
  /// Chunks of the sums of one part of a tile, which are float32.
  std::int64_t sums_of_part() const { return ceil_of(tile_m_ * tile_n_ * 4, kUnit); }

  /// The tile that comes `number`-th: columns of `group_` rows after each other, so that the tiles
  /// of a wave lie together, as square as they go in elements, and share rows of a and columns of
  /// b.
  std::pair<std::int64_t, std::int64_t> place_of(std::int64_t number) const {
    const std::int64_t band = group_ * tiles_n();
    const std::int64_t first = number / band * group_;
    const std::int64_t rows = std::min(group_, tiles_m() - first);
    const std::int64_t inside = number % band;
    return {first + inside % rows, inside / rows};
  }

  /// With several parts (split-K) each sums over steps of its own, and the last one adds what the
  /// others left in memory.
  void add_part(Body& body, std::int64_t tile, std::int64_t part) const {
    const auto [tile_row, tile_column] = place_of(tile);
    const std::int64_t row = tile_row * tile_m_, column = tile_column * tile_n_;
    const std::int64_t m = std::min<std::int64_t>(tile_m_, shape_.m - row);
    const std::int64_t n = std::min<std::int64_t>(tile_n_, shape_.n - column);
    const std::int64_t first = steps() * part / parts_;
    const std::int64_t last_step = steps() * (part + 1) / parts_ - 1;
    if (last_step > first) {
      body.ops.push_back({.kind = OpKind::loop, .count = last_step - first});
      body.ops.push_back(step(row, column, m, n, first * step_, step_, true));
      body.ops.push_back({.kind = OpKind::end_loop});
    }
    const std::int64_t depth = std::min(step_, shape_.k - last_step * step_);
    Op last = step(row, column, m, n, last_step * step_, depth, false);
    const std::int64_t width = ceil_of(n, per_chunk_);
    const Operand result{.buffer = c_,
                         .chunk = constant(row * row_c_ + column / per_chunk_),
                         .chunks = m * width,
                         .run = width,
                         .pitch = row_c_};
    if (parts_ == 1) {
      last.dst = {result};
      body.ops.push_back(std::move(last));
      return;
    }
    const auto sums = [&](std::int64_t of) {
      return Operand{.buffer = partial_,
                     .chunk = constant((tile * parts_ + of) * sums_of_part()),
                     .chunks = ceil_of(m * width * per_chunk_ * 4, kUnit)};
    };
    const bool adds = part == parts_ - 1;
    if (!adds) last.dst = {sums(part)};
    body.ops.push_back(std::move(last));
    body.ops.push_back({.kind = OpKind::sync});
    const auto semaphore = [&](std::int64_t of) {
      return SemaphoreRef{.index = static_cast<std::int32_t>(tile * (parts_ - 1) + of)};
    };
    if (!adds) {
      body.ops.push_back({.kind = OpKind::sem_release, .semaphores = {semaphore(part)}});
      return;
    }
    Op wait{.kind = OpKind::sem_acquire};
    Op add{.kind = OpKind::compute, .dst = {result}, .flop = m * n * (parts_ - 1)};
    for (std::int64_t of = 0; of < part; ++of) {
      wait.semaphores.push_back(semaphore(of));
      add.src.push_back(sums(of));
    }
    body.ops.push_back(std::move(wait));
    body.ops.push_back({.kind = OpKind::sync});
    body.ops.push_back(std::move(add));
    body.ops.push_back({.kind = OpKind::sync});
  }

  Op step(std::int64_t row, std::int64_t column, std::int64_t m, std::int64_t n, std::int64_t at,
          std::int64_t k, bool is_counted) const {
    const std::int64_t depth = ceil_of(k, per_chunk_), width = ceil_of(n, per_chunk_);
    Affine left = constant(row * row_a_ + at / per_chunk_);
    Affine right = constant(at * row_b_ + column / per_chunk_);
    if (is_counted) {
      left.loop[0] = step_ / per_chunk_;
      right.loop[0] = step_ * row_b_;
    }
    return {
        .kind = OpKind::compute,
        .src = {{.buffer = a_, .chunk = left, .chunks = m * depth, .run = depth, .pitch = row_a_},
                {.buffer = b_, .chunk = right, .chunks = k * width, .run = width, .pitch = row_b_}},
        .flop = 2 * m * n * k,
        .product = {m, n, k}};
  }

  MatrixProduct shape_;
  std::int64_t step_;  ///< elements that a step sums over
  std::int64_t per_chunk_;
  std::int64_t tile_m_ = 1, tile_n_ = 1;
  std::int64_t row_a_ = 0, row_b_ = 0, row_c_ = 0;  ///< chunks
  std::int64_t workgroups_ = 1;
  std::int64_t parts_ = 1;  ///< split-K
  std::int32_t stages_ = 0;
  std::int64_t group_ = 1;  ///< rows of tiles that a wave has
  std::int32_t a_ = 0, b_ = 0, c_ = 0, partial_ = -1;
  Program program_;
};

/// What one workgroup takes to add the float32 sums of the parts of a tile, and each part to store
/// them. The product model has them as traffic of the L2 alone.
Time sum_of_parts(machine::MatrixTile tile, std::int64_t parts, const machine::GpuModel& model) {
  const std::int64_t bytes = std::int64_t{4} * tile.m * tile.n * parts;
  return model.noc_cu_rate.time_for(bytes);
}

}  // namespace

machine::GemmEstimate product_kernel(const MatrixProduct& shape, DataType type,
                                     const machine::GpuModel& model) {
  const machine::GemmShape gemm{.m = shape.m, .n = shape.n, .k = shape.k, .type = type};
  std::optional<machine::GemmEstimate> best;
  Time least{};
  for (const machine::MatrixTile& tile : model.gemm_tiles) {
    for (const std::int64_t split : {1, 2, 3, 4, 6, 8}) {
      if (split > 1 && shape.k * size_of(type) < split * kFewestSteps * kStepBytes) break;
      const machine::GemmEstimate found = machine::estimate_gemm(
          model, gemm, {.split_k = split, .tile = tile, .tile_cus = 1, .cold = true});
      const Time time = found.time + (split > 1 ? sum_of_parts(tile, split, model) : Time{});
      if (best && time >= least) continue;
      best = found;
      least = time;
    }
  }
  return *best;
}

Program product_program(const MatrixProduct& shape, DataType type, const machine::GpuModel& model) {
  if (shape.m < 1 || shape.n < 1 || shape.k < 1)
    throw Failure("a product has m, n and k of at least 1");
  return ProductWriter(shape, type, model).write();
}

Program work_program(const Work& work, const machine::GpuModel& model) {
  const std::int64_t most = std::max(work.read.count, work.written.count);
  if (most <= 0 && work.flop <= 0 && work.duration.fs <= 0)
    throw Failure("a compute without bytes, flop and time has nothing to do");
  const std::int64_t workgroups = work.workgroups > 0 ? work.workgroups : model.cu_count;
  // Every workgroup has whole pieces: what each reads and writes is rounded up to that.
  std::int64_t steps = std::max<std::int64_t>(1, ceil_of(most, kPiece * workgroups));
  if (work.most_steps > 0) steps = std::min(steps, work.most_steps);
  const auto share = [&](Bytes bytes) {
    return ceil_of(ceil_of(bytes.count, workgroups * steps), kUnit);
  };
  const std::int64_t in = share(work.read), out = share(work.written);
  Program program =
      start("compute", 1, std::max<std::int64_t>(1, out) * workgroups * steps * kUnit);
  std::int32_t from = -1, to = -1;
  if (in > 0) from = add_buffer(program, "in", BufferKind::input, in * workgroups * steps * kUnit);
  if (out > 0)
    to = add_buffer(program, "out", BufferKind::output, out * workgroups * steps * kUnit);
  for (std::int64_t w = 0; w < workgroups; ++w) {
    Op op{.kind = OpKind::compute,
          .flop = ceil_of(work.flop, workgroups * steps),
          .duration = {ceil_of(work.duration.fs, steps)}};
    const auto operand = [&](std::int32_t buffer, std::int64_t chunks) {
      Affine first = constant(w * steps * chunks);
      first.loop[0] = chunks;
      return Operand{.buffer = buffer, .chunk = first, .chunks = chunks};
    };
    if (in > 0) op.src.push_back(operand(from, in));
    if (out > 0) op.dst.push_back(operand(to, out));
    program.bodies.push_back(
        {{{.kind = OpKind::loop, .count = steps}, std::move(op), {.kind = OpKind::end_loop}}});
  }
  return finish(std::move(program), {.name = "compute", .threads = kWorkThreads});
}

Program copy_program(Bytes bytes, int ranks) {
  if (bytes.count <= 0) throw Failure("a copy has at least one byte");
  const std::int64_t chunks = ceil_of(bytes.count, kUnit);
  Program program = start("copy", ranks, chunks * kUnit);
  const std::int32_t from = add_buffer(program, "in", BufferKind::input, bytes.count);
  const std::int32_t to = add_buffer(program, "out", BufferKind::output, bytes.count);
  const auto owner = constant(ranks - 1);
  program.semaphores.push_back({.name = "arrived"});
  program.bodies.push_back({{{.kind = OpKind::put,
                              .channel = Channel::memory,
                              .src = {{.rank = constant(0), .buffer = from, .chunks = chunks}},
                              .dst = {{.rank = owner, .buffer = to, .chunks = chunks}}}}});
  program.codes = {{{{StreamItem{.kind = StreamItem::Kind::engine}}}}};
  if (ranks == 2) {
    Body& sends = program.bodies.front();
    sends.ops.push_back(
        {.kind = OpKind::signal, .channel = Channel::memory, .semaphores = {{owner, 0}}});
    program.bodies.push_back(
        {{{.kind = OpKind::wait, .channel = Channel::memory, .semaphores = {{own_rank(), 0}}}}});
    program.codes.push_back({{{StreamItem{.kind = StreamItem::Kind::engine, .index = 1}}}});
    program.code_of = {0, 1};
  }
  program.finish();
  return program;
}

}  // namespace hemiola::program
