#include "plan/postconditions.h"

namespace hemiola::plan {

PostconditionParts parts_of(Collective collective, std::int32_t ranks) {
  PostconditionParts parts;
  if (collective == Collective::reduce_scatter || collective == Collective::all_to_all)
    parts.input = ranks;
  if (collective == Collective::all_gather || collective == Collective::all_to_all)
    parts.output = ranks;
  return parts;
}

std::vector<Postcondition> postconditions_of(Collective collective, std::int32_t ranks,
                                             std::int32_t root, std::int32_t rank) {
  std::vector<Postcondition> result;
  switch (collective) {
    case Collective::all_reduce:
      return {{0, 0, 0, ranks}};
    case Collective::reduce:
      if (rank == root) result.push_back({0, 0, 0, ranks});
      return result;
    case Collective::reduce_scatter:
      return {{0, rank, 0, ranks}};
    case Collective::broadcast:
      return {{0, 0, root, 1}};
    case Collective::send_recv:  // as nccl-tests: everyone sends to the next rank
      return {{0, 0, (rank + ranks - 1) % ranks, 1}};
    case Collective::all_gather:
      for (std::int32_t peer = 0; peer < ranks; ++peer) result.push_back({peer, 0, peer, 1});
      return result;
    case Collective::all_to_all:
      for (std::int32_t peer = 0; peer < ranks; ++peer) result.push_back({peer, rank, peer, 1});
      return result;
    case Collective::custom:
      return result;
  }
  return result;
}

}  // namespace hemiola::plan
