// Operations of the bodies of a program that is read back. Private to readback/.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "compile/readback/program.h"

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

/// By rank and slot, where its steps are told, in their order.
struct Told {
  std::int32_t body = PendingWait::kOpen;
  std::size_t op = 0;
};
using ToldSteps = std::map<std::pair<int, std::int64_t>, std::vector<Told>>;

/// Targets of all waits, of the signals that are told: Reading::sends. Failure: steps that go back,
/// or that two streams tell in no order.
void resolve_steps(Reading& reading, program::Program& program, std::vector<PendingWait>& waits,
                   ToldSteps& told);

/// What bodies are written for.
struct BodyTarget {
  Reading& reading;
  int rank = 0;
  std::int64_t unit = 1;  ///< bytes of a chunk
  std::int32_t launch = 0;
  const Counters& counters;
  std::int32_t first_sum = 0;  ///< semaphores of this launch's sums, in the order of their keys
  std::vector<PendingWait>& waits;
  ToldSteps& told;
};

/// Appends to a body.
class BodyWriter {
 public:
  BodyWriter(const BodyTarget& target, program::Body& body) : target_(target), body_(body) {}

  /// A copy or a sum: the share of a workgroup, or, of copy engines, all of it.
  void transfer(const HostOp& op, std::int64_t slice = 0, std::int64_t slices = 1);
  /// Rows of target and sources, of which there are two where they are added up.
  void move(const Strip& strip, const std::vector<Region>& regions, const Node* node,
            std::int64_t slice = 0, std::int64_t slices = 1);
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

}  // namespace hemiola::compile::readback
