// Who moves what in a program of channels: jobs, the lanes that they are dealt to, and who waits
// for whom. Private to lower/channels.cc.
//
// The movements of a rank are dealt to lanes, one per stream and peer; a lane is one workgroup, or
// several that each do a slice of everything. Slices of different lanes are the same bytes (rows
// are cut at common boundaries first), so that workgroup w of a lane waits for workgroups w only.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "program/lower/ordered.h"

namespace hemiola::program::general {

/// What one lane does at a time: at most as many rows of a movement as an operation has operands.
struct LaneJob {
  const Movement* movement = nullptr;
  int rank = 0;  ///< who does it: of reductions the owner of the result
  std::vector<const Place*> sources, destinations;  ///< local sources first
  std::vector<Row> rows;  ///< places in the order of sources and destinations
  std::int32_t lane = 0;
  std::set<std::int64_t> after;  ///< jobs that have touched the same chunks
};

/// A workgroup of slice 0; the others do the same.
struct Lane {
  int rank = 0;
  int peer = -1;                   ///< -1: none; the number of ranks: several
  std::vector<std::int64_t> jobs;  ///< in order
};

class Lanes {
 public:
  using Item = Reduction::ItemOf;  ///< lane; 0: its start, then its jobs, then its end

  /// Jobs in an order in which none waits for a later one. Failure: a reduction that MSCCL++ has no
  /// operation for.
  Lanes(const plan::Plan& plan, const LowerOptions& options, const Ordered& list);

  /// Deals at most `most` jobs to a lane. Failure: more lanes on a rank than the executor has room
  /// for.
  void deal(std::size_t most);

  const std::vector<LaneJob>& jobs() const { return jobs_; }
  const std::vector<Lane>& lanes() const { return lanes_; }
  std::int32_t slices() const { return slices_; }  ///< workgroups of a lane
  /// Items that an item waits for, without what its lane knows by then.
  const std::vector<Item>& waits(const Item& item) const { return waits_.at(item); }
  /// Lanes that wait for an item, by item.
  const std::map<Item, std::vector<std::int32_t>>& waiters() const { return waiters_; }

 private:
  void make_jobs();
  void add_job(const Movement& movement);
  /// visit(rank, place, whether it is written) for all memory that a job touches.
  template <class Visit>
  void each_memory(const LaneJob& job, Visit&& visit) const;
  std::pair<Hazards::Memory, std::int64_t> where(const LaneJob& job, const Row& row, std::size_t p,
                                                 int rank) const;
  void cut_rows();
  void note_hazards(Hazards& hazards, std::size_t j);
  std::set<int> touched(const LaneJob& job) const;
  std::int32_t host_of(int rank, std::int32_t lane) const;
  Item item_of(std::int64_t job) const;
  void order();

  const plan::Plan& plan_;
  const LowerOptions& options_;
  const Ordered& list_;
  std::vector<LaneJob> jobs_;
  std::vector<Lane> lanes_;
  std::vector<std::vector<std::int32_t>> of_rank_;  // lanes, in order
  std::int32_t slices_ = 1;
  std::map<Item, std::vector<Item>> waits_;
  std::map<Item, std::vector<std::int32_t>> waiters_;
};

}  // namespace hemiola::program::general
