// From what the ranks of a fused file do to a program and a plan. Private to readback/.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "compile/readback/kernel.h"
#include "compile/readback/readback.h"
#include "plan/area.h"
#include "plan/plan.h"

namespace hemiola::compile::readback {

/// What a tile touches: by tensor of the own rank.
struct TileFacts {
  std::map<std::int32_t, plan::Rect> reads, writes;  ///< of reads at least what is touched
};

/// Memory that tiles add to, as one of them names it: tensor, offset, axes.
using SumKey =
    std::tuple<std::int32_t, std::int64_t, std::vector<std::pair<std::int64_t, std::int64_t>>>;

/// What is known of a launch before it is written down.
struct LaunchFacts {
  const HostOp* op = nullptr;
  std::map<std::int64_t, TileFacts> tiles;  ///< by the kernel's own number
  /// By part: turn and program of each count, in the order in which they stand for each other.
  std::map<std::int64_t, std::vector<std::pair<std::int64_t, std::int64_t>>> counts;
  std::map<std::int64_t, std::vector<std::int64_t>> counted;  ///< by part: tiles
  std::set<const Node*> products;                             ///< calls of tl.dot
  /// Turn and program of each sum, in the order in which they stand for each other.
  std::map<SumKey, std::vector<std::pair<std::int64_t, std::int64_t>>> sums;
  std::set<std::int32_t> added;  ///< tensors that tiles add to
};

/// Who tells a signal of its steps, in order.
struct Send {
  int rank = 0;
  std::int32_t stream = -1;    ///< -1: a kernel
  std::int64_t transfers = 0;  ///< of the stream, before it
  std::int32_t launch = -1;
  std::int64_t part = -1;  ///< of a kernel; -1: without a count
  std::int64_t step = 0;
  const Node* node = nullptr;
};
/// By rank that is told, and slot.
using Sends = std::map<std::pair<int, std::int64_t>, std::vector<Send>>;

struct Reading {
  Walker& walker;
  std::string file;
  int ranks = 0;
  std::vector<RankRecord> records;
  std::vector<std::vector<LaunchFacts>> launches;  ///< by rank
  std::int64_t unit = 0;  ///< bytes that all offsets, rows and distances are multiples of
  Sends sends{};
  bool judges_values = true;         ///< whether what tiles store is compared with reference()
  std::set<std::string> unjudged{};  ///< what of the values nobody can tell
};

/// Elements of a region as a rectangle of its tensor, at least all of them. `is_exact`: no others.
plan::Rect rect_of(const Tensor& tensor, const Region& region, bool* is_exact = nullptr);

/// Whether something moves memory.
inline bool is_transfer(const HostOp& op) {
  return op.kind == HostOp::Kind::copy || op.kind == HostOp::Kind::reduce ||
         op.kind == HostOp::Kind::collective || op.kind == HostOp::Kind::to_all ||
         op.kind == HostOp::Kind::sum_of_all;
}

/// Fills in who tells whom.
program::Program write_program(Reading& reading, const FusedReadOptions& options,
                               std::vector<RankTrace>* traces);
/// That tiles do not wait for what comes behind later tiles of their kernel, nor for what needs
/// compute units beside it (a copy within a GPU, a sum, a collective). After write_program().
/// Failure (exit code 4) with the line of a wave that is never taken.
void prove_progress(const Reading& reading);
/// What the file moves and computes, for the proof of its values. After write_program().
std::shared_ptr<plan::Plan> plan_of(const Reading& reading);

/// What reference() of the file says of the outputs, and of what tiles read: `plan` has its tensors
/// and computes already. Nothing for formulas that are not known.
void add_expectations(const Reading& reading, plan::Plan& plan);

}  // namespace hemiola::compile::readback
