// What fused kernels and their unfused counterparts have in common (docs/fused.md): persistent
// workgroups that tiles are dealt to, flags by peer and workgroup, ranks that start late.
#pragma once

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "program/kernels/kernel.h"

namespace hemiola::program {

/// How the tiles of one rank are dealt. Those for the k-th peer follow those for the one before, so
/// that workgroup (position * tiles + t) mod workgroups has tile t, and t + groups, ... of it.
struct Dealing {
  int ranks = 2;
  std::int64_t tiles = 1;  ///< for each destination
  std::int64_t workgroups = 1;
  enum class Order : std::uint8_t {
    remote_first,  ///< one peer after the other, then the own rank
    own_first,
    spread  ///< remote ones first, workgroups begin with different peers
  } order = Order::remote_first;

  /// Tiles t, t + groups, ... of a destination are a group: one workgroup has them.
  std::int64_t groups() const { return std::min(tiles, workgroups); }
  std::int64_t in_group(std::int64_t group) const { return (tiles - group - 1) / groups() + 1; }
  /// Whose tiles stand there in the order: the rank so far behind; 0: the own ones.
  int distance(int position) const {
    if (order == Order::own_first) return position;
    return (position + 1) % ranks;
  }
  /// The position that a workgroup comes to as its i-th.
  int position(std::int64_t workgroup, int i) const;
  /// The group that a workgroup has at this position; -1: none.
  std::int64_t group(int position, std::int64_t workgroup) const;

  /// visit(group, distance()) of what a workgroup has, in its order.
  template <class Visit>
  void each_group(std::int64_t workgroup, Visit visit) const {
    for (int i = 0; i < ranks; ++i) {
      const int at = position(workgroup, i);
      const std::int64_t own = group(at, workgroup);
      if (own >= 0) visit(own, distance(at));
    }
  }
  /// visit(tile) of a group's.
  template <class Visit>
  void each_tile(std::int64_t group, Visit visit) const {
    for (std::int64_t t = 0; t < in_group(group); ++t) visit(group + t * groups());
  }
};

/// Writes programs whose ranks all run the same kernels, one after the other on one stream, in
/// chunks of `unit` bytes; `size` is what the collective moves. Regions are given in bytes.
class FusedWriter : public ProgramWriter {
 public:
  FusedWriter(const KernelArguments& arguments, Collective collective, DataType type, Bytes unit,
              Bytes size);

  std::int32_t buffer(const std::string& name, BufferKind kind, std::int64_t bytes) {
    return add_buffer({.name = name, .kind = kind, .chunks = {chunks(bytes)}});
  }
  /// Memory of a rank.
  Operand memory(const Affine& rank, std::int32_t buffer, const Affine& chunk,
                 std::int64_t bytes) const;
  /// Rows of `run` bytes, `pitch` from one to the next.
  Operand rows(Operand operand, std::int64_t run, std::int64_t pitch) const;
  /// Where block (rank + distance) mod ranks begins, and `offset` further, in bytes; every
  /// iteration of the innermost loop `step` more.
  Affine block(int distance, std::int64_t block_bytes, std::int64_t offset,
               std::int64_t step = 0) const;
  /// The same of block `rank`, which others may write into.
  Affine own_block(std::int64_t block_bytes, std::int64_t offset, std::int64_t step = 0) const;
  Affine place(std::int64_t offset, std::int64_t step = 0) const;

  /// A flag for each of the other ranks and `groups` workgroups of theirs, in every rank's memory.
  struct Flags {
    std::int32_t first = 0;
    std::int64_t groups = 1;
    std::int64_t stride = 1;
  };
  Flags flags(const std::string& name, std::int64_t groups);

  void begin_kernel(const std::string& name, int threads, std::int32_t grain);
  void begin_workgroup() { program_.kernels.back().bodies.push_back(begin_body()); }
  void loop(std::int64_t count, const std::vector<Op>& ops);
  /// The flag of this workgroup at the rank so far behind, with release; of all others.
  void tell(const Flags& flags, std::int64_t group, int distance);
  void tell_all(const Flags& flags, std::int64_t group) { all_flags(OpKind::signal, flags, group); }
  /// All others have told, with acquire.
  void hear_all(const Flags& flags, std::int64_t group) { all_flags(OpKind::wait, flags, group); }

  Program finish(const KernelArguments& arguments);

 private:
  std::int64_t chunks(std::int64_t bytes) const { return bytes / unit_; }
  void all_flags(OpKind kind, const Flags& flags, std::int64_t group);
  SemaphoreRef flag(const Flags& flags, std::int64_t group, int distance, const Affine& rank) const;

  std::int64_t unit_;
  bool padded_;
};

/// Own parameters, then those that all have; of the unfused one also its second kernel's.
std::vector<plan::ParameterInfo> fused_parameters(std::vector<plan::ParameterInfo> own, bool fused,
                                                  bool spreads);
/// The table of a class that has fused() and unfused(): NAME/fused and NAME/unfused.
template <class Writer>
std::vector<KernelInfo> fused_and_unfused(const std::string& name, Collective collective,
                                          const char* fused, const char* unfused,
                                          const std::vector<plan::ParameterInfo>& own,
                                          bool spreads = true) {
  return {{name + "/fused", fused, fused_parameters(own, true, spreads),
           [](const KernelArguments& arguments) { return Writer(arguments).fused(); }, collective,
           2, false},
          {name + "/unfused", unfused, fused_parameters(own, false, spreads),
           [](const KernelArguments& arguments) { return Writer(arguments).unfused(); }, collective,
           2, false}};
}
/// The workgroups that the parameter says, or one for each compute unit.
std::int64_t workgroups_of(const KernelArguments& arguments);
std::int64_t threads_of(const KernelArguments& arguments);
Dealing::Order order_of(const KernelArguments& arguments);
DataType element_of(const KernelArguments& arguments);
/// At least 1, at most 2^31. Failure else.
std::int64_t size_of_parameter(const KernelArguments& arguments, const char* name);
/// value / parts. Failure: it cannot be divided.
std::int64_t divided(const KernelArguments& arguments, const char* name, std::int64_t value,
                     std::int64_t parts, const std::string& into);
/// The distance of the i-th peer of a workgroup of a collective: workgroups begin with different
/// ones, so that all links are used at once; the own rank (0) comes last.
int nth_peer(int ranks, std::int64_t workgroup, int i);
/// The kernel that is launched behind one that has left `result`, a block for each rank: every
/// workgroup stores its share of each block where it belongs.
void write_all_to_all(FusedWriter& writer, const KernelArguments& arguments, std::int32_t result,
                      std::int32_t output, std::int64_t block_bytes);
/// Workgroups of that kernel: as said, or one for each 8 KiB of `bytes`, at most 36 (vLLM's rule).
std::int64_t collective_workgroups(const KernelArguments& arguments, std::int64_t bytes);

}  // namespace hemiola::program
