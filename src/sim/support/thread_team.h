// Threads that go through the phases of a computation together.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

namespace hemiola::sim {

/// The cores that this process may use.
int available_cores();

/// The caller is one of them. Phases may be short (tens of microseconds): who waits spins for a
/// while before it sleeps. So there are never more threads than cores: one that spins would keep
/// the one that it waits for from running. A thread then does the parts of several.
class ThreadTeam {
 public:
  explicit ThreadTeam(int size, int cores = available_cores());
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;
  ~ThreadTeam();

  int size() const { return static_cast<int>(thrown_.size()); }
  /// Calls work(k) for every k below size(), at once as far as there are threads (0: here), and
  /// returns when all have ended. Throws what the call with the smallest k has thrown.
  void run(const std::function<void(int)>& work);

 private:
  void serve(int number);
  void call(int number);  ///< the parts of this thread

  std::vector<std::thread> threads_;
  std::vector<std::exception_ptr> thrown_;
  const std::function<void(int)>* work_ = nullptr;
  std::atomic<std::uint32_t> phase_ = 0;
  std::atomic<std::uint32_t> at_work_ = 0;  ///< threads that have not ended the phase
  bool over_ = false;
  int spins_ = 1;  ///< of the caller
};

}  // namespace hemiola::sim
