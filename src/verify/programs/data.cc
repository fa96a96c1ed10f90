#include "verify/programs/data.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>

#include "verify/plans/data.h"
#include "verify/programs/postcondition.h"

namespace hemiola::verify {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;
constexpr std::int64_t kElement = 4;

template <class T>
BufferMemory::Zeroed<T> zeroed(std::int64_t count) {
  void* memory = std::calloc(index(std::max<std::int64_t>(count, 1)), sizeof(T));
  if (memory == nullptr) throw std::bad_alloc();
  return {static_cast<T*>(memory), &std::free};
}

/// Odd and small: no contribution is invisible, and sums are exact.
float input(std::uint64_t seed, int rank, std::int64_t element) {
  const std::uint64_t drawn =
      mix(seed, static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(element)) % 2048;
  return static_cast<float>(2 * static_cast<std::int64_t>(drawn) - 2047);
}

/// Odd and so small that products and their sums are exact as well.
float resident(std::uint64_t seed, int rank, std::int32_t buffer, std::int64_t element) {
  const std::uint64_t drawn =
      mix(mix(seed, static_cast<std::uint64_t>(buffer)), static_cast<std::uint64_t>(rank),
          static_cast<std::uint64_t>(element));
  return static_cast<float>(2 * static_cast<std::int64_t>(drawn % 4) - 3);
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

float reduced(ReduceOp op, float a, float b) {
  switch (op) {
    case ReduceOp::max:
      return std::max(a, b);
    case ReduceOp::min:
      return std::min(a, b);
    case ReduceOp::prod:
      return a * b;
    case ReduceOp::none:
    case ReduceOp::sum:
      break;
  }
  return a + b;
}

ProgramData::ProgramData(const program::Bound& program)
    : program_(program), buffers_(program.buffers().size()) {
  std::int64_t bytes = 0;
  for (int rank = 0; rank < program.ranks(); ++rank) {
    for (std::int32_t b = 0; b < std::ssize(program.buffers()); ++b) {
      const program::Buffer& buffer = program.buffers()[index(b)];
      const std::int64_t size = buffer.alias >= 0 ? 0 : program.memory_bytes(b, rank);
      const bool fifo = buffer.kind == program::BufferKind::fifo;
      bytes += fifo ? 0 : size;
      if (bytes > kMostBytes)
        throw Failure("'" + program.name() + "' has more than 1 GiB of buffers",
                      {program.source(), 0, 0, ""}, "a smaller --size");
      BufferMemory& memory =
          *memory_.emplace_back(std::make_unique<BufferMemory>((size + kElement - 1) / kElement));
      if (!fifo)
        std::fill_n(memory.plain.get(), memory.elements, std::numeric_limits<float>::quiet_NaN());
    }
  }
}

void ProgramData::fill_inputs(std::uint64_t seed) {
  for (int rank = 0; rank < program_.ranks(); ++rank) {
    for (const Region& where : input_places(program_, rank)) {
      float* plain = memory(rank, where.buffer).plain.get();
      for (std::int64_t e = where.begin / kElement; e < where.end / kElement; ++e)
        plain[e] = input(seed, rank, e - where.begin / kElement);
    }
    for (std::int32_t b = 0; b < std::ssize(program_.buffers()); ++b) {
      if (program_.buffers()[index(b)].kind != program::BufferKind::resident) continue;
      BufferMemory& held = memory(rank, b);
      for (std::int64_t e = 0; e < held.elements; ++e)
        held.plain[index(e)] = resident(seed, rank, b, e);
    }
  }
}

/// What a rank has to compute, element by element.
std::vector<float> ProgramData::computed(std::uint64_t seed, int rank) const {
  const program::Computation& all = *program_.program().computation;
  const auto& [m, n, k] = all.shape;
  const auto held = [&](std::int32_t buffer) {
    std::vector<float> values(index(memory(rank, buffer).elements));
    for (std::size_t e = 0; e < values.size(); ++e)
      values[e] = resident(seed, rank, buffer, static_cast<std::int64_t>(e));
    return values;
  };
  const bool pools = all.kind == program::Computation::Kind::pooling;
  const std::vector<float> left = held(all.left);
  const std::vector<float> right = pools ? std::vector<float>{} : held(all.right);
  std::vector<float> results(index(m * n), 0);
  for (std::int64_t i = 0; i < m; ++i) {
    const std::int64_t bag = pools ? (i + m - m / program_.ranks() * rank) % m : 0;
    for (std::int64_t l = 0; l < k; ++l) {
      const std::int64_t row = pools ? all.first_rows[index(bag)] + l * all.pitch : l;
      const float factor = pools ? 1 : left[index(i * k + l)];
      const float* from = (pools ? left : right).data() + row * n;
      for (std::int64_t j = 0; j < n; ++j) results[index(i * n + j)] += factor * from[j];
    }
  }
  return results;
}

void ProgramData::compute(program::Computation::Kind kind, const program::MatrixProduct& values,
                          const std::vector<std::vector<float>>& loaded,
                          std::vector<float>& results) {
  const auto& [m, n, k] = values;
  const bool pools = kind == program::Computation::Kind::pooling;
  results.resize(index(m * n), 0);
  for (std::int64_t i = 0; i < m; ++i) {
    const std::vector<float>& from = loaded.at(pools ? index(i) : 1);
    for (std::int64_t l = 0; l < k; ++l) {
      const float factor = pools ? 1 : loaded.at(0).at(index(i * k + l));
      for (std::int64_t j = 0; j < n; ++j)
        results[index(i * n + j)] += factor * from.at(index(l * n + j));
    }
  }
}

bool ProgramData::exists(const program::Span& span, std::int64_t bytes) const {
  bool inside = true;
  const std::int64_t elements = memory(span.rank, span.buffer).elements;
  span.each_part(0, bytes, [&](std::int64_t at, std::int64_t, std::int64_t count) {
    inside = inside && at >= 0 && (at + count + kElement - 1) / kElement <= elements;
  });
  return inside;
}

void ProgramData::read(const program::Span& span, std::int64_t bytes,
                       std::vector<float>& to) const {
  const float* plain = memory(span.rank, span.buffer).plain.get();
  span.each_part(0, bytes, [&](std::int64_t at, std::int64_t, std::int64_t count) {
    to.insert(to.end(), plain + at / kElement, plain + (at + count) / kElement);
  });
}

bool ProgramData::exchange(const program::Primitive& swap) {
  std::vector<std::vector<float>> contents(swap.src.size());
  for (std::size_t i = 0; i < contents.size(); ++i) {
    if (!exists(swap.src[i], swap.bytes) || !exists(swap.dst[i], swap.bytes)) return false;
    read(swap.src[i], swap.bytes, contents[i]);
  }
  for (std::size_t i = 0; i < contents.size(); ++i)
    write(swap.dst[i], swap.bytes, contents[i].data());
  return true;
}

void ProgramData::write(const program::Span& span, std::int64_t bytes, const float* from) {
  float* plain = memory(span.rank, span.buffer).plain.get();
  span.each_part(0, bytes, [&](std::int64_t at, std::int64_t data, std::int64_t count) {
    std::copy_n(from + data / kElement, count / kElement, plain + at / kElement);
  });
}

std::string ProgramData::compare(std::uint64_t seed, std::int64_t& compared) const {
  std::vector<std::vector<float>> computed_by;
  for (int rank = 0; rank < program_.ranks() && program_.program().computation != nullptr; ++rank)
    computed_by.push_back(computed(seed, rank));
  for (int rank = 0; rank < program_.ranks(); ++rank) {
    const std::optional<Region> output = output_place(program_, rank);
    if (!output) continue;
    const float* plain = memory(rank, output->buffer).plain.get() + output->begin / kElement;
    for (const OutputPostcondition& promise : postconditions(program_, rank)) {
      const std::int64_t begin = promise.begin / kElement;
      const std::vector<program::RankRange> from = promise.from();
      for (std::int64_t e = 0; e < promise.end / kElement - begin; ++e) {
        float wanted = 0;
        for (const program::RankRange& ranks : from) {
          for (int source = ranks.first; source < ranks.first + ranks.ranks; ++source) {
            const std::int64_t element = promise.source / kElement + e;
            wanted += computed_by.empty() ? input(seed, source, element)
                                          : computed_by[index(source)][index(element)];
          }
        }
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
        multicast ? program_.groups()[index(span.group)] : std::vector{span.rank};
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
