// Kernels as libraries write them: grids, barriers, thresholds of the code that they ship, where a
// plan says only what moves. Named as built-ins are: "all-reduce/vllm". The number of workgroups,
// or the algorithm, depends on the size, so that bind() makes them (Program::follow_size).
//
// A kernel is a function and a row of the table in its file; a file has one line in kernel_list.h.
// Sources stand where constants do.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/template.h"
#include "program/program.h"

namespace hemiola::program {

/// What a kernel is made for. Parameters are complete: defaults are filled in.
struct KernelArguments {
  std::string name;
  int ranks = 0;
  Bytes size{};
  DataType type = DataType::float32;
  machine::SharedMachine machine{};            ///< null: not known
  Collective collective = Collective::custom;  ///< asked of names that do several; custom: none
  plan::Parameters parameters;

  const std::string& word(std::string_view parameter) const;
  /// Failure: not from `least` to `most`.
  std::int64_t number(std::string_view parameter, std::int64_t least = 0,
                      std::int64_t most = INT64_MAX) const;
  Bytes bytes(std::string_view parameter) const;  ///< Failure: not a size
};

struct KernelInfo {
  std::string name;         ///< "all-reduce/vllm"
  std::string description;  ///< one line
  std::vector<plan::ParameterInfo> parameters;
  Program (*make)(const KernelArguments&) = nullptr;
  Collective collective = Collective::custom;
  int least_ranks = 2;
  bool by_size = true;  ///< false: the parameters say all, and the program has one size
};

const std::vector<KernelInfo>& kernels();
const KernelInfo* find_kernel(std::string_view name);

/// Nothing when no kernel has this name. Failure: unknown parameters (with a suggestion), fewer
/// ranks than it needs, what the library refuses.
std::optional<Program> make_kernel(const std::string& name, const LoadOptions& options);

/// Rows of a file's table: of the collectives that their names begin with.
std::vector<KernelInfo> of_collectives(std::vector<KernelInfo> rows);

/// The kernel of that name instead, with those of the arguments' parameters that it has.
Program make_other(const std::string& name, KernelArguments arguments);

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
