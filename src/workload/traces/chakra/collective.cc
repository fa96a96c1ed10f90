#include "workload/traces/chakra/collective.h"

#include <fmt/format.h>

#include <limits>

#include "chakra.pb.h"

namespace hemiola::workload {
namespace {

/// From what one rank contributes to what all have in the end.
void count_all_ranks(CollectiveCall& call, int ranks, const NodeOfFile& at) {
  if (call.bytes > std::numeric_limits<std::int64_t>::max() / ranks)
    at.fail(fmt::format(" has a comm_size of {}", call.bytes));
  call.bytes *= ranks;
}

void set_rooted(CollectiveCall& call, bool is_gather, int ranks, bool lenient, Tally& tally,
                const NodeOfFile& at) {
  const std::string_view name = is_gather ? "GATHER" : "SCATTER";
  const std::string_view like = is_gather ? "an all-gather" : "a broadcast";
  if (!lenient)
    at.fail(fmt::format(" is a {}, which cannot be simulated", name),
            fmt::format("--lenient takes it as {}", like));
  call.kind = is_gather ? Collective::all_gather : Collective::broadcast;
  if (is_gather) count_all_ranks(call, ranks, at);
  tally.add(fmt::format("converted: a {} to {}", name, like), at.text());
}

}  // namespace

bool needs_size(std::int64_t type) {
  return type != chakra::BARRIER;
}

void set_kind(CollectiveCall& call, std::int64_t type, int ranks, bool lenient, Tally& tally,
              const NodeOfFile& at) {
  switch (type) {
    case chakra::ALL_REDUCE:
      call.kind = Collective::all_reduce;
      return;
    case chakra::REDUCE:
      call.kind = Collective::reduce;
      return;
    case chakra::ALL_GATHER:
      call.kind = Collective::all_gather;
      count_all_ranks(call, ranks, at);
      return;
    case chakra::BROADCAST:
      call.kind = Collective::broadcast;
      return;
    case chakra::ALL_TO_ALL:
      call.kind = Collective::all_to_all;
      return;
    case chakra::REDUCE_SCATTER:
    case chakra::REDUCE_SCATTER_BLOCK:
      call.kind = Collective::reduce_scatter;
      return;
    case chakra::BARRIER:
      call.kind = Collective::all_reduce;
      call.bytes = size_of(DataType::float32);
      call.type = DataType::float32;
      return;
    case chakra::GATHER:
    case chakra::SCATTER:
      set_rooted(call, type == chakra::GATHER, ranks, lenient, tally, at);
      return;
    default:
      at.fail(fmt::format(" has a comm_type of {}, which is not known", type));
  }
}

}  // namespace hemiola::workload
