#include "cli/notices.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <utility>

#include "cli/interrupt.h"
#include "core/lenient.h"
#include "core/units.h"

namespace hemiola::cli {
namespace {

constexpr const char* kClearLine = "\r\033[K";
constexpr double kLeast = 0.01;  // below it an estimate would be a guess

}  // namespace

void Notices::show(const Diagnostic& diagnostic) {
  if (quiet_) return;
  const std::string text = render(diagnostic);
  if (shown_.insert(text).second) std::cerr << text << '\n';
}

void Notices::show(const Diagnostics& diagnostics) {
  if (strict_) refuse_lenient(diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.items()) show(diagnostic);
}

void Notices::show(const study::Notices& notices) {
  Diagnostics warnings;
  for (const Diagnostic& notice : notices)
    if (notice.severity == Severity::warning)
      warnings.warning(notice.message, notice.where, notice.hint);
  if (strict_) refuse_lenient(warnings);
  for (const Diagnostic& notice : notices) show(notice);
}

void Notices::note(const std::string& message, const std::string& hint) {
  show(Diagnostic{Severity::note, message, {}, hint});
}

Progress::Progress(Session& session) : session_(session) {
  session.monitor.stop = &catch_interrupts();
  if (!session.quiet) watcher_ = std::thread([this] { watch(); });
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
  session_.monitor.leave_if_stopping();
  const std::lock_guard lock(mutex_);
  session_.monitor.begin(0);
  session_.doing = std::move(what);
}

void Progress::show(std::string what, double share) {
  const std::lock_guard lock(mutex_);
  session_.doing = std::move(what);
  begin_ = end_ = share;
}

void Progress::part(double begin, double end) {
  const std::lock_guard lock(mutex_);
  begin_ = begin;
  end_ = end;
}

void Progress::parts(std::int64_t done, std::int64_t all, std::string_view kind) {
  const std::lock_guard lock(mutex_);
  session_.parts = {done, all, std::string(kind)};
}

double Progress::done() const {
  return begin_ + (end_ - begin_) * session_.monitor.fraction();
}

std::string Progress::line(std::chrono::steady_clock::duration elapsed) const {
  constexpr int kBar = 20;
  const double seconds = std::chrono::duration<double>(elapsed).count();
  const double share = done();
  std::string text;
  if (share >= kLeast) {
    const int filled = std::clamp(static_cast<int>(share * kBar), 0, kBar);
    text = fmt::format("[{:#<{}}{:-<{}}] {:2.0f} %, {:.0f} s, about {:.0f} s left: ", "", filled,
                       "", kBar - filled, share * 100, seconds, seconds * (1 - share) / share);
  }
  const Session::Parts& parts = session_.parts;
  if (parts.all > 1) text += fmt::format("{}/{} {}, ", parts.done, parts.all, parts.kind);
  text += session_.doing;
  const std::int64_t fs = session_.monitor.time_fs.load(std::memory_order_relaxed);
  if (fs >= 0) text += fmt::format(", {:.1f} us simulated", Time{fs}.us());
  if (share < kLeast) text += fmt::format(" ({:.0f} s)", seconds);
  if (::isatty(STDERR_FILENO) == 0) return text;
  winsize window{};  // a line that wraps could not be taken back
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1;
  return text.substr(0, known ? window.ws_col - 1U : 79U);
}

void Progress::finished(const std::string& part) {
  constexpr auto kQuietTime = std::chrono::seconds(2);
  const std::lock_guard lock(mutex_);
  if (session_.quiet || session_.parts.all < 2) return;
  finished_ += part + '\n';
  if (std::chrono::steady_clock::now() - start_ < kQuietTime) return;
  if (::isatty(STDERR_FILENO) != 0) std::fputs(kClearLine, stderr);
  std::fputs(std::exchange(finished_, {}).c_str(), stderr);
}

/// On a terminal one line that changes; else a line now and then, and first one that says that it
/// will take long.
void Progress::watch() {
  using std::chrono::seconds;
  const bool is_terminal = ::isatty(STDERR_FILENO) != 0;
  const auto quiet_time = is_terminal ? seconds(1) : seconds(3);
  constexpr auto kInterval = std::chrono::milliseconds(250);
  constexpr seconds kLong{60}, kNextLine{30};
  std::chrono::steady_clock::duration next = quiet_time;
  bool printed = false;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kInterval, [this] { return stopping_; })) {
    const auto elapsed = std::chrono::steady_clock::now() - start_;
    if (elapsed < quiet_time || session_.doing.empty()) continue;
    if (is_terminal) {
      std::fprintf(stderr, "%s%s", kClearLine, line(elapsed).c_str());
      printed = true;
    } else if (elapsed >= next && elapsed + left(elapsed) > kLong) {
      std::fprintf(stderr, "%s\n", line(elapsed).c_str());
      next = elapsed + kNextLine;
    }
  }
  if (printed) std::fputs(kClearLine, stderr);
}

/// What the rest may take; for ever where little is done.
std::chrono::steady_clock::duration Progress::left(
    std::chrono::steady_clock::duration elapsed) const {
  const double share = done();
  if (share < kLeast) return elapsed > std::chrono::seconds(10) ? std::chrono::hours(1) : elapsed;
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(elapsed * (1 - share) /
                                                                         share);
}

study::Watch watch_of(Session& session, Progress& progress, Notices& notices) {
  return {.on_step = [&progress](const study::Step& step) { progress.doing(step.text()); },
          .on_notices = [&notices](const study::Notices& found) { notices.show(found); },
          .monitor = &session.monitor};
}

std::string where_it_stood(const Session& session) {
  const Monitor& monitor = session.monitor;
  std::string text = "interrupted";
  if (!session.doing.empty()) text += ": " + session.doing;
  if (const std::int64_t fs = monitor.time_fs.load(); fs >= 0)
    text +=
        fmt::format(", {} simulated, {} line hops", to_string(Time{fs}), monitor.line_hops.load());
  if (monitor.fraction() > 0)
    text += fmt::format(", about {:.0f} % of it", monitor.fraction() * 100);
  if (const Session::Parts& parts = session.parts; parts.all > 1)
    text += fmt::format("; {} of {} {} are done", parts.done, parts.all, parts.kind);
  return text + "; " + (session.kept_safe.empty() ? "no file was written" : session.kept_safe);
}

}  // namespace hemiola::cli
