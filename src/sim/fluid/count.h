// What the links carry while a program runs: counted request by request as the line-level engines
// form them, without time. Wavefronts' instructions are split into lines, lines choose their paths
// by address, every request has its answer.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "machine/machine.h"
#include "program/bind/bound.h"
#include "sim/alike/classes.h"
#include "sim/result/options.h"
#include "sim/result/result.h"

namespace hemiola::sim {

struct Carried {
  std::vector<LinkUse> links;  ///< those that carry something, in link order; max_queue is 0
  std::map<std::string, std::int64_t> counters;  ///< all keys of the line-level engines; those of
                                                 ///< caches, polls and credits are 0
  std::int64_t hops = 0;                         ///< requests and answers that passed a link
  /// A bound of bandwidth by the same traffic: the busiest cut around a GPU or NIC, or link that
  /// pairs of ranks without a choice take. Latency is 0. Left out is what may end after the
  /// program.
  LowerBound bound;
};

/// The bandwidth bound of one repetition: over single links, and all that leave or enter a GPU or
/// NIC. By class of links, over all of the class and all repetitions: wire bytes that come before
/// the end, and those of pairs of ranks with one path.
LowerBound bound_of_links(const machine::Machine& machine, const Classes& fold,
                          const std::vector<std::int64_t>& certain,
                          const std::vector<std::int64_t>& single, int repetitions);

/// Links' payload, wire bytes, requests and busy times are those of the line-level engines, but for
/// polls of other ranks' flags and packets, which depend on time.
Carried count_requests(const machine::Machine& machine, const program::Bound& program,
                       const Options& options);

}  // namespace hemiola::sim
