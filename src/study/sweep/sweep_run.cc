#include "study/sweep/sweep_run.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <optional>

#include "study/laboratory/progress_weight.h"
#include "study/support/task_pool.h"
#include "study/sweep/sweep_point.h"

namespace hemiola::study {
namespace {

std::string describe(const SweepPoint& point) {
  std::string text = point.program;
  if (!point.parameters.empty()) text += " (" + to_text(point.parameters) + ")";
  text += " at " + to_string(point.size) + " on " + point.machine;
  if (!point.set.empty()) text += " (" + to_text(point.set) + ")";
  return text;
}

/// Units in threads, and the thread that writes what they bring.
class SweepRun {
 public:
  SweepRun(const Sweep& sweep, SweepDatabase& database, const SweepRunOptions& options)
      : sweep_(sweep), database_(database), options_(options) {
    std::vector<bool> known(sweep.points.size());
    for (const std::int64_t number : database.known()) known.at(index(number)) = true;
    std::vector<std::int64_t> unit;  // what processes share out are whole units: all name the same
    for (std::int64_t number = 0; number < std::ssize(sweep.points); ++number) {
      if (!database.head().shard.has(number)) continue;
      ++progress_.all;
      const bool is_known = known[index(number)];
      if (is_known) ++progress_.done;
      if (options.parts == nullptr) {
        if (!is_known) to_do_.push_back(number);
        continue;
      }
      if (!unit.empty() && !same_unit(point(unit.back()), point(number))) add_unknown(unit, known);
      unit.push_back(number);
    }
    add_unknown(unit, known);
    for (std::size_t i = 0; i < to_do_.size(); ++i) {
      all_weight_ += progress_weight(point(to_do_[i]).size);
      if (i == 0 || !same_unit(point(to_do_[i - 1]), point(to_do_[i]))) begins_.push_back(i);
    }
  }

  void run() {
    if (options_.parts != nullptr) share();
    TaskPool<SweepWorker::Outcome> pool(options_.threads, begins_.size(),
                                        shared_ ? &*shared_ : nullptr);
    for (std::size_t i = 0; i < pool.threads(); ++i)
      workers_.emplace_back(sweep_, laboratory_, pool.halt(), options_.strict);
    pool.run(
        [this](std::size_t thread, std::size_t task) {
          SweepWorker::Outcome outcome = workers_[thread].run(unit(task));
          if (shared_) options_.parts->put(shared_->name(task), part_of(outcome.rows));
          return outcome;
        },
        [this](std::vector<SweepWorker::Outcome> outcomes, const std::vector<std::size_t>& at) {
          take(outcomes, at);
        },
        options_.stop);
    if (shared_)
      options_.parts->join(
          tasks_, [this](const std::string& part) { database_.add(part); }, options_.stop);
    else if (progress_.done < progress_.all)
      throw Interrupted();
  }

 private:
  const SweepPoint& point(std::int64_t number) const { return sweep_.points[index(number)]; }
  SweepUnit unit(std::size_t number) const {
    const std::size_t end = number + 1 < begins_.size() ? begins_[number + 1] : to_do_.size();
    return SweepUnit(to_do_).subspan(begins_[number], end - begins_[number]);
  }

  // --- Together with other processes.

  /// The unit if any of its points is unknown; empties it.
  void add_unknown(std::vector<std::int64_t>& unit, const std::vector<bool>& known) {
    if (!std::ranges::all_of(unit, [&](std::int64_t number) { return known[index(number)]; }))
      to_do_.insert(to_do_.end(), unit.begin(), unit.end());
    unit.clear();
  }
  void share() {
    for (const std::size_t begin : begins_)
      tasks_.push_back("point-" + std::to_string(to_do_[begin]));
    shared_.emplace(*options_.parts, tasks_);
  }
  std::string part_of(const std::vector<SweepRow>& rows) const {
    SweepDatabase part(":memory:", database_.head());
    part.write(rows);
    return part.image();
  }

  /// What has come by then is written at once, in one transaction.
  void take(std::vector<SweepWorker::Outcome>& outcomes, const std::vector<std::size_t>& at) {
    std::vector<SweepRow> rows;
    Diagnostics warnings;
    for (SweepWorker::Outcome& outcome : outcomes) {
      warnings.append(outcome.warnings);
      rows.insert(rows.end(), std::make_move_iterator(outcome.rows.begin()),
                  std::make_move_iterator(outcome.rows.end()));
    }
    tell(rows, at);
    if (!rows.empty() && !shared_) database_.write(rows);
    if (options_.on_warnings && !warnings.empty()) options_.on_warnings(warnings);
    if (options_.on_progress) options_.on_progress(progress_);
  }

  void tell(const std::vector<SweepRow>& rows, const std::vector<std::size_t>& at) {
    for (const SweepRow& row : rows) done_weight_ += progress_weight(point(row.number).size);
    progress_.done += std::ssize(rows);
    double under_way = 0;
    progress_.doing.clear();
    progress_.time_fs = -1;
    progress_.line_hops = 0;
    for (std::size_t thread = 0; thread < at.size(); ++thread) {
      if (at[thread] == TaskPool<SweepWorker::Outcome>::kNone) continue;
      // Of the unit's points nobody says which is under way: the fraction stands for the first.
      const SweepPoint& first = point(unit(at[thread]).front());
      const Monitor& monitor = workers_[thread].monitor();
      under_way += progress_weight(first.size) * monitor.fraction();
      if (!progress_.doing.empty()) continue;
      progress_.doing = describe(first);
      progress_.time_fs = monitor.time_fs.load();
      progress_.line_hops = monitor.line_hops.load();
    }
    if (shared_)  // others do their part
      progress_.share = static_cast<double>(shared_->gone()) / static_cast<double>(begins_.size());
    else if (all_weight_ > 0)
      progress_.share = std::min(1.0, (done_weight_ + under_way) / all_weight_);
  }

  const Sweep& sweep_;
  SweepDatabase& database_;
  const SweepRunOptions& options_;
  std::vector<std::int64_t> to_do_;  ///< numbers of points
  std::vector<std::size_t> begins_;  ///< of units, in to_do_
  std::vector<std::string> tasks_;   ///< names of units for other processes
  std::optional<SharedTasks> shared_;
  Laboratory laboratory_{options_.registry};
  std::deque<SweepWorker> workers_;  ///< by thread
  double all_weight_ = 0, done_weight_ = 0;
  SweepProgress progress_;
};

}  // namespace

void run_sweep(const Sweep& sweep, SweepDatabase& database, const SweepRunOptions& options) {
  SweepRun(sweep, database, options).run();
}

}  // namespace hemiola::study
