#include "workload/traces/chakra/collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "chakra.pb.h"
#include "workload/traces/pytorch_calls.h"

namespace hemiola::workload {
namespace {

struct CommType {
  chakra::CollectiveCommType type;
  TorchCallKind kind;
};
// The first of a kind is the one that is written.
constexpr std::array<CommType, 10> kCommTypes{{
    {chakra::ALL_REDUCE, TorchCallKind::all_reduce},
    {chakra::ALL_GATHER, TorchCallKind::all_gather},
    {chakra::REDUCE_SCATTER, TorchCallKind::reduce_scatter},
    {chakra::REDUCE_SCATTER_BLOCK, TorchCallKind::reduce_scatter},
    {chakra::ALL_TO_ALL, TorchCallKind::all_to_all},
    {chakra::BROADCAST, TorchCallKind::broadcast},
    {chakra::REDUCE, TorchCallKind::reduce},
    {chakra::BARRIER, TorchCallKind::barrier},
    {chakra::GATHER, TorchCallKind::gather},
    {chakra::SCATTER, TorchCallKind::scatter},
}};

}  // namespace

bool needs_size(std::int64_t type) {
  return type != chakra::BARRIER;
}

void set_kind(CollectiveCall& call, std::int64_t type, int ranks, bool lenient, Tally& tally,
              const NodeOfFile& at) {
  const auto known = std::ranges::find(kCommTypes, type, &CommType::type);
  if (known == kCommTypes.end())
    at.fail(fmt::format(" has a comm_type of {}, which is not known", type));
  set_kind(call, known->kind, chakra::CollectiveCommType_Name(known->type), lenient, tally, at);
  if (call.kind == Collective::all_gather) {
    // From what one rank contributes to what all have in the end.
    if (call.bytes > std::numeric_limits<std::int64_t>::max() / ranks)
      at.fail(fmt::format(" has a comm_size of {}", call.bytes));
    call.bytes *= ranks;
  }
}

std::int64_t comm_type_of(Collective kind) {
  for (const CommType& one : kCommTypes)
    if (collective_of(one.kind) == kind) return one.type;
  return chakra::ALL_REDUCE;
}

}  // namespace hemiola::workload
