// Bound programs: a program with its size, data type and operator on a machine, or a job of several
// (program/jobs/job.h). Only these are checked and simulated. Whoever walks one asks it, and never
// the program behind it, for anything that is counted over all of it: ranks, buffers, semaphores,
// kernels, bodies.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "program/program.h"

namespace hemiola::program {

/// A program's own numbers where it is bound: bytes of chunks and buffers, what it reduces with,
/// and where it stands among others. Bodies are written in a program's own ranks, buffers and
/// semaphores; a Cursor adds the frame, so that whoever reads primitives sees those of the whole.
struct Frame {
  std::shared_ptr<const Program> program;  ///< follows no size
  Bytes size{};
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
  std::int64_t chunk_bytes = 0;  ///< size / Program::chunks_per_size

  // Of a launch of a job; what bind() makes is alone, and these say nothing.
  std::int32_t launch = 0;  ///< of Job::launches
  /// By own rank, the rank of the whole; null: they are the same.
  std::shared_ptr<const std::vector<std::int32_t>> ranks{};
  /// By own buffer, the buffer of the whole; null: they are the same.
  std::shared_ptr<const std::vector<std::int32_t>> buffers{};
  std::int32_t first_semaphore = 0, first_barrier = 0, first_group = 0;
  /// Calls that share semaphores and FIFOs, whose running totals go on from call to call: which of
  /// them this is, and how many there are in one repetition of the whole.
  std::int32_t call = 0, calls = 1;

  std::int32_t rank_of(std::int64_t own) const {
    return ranks == nullptr ? static_cast<std::int32_t>(own) : (*ranks)[index(own)];
  }
  /// The own rank that is this one of the whole; -1: it takes no part.
  std::int32_t own_of(int rank) const;
  std::int32_t buffer_of(std::int32_t own) const {
    return buffers == nullptr ? own : (*buffers)[index(own)];
  }

  /// Bytes from one chunk of a buffer to the next: chunk_bytes, or less in a folded buffer.
  std::int64_t chunk_stride(std::int32_t buffer) const;
  /// Bytes of a buffer's memory on a rank (packets and the parts of rotating buffers included).
  std::int64_t memory_bytes(std::int32_t buffer, int rank) const;
  /// Follows aliases: the buffer and byte offset where (buffer, offset) really is on `rank`.
  struct Place {
    std::int32_t buffer;
    std::int64_t offset;
  };
  Place resolve(std::int32_t buffer, std::int64_t offset, int rank) const;
};

struct Job;
struct JobPart;

/// What is not a program's own in a job: all launches together (program/jobs/link.cc makes it).
struct Linked {
  std::shared_ptr<const Job> job;
  std::shared_ptr<const std::vector<JobPart>> parts;  ///< its distinct programs, bound alone
  /// Tables of the whole: buffers (each with its bytes), semaphores, groups, kernels and bodies of
  /// every program once, codes with the items of all launches. Its name and source are the job's.
  std::shared_ptr<const Program> tables;
  std::vector<Frame> frames;          ///< StreamItem::frame
  std::vector<std::int32_t> tail_of;  ///< by buffer: the tail of a FIFO that it is, or -1
  /// A launch of the job, for reports.
  struct Launch {
    std::string name;
    std::vector<int> ranks;  ///< in the launch's order
    Bytes size{};            ///< of a collective, or what is copied
    std::string what;        ///< its program's name
  };
  std::vector<Launch> launches;
};

/// Immutable, and cheap to copy: copies share the program and the machine, both of which live as
/// long as any of them.
class Bound {
 public:
  /// What bind() makes, once it has checked it.
  Bound(Frame frame, machine::SharedMachine machine, Diagnostics warnings);
  /// What link() makes.
  Bound(std::shared_ptr<const Linked> linked, machine::SharedMachine machine, Diagnostics warnings);

  /// The same on another machine of which bind() asks the same: which ranks reach each other how,
  /// and which switches multicast. Nothing is looked at again.
  Bound on(machine::SharedMachine machine) const {
    Bound other = *this;
    other.machine_ = std::move(machine);
    return other;
  }

  /// Null: checked without a machine, every pair of ranks loads and stores each other's memory.
  const machine::Machine* machine() const { return machine_.get(); }
  const machine::SharedMachine& shared_machine() const { return machine_; }
  /// False without a machine.
  bool crosses_network(int from, int to) const;

  /// Of a program that is alone. A job's has the tables as its program, and no size.
  const Frame& frame() const { return frame_; }
  /// Of an item of a stream (StreamItem::frame).
  const Frame& frame(std::int32_t number) const {
    return linked_ == nullptr ? frame_ : linked_->frames[index(number)];
  }
  /// Null: a program alone.
  const Linked* linked() const { return linked_.get(); }
  const Program& program() const { return *frame_.program; }
  Bytes size() const { return frame_.size; }
  DataType type() const { return frame_.type; }
  ReduceOp op() const { return frame_.op; }
  std::int64_t chunk_bytes() const { return frame_.chunk_bytes; }
  /// Of the program and of binding it.
  const Diagnostics& warnings() const { return warnings_; }

  const std::string& name() const { return program().name; }
  const std::string& source() const { return program().source; }
  Collective collective() const { return program().collective; }
  int ranks() const { return program().ranks; }
  const std::vector<Buffer>& buffers() const { return program().buffers; }
  const std::vector<Semaphore>& semaphores() const { return program().semaphores; }
  const std::vector<std::vector<int>>& groups() const { return program().groups; }
  std::int32_t barriers() const { return program().barriers; }
  const std::vector<Body>& bodies() const { return program().bodies; }
  const std::vector<Kernel>& kernels() const { return program().kernels; }
  const std::vector<RankCode>& codes() const { return program().codes; }
  const std::vector<std::int32_t>& code_of() const { return program().code_of; }
  const RankCode& code(int rank) const;
  int workgroups(int rank) const { return program().workgroups(rank); }

  std::int64_t chunks_of(std::int32_t buffer, int rank) const {
    return program().chunks_of(buffer, rank);
  }
  std::int64_t chunk_stride(std::int32_t buffer) const { return frame_.chunk_stride(buffer); }
  std::int64_t memory_bytes(std::int32_t buffer, int rank) const {
    return frame_.memory_bytes(buffer, rank);
  }
  /// The semaphore that announces what arrives in a FIFO; -1: the buffer is none.
  std::int32_t tail_of(std::int32_t buffer) const;
  Frame::Place resolve(std::int32_t buffer, std::int64_t offset, int rank) const {
    return frame_.resolve(buffer, offset, rank);
  }

 private:
  Frame frame_;
  std::shared_ptr<const Linked> linked_{};
  machine::SharedMachine machine_;
  Diagnostics warnings_;
};

/// Binds to a size and (optionally) a machine. Failure: a size the program cannot take (the hint
/// names the next legal ones), more ranks than the machine has, ranks that cannot reach each other
/// the way an operation needs. A size outside the file's own range adds a warning.
Bound bind(std::shared_ptr<const Program> program, machine::SharedMachine machine,
           const BindOptions& options);
/// The same of a copy of the program.
Bound bind(const Program& program, machine::SharedMachine machine, const BindOptions& options);

}  // namespace hemiola::program
