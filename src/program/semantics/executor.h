// Executors: what runs a program that was read from a file, as far as its meaning depends on it.
//
// Programs of MSCCL XML and MSCCL++ are data for an interpreter. Two interpreters cut the same
// `send` of three chunks differently and have room for different numbers of operations, so a
// verdict is one for an executor, and names it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "program/program.h"

namespace hemiola::program {

struct Executor {
  /// What a protocol fixes for operations on connections.
  struct Protocols {
    Fifo fifo;                 ///< slots, slices of an operation, and how its chunks are cut
    Bytes piece;               ///< data bytes of a chunk that a turn of the outer loop moves
    std::int32_t threads = 0;  ///< of a thread block
  };
  std::string_view name;    ///< "msccl"
  std::string_view format;  ///< Program::format of what it runs; "": any
  std::string_view source;  ///< what it is a model of: a repository and its files
  Protocols simple, ll, ll128;
  /// The i-th descriptor of an operation on port channels is pushed by thread i, which the i-th
  /// wait before it holds up (MSCCL++).
  bool threads_post = false;

  const Protocols& of(Protocol protocol) const;
  /// "2 slices for each operation, 4 fit into a FIFO"; empty where the protocol has none.
  std::string rules(Protocol protocol) const;
};

std::span<const Executor> executors();
/// Failure for a name that is none, and for an executor of another format.
const Executor& find_executor(std::string_view name, std::string_view format);
/// That of a program; "hemiola" of one that was not read from a file of an executor.
const Executor& executor_of(const Program& program);

}  // namespace hemiola::program
