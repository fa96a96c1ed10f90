#include <algorithm>
#include <atomic>
#include <string_view>
#include <tuple>

#include "core/lists.h"
#include "plan/template.h"
#include "program/built_in.h"
#include "program/lower/lower.h"
#include "program/promise.h"
#include "study/laboratory/cache.h"
#include "study/laboratory/evaluator.h"
#include "study/laboratory/experiment.h"
#include "study/laboratory/identity.h"
#include "study/laboratory/preparation.h"
#include "study/laboratory/size_check.h"
#include "study/laboratory/verdicts.h"

namespace hemiola::study {
namespace {

constexpr std::size_t kMostOriginals = 8, kMostMachines = 64, kMostPrograms = 32,
                      kMostBindings = 32;

/// Texts, and an address; what is there is kept with the value.
using MachineKey = std::pair<std::vector<std::string>, const void*>;
/// The same for a program; of the machine either all that counts, or its address.
struct ProgramKey {
  std::vector<std::string> texts;
  const void* plan = nullptr;
  const void* machine = nullptr;
  Identity facts{};
  auto operator<=>(const ProgramKey&) const = default;
};

struct KnownMachine {
  machine::SharedMachine machine, given;
};
struct KnownProgram {
  SharedProgram program;
  SharedPlan plan;
  machine::SharedMachine machine;
};
/// A machine is known by what making and binding a program ask of it.
struct BindingKey {
  SharedProgram program;
  Identity facts;
  Bytes size;
  DataType type;
  ReduceOp op;
  auto operator<=>(const BindingKey&) const = default;
};

void append(std::vector<std::string>& key, const Settings& settings) {
  key.push_back(std::to_string(settings.size()));
  for (const auto& [name, value] : settings) {
    key.push_back(name);
    key.push_back(value);
  }
}

MachineKey key_of(const MachineChoice& choice) {
  std::vector<std::string> texts{choice.name, choice.gpu, choice.ranks};
  append(texts, choice.settings);
  return {std::move(texts), choice.given.get()};
}

bool needs_machine(const std::string& name, const parts::Registry* parts) {
  const plan::TemplateInfo* info = plan::find_template(name, parts);
  return info != nullptr && info->needs_machine;
}

ProgramKey key_of(const Experiment& experiment, const machine::SharedMachine& machine,
                  const Identity& facts, const parts::Registry* parts) {
  ProgramKey key;
  std::vector<std::string>& texts = key.texts;
  bool any_machine = true;
  if (const auto* name = std::get_if<std::string>(&experiment.subject)) {
    texts = {*name, std::string(name_of(experiment.collective))};
    any_machine = !needs_machine(*name, parts);
    if (!any_machine) {
      texts.push_back(experiment.size ? std::to_string(experiment.size->count) : "");
      texts.emplace_back(name_of(experiment.type));
      texts.emplace_back(name_of(experiment.op));
    }
  } else if (const auto* given = std::get_if<SharedPlan>(&experiment.subject)) {
    key.plan = given->get();
  }
  texts.push_back(experiment.promise);
  append(texts, experiment.parameters);
  if (machine == nullptr) texts.push_back(experiment.machine.ranks);
  if (any_machine)
    key.facts = facts;
  else
    key.machine = machine.get();
  return key;
}

void place(machine::Machine& machine, const std::string& ranks) {
  const SourceLocation where{.file = "--ranks"};
  const int count = read_rank_count(ranks, where);
  if (count > machine.ranks())
    throw Failure("the machine has " + std::to_string(machine.ranks()) + " GPUs, not " +
                      std::to_string(count),
                  where);
  machine.place(read_ranks(ranks, where));
}

int ranks_of(const Experiment& experiment, const machine::SharedMachine& machine) {
  if (machine != nullptr) return machine->ranks();
  if (experiment.machine.ranks.empty()) return 0;
  return read_rank_count(experiment.machine.ranks, {.file = "--ranks"});
}

/// Adds what is not there yet, and tells of it.
void find(Notices& all, const Notices& found, const Watch& watch) {
  Notices added;
  for (const Diagnostic& notice : found) {
    const auto same = [text = render(notice)](const Diagnostic& other) {
      return render(other) == text;
    };
    if (std::ranges::any_of(all, same)) continue;
    all.push_back(notice);
    added.push_back(notice);
  }
  if (!added.empty() && watch.on_notices) watch.on_notices(added);
}

void tell(const Watch& watch, const Step& step) {
  if (watch.on_step) watch.on_step(step);
}

}  // namespace

struct Laboratory::Caches {
  /// As they are read, and as they are changed.
  Cache<MachineKey, machine::SharedMachine> originals{kMostOriginals};
  Cache<MachineKey, std::shared_ptr<const KnownMachine>> machines{kMostMachines};
  Cache<ProgramKey, std::shared_ptr<const KnownProgram>> programs{kMostPrograms};
  Cache<BindingKey, std::shared_ptr<const program::Bound>> bindings{kMostBindings};
  Cache<machine::SharedMachine, Identity> facts{kMostMachines};
  Verdicts verdicts;
  std::atomic<std::int64_t> simulations{0};

