// Agents of the fluid engine walk their primitives; events and ends of flows say who goes on.
//
// One agent stands for a class of workgroups that behave alike (classes.h): it walks its primitives
// in order; a move is a flow with the latency of one request around it, everything else takes its
// unloaded time. Events are few: one or two for each primitive of each class.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/fluid/computes.h"
#include "sim/fluid/engines.h"
#include "sim/fluid/moves.h"

namespace hemiola::sim::fluid {

class Agents {
 public:
  /// Keeps references to all three.
  Agents(const machine::Machine& machine, const program::Bound& program, const Options& options,
         AlikeBy by);

  /// Times, ends and attributions of all ranks; links and counters are left to count_requests().
  /// Nothing if a wait cannot end in classes: to be asked again unfolded, which then throws.
  std::optional<Result> run();
  const Classes& fold() const { return run_.fold; }

 private:
  void handle(const Event& event, const Attribution& spent);
  void flow_over(const FlowUse& use);
  [[noreturn]] void report_deadlock() const;

  void advance(std::int32_t agent);  ///< none: -1
  bool interpret(std::int32_t agent);
  bool interpret_copy(std::int32_t agent);
  void overhead(Walker& walker, const program::Primitive& primitive);
  template <typename Work>
  void by_poster(Walker& walker, Work work);
  void release(Walker& walker, bool system_scope);
  void signal(Walker& walker, const program::Primitive& primitive);

  Run run_;
  Streams streams_;
  Flags flags_;
  Traffic traffic_;
  MatrixUnits units_;
  Moves moves_;
  Computes computes_;
  Tiles tiles_;
  Engines engines_;
  std::vector<std::int64_t> code_free_;  ///< by class of ranks: when it may fetch code again
};

}  // namespace hemiola::sim::fluid
