// What behaves alike in a program on a machine: ranks, workgroups, semaphores and links are put
// into classes, so that one member of each stands for all.
//
// The classes are an equitable partition (colour refinement): two workgroups are alike when they do
// the same and what they touch, signal and wait for is alike; two semaphores, when the same numbers
// of like workgroups signal them in the same operation and iteration; two links, when like pairs of
// ranks use them; two ranks, when they run and receive alike. Whatever follows from the structure
// alone - fair shares, the order of dependencies - is then equal for all members of a class.
#pragma once

#include <cstdint>
#include <vector>

#include "machine/machine.h"
#include "machine/network_routing.h"
#include "program/bind/bound.h"
#include "program/semantics/primitive.h"
#include "sim/result/options.h"
#include "sim/support/index.h"

namespace hemiola::sim {

/// A workgroup of a kernel, or a queue of copies.
struct Agent {
  std::int32_t rank = 0;
  std::int32_t stream = 0, item = 0;
  std::int32_t workgroup = 0;  ///< of the kernel, in order of dispatch; -1: a queue of copies
  std::int32_t body = 0;
  std::int32_t kernel = -1;
  std::int32_t frame = 0;
};

struct AgentClass {
  Agent first;                      ///< member that stands for all; of the first rank of its class
  std::int32_t last_workgroup = 0;  ///< of the same rank: dispatched last
  std::int64_t members = 0;
};

enum class AlikeBy : std::uint8_t {
  time,       ///< addresses do not matter
  addresses,  ///< members also touch the same lines of others' memory, where lines choose paths
  nothing     ///< every rank, workgroup and semaphore is its own class; links may share one
};

class Classes {
 public:
  /// A bound program. Irregular ones, and those that say in their addresses who waits for what
  /// (packets outside FIFOs, multicast), are not folded by time; see folded().
  Classes(const machine::Machine& machine, const program::Bound& program, const Options& options,
          AlikeBy by);

  bool folded() const { return folded_; }
  const std::vector<AgentClass>& agents() const { return classes_; }
  /// Every agent, rank by rank, and the class of each.
  const std::vector<Agent>& members() const { return members_; }
  std::int32_t class_of_member(std::size_t member) const { return class_of_[member]; }

  std::int32_t rank_class(int rank) const { return rank_class_[index(rank)]; }
  int first_rank(std::int32_t rank_class) const { return first_rank_[index(rank_class)]; }
  std::int64_t ranks_in(std::int32_t rank_class) const { return ranks_in_[index(rank_class)]; }
  std::int32_t rank_classes() const { return static_cast<std::int32_t>(first_rank_.size()); }

  /// Class of a semaphore, and how many are in it.
  std::int32_t semaphore_class(program::SemaphoreId id) const {
    return semaphore_class_[index(id.rank) * semaphores_ + index(id.index)];
  }
  std::int64_t semaphores_in(std::int32_t semaphore_class) const {
    return semaphores_in_[index(semaphore_class)];
  }
  std::int32_t semaphore_classes() const {
    return static_cast<std::int32_t>(semaphores_in_.size());
  }

  /// Class of a link that something of the program passes, else -1; and how many are in it.
  std::int32_t link_class(machine::LinkId link) const { return link_class_[index(link)]; }
  std::int64_t links_in(std::int32_t link_class) const { return links_in_[index(link_class)]; }
  std::int32_t link_classes() const { return static_cast<std::int32_t>(links_in_.size()); }

 private:
  Classes() = default;
  friend class Refinement;
  bool folded_ = false;
  std::size_t semaphores_ = 0;  ///< of a rank
  std::vector<AgentClass> classes_;
  std::vector<Agent> members_;
  std::vector<std::int32_t> class_of_;
  std::vector<std::int32_t> rank_class_;
  std::vector<int> first_rank_;
  std::vector<std::int64_t> ranks_in_;
  std::vector<std::int32_t> semaphore_class_;
  std::vector<std::int64_t> semaphores_in_;
  std::vector<std::int32_t> link_class_;
  std::vector<std::int64_t> links_in_;
};

/// The paths of what a rank sends to another: all, or over a network the one that messages take.
struct PathChoice {
  std::int32_t first = 0;
  std::int32_t count = 0;
};
inline PathChoice paths_of(const machine::Machine& machine, const machine::Routes& routes, int from,
                           int to) {
  const std::int32_t path = machine::path_of_messages(machine, routes, from, to);
  if (path >= 0) return {path, 1};
  return {0, routes.count};
}

/// The other direction of every link; a link without one is its own.
std::vector<machine::LinkId> reverse_links(const machine::Machine& machine);

}  // namespace hemiola::sim
