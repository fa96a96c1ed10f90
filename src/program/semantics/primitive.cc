#include "program/semantics/primitive.h"

#include <array>
#include <string_view>

namespace hemiola::program {
namespace {

constexpr std::array<std::string_view, 9> kPrimitives{
    "move", "signal", "wait", "fence", "sync", "barrier", "post", "flush", "compute"};
static_assert(kPrimitives.size() == index(PrimitiveKind::compute) + 1);

}  // namespace

std::string_view name_of(PrimitiveKind kind) {
  return kPrimitives.at(index(kind));
}

std::int64_t memory_offset(std::int64_t data, Access access) {
  switch (access) {
    case Access::packet:
    case Access::packet8:
    case Access::multicast_packet:
      return 2 * data;
    case Access::ll128:
      return data / 120 * 128 + data % 120;
    case Access::plain:
    case Access::lamport:
    case Access::multicast:
      return data;
  }
  return data;
}

std::int64_t data_offset(std::int64_t memory, Access access) {
  switch (access) {
    case Access::packet:
    case Access::packet8:
    case Access::multicast_packet:
      return memory / 2;
    case Access::ll128:
      return memory / 128 * 120 + memory % 128;
    case Access::plain:
    case Access::lamport:
    case Access::multicast:
      return memory;
  }
  return memory;
}

std::int64_t memory_size(std::int64_t data, Access access) {
  if (access == Access::ll128) return (data + 119) / 120 * 128;
  return memory_offset(data, access);
}

std::int64_t data_per_thread(Access access, std::int64_t grain) {
  switch (access) {
    case Access::packet:
    case Access::multicast_packet:
      return std::min<std::int64_t>(grain, 8);
    case Access::packet8:
      return std::min<std::int64_t>(grain, 4);
    case Access::ll128:
      return std::min<std::int64_t>(grain, 15);
    case Access::lamport:
      return std::min<std::int64_t>(grain, 16);
    case Access::plain:
    case Access::multicast:
      return grain;
  }
  return grain;
}

std::int64_t data_per_thread(const Primitive& move, std::int64_t grain) {
  for (const auto* spans : {&move.src, &move.dst})
    for (const Span& span : *spans) grain = data_per_thread(span.access, grain);
  return grain;
}

}  // namespace hemiola::program
