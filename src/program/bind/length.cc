#include "program/bind/length.h"

#include <algorithm>
#include <vector>

#include "program/semantics/streams.h"

namespace hemiola::program {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 62;

std::int64_t limited(__int128 count) {
  return static_cast<std::int64_t>(std::min<__int128>(count, kMost));
}

std::int64_t length_of(const Body& body, std::int64_t chunk_bytes) {
  std::vector<std::int64_t> times{1};  // of each open loop, with those around it
  std::int64_t sum = 0;
  for (const Op& op : body.ops) {
    if (op.kind == OpKind::loop) {
      const __int128 turns =
          op.unit.count > 0
              ? (static_cast<__int128>(op.unit_chunks) * chunk_bytes + op.unit.count - 1) /
                    op.unit.count
              : op.count;
      times.push_back(limited(std::max<__int128>(turns, 0) * times.back()));
    } else if (op.kind == OpKind::end_loop) {
      if (times.size() > 1) times.pop_back();
    } else {
      sum = limited(static_cast<__int128>(sum) + times.back());
    }
  }
  return sum;
}

}  // namespace

std::int64_t length_of(const Bound& program, int rank) {
  std::int64_t sum = 0;
  each_body(program.code(rank), program.kernels(), [&](std::int32_t body) {
    sum = limited(static_cast<__int128>(sum) +
                  length_of(program.bodies()[index(body)], program.chunk_bytes()));
  });
  return sum;
}

}  // namespace hemiola::program
