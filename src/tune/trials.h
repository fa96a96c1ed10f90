// Points of one bucket, simulated as a search asks for them: dropped where they cannot be written,
// pruned by their bound, looked up where they are known. Private to the layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plan/plan.h"
#include "tune/tuner.h"

namespace hemiola::tune {

class Trials {
 public:
  Trials(study::Laboratory& laboratory, const Request& request, const Space& space,
         const std::vector<std::string>& tile_parameters, machine::SharedMachine machine,
         const TuneWatch& watch, Bucket& bucket);

  /// By fluid those that were not asked for before, in this order: at most `most` simulations.
  /// Returns how many there were.
  std::int64_t simulate(const std::vector<Point>& points, std::int64_t most);
  /// By sampled, within the budget. Of a point that fluid has not seen, too.
  void sample(const Point& point) { sample({point}, true); }
  /// By both, each point counted once, within the budget.
  void simulate_and_sample(const std::vector<Point>& points);

  bool is_known(const Point& point) const { return looked_at_.contains(point); }
  /// By fluid; nothing where it was dropped, pruned or not asked for.
  std::optional<Time> fluid(const Point& point) const;
  /// By sampled, likewise.
  std::optional<Time> sampled(const Point& point) const;
  std::int64_t left() const { return budget_ - reserve_ - bucket_.simulations; }

  /// Gives the bucket its candidates, and what stands beside them.
  void finish();

 private:
  struct Fit {
    Dropped why = Dropped::plan;      ///< of one that is refused
    std::string refused;              ///< empty: the compiler writes it
    std::vector<std::int64_t> tiles;  ///< by axis of the compute; 0: the kernel does not say
    plan::Compute compute;            ///< with these
    DataType type{};                  ///< of its first operand
    std::string realization;          ///< that the file has where nothing else is asked for
    bool can_carry = false;           ///< its programs could move the data themselves
    bool takes_movers = false;        ///< workgroups that move data find room beside the kernel
    std::string digest;               ///< of the text of its file
    Bytes buffers{}, extra_traffic{};
  };
  const Fit& fit_of(const Point& point);
  Fit fit(const study::Settings& parameters, const compile::Configuration& configuration);
  std::optional<Candidate> prepare(const Point& point);
  std::optional<std::size_t> place_of(const Point& point) const;
  Candidate* candidate_at(const Point& point);
  const Candidate* candidate_at(const Point& point) const;
  void prepare_all(const std::vector<Point>& points);
  void drop(Dropped why, const Point& point, const std::string& reason);
  void find_bounds(std::vector<Candidate>& batch);
  Time product_bound(const Candidate& candidate);
  void sample(const std::vector<Point>& points, bool counts);
  /// What is simulated, by key_of().
  using Wanted = std::vector<std::pair<std::string, const Candidate*>>;
  template <typename Found>
  void find(const std::string& engine, const Wanted& wanted, std::map<std::string, Found>& found);
  /// What a simulation of the candidate depends on: its plan, and of one that is written all that
  /// its file says.
  std::string key_of(const Candidate& candidate) const;
  /// The program that the candidate's file is.
  program::Program program_of(const Candidate& candidate) const;
  program::Program program_of(const Candidate& candidate, const plan::Plan& plan) const;
  void simulate(const Candidate& candidate, explore::Measured& fluid);
  void simulate(const Candidate& candidate, explore::Confirmed& sampled);
  void time_beside();
  void sample_what_is_written();
  void tell() const;

  const Request& request_;
  const Space& space_;
  const std::vector<std::string>& tile_parameters_;
  machine::SharedMachine machine_;
  const TuneWatch& watch_;
  Bucket& bucket_;
  const plan::TemplateInfo& info_;
  explore::PlanTrial plans_;
  /// Kept for the fastest point that the compiler writes, where others are tried too.
  std::int64_t budget_ = 0, reserve_ = 0;
  std::optional<Time> best_fluid_{};
  std::map<std::string, Fit> fits_;
  // By what is simulated: points may differ in what the simulator does not know.
  std::map<std::string, explore::Measured> measured_;
  std::map<std::string, explore::Confirmed> confirmed_;
  std::map<Point, std::optional<std::size_t>> looked_at_;  ///< which candidate; nothing: dropped
  std::vector<Candidate> candidates_;
};

}  // namespace hemiola::tune
