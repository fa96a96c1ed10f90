// Runs plans and programs on real data on this machine, and compares with what they should give.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/monitor.h"
#include "plan/plan.h"
#include "program/bind/bound.h"
#include "verify/verify.h"

namespace hemiola::verify {

struct ExecuteOptions {
  std::uint64_t seed = 1;  ///< of the data, the delays and the order of tiles
  int rounds = 3;          ///< runs in a row with new data, and without a reset of anything else
  bool delays = true;      ///< before some transfers, tiles and primitives
  /// execute(): told of rounds; may stop it (Interrupted). Null: nobody.
  Monitor* monitor = nullptr;
};

enum class Outcome : std::uint8_t {
  right,
  wrong,  ///< an element of the result differs
  hang,   ///< all threads that are left wait for each other
  race    ///< interleave() (testing) only: unordered accesses, or use of memory that nobody wrote
};
std::string_view name_of(Outcome outcome);

struct Execution {
  Outcome outcome = Outcome::right;
  std::string summary;         ///< one line: what is wrong, or what was run
  std::vector<Witness> steps;  ///< race: the two accesses
  bool differs = false;        ///< race: the result was wrong, too, or never came
  std::int64_t compared = 0;   ///< elements, over all ranks and rounds
  int threads = 0;
};

/// A thread for each stream of each rank and for each compute; floats (small integers, so that sums
/// are exact), a counter per stream that others wait on. A chunk is one element. Tiles of kernel
/// "gemm" add up products of what they read, point by point; those of others the sum of what they
/// read. Rounds begin together. Accesses that the plan does not order are data races here too: run
/// only plans that check() accepts or interleave() finds free of them.
///
/// The plan is valid. Failure: more than 2^26 elements over all ranks or more than 512 threads.
Execution execute(const plan::Plan& plan, const ExecuteOptions& options = {});

/// A thread for each workgroup, which interprets the primitives of the bound program; proxies have
/// threads of their own. Memory is that of the program, counted in bytes, with real flags in
/// packets. All workgroups are resident and all elements are float32, whatever the program is bound
/// to; the operator is sum. Failure: an unbound program, another type or operator, more than 2^30
/// bytes or 4096 threads, or a collective without a postcondition.
Execution execute(const program::Bound& program, const ExecuteOptions& options = {});

}  // namespace hemiola::verify
