// What the microbenchmarks share: few ranks take part, each with its own kernel or copy queue.
#pragma once

#include <vector>

#include "program/kernels/kernel.h"

namespace hemiola::program {

/// Rows of a file's table for which one rank is enough.
std::vector<KernelInfo> on_one_rank(std::vector<KernelInfo> rows);

/// Builds a program of Collective::custom whose ranks run what run_on() gives them; others nothing.
class MicroWriter : public ProgramWriter {
 public:
  explicit MicroWriter(const KernelArguments& arguments, std::int64_t output_chunks = 1);

  std::int32_t body(std::vector<Op> ops);
  /// A stream with one kernel of these bodies, a workgroup each.
  Stream kernel(std::vector<std::int32_t> bodies, int threads, int unroll = 0);
  void run_on(int rank, std::vector<Stream> streams);
  Program finish();
};

/// `count` times the operations.
std::vector<Op> repeated(std::int64_t count, std::vector<Op> ops);

/// Its blocks; 0: a workgroup for each compute unit of the machine.
int blocks_of(const KernelArguments& arguments);
/// Failure for a single rank: this parameter's value needs two.
void check_peer(const KernelArguments& arguments, std::string_view parameter);

}  // namespace hemiola::program
