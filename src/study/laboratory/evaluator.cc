#include "study/laboratory/evaluator.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "plan/estimate.h"
#include "program/built_in.h"

namespace hemiola::study {
namespace {

/// What of a plan's lowering lets the switch multicast.
bool goes_by_switch(const plan::Plan& plan) {
  const std::pair<std::string, std::string> by_switch{"realization", "multicast"};
  return std::find(plan.lowering.begin(), plan.lowering.end(), by_switch) != plan.lowering.end();
}

class Estimate : public Evaluator {
 public:
  explicit Estimate(Laboratory& laboratory) : laboratory_(laboratory) {}

  std::string_view name() const override { return "estimate"; }
  // Of 132 templates, machines and sizes (dgx-h100, torus:2x4, mi300x-8; 16 and 256 KiB) half were
  // less than 60 % below the line engine, the worst 96 %, and none was above.
  CostError error() const override { return {.expected = 0.6, .below = 1, .above = 0.2}; }

  std::optional<Time> cost(const Experiment& candidate) override {
    const machine::SharedMachine machine = laboratory_.machine(candidate.machine);
    const SharedPlan plan = plan_of(candidate, machine);
    if (plan == nullptr || machine == nullptr) return std::nullopt;
    const Bytes size = candidate.size.value_or(MiB(1));
    const std::int64_t chunk = std::max<std::int64_t>(1, size.count / plan->chunks_per_size);
    const std::lock_guard lock(mutex_);
    if (machine_ != machine) {
      fabric_.emplace(*machine);
      machine_ = machine;
    }
    return plan::estimate(*plan, *fabric_, chunk, goes_by_switch(*plan));
  }

 private:
  SharedPlan plan_of(const Experiment& candidate, const machine::SharedMachine& machine) {
    if (const auto* plan = std::get_if<SharedPlan>(&candidate.subject)) return *plan;
    const auto* name = std::get_if<std::string>(&candidate.subject);
    if (name == nullptr || machine == nullptr) return nullptr;
    auto made = program::plan_of_built_in(*name, laboratory_.load_options(candidate, machine));
    return made ? std::make_shared<const plan::Plan>(std::move(made->plan)) : nullptr;
  }

  Laboratory& laboratory_;
  std::mutex mutex_;
  machine::SharedMachine machine_;  ///< of the fabric, which remembers ways
  std::optional<plan::Fabric> fabric_;
};

class Simulated : public Evaluator {
 public:
  Simulated(Laboratory& laboratory, sim::Engine engine, const std::atomic<bool>* stop)
      : laboratory_(laboratory), engine_(engine), stop_(stop) {}

  std::string_view name() const override { return sim::name_of(engine_); }

  // Fluid: docs/fluid_table.md, all programs, machines and sizes. Its worst are 43 % above and 34 %
  // below; more ranks over NICs may be worse.
  CostError error() const override {
    if (engine_ == sim::Engine::fluid) return {.expected = 0.045, .below = 0.35, .above = 1.5};
    return {};
  }

  std::optional<Time> cost(const Experiment& candidate) override {
    Monitor monitor{.stop = stop_};
    const Watch watch{.monitor = &monitor};
    sim::Options options = candidate.options;
    options.engine = engine_;
    return laboratory_.simulate(bound_of(candidate, watch), options, watch).time;
  }

 private:
  program::Bound bound_of(const Experiment& candidate, const Watch& watch) {
    if (const auto* bound = std::get_if<program::Bound>(&candidate.subject)) return *bound;
    const machine::SharedMachine machine = laboratory_.machine(candidate.machine);
    return laboratory_.bind(candidate, laboratory_.program(candidate, machine, watch), machine);
  }

  Laboratory& laboratory_;
  const sim::Engine engine_;
  const std::atomic<bool>* const stop_;
};

/// Line by line what takes a fraction of a second: there latencies decide, of which fluid knows
/// less.
class Judge : public Evaluator {
 public:
  Judge(Laboratory& laboratory, const std::atomic<bool>* stop)
      : laboratory_(laboratory),
        by_line_(laboratory, sim::Engine::line, stop),
        by_fluid_(laboratory, sim::Engine::fluid, stop) {}

  std::string_view name() const override { return "judge"; }
  CostError error() const override { return by_fluid_.error(); }
  std::optional<Time> cost(const Experiment& candidate) override {
    const auto* program = std::get_if<SharedProgram>(&candidate.subject);
    const std::int64_t ranks =
        program != nullptr ? (*program)->ranks : laboratory_.machine(candidate.machine)->ranks();
    if (ranks > kMostJudgedRanks) return std::nullopt;
    const bool little =
        ranks <= kByLineRanks && candidate.size.value_or(Bytes{}).count * ranks <= kByLine.count;
    return (little ? by_line_ : by_fluid_).cost(candidate);
  }

 private:
  static constexpr int kByLineRanks = 8;
  static constexpr Bytes kByLine{std::int64_t{32} << 20};  // of all ranks
  Laboratory& laboratory_;
  Simulated by_line_, by_fluid_;
};

}  // namespace

std::unique_ptr<Evaluator> make_estimate(Laboratory& laboratory) {
  return std::make_unique<Estimate>(laboratory);
}

std::unique_ptr<Evaluator> make_evaluator(Laboratory& laboratory, sim::Engine engine,
                                          const std::atomic<bool>* stop) {
  return std::make_unique<Simulated>(laboratory, engine, stop);
}

std::unique_ptr<Evaluator> make_judge(Laboratory& laboratory, const std::atomic<bool>* stop) {
  return std::make_unique<Judge>(laboratory, stop);
}

}  // namespace hemiola::study
