#include "verify/programs/deadlock.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

namespace hemiola::verify {
namespace {

using program::Primitive;
using program::PrimitiveKind;
using program::SemaphoreId;
using program::Span;

/// A workgroup, or its image.
using Who = std::pair<Actor, std::int32_t>;

/// Something that a workgroup waits for, and who can still bring it.
struct Need {
  Actor waiter = 0;
  std::int32_t op = 0;
  /// "waits for channel 3 of rank 1: value 0 of 1", by the waiter's image.
  std::function<std::string(std::int32_t)> text;
  std::int64_t missing = 1;   ///< how much
  std::int64_t coming = 0;    ///< how much the rest of the program can bring
  std::vector<Who> bringers;  ///< workgroups that have not ended, in order
  bool place = false;         ///< waits to be started
};

/// A need whose waiter names something of its image so many periods further.
struct Named {
  std::size_t need = 0;
  std::int32_t image = 0;
};

struct Packet {
  Region where;  ///< at its representative
  std::int64_t flag = 0;
  Named named;
};

class Explanation {
 public:
  Explanation(const Interpreter& interpreter, const Memory& memory)
      : interpreter_(interpreter),
        memory_(memory),
        program_(interpreter.program()),
        fold_(interpreter.fold()) {}

  Finding explain() {
    collect_needs();
    scan_remaining();
    add_launch_needs();
    if (complete_) {
      for (const Need& need : needs_)
        if (!need.place && need.coming < need.missing) return missing(need);
    }
    return cycle();
  }

 private:
  const Workgroup& workgroup(Actor actor) const { return interpreter_.workgroups()[index(actor)]; }

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
    need.text = [this, id = open.semaphore, value = open.wait.value, present](std::int32_t image) {
      return "waits for " + describe(program_, SemaphoreId{fold_.rank(id.rank, image), id.index}) +
             " to reach " + std::to_string(value) + "; it stands at " + std::to_string(present);
    };
    const Fold::Seat seat = fold_.seat(open.semaphore.rank);
    by_semaphore_[{seat.rank, open.semaphore.index}].push_back({needs_.size(), seat.image});
    needs_.push_back(std::move(need));
  }

  void add_barrier(Actor actor, const Workgroup& self) {
    const auto& arrived = interpreter_.barrier(self.rank, self.current.barrier_id).arrived;
    Need need;
    need.waiter = actor;
    need.op = self.current.op;
    need.missing = self.current.workgroups - static_cast<std::int64_t>(arrived.size());
    need.text = [this, &self, count = arrived.size()](std::int32_t image) {
      return "waits at barrier " + std::to_string(self.current.barrier_id) + " of rank " +
             std::to_string(fold_.rank(self.rank, image)) + ", where " + std::to_string(count) +
             " of " + std::to_string(self.current.workgroups) + " workgroups have arrived";
    };
    by_barrier_[{self.rank, self.current.barrier_id}].push_back(needs_.size());
    needs_.push_back(std::move(need));
  }

  void add_packet(Actor actor, const Workgroup& self) {
    for (const Span& span : self.current.src) {
      if (!is_packet(span.access) || span.rank < 0) continue;
      const std::int64_t begin = data_offset(span.offset, span.access);
      Region region{span.rank, span.buffer, span.access, begin, begin + self.current.bytes};
      const std::int32_t image = fold_.seat(region.rank).image;
      fold_.place(region);
      const auto byte = memory_.first_without(region, span.flag);
      if (!byte) continue;
      region.begin = *byte;
      region.end = *byte + 1;
      Need need;
      need.waiter = actor;
      need.op = self.current.op;
      need.text = [this, region, image, flag = span.flag](std::int32_t of) {
        const Region there = fold_.turned(region, (image + of) % fold_.images());
        return "waits for the packet with flag " + std::to_string(flag) + " at byte " +
               std::to_string(program::memory_offset(there.begin, there.access)) + " of " +
               program_.buffers()[index(there.buffer)].name + " of rank " +
               std::to_string(there.rank);
      };
      packets_.push_back({region, span.flag, {needs_.size(), image}});
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
        const Fold::Seat seat = fold_.seat(primitive.semaphores[i].rank);
        const auto found = by_semaphore_.find({seat.rank, primitive.semaphores[i].index});
        if (found == by_semaphore_.end()) continue;
        for (const Named& named : found->second)
          bring(named, {actor, seat.image}, primitive.values[i]);
      }
    }
    if (primitive.kind == PrimitiveKind::barrier && !arrived) {
      const auto found = by_barrier_.find({workgroup(actor).rank, primitive.barrier_id});
      if (found == by_barrier_.end()) return;
      for (std::size_t need : found->second) {
        // A workgroup that stands at the barrier itself cannot arrive a second time before it
        // opens.
        if (needs_[need].waiter != actor && !workgroup(actor).at_barrier)
          bring({need, 0}, {actor, 0}, 1);
      }
    }
    for (const Span& span : primitive.dst)
      if (is_packet(span.access)) bring_packets(actor, primitive, span);
  }

