// What a schedule costs by closed forms, in a microsecond or two: a bound that decides what need
// not be simulated, and an estimate that decides in which order the rest is.
#pragma once

#include <string_view>
#include <vector>

#include "core/time.h"
#include "core/units.h"
#include "explore/rules/overlap_model.h"
#include "explore/space/operator.h"
#include "explore/space/schedule.h"
#include "machine/devices/gemm_model.h"
#include "machine/machine.h"
#include "plan/fabric.h"

namespace hemiola::explore {

/// The steps of a schedule without contention: nothing but data stands between a transfer and its
/// product. Without losses this is FiCCO's own arithmetic (arXiv 2512.10236). In any unit of time.
struct Pipeline {
  std::int64_t steps = 1;
  double transfer = 0, product = 0;  ///< of each step
  double own = 0;                    ///< product of the own block: first, or after all others
  double sum = 0;  ///< of the partial sums that each step brought, where products come first
  double time(bool communicates_first) const;
};

/// All compute units at a product of so many flop: femtoseconds under the power limit, and how much
/// faster they are before it holds.
struct PowerLimit {
  double sustained = 0, faster = 1;
  static PowerLimit of(const machine::GpuModel& model, double flop, DataType type);
};

/// 0 of an ideal rate.
double fs_per_byte(Rate rate);
/// Beside the bytes, where a switch adds up what all ranks have made: the flag that it is there,
/// the load through the switch, the flag that the sum is.
double around_switch(Time handover, Time crossing);
/// Bytes that the threads of a workgroup that moves data load before they wait for them.
double batch_of_workgroup(const machine::GpuModel& model);

class ClosedForm {
 public:
  ClosedForm(const Operator& op, const machine::Machine& machine);

  enum class By : std::uint8_t {
    products,       ///< tiles over all compute units, or the power limit
    links,          ///< bytes over the busiest link
    links_product,  ///< all bytes, then the products of the last step (or the first before them)
    chunk_products  ///< the first chunk, then all products (or the last one after them)
  };
  struct Bound {
    Time time{};
    By by = By::products;
  };
  /// No simulation of the schedule takes less.
  Bound bound(const Schedule& schedule);
  /// ... of any of these schedules.
  Bound least_bound(const std::vector<Schedule>& schedules);
  /// About what fluid says (overlap_model.h).
  Time estimate(const Schedule& schedule);

  struct Rates {
    double wire = 0;  ///< of the busiest link, headers included
    double port = 0;  ///< the same, GPUs taking part as fast as they do; the bound does not ask it
    /// The same with what acknowledges data of the other direction: of lines that compute units
    /// store, and of bursts of copy engines.
    double lines = 0, bursts = 0;
  };
  /// How much longer messages between nodes take where ranks of a node send to those of others each
  /// of its own accord: if each of n is at one of n targets by chance, 1 - (1 - 1 / n)^n of these
  /// receive. 1 on one node.
  static double meeting(const machine::Machine& machine);
  /// Femtoseconds per byte that every rank sends to every other, to all at once (over nodes such
  /// messages meet, but in `wire`); `one_by_one`: to one after the other, the mean of them.
  static Rates rates(plan::Fabric& fabric, bool one_by_one);
  /// The same where blocks go to one rank of every other node (`across`), which spreads them inside
  /// its own (`inside`): of a byte of every block. Where there are no nodes: 0.
  struct Levels {
    Rates across, inside;
    double groups = 1, inner = 1;  ///< nodes, and ranks of each
    Time crossing{};               ///< of a transfer across
    /// That each rank sends inside, of one block to one rank.
    double copies() const { return (inner - 1) * groups; }
  };
  static Levels levels(plan::Fabric& fabric);

 private:
  /// Femtoseconds.
  double products_bound(const Schedule& schedule, const std::vector<Launch>& launches) const;
  double links_bound(const Schedule& schedule) const;
  Time least_time(const Launch& launch, std::int64_t streams) const;
  Time step_time(const Schedule& schedule, double bytes) const;
  Time step_time(const Schedule& schedule, double bytes, const Rates& rates) const;
  double inside_time(const Schedule& schedule, double bytes) const;
  double copied_per_byte(const Schedule& schedule) const;
  double fair_share(const Schedule& schedule) const;
  std::int64_t units_beside(const Schedule& schedule) const;
  Time sum_time(const Schedule& schedule, double bytes) const;

  const Operator& op_;
  const machine::GpuModel& model_;
  PieceModel pieces_;
  OverlapCase case_;
  Levels levels_;
  Rates all_, shift_;        ///< to all peers at once; to one after the other, the mean of them
  Time crossing_{};          ///< of a chunk, with the flag behind it
  Time crossing_of_line_{};  ///< one way
  Time latency_{};           ///< of own memory
};
std::string_view name_of(ClosedForm::By by);  ///< "links, then products"

}  // namespace hemiola::explore
