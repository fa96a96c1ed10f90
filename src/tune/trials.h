// Points of one bucket, simulated as a search asks for them: dropped where they cannot be written,
// pruned by their bound, looked up where they are known. Private to the layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "tune/tuner.h"

namespace hemiola::tune {

class Trials {
 public:
  Trials(study::Laboratory& laboratory, const Request& request, const Space& space,
         const std::vector<std::string>& tile_parameters, machine::SharedMachine machine,
         const TuneWatch& watch, Bucket& bucket);

  /// Those that were not asked for before, in this order, as far as the budget goes.
  void simulate(const std::vector<Point>& points);
  bool is_known(const Point& point) const { return looked_at_.contains(point); }
  /// Its time by fluid; nothing where it was dropped, pruned or not asked for.
  std::optional<Time> time(const Point& point) const;
  bool has_budget() const { return bucket_.simulations < fluid_budget_; }

  /// The fastest ones by sampled; then the bucket has its candidates.
  void finish();

 private:
  struct Fit {
    Dropped why = Dropped::plan;      ///< of one that is refused
    std::string refused;              ///< empty: the compiler writes it
    std::vector<std::int64_t> tiles;  ///< by axis of the compute; 0: the kernel does not say
    plan::Compute compute;            ///< with these
    DataType type{};                  ///< of its first operand
    std::string realization;          ///< that the file has
  };
  const Fit& fit_of(const Point& point);
  Fit fit(const study::Settings& parameters, const compile::Configuration& configuration);
  std::optional<Candidate> prepare(const Point& point);
  void drop(Dropped why, const Point& point, const std::string& reason);
  void find_bounds(std::vector<Candidate>& batch);
  Time product_bound(const Candidate& candidate);
  explore::Measured measure(const explore::TemplatePlan& plan);
  void confirm(Candidate& candidate);
  void tell() const;

  const Request& request_;
  const Space& space_;
  const std::vector<std::string>& tile_parameters_;
  machine::SharedMachine machine_;
  const TuneWatch& watch_;
  Bucket& bucket_;
  const plan::TemplateInfo& info_;
  explore::PlanTrial plans_;
  std::int64_t budget_ = 0, fluid_budget_ = 0, top_ = 0;
  Time best_{INT64_MAX};
  std::map<std::string, Fit> fits_;
  std::map<std::string, explore::Measured> measured_;      ///< by what was simulated
  std::map<Point, std::optional<std::size_t>> looked_at_;  ///< which candidate it is
  std::vector<Candidate> candidates_;
};

/// What a simulation depends on, for one machine: "ag-gemm/swizzle m=1024 ...".
std::string key_of(const explore::TemplatePlan& plan);

}  // namespace hemiola::tune
