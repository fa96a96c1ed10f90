// Which ranks take part in the launches of a workload, and with whom a class's calls meet.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "workload/scheduler/costs.h"
#include "workload/workload.h"

namespace hemiola::workload {

/// By group: in which of several sets it is, none of which has a rank twice. All are in set 0
/// unless they are a ring, where a rank sends and receives at the same time.
std::vector<int> disjoint_sets(const std::vector<std::vector<int>>& groups);

class Places {
 public:
  explicit Places(const Workload& workload);

  /// Each rank of the class for itself.
  std::int32_t of_compute(std::int32_t rank_class);
  /// Of a collective that a class calls: all groups of the family that its ranks are in, and those
  /// that the other ranks of these bring in.
  std::int32_t of_collective(std::int32_t rank_class, std::int32_t family);
  /// The pairs that a class sends to, or receives from.
  std::int32_t of_message(std::int32_t rank_class, const Message& message, bool sends);

  /// Of a node of the class that is_call().
  std::int32_t of_call(std::int32_t rank_class, const Node& node);

  const Place& place(std::int32_t number) const { return places_[index(number)]; }
  /// Classes that send and that receive, each once. Of messages.
  struct Sides {
    std::vector<std::int32_t> senders, receivers;
  };
  const Sides& sides(std::int32_t number) const { return sides_.at(number); }
  std::int32_t class_of(int rank) const { return class_of_[index(rank)]; }

 private:
  std::int32_t add(Place place);

  const Workload& workload_;
  std::vector<std::int32_t> class_of_;  ///< by rank
  std::vector<Place> places_;
  std::map<std::int32_t, std::int32_t> computes_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> collectives_;
  std::map<std::tuple<std::int32_t, std::int32_t, bool, bool>, std::int32_t> messages_;
  std::map<std::int32_t, Sides> sides_;
};

}  // namespace hemiola::workload
