// What the ways of lowering share. Private to lower/.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "program/lower/lower.h"

namespace hemiola::program {

/// Consecutive transfers of one form: a loop of a stream, or a single transfer (count 1).
struct Run {
  const plan::Transfer* transfer = nullptr;
  std::int64_t count = 1;
  std::int64_t first = 0;  ///< number of its first transfer in the stream
  std::size_t item = 0;    ///< index in the stream, for messages
};
/// Failure for loops of more than one transfer.
std::vector<Run> runs_of(const plan::Plan& plan, const plan::Stream& stream);

/// Whether the exchange lowering knows every reduction of the stream.
bool has_exchange_steps(const plan::Plan& plan, const plan::Stream& stream);

/// "/ring/3": where an operation comes from.
std::string place_of(const plan::Stream& stream, const Run& run);

/// The expression with counter `start + i`, where i counts loop `depth` of the program.
Affine from_iteration(const Affine& value, std::int64_t start, std::size_t depth);
/// The expression at one iteration, free of loop counters.
Affine at_iteration(const Affine& value, std::int64_t iteration);
/// What the expression is at rank (own - distance - step * i), in terms of the own rank and counter
/// i. Failure for expressions in the rank that do not wrap around at `ranks`.
Affine seen_from(const Affine& value, std::int64_t distance, std::int64_t step, std::int64_t ranks);

/// `region` in the program's buffers, on `rank`.
Operand operand_at(const plan::Region& region, const Affine& rank);

/// What a movement does, as far as it says which operation that is.
struct Does {
  bool reduces = false;
  bool pulls = false, pushes = false;              ///< from, to memory of other ranks
  bool arrives = false, leaves = false;            ///< packets
  bool group_loads = false, group_stores = false;  ///< through the switch
};
OpKind kind_of(const Does& does);

/// add(part): the operation with at most so many of its semaphores, and their targets, at a time.
template <class Add>
void split_semaphores(const Op& op, std::size_t most, Add&& add) {
  for (std::size_t begin = 0; begin < op.semaphores.size(); begin += most) {
    Op part = op;
    const std::size_t end = std::min(begin + most, op.semaphores.size());
    const auto cut = [&](auto& list) {
      if (list.empty()) return;
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(end), list.end());
      list.erase(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(begin));
    };
    cut(part.semaphores);
    cut(part.targets);
    add(std::move(part));
  }
}

/// Input and output share memory as in nccl-tests: the smaller one is this rank's part of the
/// larger. Failure for a plan that is not safe in place, which those that only swap are.
void share_memory(Program& program, const plan::Plan& plan, bool swaps = false);

/// Whether source and destination of a local copy are the same memory on all ranks (in place).
bool is_in_place(const Program& program, const plan::Transfer& copy);

template <class Visit>
void each_transfer(const std::vector<plan::Item>& items, Visit&& visit) {
  for (const plan::Item& item : items)
    if (const auto* transfer = std::get_if<plan::Transfer>(&item))
      visit(*transfer);
    else
      each_transfer(std::get<plan::Loop>(item).items, visit);
}

/// Plans of chunks in rows and nothing else, with loops of one transfer.
bool is_simple(const plan::Plan& plan);

/// Who sends to a rank in a stream of a chain, and to whom it sends; -1: nobody.
struct ChainLink {
  int left = -1, right = -1;
};
using ChainLinks = std::vector<ChainLink>;  ///< by stream
/// By rank; empty where a stream pushes to several ranks, or several push to one in it, or where
/// peers are not written as distances from the rank.
std::vector<ChainLinks> links_of_chain(const plan::Plan& plan);

/// What the bodies of a rank depend on: ranks with equal roles share them.
using ChainRole = std::vector<std::int32_t>;
ChainRole role_of(const plan::Plan& plan, const std::vector<ChainLinks>& links, int rank);

/// A chain with each K consecutive chunks taken as one: stream k of K moves part k of every chunk.
plan::Plan join_parts(const plan::Plan& plan);

/// `plan`: with its parts joined.
Program lower_chain(const plan::Plan& plan, const LowerOptions& options, Program program);
/// Any plan; see lower/general.h.
Program lower_general(const plan::Plan& plan, const LowerOptions& options, Program program);
Program lower_exchange(const plan::Plan& plan, const LowerOptions& options, Program program);
/// Any plan that does not compute, with LowerOptions::sync channels or connections; the latter is
/// finished.
Program lower_channels(const plan::Plan& plan, const LowerOptions& options, Program program);
Program lower_connections(const plan::Plan& plan, const LowerOptions& options, Program program);

}  // namespace hemiola::program
