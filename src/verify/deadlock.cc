#include "verify/deadlock.h"

#include <algorithm>
#include <map>
#include <set>

namespace hemiola::verify {
namespace {

using program::Primitive;
using program::PrimitiveKind;
using program::SemaphoreId;
using program::Span;

/// Something that a workgroup waits for, and who can still bring it.
struct Need {
  Actor waiter = 0;
  std::int32_t op = 0;
  std::string text;             ///< "waits for channel 3 of rank 1: value 0 of 1"
  std::int64_t missing = 1;     ///< how much
  std::int64_t coming = 0;      ///< how much the rest of the program can bring
  std::vector<Actor> bringers;  ///< workgroups that have not ended, in order
  bool place = false;           ///< waits to be started
};

class Explanation {
 public:
  Explanation(const Interpreter& interpreter, const Memory& memory)
      : interpreter_(interpreter), memory_(memory), program_(interpreter.program()) {}

  Finding explain() {
    collect_needs();
    scan_remaining();
    add_launch_needs();
    if (complete_) {
      for (const Need& need : needs_) {
        if (!need.place && need.coming < need.missing) return missing(need);
      }
    }
    return cycle();
  }

 private:
  const Workgroup& workgroup(Actor actor) const {
    return interpreter_.workgroups()[static_cast<std::size_t>(actor)];
  }

  void collect_needs() {
    for (Actor actor = 0; actor < static_cast<Actor>(interpreter_.workgroups().size()); ++actor) {
      const Workgroup& self = workgroup(actor);
      if (self.state != Workgroup::State::blocked) continue;
      for (const Workgroup::OpenWait& open : self.open_waits) add_semaphore(actor, open);
      if (self.at_barrier) add_barrier(actor, self);
      if (self.open_waits.empty() && self.has_current && self.current.kind == PrimitiveKind::move)
        add_packet(actor, self);
    }
  }

  void add_semaphore(Actor actor, const Workgroup::OpenWait& open) {
    const SemaphoreState& semaphore = interpreter_.semaphore(open.semaphore);
    const std::int64_t present =
        open.wait.consume ? semaphore.present() : semaphore.running_total();
    Need need;
    need.waiter = actor;
    need.op = open.op;
    need.missing = open.wait.value - present;
    need.text = "waits for " + describe(program_, open.semaphore) + " to reach " +
                std::to_string(open.wait.value) + "; it stands at " + std::to_string(present);
    by_semaphore_[open.semaphore].push_back(needs_.size());
    needs_.push_back(std::move(need));
  }

  void add_barrier(Actor actor, const Workgroup& self) {
    const auto& arrived = interpreter_.barrier(self.rank, self.current.barrier_id).arrived;
    Need need;
    need.waiter = actor;
    need.op = self.current.op;
    need.missing = self.current.workgroups - static_cast<std::int64_t>(arrived.size());
    need.text = "waits at barrier " + std::to_string(self.current.barrier_id) + " of rank " +
                std::to_string(self.rank) + ", where " + std::to_string(arrived.size()) + " of " +
                std::to_string(self.current.workgroups) + " workgroups have arrived";
    by_barrier_[{self.rank, self.current.barrier_id}].push_back(needs_.size());
    needs_.push_back(std::move(need));
  }

  void add_packet(Actor actor, const Workgroup& self) {
    for (const Span& span : self.current.src) {
      if (!is_packet(span.access) || span.rank < 0) continue;
      const std::int64_t begin = data_offset(span.offset, span.access);
      Region region{span.rank, span.buffer, span.access, begin, begin + self.current.bytes};
      const auto byte = memory_.first_without(region, span.flag);
      if (!byte) continue;
      region.begin = *byte;
      region.end = *byte + 1;
      Need need;
      need.waiter = actor;
      need.op = self.current.op;
      need.text = "waits for the packet with flag " + std::to_string(span.flag) + " at byte " +
                  std::to_string(program::memory_offset(*byte, span.access)) + " of " +
                  program_.buffers[static_cast<std::size_t>(span.buffer)].name + " of rank " +
                  std::to_string(span.rank);
      packets_.push_back({region, span.flag, needs_.size()});
      needs_.push_back(std::move(need));
      return;
    }
  }

  /// Walks what is left of every workgroup, without running it.
  void scan_remaining() {
    constexpr std::int64_t kMost = 2'000'000;
    std::int64_t left = kMost;
    for (Actor actor = 0; actor < static_cast<Actor>(interpreter_.workgroups().size()); ++actor) {
      const Workgroup& self = workgroup(actor);
      if (self.state == Workgroup::State::ended) continue;
      if (self.has_current) brings(actor, self.current, self.signalled, self.at_barrier);
      program::Cursor cursor = self.cursor;
      Primitive primitive;
      while (left > 0 && cursor.next(primitive)) {
        --left;
        brings(actor, primitive, {}, false);
      }
    }
    complete_ = left > 0;
  }

  void brings(Actor actor, const Primitive& primitive, const std::vector<bool>& signalled,
              bool arrived) {
    if (primitive.kind == PrimitiveKind::signal || primitive.kind == PrimitiveKind::post) {
      for (std::size_t i = 0; i < primitive.semaphores.size(); ++i) {
        if (i < signalled.size() && signalled[i]) continue;
        const auto found = by_semaphore_.find(primitive.semaphores[i]);
        if (found == by_semaphore_.end()) continue;
        for (std::size_t need : found->second) bring(needs_[need], actor, primitive.values[i]);
      }
    }
    if (primitive.kind == PrimitiveKind::barrier && !arrived) {
      const auto found = by_barrier_.find({workgroup(actor).rank, primitive.barrier_id});
      if (found == by_barrier_.end()) return;
      for (std::size_t need : found->second) {
        // A workgroup that stands at the barrier itself cannot arrive a second time before it
        // opens.
        if (needs_[need].waiter != actor && !workgroup(actor).at_barrier)
          bring(needs_[need], actor, 1);
      }
    }
    for (const Span& span : primitive.dst) {
      if (is_packet(span.access)) bring_packets(actor, primitive, span);
    }
  }

