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
};

/// Links' payload, wire bytes, requests and busy times are those of the line-level engines, but for
/// polls of other ranks' flags and packets, which depend on time. From 1 GiB on (64 MiB where a
/// switch multicasts) one of the ranks that take the same time is counted for all: each link is
/// within 0.1 %.
Carried count_requests(const machine::Machine& machine, const program::Bound& program,
                       const Options& options);

}  // namespace hemiola::sim
