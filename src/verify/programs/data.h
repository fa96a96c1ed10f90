// Real memory of a bound program: inputs, and what the results should be.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "program/bind/bound.h"
#include "program/semantics/primitive.h"

namespace hemiola::verify {

/// The memory of a buffer on a rank, twice: as plain elements, and as packets, an element in the
/// lower and its flag in the upper half of a word. Zeros that take no memory until they are
/// touched.
struct BufferMemory {
  explicit BufferMemory(std::int64_t count);
  template <class T>
  using Zeroed = std::unique_ptr<T[], decltype(&std::free)>;
  std::int64_t elements;
  Zeroed<float> plain;
  Zeroed<std::atomic<std::uint64_t>> packets;
};
std::uint64_t packet(float value, std::int64_t flag);
float value_of(std::uint64_t packet);
/// Two contributions as one; with none they add up.
float reduced(ReduceOp op, float a, float b);

class ProgramData {
 public:
  /// Buffers that nobody has written hold NaN, those of FIFOs zeros. Failure: more than 1 GiB
  /// besides FIFOs.
  explicit ProgramData(const program::Bound& program);

  /// New inputs; all else stays as it is.
  void fill_inputs(std::uint64_t seed);
  /// Compares results with those of the inputs of this seed; the first difference in words, empty
  /// if there is none.
  std::string compare(std::uint64_t seed, std::int64_t& compared) const;

  /// Elements that a span stands for: of one rank, or of every member of a multicast group.
  struct Elements {
    BufferMemory* memory = nullptr;
    std::int64_t first = 0;
    bool packets = false;
    std::int64_t flag = 0;
  };
  std::vector<Elements> elements(const std::vector<program::Span>& spans);
  static std::int64_t count(std::int64_t bytes);

  /// Plain memory of one rank, row after row: what a compute loads and stores.
  bool exists(const program::Span& span, std::int64_t bytes) const;
  void read(const program::Span& span, std::int64_t bytes, std::vector<float>& to) const;
  void write(const program::Span& span, std::int64_t bytes, const float* from);
  /// Two places of plain memory change their contents; false where one is not there.
  bool exchange(const program::Primitive& swap);
  /// Multiplies or adds up what was loaded, source by source, and adds that to `results`, m x n.
  static void compute(program::Computation::Kind kind, const program::MatrixProduct& values,
                      const std::vector<std::vector<float>>& loaded, std::vector<float>& results);

 private:
  std::vector<float> computed(std::uint64_t seed, int rank) const;
  BufferMemory& memory(int rank, std::int32_t buffer) const {
    return *memory_[index(rank) * buffers_ + index(buffer)];
  }
  const program::Bound& program_;
  std::size_t buffers_;
  std::vector<std::unique_ptr<BufferMemory>> memory_;  ///< by rank and buffer
};

}  // namespace hemiola::verify
