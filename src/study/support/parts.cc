#include "study/support/parts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "core/units.h"
#include "study/support/digest.h"

namespace hemiola::study {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr auto kTouchEvery = std::chrono::seconds(5);
constexpr auto kAbandonedAfter = std::chrono::seconds(30);
constexpr auto kLookAgainAfter = std::chrono::milliseconds(100);

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "host";
}

[[noreturn]] void fail_on(const std::string& file, const std::string& what) {
  throw Failure(fmt::format("{}: {}", what, std::strerror(errno)), {.file = file});
}

/// The whole file; nothing where it is not there.
std::optional<std::string> content_of(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return std::nullopt;
  std::ostringstream all;
  all << stream.rdbuf();
  return std::move(all).str();
}

int number_of(const char* variable, const char* value) {
  const auto number = parse_count(value);
  if (!number || *number < 0 || *number > 1'000'000)
    throw Failure(fmt::format("{}={} is no number of processes", variable, value), {},
                  "whoever starts the processes sets this variable");
  return static_cast<int>(*number);
}

}  // namespace

Team team_of_environment() {
  struct Variables {
    const char* rank;
    const char* size;
    const char* first;  ///< what the ranks begin with; null: 0
  };
  // An array goes before srun: each of its tasks has SLURM_PROCID 0 of 1. Open MPI goes before
  // Slurm, which may have started it.
  constexpr Variables kKnown[] = {
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", nullptr},
      {"PMI_RANK", "PMI_SIZE", nullptr},
      {"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN"},
      {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", nullptr}};
  for (const Variables& one : kKnown) {
    const char* rank = std::getenv(one.rank);
    const char* size = std::getenv(one.size);
    if (rank == nullptr || size == nullptr) continue;
    const char* first = one.first == nullptr ? nullptr : std::getenv(one.first);
    Team team{.rank = number_of(one.rank, rank), .size = number_of(one.size, size)};
    if (first != nullptr) team.rank -= number_of(one.first, first);
    if (team.size > 1) team.said_by = one.size;
    if (team.size > 1) return team;
  }
  return {};
}

Parts::Parts(std::string folder, std::string_view head)
    : folder_(std::move(folder)),
      self_(fmt::format("{} {} {}", host_name(), getpid(), fmt::ptr(this))) {
  std::error_code problem;
  fs::create_directories(folder_, problem);
  if (!fs::is_directory(folder_)) throw Failure("is no folder", {.file = folder_});
  check_head(head);
  toucher_ = std::thread([this] { touch_claims(); });
}

Parts::~Parts() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  toucher_.join();
  for (const std::string& file : claimed_) ::unlink(file.c_str());
}

/// The first process writes it; two that begin together write the same.
void Parts::check_head(std::string_view head) {
  const std::string file = folder_ + "/head";
  if (!content_of(file)) write_whole(file, head);
  if (content_of(file) != head)
    throw Failure("holds parts of something else, or of another version of Hemiola",
                  {.file = folder_}, "remove this folder, or give another one");
}

bool Parts::is_there() const {
  return ::access(folder_.c_str(), F_OK) == 0;
}

std::string Parts::path(const std::string& task, const char* ending) const {
  return folder_ + '/' + task + ending;
}

bool Parts::is_made(const std::string& task) const {
  return ::access(path(task, ".part").c_str(), F_OK) == 0;
}

std::optional<std::string> Parts::part(const std::string& task) const {
  return content_of(path(task, ".part"));
}

std::string Parts::part_of_made(const std::string& task) const {
  auto found = part(task);
  if (!found) throw Failure("has lost the part " + task, {.file = folder_}, "run it again");
  return *std::move(found);
}

bool Parts::create_claim(const std::string& file) const {
  const int descriptor = ::open(file.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    if (errno == EEXIST || !is_there()) return false;
    fail_on(file, "cannot be written");
  }
  const bool written =
      ::write(descriptor, self_.data(), self_.size()) == static_cast<ssize_t>(self_.size());
  if (::close(descriptor) != 0 || !written) fail_on(file, "cannot be written");
  return true;
}

/// Whether nobody makes what `file` claims any more.
bool Parts::is_abandoned(const std::string& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return false;  // given back, or made, just now
  const std::string owner = content_of(file).value_or("");
  const std::size_t space = owner.find(' ');
  if (space != std::string::npos && owner.substr(0, space) == host_name()) {
    const std::size_t end = owner.find(' ', space + 1);
    const auto process = parse_count(owner.substr(space + 1, end - space - 1));
    if (process && ::kill(static_cast<pid_t>(*process), 0) != 0 && errno == ESRCH) return true;
  }
  const std::string stamp =
      fmt::format("{} {}.{}", owner, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
  const std::lock_guard lock(mutex_);
  Seen& seen = seen_[file];
  if (seen.stamp != stamp) seen = {stamp, Clock::now()};
  return Clock::now() - seen.since > kAbandonedAfter;
}

bool Parts::claim(const std::string& task) {
  const std::string file = path(task, ".claim");
  bool is_ours = create_claim(file);
  if (!is_ours && is_abandoned(file)) {
    // Of several that take it over, rename() lets one through.
    const std::string taken = fmt::format("{}.{}", file, digest(self_));
    is_ours = ::rename(file.c_str(), taken.c_str()) == 0 && create_claim(file);
    ::unlink(taken.c_str());
  }
  if (!is_ours) return false;
  // Whoever had it before may have made it just now.
  if (is_made(task)) {
    ::unlink(file.c_str());
    return false;
  }
  const std::lock_guard lock(mutex_);
  claimed_.insert(file);
  return true;
}

/// Others see all of it or nothing. Not where all parts are joined already: then it is made a
/// second time.
void Parts::write_whole(const std::string& file, std::string_view content) const {
  const std::string temporary = fmt::format("{}.{}", file, digest(self_));
  std::ofstream stream(temporary, std::ios::binary);
  stream << content;
  stream.close();
  const bool is_written = stream && ::rename(temporary.c_str(), file.c_str()) == 0;
  if (!is_written && is_there()) fail_on(file, "cannot be written");
}

void Parts::put(const std::string& task, std::string_view part) {
  write_whole(path(task, ".part"), part);
  const std::string claim = path(task, ".claim");
  const std::lock_guard lock(mutex_);
  if (claimed_.erase(claim) > 0) ::unlink(claim.c_str());
}

void Parts::join(const std::vector<std::string>& tasks,
                 const std::function<void(const std::string& part)>& take,
                 const std::atomic<bool>* stop) {
  const std::string joining = "joining";
  const auto check_stop = [stop] {
    if (stop != nullptr && stop->load()) throw Interrupted();
  };
  check_stop();  // else all are made
  while (is_there() && !claim(joining)) {
    check_stop();
    std::this_thread::sleep_for(kLookAgainAfter);
  }
  if (!is_there()) return;
  for (const std::string& task : tasks) take(part_of_made(task));
  {
    const std::lock_guard lock(mutex_);
    claimed_.clear();
  }
  // Renamed first: a process that begins now finds all of it or nothing.
  const std::string away = fmt::format("{}.{}", folder_, digest(self_));
  if (::rename(folder_.c_str(), away.c_str()) != 0) {
    if (!is_there()) return;  // taken over, as if this process were gone
    fail_on(folder_, "cannot be removed");
  }
  std::error_code problem;
  fs::remove_all(away, problem);
  if (problem) throw Failure("cannot be removed: " + problem.message(), {.file = away});
}

void Parts::touch_claims() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kTouchEvery, [&] { return ends_; }))
    for (const std::string& file : claimed_) ::utimensat(AT_FDCWD, file.c_str(), nullptr, 0);
}