  Identity facts_of(const machine::SharedMachine& machine) {
    return facts.get(machine, [&] { return making_facts(machine.get()); });
  }
};

Laboratory::Laboratory(const parts::Registry* parts)
    : caches_(std::make_unique<Caches>()), parts_(parts) {}
Laboratory::~Laboratory() = default;

machine::SharedMachine Laboratory::machine(const MachineChoice& choice) {
  if (choice.name.empty() && choice.given == nullptr) return nullptr;
  if (choice.given != nullptr && choice.settings.empty() && choice.ranks.empty())
    return choice.given;
  const auto make = [&] {
    MachineChoice of_original{.name = choice.name, .gpu = choice.gpu};
    MachineChoice change = choice;
    if (choice.given == nullptr)
      change.given = caches_->originals.get(
          key_of(of_original), [&] { return machine::share(load_machine(of_original)); });
    machine::Machine machine = load_machine(change);
    if (machine.ranks() == 0)
      throw Failure(
          "the machine has no GPU, so nothing can run on it", SourceLocation{.file = choice.name},
          "it may be one device of a larger machine: `hemiola machine show` lists its nodes");
    return std::make_shared<const KnownMachine>(machine::share(std::move(machine)), choice.given);
  };
  return caches_->machines.get(key_of(choice), make)->machine;
}

machine::Machine load_machine(const MachineChoice& choice) {
  machine::Machine machine = [&] {
    if (choice.given == nullptr)
      return machine::load(choice.name, {.gpu = choice.gpu, .set = choice.settings});
    machine::Machine changed = *choice.given;  // set() and place() leave the routes to the original
    for (const auto& [parameter, value] : choice.settings) changed.set(parameter, value);
    return changed;
  }();
  if (!choice.ranks.empty()) place(machine, choice.ranks);
  return machine;
}

program::LoadOptions Laboratory::load_options(const Experiment& experiment,
                                              const machine::SharedMachine& machine,
                                              const std::atomic<bool>* stop) {
  program::LoadOptions load{.ranks = ranks_of(experiment, machine),
                            .parameters = experiment.parameters,
                            .machine = machine,
                            .collective = experiment.collective,
                            .parts = parts_};
  if (!experiment.round_size) load.exact = experiment.size;
  const auto* name = std::get_if<std::string>(&experiment.subject);
  if (name == nullptr || machine == nullptr || !needs_machine(*name, parts_)) return load;
  const auto stated = [&load](std::string_view parameter) {
    return std::ranges::any_of(load.parameters,
                               [&](const auto& p) { return p.first == parameter; });
  };
  if (experiment.size && !stated("size")) {
    load.parameters.emplace_back("size", std::to_string(experiment.size->count));
    if (!stated("blocks")) load.parameters.emplace_back("blocks", "uneven");
  }
  if (machine->ranks() > kMostJudgedRanks) return load;
  load.judge = [judge = std::shared_ptr(make_judge(*this, stop)), machine, type = experiment.type,
                op = experiment.op](const program::Program& program, Bytes size) {
    return judge->cost({.machine = {.given = machine},
                        .subject = std::make_shared<const program::Program>(program),
                        .size = size,
                        .type = type,
                        .op = op});
  };
  return load;
}

SharedProgram Laboratory::program(const Experiment& experiment,
                                  const machine::SharedMachine& machine, const Watch& watch) {
  if (const auto* program = std::get_if<SharedProgram>(&experiment.subject)) {
    if (!experiment.promise.empty())
      throw Failure((*program)->name + " says itself what it leaves", {.file = "--promise"},
                    "leave it out");
    return *program;
  }
  const auto* plan = std::get_if<SharedPlan>(&experiment.subject);
  tell(watch,
       {.name = plan != nullptr ? (*plan)->name : std::get<std::string>(experiment.subject)});
  if (plan != nullptr && !experiment.round_size) program::require_own_size(**plan, experiment.size);
  const auto make = [&] {
    const std::atomic<bool>* stop = watch.monitor != nullptr ? watch.monitor->stop : nullptr;
    program::Program program =
        plan != nullptr ? program::lower_plan(**plan, experiment.parameters, machine.get())
                        : program::load(std::get<std::string>(experiment.subject),
                                        load_options(experiment, machine, stop));
    if (!experiment.promise.empty()) program::promise(program, experiment.promise);
    return std::make_shared<const KnownProgram>(
        std::make_shared<const program::Program>(std::move(program)),
        plan != nullptr ? *plan : nullptr, machine);
  };
  return caches_->programs
      .get(key_of(experiment, machine, caches_->facts_of(machine), parts_), make)
      ->program;
}

program::Bound Laboratory::bind(const Experiment& experiment, const SharedProgram& program,
                                const machine::SharedMachine& machine) {
  check_skew(experiment.options.skew, program->ranks, {.file = "--skew"});
  program::BindOptions at{
      experiment.size ? *experiment.size : default_size(*program, experiment.type), experiment.type,
      experiment.op};
  if (experiment.round_size) at.size = round_up(*program, at);
  const auto bound = caches_->bindings.get(
      {program, caches_->facts_of(machine), at.size, at.type, at.op},
      [&] { return std::make_shared<const program::Bound>(program::bind(program, machine, at)); });
  return bound->shared_machine() == machine ? *bound : bound->on(machine);
}

program::Bound Laboratory::prepare(const Experiment& experiment, const Watch& watch) {
  const auto say = [&watch](const Diagnostics& found) {
    if (watch.on_notices && !found.empty()) watch.on_notices(notices_of(found));
  };
  if (const auto* bound = std::get_if<program::Bound>(&experiment.subject)) {
    if (bound->machine() != nullptr) say(bound->machine()->warnings);
    say(bound->warnings());
    return *bound;
  }
  const machine::SharedMachine machine = this->machine(experiment.machine);
  if (machine != nullptr) say(machine->warnings);
  const SharedProgram program = this->program(experiment, machine, watch);
  say(program->warnings);
  program::Bound bound = bind(experiment, program, machine);
  if (watch.on_notices && experiment.size && bound.size() != *experiment.size)
    watch.on_notices({{.severity = Severity::note,
                       .message = rounding_note(*experiment.size, bound.size(), program->name),
                       .where = {},
                       .hint = {}}});
  say(bound.warnings());
  return bound;
}

std::shared_ptr<const verify::Proof> Laboratory::proof(const program::Bound& bound,
                                                       const verify::CheckOptions& options) {
  return caches_->verdicts.of_size(bound, options);
}

Laboratory::Verdict Laboratory::verdict(const program::Bound& bound, const Watch& watch) {
  auto [proof, at] = caches_->verdicts.of_class(bound, {.monitor = watch.monitor});
  if (proof->verdict >= verify::Verdict::wrong)
    throw WrongProgram(std::move(proof), bound.source());
  return {std::move(proof), at};
}

std::string Laboratory::Verdict::checked() const {
  return proof->verdict == verify::Verdict::proven ? "full" : "partial";
}

sim::Result Laboratory::simulate(const program::Bound& bound, const sim::Options& options,
                                 const Watch& watch) {
  tell(watch, {.kind = Step::Kind::simulating, .name = bound.name(), .bound = &bound});
  ++caches_->simulations;
  sim::Options watched = options;
  watched.monitor = watch.monitor;
  return sim::simulate(bound, watched);
}

Outcome Laboratory::run(const Experiment& experiment, const Watch& watch) {
  Notices notices;
  Watch own = watch;
  own.on_notices = [&](const Notices& found) { find(notices, found, watch); };
  Outcome outcome{.bound = prepare(experiment, own), .proof = nullptr, .result = {}, .notices = {}};
  const program::Bound& bound = outcome.bound;
  Verdict verdict;
  if (experiment.check) {
    tell(watch, {.kind = Step::Kind::checking, .name = bound.name(), .bound = &bound});
    verdict = this->verdict(bound, watch);
    own.on_notices(notices_of(*verdict.proof));
  }
  outcome.result = simulate(bound, experiment.options, watch);
  outcome.result.checked = experiment.check ? verdict.checked() : "skipped";
  outcome.proof = std::move(verdict.proof);
  outcome.proven_at = verdict.proven_at;
  outcome.notices = std::move(notices);
  return outcome;
}

void Laboratory::forget() {
  caches_->originals.clear();
  caches_->machines.clear();
  caches_->programs.clear();
  caches_->bindings.clear();
  caches_->facts.clear();
  caches_->verdicts.clear();
}

Laboratory::Made Laboratory::made() const {
  return {caches_->machines.made(), caches_->programs.made(), caches_->bindings.made(),
          caches_->verdicts.proofs(), caches_->simulations.load()};
}

std::string Step::text() const {
  if (kind == Kind::making) return "making " + name;
  std::string text = kind == Kind::checking ? "checking " : "simulating ";
  text += name;
  if (bound == nullptr) return text;
  text += " at " + to_string(bound->size());
  return bound->machine() == nullptr ? text : text + " on " + bound->machine()->name;
}

WrongProgram::WrongProgram(std::shared_ptr<const verify::Proof> proof, const std::string& source)
    : Failure("the program is wrong and was not simulated: " + proof->summary, {.file = source},
              "'hemiola check' prints the counterexample", exit_code_of(proof->verdict)),
      proof_(std::move(proof)) {}

Bytes default_size(const program::Program& program, DataType type) {
  if (program.fixed_size.count > 0) return program.fixed_size;
  const Bytes wanted =
      std::clamp(MiB(1), program.min_size, std::max(program.min_size, program.max_size));
  return program.next_legal_size(wanted, type);
}

Notices notices_of(const Diagnostics& found) {
  return found.items();
}

Notices notices_of(const verify::Proof& proof) {
  Notices notices = proof.warnings.items();
  for (const std::string& reason : proof.reasons)
    notices.push_back({Severity::note, "checked in part: " + reason, {}, {}});
  return notices;
}

}  // namespace hemiola::study
