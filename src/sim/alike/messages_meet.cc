// Whether messages of several ranks through NICs meet where nothing keeps them in step.

#include <set>

#include "sim/alike/classes.h"

namespace hemiola::sim {
namespace {

using program::Frame;
using program::Op;
using program::OpKind;

/// Shorter ones are over before ranks come apart: a quarter of what a NIC has in flight.
constexpr std::int64_t kLeastBytes = 256 << 10;

// Other nodes' ranks to which the first rank sends by operations of the body.
class Targets {
 public:
  Targets(const machine::Machine& machine, const Frame& frame) : machine_(machine), frame_(frame) {}

  void add(const program::Body& body) {
    std::vector<std::int64_t> loops;
    for (const Op& op : body.ops) {
      if (op.kind == OpKind::loop) loops.push_back(op.count);
      if (op.kind == OpKind::end_loop && !loops.empty()) loops.pop_back();
      for (const program::Operand& to : op.dst) add(op, to, loops);
    }
  }
  bool several() const { return targets_.size() > 1; }

 private:
  void add(const Op& op, const program::Operand& to, const std::vector<std::int64_t>& loops) {
    if (op.channel == program::Channel::none || program::is_multicast(to.access)) return;
    if (to.chunks * frame_.chunk_bytes / std::max(1, op.slices) < kLeastBytes) return;
    const auto count = [&](std::size_t loop) {
      return loop < loops.size() && to.rank.loop[loop] != 0 ? loops[loop] : 1;
    };
    for (std::int64_t i = 0; i < count(0) && !several(); ++i) {
      for (std::int64_t j = 0; j < count(1) && !several(); ++j) {
        const std::int32_t target = frame_.rank_of(to.rank({.rank = 0, .loop = {i, j}}));
        if (machine_.reach(frame_.rank_of(0), target) == machine::Reach::network)
          targets_.insert(target);
      }
    }
  }

  const machine::Machine& machine_;
  const Frame& frame_;
  std::set<std::int32_t> targets_;
};

bool meet_in(const machine::Machine& machine, const Frame& frame) {
  const program::Program& program = *frame.program;
  Targets targets(machine, frame);
  for (const auto& stream : program.codes[index(program.code_of.front())].streams) {
    for (const program::StreamItem& item : stream) {
      if (item.kind == program::StreamItem::Kind::engine)
        targets.add(program.bodies[index(item.index)]);
      if (item.kind != program::StreamItem::Kind::kernel) continue;
      for (const std::int32_t body : program.kernels[index(item.index)].bodies)
        targets.add(program.bodies[index(body)]);
    }
  }
  return targets.several();
}

}  // namespace

bool messages_meet(const machine::Machine& machine, const program::Bound& program) {
  bool network = false;
  for (int rank = 1; rank < program.ranks() && !network; ++rank)
    network = machine.reach(0, rank) == machine::Reach::network;
  if (!network) return false;
  if (program.linked() == nullptr) return meet_in(machine, program.frame());
  for (const Frame& frame : program.linked()->frames)
    if (meet_in(machine, frame)) return true;
  return false;
}

}  // namespace hemiola::sim