  void bring_packets(Actor actor, const Primitive& primitive, const Span& span) {
    const std::int64_t begin = data_offset(span.offset, span.access);
    for (const Packet& packet : packets_) {
      const bool multicast = span.access == program::Access::multicast_packet;
      const bool there = (multicast || span.rank == packet.where.rank) &&
                         span.buffer == packet.where.buffer && span.flag == packet.flag &&
                         begin <= packet.where.begin &&
                         packet.where.begin < begin + primitive.bytes;
      if (there) bring(needs_[packet.need], actor, 1);
    }
  }

  static void bring(Need& need, Actor actor, std::int64_t amount) {
    need.coming += amount;
    if (need.bringers.empty() || need.bringers.back() != actor) need.bringers.push_back(actor);
  }

  /// Workgroups that have not started wait for those of their rank that are running.
  void add_launch_needs() {
    for (Actor actor = 0; actor < static_cast<Actor>(interpreter_.workgroups().size()); ++actor) {
      const Workgroup& self = workgroup(actor);
      if (self.state != Workgroup::State::unborn) continue;
      Need need;
      need.waiter = actor;
      need.place = true;
      need.text = interpreter_.waits_for_place(self)
                      ? "has not started: there is no room on the compute units of rank " +
                            std::to_string(self.rank) + " until another workgroup ends"
                      : "has not started: its kernel comes after one that has not ended, or after "
                        "an event that nobody records";
      for (Actor other = 0; other < static_cast<Actor>(interpreter_.workgroups().size()); ++other) {
        const Workgroup& running = workgroup(other);
        if (running.rank == self.rank && running.state == Workgroup::State::blocked)
          need.bringers.push_back(other);
      }
      needs_.push_back(std::move(need));
    }
  }

  Witness step(const Need& need, const std::string& more) const {
    Witness result =
        witness(program_, workgroup(need.waiter), need.place ? -1 : need.op, need.text + more);
    return result;
  }

  Finding missing(const Need& need) const {
    Finding finding;
    const std::string nobody = need.coming == 0 ? "nobody brings it any more"
                                                : "only " + std::to_string(need.coming) +
                                                      " of the " + std::to_string(need.missing) +
                                                      " that are missing can still come";
    finding.summary = "a wait that cannot end: " + describe(workgroup(need.waiter)) + " " +
                      need.text + ", and " + nobody;
    finding.steps.push_back(step(need, ", and " + nobody));
    for (const Need& other : needs_) {
      constexpr std::size_t kShown = 4;
      if (finding.steps.size() >= kShown) break;
      const bool behind = std::find(other.bringers.begin(), other.bringers.end(), need.waiter) !=
                          other.bringers.end();
      if (behind && other.waiter != need.waiter) finding.steps.push_back(step(other, ""));
    }
    return finding;
  }

  /// Follows from each workgroup the first one that can bring what it waits for, until one comes
  /// twice.
  Finding cycle() const {
    std::map<Actor, const Need*> need_of;
    for (const Need& need : needs_) {
      const bool useful = !need.bringers.empty();
      if (useful) need_of.try_emplace(need.waiter, &need);
    }
    Finding finding;
    std::vector<const Need*> path;
    std::set<Actor> seen;
    for (auto at = need_of.begin(); at != need_of.end() && finding.steps.empty(); ++at) {
      path.clear();
      seen.clear();
      Actor actor = at->first;
      while (need_of.count(actor) > 0 && seen.insert(actor).second) {
        path.push_back(need_of.at(actor));
        actor = path.back()->bringers.front();
      }
      if (need_of.count(actor) == 0) continue;
      const auto begin = std::find_if(path.begin(), path.end(),
                                      [&](const Need* need) { return need->waiter == actor; });
      for (auto need = begin; need != path.end(); ++need) {
        const Actor next = (*need)->bringers.front();
        finding.steps.push_back(
            step(**need, (*need)->place
                             ? ", for example " + describe(workgroup(next))
                             : ", which " + describe(workgroup(next)) + " would bring later"));
      }
    }
    finding.summary = "a wait that cannot end: " + std::to_string(finding.steps.size()) +
                      (finding.steps.size() == 1 ? " workgroup waits for itself"
                                                 : " workgroups wait for each other");
    const bool place =
        std::any_of(finding.steps.begin(), finding.steps.end(),
                    [](const Witness& witness) { return witness.operation.empty(); });
    if (place)
      finding.summary +=
          "; not all workgroups fit on the GPU at once, or kernels wait for later ones";
    if (finding.steps.empty())
      finding.summary = "a wait that cannot end: a stream waits for an event that nobody records";
    return finding;
  }

  struct Packet {
    Region where;
    std::int64_t flag = 0;
    std::size_t need = 0;
  };

  const Interpreter& interpreter_;
  const Memory& memory_;
  const program::Program& program_;
  std::vector<Need> needs_;
  std::map<SemaphoreId, std::vector<std::size_t>> by_semaphore_;
  std::map<std::pair<int, std::int32_t>, std::vector<std::size_t>> by_barrier_;
  std::vector<Packet> packets_;
  bool complete_ = true;
};

}  // namespace

Finding explain_deadlock(const Interpreter& interpreter, const Memory& memory) {
  return Explanation(interpreter, memory).explain();
}

}  // namespace hemiola::verify
