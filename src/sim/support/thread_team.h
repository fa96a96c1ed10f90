// Threads that go through the phases of a computation together.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

namespace hemiola::sim {

/// The caller is one of them. Phases may be short (tens of microseconds): who waits spins for a
/// while before it sleeps.
class ThreadTeam {
 public:
  explicit ThreadTeam(int size);
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;
  ~ThreadTeam();

  int size() const { return static_cast<int>(threads_.size()) + 1; }
  /// Calls work(k) for every k below size(), each on a thread of its own (0: here), and returns
  /// when all have ended. Throws what the call with the smallest k has thrown.
  void run(const std::function<void(int)>& work);

 private:
  void serve(int number);
  void call(int number);

  std::vector<std::thread> threads_;
  std::vector<std::exception_ptr> thrown_;
  const std::function<void(int)>* work_ = nullptr;
  std::atomic<std::uint32_t> phase_ = 0;
  std::atomic<std::uint32_t> at_work_ = 0;  ///< threads that have not ended the phase
  bool over_ = false;
};

}  // namespace hemiola::sim
