#include "cli/interrupt.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string_view>

namespace hemiola::cli {
namespace {

// A signal handler reaches nothing but what is static.
std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void on_interrupt(int) {
  interrupted.store(true, std::memory_order_relaxed);
  if (::isatty(STDERR_FILENO) == 0) return;
  constexpr std::string_view kText = "\nstopping; Ctrl-C again ends it at once\n";
  // Nobody could be told that it failed.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kText.data(), kText.size());
}

}  // namespace

const std::atomic<bool>& catch_interrupts() {
  struct sigaction before {};
  ::sigaction(SIGINT, nullptr, &before);
  // What was started with SIGINT ignored (`hemiola ... &` in a script) goes on ignoring it.
  if (before.sa_handler != SIG_IGN && !interrupted.load()) {
    struct sigaction action {};
    action.sa_handler = on_interrupt;
    action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
    sigemptyset(&action.sa_mask);
    ::sigaction(SIGINT, &action, nullptr);
  }
  return interrupted;
}

void end_interrupted() {
  std::signal(SIGINT, SIG_DFL);
  std::raise(SIGINT);
  constexpr int kAsShellsSayIt = 128 + SIGINT;
  std::_Exit(kAsShellsSayIt);  // where SIGINT is blocked
}

}  // namespace hemiola::cli
