#include "study/sweep_run.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "study/sweep_point.h"
#include "study/weight.h"

namespace hemiola::study {
namespace {

std::string describe(const SweepPoint& point) {
  std::string text = point.program;
  if (!point.parameters.empty()) text += " (" + to_text(point.parameters) + ")";
  text += " at " + to_string(point.size) + " on " + point.machine;
  if (!point.set.empty()) text += " (" + to_text(point.set) + ")";
  return text;
}

/// Threads that take one unit after the other, and the thread that writes what they bring.
class Crew {
 public:
  Crew(const Sweep& sweep, SweepDatabase& database, const SweepRunOptions& options)
      : sweep_(sweep), database_(database), options_(options) {
    std::vector<bool> known(sweep.points.size());
    for (const std::int64_t number : database.known())
      known.at(static_cast<std::size_t>(number)) = true;
    for (std::int64_t number = 0; number < std::ssize(sweep.points); ++number) {
      if (!database.head().shard.has(number)) continue;
      ++progress_.all;
      if (known[static_cast<std::size_t>(number)])
        ++progress_.done;
      else
        to_do_.push_back(number);
    }
    for (std::size_t i = 0; i < to_do_.size(); ++i) {
      all_weight_ += weight_of(point(to_do_[i]).size);
      if (i == 0 || !same_unit(point(to_do_[i - 1]), point(to_do_[i]))) begins_.push_back(i);
    }
  }

  void run() {
    const auto count = std::min(static_cast<std::size_t>(options_.threads), begins_.size());
    for (std::size_t i = 0; i < count; ++i)
      members_.emplace_back(sweep_, laboratory_, halt_, options_.strict);
    running_ = count;
    std::vector<std::thread> threads;
    for (Member& member : members_) threads.emplace_back([this, &member] { work(member); });
    std::exception_ptr problem;
    try {
      write_until_done();
    } catch (...) {
      problem = std::current_exception();
      halt_ = true;
    }
    for (std::thread& thread : threads) thread.join();
    if (problem) std::rethrow_exception(problem);
    if (problem_) std::rethrow_exception(problem_);
    if (progress_.done < progress_.all) throw Interrupted();
  }

 private:
  struct Member {
    Member(const Sweep& sweep, Laboratory& laboratory, const std::atomic<bool>& halt, bool strict)
        : worker(sweep, laboratory, halt, strict) {}
    SweepWorker worker;
    SweepUnit unit;  ///< that it is at; empty: none
  };

  const SweepPoint& point(std::int64_t number) const {
    return sweep_.points[static_cast<std::size_t>(number)];
  }
  SweepUnit unit(std::size_t number) const {
    const std::size_t end = number + 1 < begins_.size() ? begins_[number + 1] : to_do_.size();
    return SweepUnit(to_do_).subspan(begins_[number], end - begins_[number]);
  }

  void work(Member& member) {
    try {
      while (!halt_) {
        const std::size_t number = next_.fetch_add(1);
        if (number >= begins_.size()) break;
        begin(member, unit(number));
        SweepWorker::Outcome outcome = member.worker.run(member.unit);
        const std::lock_guard lock(mutex_);
        member.unit = {};
        warnings_.append(outcome.warnings);
        rows_.insert(rows_.end(), std::make_move_iterator(outcome.rows.begin()),
                     std::make_move_iterator(outcome.rows.end()));
        brought_.notify_one();
      }
    } catch (const Interrupted&) {  // run() says so, once all have ended
    } catch (...) {
      const std::lock_guard lock(mutex_);
      problem_ = std::current_exception();
      halt_ = true;
    }
    const std::lock_guard lock(mutex_);
    --running_;
    brought_.notify_one();
  }
  void begin(Member& member, SweepUnit unit) {
    const std::lock_guard lock(mutex_);
    member.unit = unit;
  }

  /// What has come by then is written at once, in one transaction.
  void write_until_done() {
    constexpr auto kInterval = std::chrono::milliseconds(50);
    std::unique_lock lock(mutex_);
    while (running_ > 0 || !rows_.empty()) {
      brought_.wait_for(lock, kInterval, [&] { return !rows_.empty() || running_ == 0; });
      if (options_.stop != nullptr && options_.stop->load()) halt_ = true;
      std::vector<SweepRow> rows;
      rows.swap(rows_);
      const Diagnostics warnings = std::exchange(warnings_, {});
      tell(rows);
      lock.unlock();
      if (!rows.empty()) database_.write(rows);
      if (options_.on_warnings && !warnings.empty()) options_.on_warnings(warnings);
      if (options_.on_progress) options_.on_progress(progress_);
      lock.lock();
    }
  }

  void tell(const std::vector<SweepRow>& rows) {
    for (const SweepRow& row : rows) done_weight_ += weight_of(point(row.number).size);
    progress_.done += std::ssize(rows);
    double under_way = 0;
    progress_.doing.clear();
    progress_.time_fs = -1;
    progress_.line_hops = 0;
    for (const Member& member : members_) {
      if (member.unit.empty()) continue;
      // Of the unit's points nobody says which is under way: the fraction stands for the first.
      under_way += weight_of(point(member.unit.front()).size) * member.worker.monitor().fraction();
      if (!progress_.doing.empty()) continue;
      progress_.doing = describe(point(member.unit.front()));
      progress_.time_fs = member.worker.monitor().time_fs.load();
      progress_.line_hops = member.worker.monitor().line_hops.load();
    }
    if (all_weight_ > 0) progress_.share = std::min(1.0, (done_weight_ + under_way) / all_weight_);
  }

  const Sweep& sweep_;
  SweepDatabase& database_;
  const SweepRunOptions& options_;
  std::vector<std::int64_t> to_do_;  ///< numbers of points
  std::vector<std::size_t> begins_;  ///< of units, in to_do_
  Laboratory laboratory_;
  std::deque<Member> members_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> halt_{false};
  double all_weight_ = 0, done_weight_ = 0;
  SweepProgress progress_;

  std::mutex mutex_;
  std::condition_variable brought_;
  std::vector<SweepRow> rows_;  ///< not written yet
  Diagnostics warnings_;        ///< not told yet
  std::size_t running_ = 0;     ///< threads
  std::exception_ptr problem_;
};

}  // namespace

void run_sweep(const Sweep& sweep, SweepDatabase& database, const SweepRunOptions& options) {
  Crew(sweep, database, options).run();
}

}  // namespace hemiola::study
