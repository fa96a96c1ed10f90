// A fused kernel followed with numbers, program by program: which tiles it takes, what it waits
// for, loads, multiplies, stores and tells, in the order of its text. Private to readback/.
#pragma once

#include <functional>
#include <vector>

#include "compile/readback/host.h"
#include "compile/readback/term.h"

namespace hemiola::compile::readback {

struct KernelEvent {
  enum class Kind : std::uint8_t {
    tile,     ///< `number`: its place in the table of rows
    move,     ///< `number`: what all programs move, each its share, which ends with a count
    turn,     ///< `number`: its place in the table of turns
    wait,     ///< until signal `number` has been given `step` of this call
    load,     ///< `regions`
    store,    ///< `regions`, the `number`-th of the program with an add
    add,      ///< `regions`, to what is there
    take,     ///< the turn of what one element, in `regions`, stands for
    give,     ///< the turn on
    product,  ///< m, n, k
    count,    ///< of part `number`; `step`: so many were counted before in this launch
    reset,    ///< of the count of part `number`, by who has counted `step` before
    signal,   ///< `step` of signal `number` of rank `to`
    barrier   ///< of the program's threads
  } kind = Kind::tile;
  std::vector<Region> regions{};
  std::int64_t number = 0, step = 0;
  int to = 0;
  std::int64_t m = 0, n = 0, k = 0;
  const Node* node = nullptr;
  /// Of what is stored or added, and some of its elements: address in the tensor, place in the
  /// block. Of blocks that touch the same elements they are the same.
  TermRef value{};
  std::vector<Sample> samples{};
};

/// Counts of shares of a movement have the numbers from here on: no part has.
constexpr std::int64_t kFirstShares = std::int64_t{1} << 32;

/// One launch on one rank.
class KernelRun {
 public:
  /// `processors`: programs of a persistent kernel, at most. All references outlive it.
  KernelRun(Walker& walker, const RankRecord& record, const HostOp& launch, int rank, int ranks,
            std::int64_t processors);

  std::int64_t programs() const { return programs_; }
  const WorkObject& work() const { return *launch_.work; }
  bool is_persistent() const { return !launch_.work->kernel->tile.empty(); }

  /// visit(event) of one program, in order. `ticket`: how many of a part have been counted before
  /// the so-manieth count of the program.
  using Visit = std::function<void(KernelEvent&)>;
  using Ticket = std::function<std::int64_t(std::int64_t part, std::int64_t nth)>;
  void run(std::int64_t program, const Visit& visit, const Ticket& ticket);

 private:
  Walker& walker_;
  const RankRecord& record_;
  const HostOp& launch_;
  int rank_, ranks_;
  std::int64_t programs_ = 1;
};

}  // namespace hemiola::compile::readback
