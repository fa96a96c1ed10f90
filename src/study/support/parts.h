// Tasks that several processes share out among themselves: of one host, or of hosts that see one
// file system (docs/scale.md). Who has what is a matter of files in a folder, nothing else: any
// number of processes may begin, end and be killed at any time.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "study/support/task_pool.h"

namespace hemiola::study {

/// Of which processes this one is, as whoever started them says in the environment: Open MPI, PMI
/// (MPICH, Intel MPI), a Slurm array, srun.
struct Team {
  int rank = 0;  ///< from 0
  int size = 1;
  std::string said_by;  ///< a variable: "OMPI_COMM_WORLD_SIZE"; empty: nobody started several
};
/// Failure for variables that are no numbers.
Team team_of_environment();

/// A folder of parts: for each task that is made a file with what it brought, for each that is
/// being made a claim. What a task brings depends on the task alone, so that one that is made twice
/// does no harm: claims save work and decide nothing.
///
/// Of the file system it is assumed that O_EXCL creates a file once and that rename() replaces one
/// at once, for all hosts: as local ones, NFS from version 3 on, Lustre, GPFS and BeeGFS do.
///
/// A claim is touched every few seconds. One that has not been touched for half a minute, by the
/// watch of who looks, is of a process that is gone, and may be taken over; so may that of a
/// process of this host that is not there any more, at once.
///
/// Thread-safe. Every member throws Failure with the file that cannot be read or written.
class Parts {
 public:
  /// Makes the folder where there is none. `head`: all that the parts depend on. Failure for a
  /// folder with parts of something else.
  Parts(std::string folder, std::string_view head);
  /// Gives back what was claimed and not made.
  ~Parts();
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  /// Whether the folder is: join() removes it.
  bool is_there() const;

  /// Tasks are words of letters, digits, '-' and '.'.
  bool is_made(const std::string& task) const;
  /// What it brought; nothing: it is not made yet.
  std::optional<std::string> part(const std::string& task) const;
  /// Of one that is made. Failure: somebody has removed it.
  std::string part_of_made(const std::string& task) const;
  /// Whether the task is this process's now: nobody else has it.
  bool claim(const std::string& task);
  /// The task is made, and no longer claimed.
  void put(const std::string& task, std::string_view part);

  /// Once all of these are made: hands their parts on, in order, and removes the folder. One
  /// process does so, all others wait until it is done, or do it in its place if it is gone.
  /// Interrupted when `stop` (null: never) is set. `take` may see a part again that it has seen in
  /// a process that was killed.
  void join(const std::vector<std::string>& tasks,
            const std::function<void(const std::string& part)>& take,
            const std::atomic<bool>* stop);

 private:
  struct Seen {
    std::string stamp;  ///< changes when the claim is touched
    std::chrono::steady_clock::time_point since;
  };

  std::string path(const std::string& task, const char* ending) const;
  void check_head(std::string_view head);
  void write_whole(const std::string& file, std::string_view content) const;
  bool create_claim(const std::string& file) const;
  bool is_abandoned(const std::string& file);
  void touch_claims();

  std::string folder_;
  std::string self_;  ///< host, number of this process, and what is unique in it
  std::mutex mutex_;
  std::set<std::string> claimed_;     ///< files
  std::map<std::string, Seen> seen_;  ///< claims of others, by file
  std::condition_variable changed_;
  bool ends_ = false;
  std::thread toucher_;
};

/// The tasks of a pool, shared out among processes. Each is handed out once here: claimed, to be
/// made and put; those that others make are not handed out. The last calls wait until all of them
/// are made, wherever, and hand out those whose process is gone. Once the folder is gone all are.
class SharedTasks : public TaskSource {
 public:
  /// `parts` outlives this.
  SharedTasks(Parts& parts, std::vector<std::string> tasks);

  std::optional<std::size_t> next(const std::atomic<bool>& halt) override;
  const std::string& name(std::size_t task) const { return tasks_[task]; }
  /// How many are made, or under way here, as far as was seen.
  std::size_t gone() const { return gone_; }

 private:
  bool take(std::size_t task, bool& is_left);

  Parts& parts_;
  std::vector<std::string> tasks_;
  std::mutex mutex_;
  std::size_t first_ = 0;               ///< that was not looked at yet
  std::vector<std::size_t> of_others_;  ///< that another process had when they were looked at
  std::atomic<std::size_t> gone_{0};
};

/// Makes those of the tasks that are not made yet, in so many threads and together with all other
/// processes. Afterwards each of them has its part. Interrupted when `stop` (null: never) is set.
void make_together(Parts& parts, int threads, const std::vector<std::string>& tasks,
                   const std::function<std::string(std::size_t)>& make,
                   const std::atomic<bool>* stop);

}  // namespace hemiola::study
