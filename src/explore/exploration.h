// What is asked of a search, and what it finds: candidates with their times and losses, serial
// beside them, what rules say.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/diagnostics.h"
#include "core/time.h"
#include "explore/measured.h"
#include "explore/rules/closed_form.h"
#include "explore/rules/rules.h"
#include "explore/space/operator.h"
#include "explore/space/schedule.h"
#include "machine/devices/gemm_model.h"
#include "sim/result/options.h"
#include "study/evidence/evidence.h"
#include "study/laboratory/experiment.h"

namespace hemiola::explore {

/// Of which schedules it is looked at what they lose, which takes two simulations more.
enum class LossesOf : std::uint8_t {
  none,
  best,  ///< the fastest ones, and the fastest of every family
  all    ///< that were simulated
};
std::string_view name_of(LossesOf losses);  ///< "best"
/// Failure at `where` for a word that is none of them.
LossesOf losses_of(const std::string& word, const SourceLocation& where);
/// So many of the fastest: those that the table shows.
constexpr std::size_t kShown = 8;

struct Request {
  Operator op;
  study::MachineChoice machine;
  /// launch, warmup, iterations, threads (that simulate schedules); the engine is not asked.
  sim::Options options{.warmup = 1, .iterations = 1};
  SpaceLimits limits{};
  int fluid = 60;  ///< schedules that are simulated at most
  /// So many of the fastest, and serial, are simulated by the engine `sampled` too. Nothing: three,
  /// where that is little work.
  std::optional<int> top{};
  bool exhaustive = false;  ///< every schedule is simulated, whatever its bound
  LossesOf losses = LossesOf::best;
  /// What software takes around every schedule but serial, beyond what is simulated: in the times
  /// of all of them, and in the loss `launches`.
  Time software{};
};

/// The library's collective, then its product: what every speedup is against.
struct Serial {
  Time time{};                      ///< of both, by fluid
  Time collective{}, product{};     ///< each alone
  std::string program;              ///< what the library takes: "all-gather/nccl"
  machine::GemmEstimate kernel;     ///< of the product
  std::optional<Time> confirmed{};  ///< by sampled
  std::string job;                  ///< the text of the job file that was run
};

/// Why pieces take longer than the bound, or together longer than alone. The parts of time - ideal,
/// which they sum to; none is below zero.
enum class Loss : std::uint8_t {
  last_wave,  ///< decomposition: compute units that the last wave of each launch leaves idle
  launches,   ///< decomposition: starting and ending kernels
  clock,      ///< decomposition: the power limit, beyond what the bound has of it
  caches,     ///< decomposition: operands from L2 and memory, and what else products cost
  chunks,     ///< decomposition: latency of transfers, and links that they leave idle
  exposed,    ///< what is critical waits: for the first chunk, between pieces, for the last one
  units,      ///< contention: compute units that communication takes
  memory,     ///< contention: L2, memory, power, and their clock
  links,      ///< contention: transfers that products slow down
  count
};
constexpr std::size_t kLosses = index(Loss::count);
std::string_view name_of(Loss loss);

struct Losses {
  /// Decomposition: the pieces alone over the whole alone (the library's).
  std::optional<double> dil_product, dil_communication;
  /// Contention: overlapped over alone. Of communication nothing where that waits for products.
  std::optional<double> cil_product;  ///< nothing of one kernel, which waits inside
  std::optional<double> cil_communication;
  Time products{}, communication{};           ///< the pieces alone
  std::array<std::int64_t, kLosses> parts{};  ///< femtoseconds, none below zero
};

struct Candidate : Measured {
  Schedule schedule;
  study::Settings parameters;  ///< of its template and lowering
  ClosedForm::Bound bound;
  Time estimate{};
  std::optional<Time> confirmed{};  ///< by sampled
  std::optional<Losses> losses{};
  Time time() const { return confirmed ? *confirmed : fluid; }
};

/// What a rule says, and what that costs.
struct RulePick {
  std::string rule;  ///< its name; "analytic": the closed form
  Pick pick;
  /// Time of the pick over the best, less 1: of the fastest simulated schedule of its family and
  /// steps; where none was, the most promising one is. Nothing where the machine has none of them.
  std::optional<double> regret;
};

struct Exploration {
  Operator op;
  std::string machine;
  std::string device;  ///< model of its GPUs
  int nodes = 1;
  sim::Launch launch = sim::Launch::stream;
  Serial serial;
  std::vector<Candidate> candidates;              ///< that were simulated, the fastest first
  std::vector<Candidate> refused;                 ///< that turned out not to run
  std::int64_t space = 0;                         ///< schedules in all
  std::map<ClosedForm::By, std::int64_t> pruned;  ///< not simulated, as the bound is above the best
  std::int64_t left_out = 0;  ///< not simulated, as there were enough that promised more
  Features features{};        ///< what rules decide by
  AnalyticTimes analytic{};
  std::vector<RulePick> picks;  ///< of all rules
  // What the caller measured: how the machine was made to meet it, times of schedules by their
  // text.
  std::vector<std::string> remarks{};
  std::map<std::string, double> measured_us{};
  Time software{};  ///< of the request
  /// No schedule of the operator takes less: the longer of all tiles over all compute units (or the
  /// power limit) and of the fewest bytes over the busiest link.
  ClosedForm::Bound ideal{};
  std::string not_tried{};    ///< what the machine has not got; empty: everything was
  std::string not_confirmed;  ///< why sampled was not asked; empty: it was

  /// The fastest schedule, or null where serial is.
  const Candidate* winner() const;
  Time best() const;  ///< of the winner, or of serial
  /// The time of serial by the engine that `candidate` was timed with last.
  Time serial_for(const Candidate& candidate) const;
  double speedup(const Candidate& candidate) const;
  /// What evidence knows serial by, and the ratio of a schedule's time to serial's.
  study::Likeness serial_likeness() const;
  study::Likeness ratio_likeness() const;

  /// Positions among the candidates: the fastest of each family, the fastest first.
  std::vector<std::size_t> fastest_of_families() const;
  /// The same with the kShown fastest of all: what the table shows.
  std::vector<std::size_t> shown() const;
};

}  // namespace hemiola::explore