  void bring_packets(Actor actor, const Primitive& primitive, const Span& span) {
    const std::int64_t begin = data_offset(span.offset, span.access);
    const bool multicast = span.access == program::Access::multicast_packet;
    Region stored{multicast ? 0 : span.rank, span.buffer, span.access, begin,
                  begin + primitive.bytes};
    const std::int32_t image = fold_.seat(stored.rank).image;
    fold_.place(stored);
    for (const Packet& packet : packets_) {
      const bool there = (multicast || stored.rank == packet.where.rank) &&
                         span.buffer == packet.where.buffer && span.flag == packet.flag &&
                         stored.begin <= packet.where.begin && packet.where.begin < stored.end;
      if (there) bring(packet.named, {actor, image}, 1);
    }
  }

  /// `by` brings it to its own image of what the waiter names: another image of it to the waiter's.
  void bring(const Named& named, Who by, std::int64_t amount) {
    Need& need = needs_[named.need];
    const Who bringer{by.first, (named.image + fold_.back(by.second)) % fold_.images()};
    need.coming += amount;
    if (need.bringers.empty() || need.bringers.back() != bringer) need.bringers.push_back(bringer);
  }

  /// Workgroups that have not started wait for those of their rank that are running.
  void add_launch_needs() {
    for (Actor actor = 0; actor < static_cast<Actor>(interpreter_.workgroups().size()); ++actor) {
      const Workgroup& self = workgroup(actor);
      if (self.state != Workgroup::State::unborn) continue;
      Need need;
      need.waiter = actor;
      need.place = true;
      need.text = [this, &self, place = interpreter_.waits_for_place(self)](std::int32_t image) {
        return place ? "has not started: there is no room on the compute units of rank " +
                           std::to_string(fold_.rank(self.rank, image)) +
                           " until another workgroup ends"
                     : std::string(
                           "has not started: its kernel comes after one that has not "
                           "ended, or after an event that nobody records");
      };
      for (Actor other = 0; other < static_cast<Actor>(interpreter_.workgroups().size()); ++other) {
        const Workgroup& running = workgroup(other);
        if (running.rank == self.rank && running.state == Workgroup::State::blocked)
          need.bringers.push_back({other, 0});
      }
      needs_.push_back(std::move(need));
    }
  }

  Witness step(const Need& need, std::int32_t image, const std::string& more) const {
    return witness(interpreter_, workgroup(need.waiter), image, need.place ? -1 : need.op,
                   need.text(image) + more);
  }
  std::string name(Who who) const {
    return describe(interpreter_, workgroup(who.first), who.second);
  }

  Finding missing(const Need& need) const {
    Finding finding;
    const std::string nobody = need.coming == 0 ? "nobody brings it any more"
                                                : "only " + std::to_string(need.coming) +
                                                      " of the " + std::to_string(need.missing) +
                                                      " that are missing can still come";
    finding.summary = "a wait that cannot end: " + name({need.waiter, 0}) + " " + need.text(0) +
                      ", and " + nobody;
    finding.steps.push_back(step(need, 0, ", and " + nobody));
    for (const Need& other : needs_) {
      constexpr std::size_t kShown = 4;
      if (finding.steps.size() >= kShown) break;
      const auto behind = std::ranges::find(other.bringers, need.waiter, &Who::first);
      if (behind != other.bringers.end() && other.waiter != need.waiter)
        finding.steps.push_back(step(other, fold_.back(behind->second), ""));
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
    const auto next_of = [&](const Who& who) -> Who {
      const Who& next = need_of.at(who.first)->bringers.front();
      return {next.first, (who.second + next.second) % fold_.images()};
    };
    Finding finding;
    std::vector<Who> path;
    std::set<Who> seen;
    for (auto at = need_of.begin(); at != need_of.end() && finding.steps.empty(); ++at) {
      path.clear();
      seen.clear();
      Who who{at->first, 0};
      while (need_of.count(who.first) > 0 && seen.insert(who).second) {
        path.push_back(who);
        who = next_of(who);
      }
      if (need_of.count(who.first) == 0) continue;
      for (auto one = std::ranges::find(path, who); one != path.end(); ++one) {
        const Need& need = *need_of.at(one->first);
        const std::string next = name(next_of(*one));
        finding.steps.push_back(
            step(need, one->second,
                 need.place ? ", for example " + next : ", which " + next + " would bring later"));
      }
    }
    finding.summary = "a wait that cannot end: " + std::to_string(finding.steps.size()) +
                      (finding.steps.size() == 1 ? " workgroup waits for itself"
                                                 : " workgroups wait for each other");
    const bool place = std::ranges::any_of(
        finding.steps, [](const Witness& witness) { return witness.operation.empty(); });
    if (place)
      finding.summary +=
          "; not all workgroups fit on the GPU at once, or kernels wait for later ones";
    if (finding.steps.empty())
      finding.summary = "a wait that cannot end: a stream waits for an event that nobody records";
    return finding;
  }

  const Interpreter& interpreter_;
  const Memory& memory_;
  const program::Bound& program_;
  const Fold& fold_;
  std::vector<Need> needs_;
  std::map<SemaphoreId, std::vector<Named>> by_semaphore_;  ///< at representatives
  std::map<std::pair<int, std::int32_t>, std::vector<std::size_t>> by_barrier_;
  std::vector<Packet> packets_;
  bool complete_ = true;
};

}  // namespace

Finding explain_deadlock(const Interpreter& interpreter, const Memory& memory) {
  return Explanation(interpreter, memory).explain();
}

}  // namespace hemiola::verify
