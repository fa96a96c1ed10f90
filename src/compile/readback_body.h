// Operations of the bodies of a program that is read back. Private to readback*.cc.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "compile/readback_program.h"

namespace hemiola::compile::readback {

/// Rows of regions that pair up element by element: units are elements.
struct Strip {
  std::vector<std::int64_t> offsets, pitches;  ///< by region
  std::int64_t run = 1, rows = 1;
};
/// Of one region in any order; of several in theirs. Empty: they do not pair up, or are more than
/// kMostStrips.
constexpr std::int64_t kMostStrips = std::int64_t{1} << 16;
std::vector<Strip> strips_of(const std::vector<const Region*>& regions);

/// A wait whose value is known once all that tell are.
struct PendingWait {
  static constexpr std::int32_t kOpen = -1;  ///< the body has no number yet
  int rank = 0;
  std::int64_t slot = 0, step = 0;
  std::int32_t body = kOpen;
  std::size_t op = 0;
};

inline SumKey key_of(const Region& region) {
  return {region.tensor, region.offset, region.axes};
}

/// Semaphores that count tiles: by launch of a rank, and part.
using Counters = std::map<std::pair<std::int32_t, std::int64_t>, std::int32_t>;

/// A collective of a group: who does what in it, and with how many workgroups each.
struct Meeting {
  std::vector<int> members;
  std::int64_t workgroups = 1;
  std::map<int, const HostOp*> ops;  ///< by rank

  /// Semaphores that it takes: of each workgroup one for each member, before and behind it.
  std::int64_t semaphores() const { return 2 * workgroups * std::ssize(members); }
};
/// The k-th of a group on one rank is the k-th of all its members. Failure: they differ (exit code
/// 3), or one does not come (4).
std::vector<Meeting> meetings_of(const Reading& reading);
/// Nothing: none that is read back.
std::optional<Collective> collective_named(const std::string& name);

/// What bodies are written for.
struct BodyTarget {
  Reading& reading;
  int rank = 0;
  std::int64_t unit = 1;  ///< bytes of a chunk
  std::int32_t launch = 0;
  const Counters& counters;
  std::int32_t first_sum = 0;  ///< semaphores of this launch's sums, in the order of their keys
  std::vector<PendingWait>& waits;
};

/// Appends to a body.
class BodyWriter {
 public:
  BodyWriter(const BodyTarget& target, program::Body& body) : target_(target), body_(body) {}

  /// The share of a workgroup, or, of copy engines, all of it.
  void copy(const HostOp& op, std::int64_t slice = 0, std::int64_t slices = 1);
  /// The share of a workgroup.
  void reduce(const HostOp& op, std::int64_t slice, std::int64_t slices);
  /// Of what goes through the switch. `group`: of the program.
  void through_switch(const HostOp& op, std::int32_t group, std::int64_t slice,
                      std::int64_t slices);
  void zero(const HostOp& op);
  /// `first`: semaphores of this workgroup.
  void collective(const Meeting& meeting, std::int64_t workgroup, std::int32_t first);
  void signal(int to, std::int64_t slot, const Node* node);
  void wait(std::int64_t slot, std::int64_t step, const Node* node);

  static std::string line_of(const Reading& reading, const Node& node);

 protected:
  void meet(const Meeting& meeting, std::int32_t first, const Node* node);
  program::Operand operand(const Region& region, const Strip& strip, std::size_t which) const;
  void add(program::Op op, const Node* node);
  void remember(const program::Op& op, const Node* node);
  std::vector<Strip> paired(const HostOp& op) const;

  BodyTarget target_;
  program::Body& body_;
};

/// What one program of a kernel does.
class TileWriter : public BodyWriter {
 public:
  /// `trace`: where its tiles, waits and signals are listed; may be null.
  TileWriter(const BodyTarget& target, program::Body& body, const LaunchFacts& facts,
             const WorkObject& work, std::int64_t program, std::vector<TraceEvent>* trace)
      : BodyWriter(target, body), facts_(facts), work_(work), program_(program), trace_(trace) {}

  void add(KernelEvent& event);
  void finish() { flush(); }

 private:
  [[noreturn]] void refuse_other(const KernelEvent& event) const;
  void access(KernelEvent& event);
  void sum(const KernelEvent& event, const std::vector<program::Operand>& operands);
  void take(const KernelEvent& event, const Region& region);
  void give(const KernelEvent& event, const Region& region);
  void product(const KernelEvent& event);
  void count(const KernelEvent& event);
  void tell(const KernelEvent& event);
  void close_loads(const Node* node);
  void flush();
  int line(const KernelEvent& event) const {
    return target_.reading.walker.module().source.line(event.node->begin);
  }
  void note(TraceEvent event) {
    if (trace_ != nullptr) trace_->push_back(std::move(event));
  }

  const LaunchFacts& facts_;
  const WorkObject& work_;
  std::int64_t program_, turn_ = -1;
  std::vector<TraceEvent>* trace_;
  std::vector<program::Operand> loads_;   ///< since the last product
  std::vector<program::Op> steps_;        ///< computes that are not written yet
  std::int64_t part_ = -1, ticket_ = -1;  ///< of the last count that nobody waited for
  std::int64_t counted_part_ = -1;
  const Node* node_ = nullptr;  ///< of the last event
};

}  // namespace hemiola::compile::readback
