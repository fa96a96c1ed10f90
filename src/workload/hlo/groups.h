// Who communicates with whom in a module: devices, and the three notations of replica groups.
#pragma once

#include <utility>
#include <vector>

#include "workload/hlo/module.h"

namespace hemiola::workload::hlo {

/// Partition p of replica r is rank r * partitions + p, as XLA numbers devices.
struct Devices {
  int replicas = 1;
  int partitions = 1;
  int ranks() const { return replicas * partitions; }
};
/// By the header of the module. Failure: more than a million, or none.
Devices devices_of(const Module& module);

using Groups = std::vector<std::vector<int>>;

/// `replica_groups` as lists of the ids in it: "{{0,1},{2,3}}", "[2,2]<=[2,2]T(1,0)" or
/// "mesh['x'=2,'y'=2] {'y'}". Empty: all in one group. `ids`: how many there are. Failure: another
/// notation, an id that is not there, or is there twice.
Groups replica_groups(const Module& module, const Instruction& collective, int ids);

/// The ranks that communicate in a collective, which ids are of replicas, of partitions or of both,
/// depending on `channel_id` and `use_global_device_ids`. Every rank is in one group. Failure as
/// replica_groups(); ranks that are in none, groups of different sizes.
Groups groups_of_ranks(const Module& module, const Instruction& collective, const Devices& devices);

/// Source and target of each pair of a collective-permute, as ranks. Failure: a rank that sends or
/// receives twice, or is not there. `attribute`: the one with the pairs.
std::vector<std::pair<int, int>> pairs_of_ranks(const Module& module,
                                                const Instruction& instruction,
                                                const Devices& devices);

/// Divides pairs into sets in each of which no rank is twice; at most three. Pairs of a rank with
/// itself are left out.
std::vector<std::vector<std::pair<int, int>>> disjoint_pairs(
    const std::vector<std::pair<int, int>>& pairs);

}  // namespace hemiola::workload::hlo
