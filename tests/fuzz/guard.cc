#include "guard.h"

#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HEMIOLA_ADDRESS_SANITIZER 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define HEMIOLA_ADDRESS_SANITIZER 1
#endif

namespace hemiola::fuzz {
namespace {

/// Of CPU time of one execution: on a busy machine others take the rest. The slowest, damaged
/// kernels with all plans, take some seconds, since reading them back is given so many steps.
constexpr time_t kMostSeconds = 40;
constexpr char kCrashFile[] = "fuzz-crash";

#ifdef HEMIOLA_ADDRESS_SANITIZER
constexpr bool kHasSanitizer = true;
#else
constexpr bool kHasSanitizer = false;
#endif

// What is being read, for the handler of signals.
const char* current_text = nullptr;
std::size_t current_size = 0;

void keep_text(int signal_number) {
  if (std::FILE* file = std::fopen(kCrashFile, "wb")) {
    std::fwrite(current_text, 1, current_size, file);
    std::fclose(file);
  }
  std::fprintf(
      stderr, "%s; the text is in ./%s\n",
      signal_number == SIGPROF ? "an execution without end" : "the reader ended the process",
      kCrashFile);
  std::_Exit(1);
}

}  // namespace

void guard_process() {
  // A stack that is full has no room for the handler.
  static char spare[1 << 16];
  stack_t stack{};
  stack.ss_sp = spare;
  stack.ss_size = sizeof spare;
  sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_handler = keep_text;
  action.sa_flags = SA_ONSTACK;
  std::vector<int> signals{SIGABRT, SIGPROF};
  // AddressSanitizer says more of the others, and ends in an abort.
  if (!kHasSanitizer) signals.insert(signals.end(), {SIGSEGV, SIGBUS, SIGFPE, SIGILL});
  for (const int number : signals) sigaction(number, &action, nullptr);
}

bool guarded(const std::string& text, const std::function<bool()>& read) {
  current_text = text.data();
  current_size = text.size();
  const itimerval limit{{0, 0}, {kMostSeconds, 0}}, none{};
  setitimer(ITIMER_PROF, &limit, nullptr);
  const bool made = read();
  setitimer(ITIMER_PROF, &none, nullptr);
  return made;
}

}  // namespace hemiola::fuzz
