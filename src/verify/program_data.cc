#include "verify/program_data.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>

#include "verify/plan_data.h"
#include "verify/postcondition.h"

namespace hemiola::verify {
namespace {

using program::Access;

constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;
constexpr std::int64_t kElement = 4;

template <class T>
BufferMemory::Zeroed<T> zeroed(std::int64_t count) {
  void* memory = std::calloc(static_cast<std::size_t>(std::max<std::int64_t>(count, 1)), sizeof(T));
  if (memory == nullptr) throw std::bad_alloc();
  return {static_cast<T*>(memory), &std::free};
}

/// Odd and small: no contribution is invisible, and sums are exact.
float input(std::uint64_t seed, int rank, std::int64_t element) {
  const std::uint64_t drawn =
      mix(seed, static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(element)) % 2048;
  return static_cast<float>(2 * static_cast<std::int64_t>(drawn) - 2047);
}

}  // namespace

BufferMemory::BufferMemory(std::int64_t count)
    : elements(count),
      plain(zeroed<float>(count)),
      packets(zeroed<std::atomic<std::uint64_t>>(count)) {}

std::uint64_t packet(float value, std::int64_t flag) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(flag)) << 32 | bits;
}

float value_of(std::uint64_t packet) {
  const auto bits = static_cast<std::uint32_t>(packet);
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

ProgramData::ProgramData(const program::Program& program)
    : program_(program), buffers_(program.buffers.size()) {
  std::int64_t bytes = 0;
  for (int rank = 0; rank < program.ranks; ++rank) {
    for (std::int32_t b = 0; b < std::ssize(program.buffers); ++b) {
      const program::Buffer& buffer = program.buffers[static_cast<std::size_t>(b)];
      const std::int64_t size = buffer.alias >= 0 ? 0 : program.memory_bytes(b, rank);
      const bool fifo = buffer.kind == program::BufferKind::fifo;
      bytes += fifo ? 0 : size;
      if (bytes > kMostBytes)
        throw Failure("'" + program.name + "' has more than 1 GiB of buffers",
                      {program.source, 0, 0, ""}, "a smaller --size");
      BufferMemory& memory =
          *memory_.emplace_back(std::make_unique<BufferMemory>((size + kElement - 1) / kElement));
      if (!fifo)
        std::fill_n(memory.plain.get(), memory.elements, std::numeric_limits<float>::quiet_NaN());
    }
  }
}

void ProgramData::fill_inputs(std::uint64_t seed) {
  for (int rank = 0; rank < program_.ranks; ++rank) {
    for (const Region& where : input_places(program_, rank)) {
      float* plain = memory(rank, where.buffer).plain.get();
      for (std::int64_t e = where.begin / kElement; e < where.end / kElement; ++e)
        plain[e] = input(seed, rank, e - where.begin / kElement);
    }
  }
}

std::string ProgramData::compare(std::uint64_t seed, std::int64_t& compared) const {
  for (int rank = 0; rank < program_.ranks; ++rank) {
    const std::optional<Region> output = output_place(program_, rank);
    if (!output) continue;
    const float* plain = memory(rank, output->buffer).plain.get() + output->begin / kElement;
    for (const OutputPromise& promise : promises(program_, rank)) {
      const std::int64_t begin = promise.begin / kElement;
      for (std::int64_t e = 0; e < promise.end / kElement - begin; ++e) {
        float wanted = 0;
        for (int source = promise.first; source < promise.first + promise.ranks; ++source)
          wanted += input(seed, source, promise.source / kElement + e);
        const float held = plain[begin + e];
        ++compared;
        if (held == wanted) continue;
        return "element " + std::to_string(begin + e) + " of the result of rank " +
               std::to_string(rank) + " is " + std::to_string(held) + ", not " +
               std::to_string(wanted);
      }
    }
  }
  return {};
}

std::vector<ProgramData::Elements> ProgramData::elements(const std::vector<program::Span>& spans) {
  std::vector<Elements> all;
  for (const program::Span& span : spans) {
    const Elements one{nullptr, data_offset(span.offset, span.access) / kElement,
                       is_packet(span.access), span.flag};
    const bool multicast = is_multicast(span.access);
    const std::vector<int> ranks =
        multicast ? program_.groups[static_cast<std::size_t>(span.group)] : std::vector{span.rank};
    for (const int rank : ranks) {
      all.push_back(one);
      all.back().memory = &memory(rank, span.buffer);
    }
  }
  return all;
}

std::int64_t ProgramData::count(std::int64_t bytes) {
  return bytes / kElement;
}

}  // namespace hemiola::verify
