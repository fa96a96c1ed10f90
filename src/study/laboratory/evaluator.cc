#include "study/laboratory/evaluator.h"

namespace hemiola::study {
namespace {

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

std::unique_ptr<Evaluator> make_evaluator(Laboratory& laboratory, sim::Engine engine,
                                          const std::atomic<bool>* stop) {
  return std::make_unique<Simulated>(laboratory, engine, stop);
}

std::unique_ptr<Evaluator> make_judge(Laboratory& laboratory, const std::atomic<bool>* stop) {
  return std::make_unique<Judge>(laboratory, stop);
}

}  // namespace hemiola::study
