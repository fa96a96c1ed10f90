// Jobs: several operations on one machine, at once or one after the other. A job is a directed
// acyclic graph of launches; link() makes it a Bound, which is checked and simulated like a program
// that is alone. docs/jobs.md is the manual.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "program/bind/bound.h"
#include "program/program.h"

namespace hemiola::program {

/// One call of a program on some ranks of the machine. What a program says of itself (collective,
/// postcondition) and the size, data type and operator that it is bound to hold for the launch.
struct Launch {
  std::string name;  ///< unique in the job
  std::shared_ptr<const Program> program;
  BindOptions options{};
  /// Ranks of the machine; the program's rank i is ranks[i]. With `alone` the program has one rank,
  /// and each of these runs it by itself (a product, a copy in own memory).
  std::vector<int> ranks;
  bool alone = false;
  /// Launches of one stream of a rank run in their order. Streams have a name on every rank.
  std::string stream = "main";
  /// Indices of launches that have to be over before, each on the ranks that both have, of which
  /// there is at least one: only a communication lets one rank wait for another.
  std::vector<std::int32_t> after{};
  Time at{};  ///< not before so long after the start; 0: at once
  /// Launches on the same ranks (in the same order) with the same communicator share scratch
  /// memory, FIFOs and semaphores, as calls of a library on one communicator do, where their
  /// programs lay them out alike and each is over before the next begins; what may be under way
  /// together has its own. Counters go on from call to call.
  std::string communicator{};
  /// Buffers of the program (by name) that are memory of the job, which launches with the same name
  /// share. All other inputs and outputs are a launch's own.
  std::vector<std::pair<std::string, std::string>> memory{};
  SourceLocation where{};  ///< in its file, for messages
};

struct Job {
  std::string name;
  std::string source;                              ///< file
  std::map<std::string, StreamOptions> streams{};  ///< those that are not as by default
  std::vector<Launch> launches;
};

/// What several launches of a job have in common: it is bound, and proven, once.
struct JobPart {
  Bound bound;  ///< on a machine of the launch's ranks alone
  std::vector<std::int32_t> launches;
  std::int32_t first_body = 0;  ///< of its own among those of the whole: link() says it
};
/// By launch, the part that it is of.
std::vector<std::int32_t> part_of_launches(const std::vector<JobPart>& parts, std::size_t launches);

/// Who may be under way when. Indices are those of Job::launches.
class JobOrder {
 public:
  /// Failure with exit code 4: launches that wait for each other, in a circle that is named. Exit
  /// code 2: ranks that are not there or are named twice, as many ranks as the program does not
  /// have, launches after others on no common rank, names that come twice.
  JobOrder(const Job& job, int ranks);

  /// An order in which every launch comes after those that it waits for.
  const std::vector<std::int32_t>& sequence() const { return sequence_; }
  /// Whether `first` is over before `second` begins, on a rank that both have.
  bool is_before_on(int rank, std::int32_t first, std::int32_t second) const;
  /// Launches of a rank, in the sequence.
  const std::vector<std::int32_t>& of_rank(int rank) const { return of_rank_[index(rank)]; }
  /// Names of a rank's streams, in the order of their first launches.
  const std::vector<std::string>& streams_of(int rank) const { return streams_[index(rank)]; }

 private:
  struct Place {                       ///< of a launch on one of its ranks
    std::int32_t stream = 0;           ///< of streams_of(rank)
    std::int32_t position = 0;         ///< in it, from 1 on
    std::vector<std::int32_t> before;  ///< by stream: the last position that is over before it
  };
  void check(const Job& job, int ranks) const;
  void sort(const Job& job, int ranks);
  void place(const Job& job, int ranks);
  const Place& place_of(std::int32_t launch, int rank) const;

  std::vector<std::int32_t> sequence_;
  std::vector<std::vector<std::int32_t>> of_rank_;
  std::vector<std::vector<std::string>> streams_;
  std::vector<std::vector<std::pair<int, Place>>> places_;  ///< by launch; sorted by rank
};

/// The distinct programs of a job, each bound on the ranks of one of its launches. Failure as
/// bind(), with the launch's place.
std::vector<JobPart> parts_of(const Job& job, const machine::SharedMachine& machine);

/// All launches on all ranks of the machine. Failure as JobOrder and parts_of(), and for a named
/// memory that a program does not have. Memory and time grow with launches times ranks of each.
Bound link(std::shared_ptr<const Job> job, const machine::SharedMachine& machine);

}  // namespace hemiola::program
