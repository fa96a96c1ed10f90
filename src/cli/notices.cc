#include "cli/notices.h"

#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <utility>

namespace hemiola::cli {

void Notices::show(const Diagnostic& diagnostic) {
  if (quiet_) return;
  const std::string text = render(diagnostic);
  if (shown_.insert(text).second) std::cerr << text << '\n';
}

void Notices::show(const Diagnostics& diagnostics) {
  for (const Diagnostic& diagnostic : diagnostics.items()) show(diagnostic);
}

void Notices::note(const std::string& message, const std::string& hint) {
  show(Diagnostic{Severity::note, message, {}, hint});
}

Progress::Progress(bool enabled) {
  if (enabled && ::isatty(STDERR_FILENO)) watcher_ = std::thread([this] { watch(); });
}

Progress::~Progress() {
  if (!watcher_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  watcher_.join();
}

void Progress::doing(std::string what) {
  const std::lock_guard lock(mutex_);
  what_ = std::move(what);
}

void Progress::watch() {
  constexpr auto kQuietTime = std::chrono::seconds(1);
  constexpr auto kInterval = std::chrono::milliseconds(250);
  constexpr const char* kClearLine = "\r\033[K";
  bool printed = false;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kInterval, [this] { return stopping_; })) {
    const auto elapsed = std::chrono::steady_clock::now() - start_;
    if (elapsed < kQuietTime || what_.empty()) continue;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(elapsed).count();
    std::fprintf(stderr, "%s%s (%lld s)", kClearLine, what_.c_str(),
                 static_cast<long long>(seconds));
    printed = true;
  }
  if (printed) std::fputs(kClearLine, stderr);
}

}  // namespace hemiola::cli
