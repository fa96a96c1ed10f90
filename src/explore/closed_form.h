// What a schedule costs by closed forms, in a microsecond or two: a bound that decides what need
// not be simulated, and an estimate that decides in which order the rest is.
#pragma once

#include <map>
#include <string_view>
#include <tuple>

#include "core/time.h"
#include "explore/operator.h"
#include "explore/schedule.h"
#include "machine/machine.h"
#include "plan/fabric.h"
#include "sim/simulate.h"

namespace hemiola::explore {

/// Without contention: r = communication over product, both alone. FiCCO's own arithmetic
/// (docs/explore.md), for ranks that send to one peer at a time or to all.
struct Ideal {
  static double overlapped(double r);  ///< serial over ideal: 1 + min(r, 1 / r)
  /// serial over n shards, one link busy at a time: what arrives in (n - 1) c is computed on as it
  /// comes.
  static double shards(double r, int ranks);
  /// serial over `degree` steps of which each takes all links.
  static double uniform(double r, int degree);
  /// The same with the own block first; of `ranks` blocks one is there.
  static double hetero(double r, int degree, int ranks);
};

class ClosedForm {
 public:
  ClosedForm(const Operator& op, const machine::Machine& machine, sim::Launch launch);

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
  /// About what fluid says, without contention.
  Time estimate(const Schedule& schedule);

  /// Every rank sends so many bytes to every other, all at once: the busiest link, headers
  /// included. `ports`: GPUs take part as fast as they do, which the bound does not ask.
  Time exchange(double bytes, bool ports) const;
  struct Rates {
    double wire = 0, port = 0;  ///< femtoseconds per byte of each pair
  };
  /// Of every rank's bytes to all others at once; `one_by_one`: to one after the other, the mean.
  static Rates rates(const machine::Machine& machine, bool one_by_one);

  /// Bytes of one block, which goes from each rank to each other.
  double block_bytes() const;

 private:
  Time product_time(const Launch& launch, int cus);
  Time least_time(const Launch& launch, std::int64_t streams) const;
  Time step_time(const Schedule& schedule, double bytes) const;
  double cost_of_copies(const Schedule& schedule) const;
  bool adds_up() const;
  Time sum_time(const Schedule& schedule, double bytes) const;

  const Operator& op_;
  const machine::Machine& machine_;
  const machine::GpuModel& model_;
  sim::Launch launch_;
  Rates all_, shift_;        ///< to all peers at once; to one after the other, the mean of them
  Time crossing_{};          ///< of a chunk, with the flag behind it
  Time crossing_of_line_{};  ///< one way
  Time load_{};              ///< from the own L2
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, bool, int, int, int>, Time> times_;
};
std::string_view name_of(ClosedForm::By by);  ///< "links, then products"

}  // namespace hemiola::explore
