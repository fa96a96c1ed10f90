#include "cli/interrupt.h"

#include <unistd.h>

#include <csignal>
#include <string_view>

namespace hemiola::cli {
namespace {

// A signal handler reaches nothing but what is static.
std::atomic<bool> interrupted{false};
std::atomic<int> received{SIGINT};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

extern "C" void on_interrupt(int signal) {
  received.store(signal, std::memory_order_relaxed);
  interrupted.store(true, std::memory_order_relaxed);
  if (::isatty(STDERR_FILENO) == 0) return;
  constexpr std::string_view kText = "\nstopping; Ctrl-C again ends it at once\n";
  // Nobody could be told that it failed.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kText.data(), kText.size());
}

/// What was started with a signal ignored (`hemiola ... &` in a script) goes on ignoring it.
void catch_signal(int signal) {
  struct sigaction before {};
  ::sigaction(signal, nullptr, &before);
  if (before.sa_handler == SIG_IGN || interrupted.load()) return;
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

const std::atomic<bool>& catch_interrupts() {
  catch_signal(SIGINT);
  return interrupted;
}

void catch_termination() {
  catch_signal(SIGTERM);
}

void end_interrupted() {
  const int signal = received.load();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
  constexpr int kAsShellsSayIt = 128;
  std::_Exit(kAsShellsSayIt + signal);  // where it is blocked
}

}  // namespace hemiola::cli