SharedTasks::SharedTasks(Parts& parts, std::vector<std::string> tasks)
    : parts_(parts), tasks_(std::move(tasks)) {}

/// The task, if it is ours now. `is_left`: another process has it.
bool SharedTasks::take(std::size_t task, bool& is_left) {
  const bool is_made = parts_.is_made(tasks_[task]);
  const bool is_ours = !is_made && parts_.claim(tasks_[task]);
  is_left = !is_made && !is_ours;
  if (!is_left) ++gone_;
  return is_ours;
}

std::optional<std::size_t> SharedTasks::next(const std::atomic<bool>& halt) {
  while (!halt && parts_.is_there()) {
    {
      const std::lock_guard lock(mutex_);
      bool is_left = false;
      while (first_ < tasks_.size()) {
        const std::size_t task = first_++;
        if (take(task, is_left)) return task;
        if (is_left) of_others_.push_back(task);
      }
      for (auto task = of_others_.begin(); task != of_others_.end();) {
        const std::size_t found = *task;
        const bool is_ours = take(found, is_left);
        task = is_left ? task + 1 : of_others_.erase(task);
        if (is_ours) return found;
      }
      if (of_others_.empty()) return std::nullopt;
    }
    std::this_thread::sleep_for(kLookAgainAfter);
  }
  return std::nullopt;
}

void make_together(Parts& parts, int threads, const std::vector<std::string>& tasks,
                   const std::function<std::string(std::size_t)>& make,
                   const std::atomic<bool>* stop) {
  SharedTasks shared(parts, tasks);
  struct Nothing {};
  TaskPool<Nothing> pool(threads, tasks.size(), &shared);
  pool.run(
      [&](std::size_t, std::size_t task) {
        parts.put(tasks[task], make(task));
        return Nothing{};
      },
      [](const std::vector<Nothing>&, const std::vector<std::size_t>&) {}, stop);
  if (stop != nullptr && stop->load()) throw Interrupted();
}

}  // namespace hemiola::study
