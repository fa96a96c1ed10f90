#include "study/laboratory/fastest.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "study/laboratory/evaluator.h"
#include "study/laboratory/preparation.h"

namespace hemiola::study {
namespace {

/// Bytes that its operations move, from which on the fluid engine takes less time than others.
constexpr std::int64_t kWorthScreening = 64 << 20;

struct Contestant {
  std::size_t number = 0;
  program::Bound bound;
  sim::LowerBound least;
};

class Holder {
 public:
  Holder(Laboratory& laboratory, const std::vector<Experiment>& candidates, const Watch& watch,
         const std::function<void(std::size_t)>& on_turn)
      : laboratory_(laboratory),
        candidates_(candidates),
        watch_(watch),
        on_turn_(on_turn),
        fluid_(make_evaluator(laboratory, sim::Engine::fluid,
                              watch.monitor != nullptr ? watch.monitor->stop : nullptr)) {}

  Fastest hold() {
    // What takes least at best comes first: its time leaves out the most.
    std::vector<Contestant> ready = prepare();
    std::ranges::stable_sort(ready, [](const Contestant& a, const Contestant& b) {
      return a.least.time() < b.least.time();
    });
    for (const Contestant& one : ready) {
      if (on_turn_) on_turn_(turn_++);
      if (!is_out(one)) run(one);
    }
    if (!fastest_) throw *first_failure_;
    return {*std::move(fastest_), std::move(others_)};
  }

 private:
  std::vector<Contestant> prepare() {
    std::vector<Contestant> ready;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      or_remark(i, [&] {
        program::Bound bound = laboratory_.prepare(candidates_[i], watch_);
        sim::LowerBound least;
        if (screens(i)) least = sim::lower_bound(bound, candidates_[i].options);
        ready.push_back({i, std::move(bound), std::move(least)});
      });
    }
    turn_ = candidates_.size() - ready.size();
    return ready;
  }

  bool screens(std::size_t number) const {
    return candidates_.size() > 1 && candidates_[number].options.engine != sim::Engine::fluid;
  }

  /// Whether it cannot be the fastest; then the others' remark says why.
  bool is_out(const Contestant& one) {
    if (!fastest_ || !screens(one.number)) return false;
    const Time best = fastest_->result.time;
    if (one.least.time() > best) {
      remark(one.bound.name(), "takes " + to_string(one.least.time()) + " at least");
      return true;
    }
    if (one.least.moved_bytes < kWorthScreening) return false;
    const std::optional<Time> cost = fluid_cost(one);
    if (!cost || !fluid_->error().excludes(*cost, best)) return false;
    remark(one.bound.name(), "takes about " + to_string(*cost) + " (fluid)");
    return true;
  }

  /// Nothing where that engine cannot say: another one says why.
  std::optional<Time> fluid_cost(const Contestant& one) {
    Experiment experiment = candidates_[one.number];
    experiment.subject = one.bound;
    try {
      return fluid_->cost(experiment);
    } catch (const Failure&) {
      return std::nullopt;
    }
  }

  void run(const Contestant& one) {
    or_remark(one.number, [&] {
      Experiment experiment = candidates_[one.number];
      experiment.subject = one.bound;
      Outcome outcome = laboratory_.run(experiment, watch_);
      const auto place = std::pair(outcome.result.time, one.number);
      if (fastest_ && place >= std::pair(fastest_->result.time, fastest_number_)) {
        remark(one.bound.name(), to_string(outcome.result.time));
        return;
      }
      if (fastest_) remark(fastest_->bound.name(), to_string(fastest_->result.time));
      fastest_ = std::move(outcome);
      fastest_number_ = one.number;
    });
  }

  /// One of several may not fit this machine or size; a wrong one is never passed over.
  template <typename Action>
  void or_remark(std::size_t number, const Action& action) {
    try {
      action();
    } catch (const Failure& failure) {
      if (candidates_.size() == 1 || failure.code() != ExitCode::bad_input) throw;
      const auto* name = std::get_if<std::string>(&candidates_[number].subject);
      remark(name != nullptr ? *name : "number " + std::to_string(number + 1),
             "cannot: " + failure.diagnostics().items().front().message);
      if (!first_failure_) first_failure_ = failure;
    }
  }

  void remark(const std::string& name, const std::string& text) {
    others_ += (others_.empty() ? "" : ", ") + name + ' ' + text;
  }

  Laboratory& laboratory_;
  const std::vector<Experiment>& candidates_;
  const Watch& watch_;
  const std::function<void(std::size_t)>& on_turn_;
  const std::unique_ptr<Evaluator> fluid_;
  std::size_t turn_ = 0;
  std::optional<Outcome> fastest_;
  std::size_t fastest_number_ = 0;
  std::optional<Failure> first_failure_;
  std::string others_;
};

void for_each_loaded(const std::vector<std::string>& names, const Bytes& size,
                     const LoadProgram& load,
                     const std::function<void(const program::Program&)>& use) {
  std::optional<Failure> first;
  bool any = false;
  for (const std::string& name : names) {
    try {
      use(*load(name, size));
      any = true;
    } catch (const Failure& failure) {
      if (failure.code() != ExitCode::bad_input) throw;
      if (!first) first = failure;
    }
  }
  if (!any && first) throw *first;
}

}  // namespace

std::string Fastest::remark(std::size_t candidates) const {
  return to_string(fastest.result.size) + ": " + fastest.bound.name() + ' ' +
         to_string(fastest.result.time) + " is the fastest of " + std::to_string(candidates) +
         "; " + others;
}

Fastest find_fastest(Laboratory& laboratory, const std::vector<Experiment>& candidates,
                     const Watch& watch, const std::function<void(std::size_t)>& on_turn) {
  return Holder(laboratory, candidates, watch, on_turn).hold();
}

Bytes default_size_of_all(const std::vector<std::string>& names, DataType type,
                          const LoadProgram& load) {
  Bytes size{};
  for_each_loaded(names, MiB(1), load, [&](const program::Program& program) {
    size = std::max(size, default_size(program, type));
  });
  return size;
}

CommonSize rounded_for_all(const std::vector<std::string>& names, Rounding way,
                           program::BindOptions at, const LoadProgram& load) {
  const Bytes asked = at.size;
  std::string by;
  bool settled = way == Rounding::none, none_below = false;
  while (!settled) {  // a program may be another one at another size
    settled = true;
    for_each_loaded(names, at.size, load, [&](const program::Program& program) {
      const Bytes next = way == Rounding::up ? round_up(program, at) : round_down(program, at);
      none_below = none_below || next == Bytes{};
      if (none_below || next == at.size) return;
      at.size = next;
      by = program.name;
      settled = false;
    });
    if (!none_below) continue;
    at.size = asked;
    return rounded_for_all(names, Rounding::up, at, load);
  }
  return {at.size, by};
}

}  // namespace hemiola::study
