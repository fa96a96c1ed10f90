// Library kernels: kernels as libraries write them, with their grids, barriers and thresholds,
// where an algorithm says only what moves. The number of workgroups, or the algorithm, may depend
// on the size: make() is called for each size that the program is bound to.
//
//     hemiola::program::Program make(const hemiola::program::KernelArguments& arguments) {
//       using namespace hemiola::program;
//       KernelWriter writer(arguments, hemiola::Collective::all_reduce, 1);
//       writer.begin(0, 1);  // the only workgroup of every rank
//       const std::int32_t start = writer.semaphores("start"), end = writer.semaphores("end");
//       writer.barrier(start, true);
//       writer.sync();
//       std::vector<Operand> all;
//       for (int rank = 0; rank < writer.ranks(); ++rank)
//         all.push_back({.rank = hemiola::constant(rank), .buffer = writer.input()});
//       writer.add(writer.move(OpKind::read_reduce, all, {{.buffer = writer.output()}}));
//       writer.sync();
//       writer.barrier(end, true);
//       return writer.finish("one_block", 512, 1);  // its name, threads and unrolled iterations
//     }
//     registry.add(hemiola::program::KernelInfo{.name = "all-reduce/one-block",
//         .description = "one block of 512 threads", .make = make,
//         .collective = hemiola::Collective::all_reduce});
//
// Shapes: input and output hold what nccl-tests calls size, cut into chunks; operands count chunks,
// and a workgroup has its share of every move. Order: operations of a workgroup are not joined
// implicitly (docs/program.md): sync() where one has to be over before the next. Checked: ranks and
// collective of what is made, every index when it is bound; races, deadlocks and the result are
// proven before it is run. Errors: throw hemiola::Failure for what the library refuses.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "hemiola/parts/lower_plan.h"
#include "hemiola/parts/parameter.h"
#include "hemiola/parts/program.h"
#include "hemiola/types.h"
#include "hemiola/units.h"

namespace hemiola::program {

/// What a kernel is made for. Parameters are complete: defaults are filled in.
struct KernelArguments {
  std::string name;
  int ranks = 0;
  Bytes size{};
  DataType type = DataType::float32;
  machine::SharedMachine machine{};            ///< null: not known
  Collective collective = Collective::custom;  ///< asked of names that do several; custom: none
  parts::Parameters parameters;

  const std::string& word(std::string_view parameter) const;
  /// Failure: not from `least` to `most`.
  std::int64_t number(std::string_view parameter, std::int64_t least = 0,
                      std::int64_t most = INT64_MAX) const;
  Bytes bytes(std::string_view parameter) const;  ///< Failure: not a size
};

struct KernelInfo {
  std::string name{};         ///< "all-reduce/vllm"
  std::string description{};  ///< one line
  std::vector<parts::Parameter> parameters{};
  std::function<Program(const KernelArguments&)> make{};
  Collective collective = Collective::custom;
  int least_ranks = 2;
  bool by_size = true;   ///< false: the parameters say all, and the program has one size
  std::string source{};  ///< where idea and numbers come from: repository and version, measurement
};

/// What is declared before any code: memory and semaphores of every rank; bodies, one after the
/// other.
class ProgramWriter {
 public:
  ProgramWriter(const KernelArguments& arguments, Collective collective);
  /// Buffers 0 (input) and 1 (output) hold what `--size` says, cut into chunks.
  ProgramWriter(const KernelArguments& arguments, Collective collective, std::int64_t input_chunks,
                std::int64_t output_chunks);

  std::int32_t input() const { return 0; }
  std::int32_t output() const { return 1; }
  std::int32_t add_buffer(Buffer buffer);
  /// Input and output, of one size, are the same memory.
  void share_memory();
  /// Chunks, or bytes whatever the size.
  std::int32_t scratch(const std::string& name, std::int64_t chunks) {
    return add_buffer({.name = name, .chunks = {chunks}});
  }
  std::int32_t fixed(const std::string& name, Bytes bytes) {
    return add_buffer({.name = name, .bytes = bytes});
  }
  /// `local`: a counter of its own rank.
  std::int32_t semaphore(const std::string& name, bool local = false);

  /// Its number; what is added goes there.
  std::int32_t begin_body();
  void add(Op op);
  void sync() { add({.kind = OpKind::sync}); }

  Program& program() { return program_; }
  int ranks() const { return program_.ranks; }

 protected:
  Program program_;
};

/// One kernel on all ranks, which run the same code; workgroup by workgroup.
class KernelWriter : public ProgramWriter {
 public:
  /// Input and output hold all that nccl-tests calls size, cut into `chunks`.
  KernelWriter(const KernelArguments& arguments, Collective collective, std::int64_t chunks);

  /// Semaphores that counterparts on all other ranks signal: number d - 1 by the rank d before.
  std::int32_t semaphores(const std::string& name);

  /// With 0 threads: as many as finish() says.
  void begin(int workgroup, int workgroups, int threads = 0);
  /// Another part of the block begun last, with the same share of moves (Kernel::blocks).
  void begin_part(int threads = 0);
  /// 16 B of fixed memory that this workgroup alone reads: a counter, a pointer.
  void load(std::int32_t buffer);
  /// All other ranks' counterparts are told, and told of.
  void barrier(std::int32_t first_semaphore, bool release);
  void tell(std::int32_t first_semaphore, bool release);
  void hear(std::int32_t first_semaphore, bool acquire);
  /// All workgroups of the rank.
  void grid_barrier();
  /// From now on moves are dealt as to threads that stride over the grid, 16 B each: a workgroup
  /// has a whole block of `threads` or, where they run out, nothing. Before: even shares.
  void stride_over_grid(int threads) { unit_ = Bytes{16 * threads}; }
  /// This workgroup's share of a move.
  Op move(OpKind kind, std::vector<Operand> sources, std::vector<Operand> destinations) const;

  /// The kernel of the workgroups written so far.
  Program finish(const std::string& name, int threads, int unroll);

 private:
  Kernel kernel_;
  int workgroup_ = 0, workgroups_ = 1;
  std::int32_t blocks_ = 0;
  Bytes unit_{};
};

}  // namespace hemiola::program
