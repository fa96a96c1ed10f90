// One way to run an experiment: what is run, on which machine, at which size; the proof, and then
// the result of its simulation.
//
// Every verb, the microbenchmarks, the chooser of `*/synth` and the library's users go through a
// Laboratory to load machines, to load, make and bind programs, to prove them and to simulate them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/data_type.h"
#include "core/diagnostics.h"
#include "core/monitor.h"
#include "core/units.h"
#include "machine/machine.h"
#include "program/bind/bound.h"
#include "sim/simulate.h"
#include "study/laboratory/settings.h"
#include "verify/verify.h"

namespace hemiola::plan {
struct Plan;
}

namespace hemiola::study {

/// Which machine, and what is changed of it.
struct MachineChoice {
  std::string name{};  ///< a shipped machine or a file; empty, without `given`: none
  std::string gpu{};   ///< device model (name or file) of GPUs that name none; empty: the default
  machine::SharedMachine given{};  ///< in place of `name` and `gpu`: one that is there already
  Settings settings{};             ///< parameters that are set then, in this order
  std::string ranks{};  ///< the first "8" GPUs, or a list "0,2,4-7"; empty: all. Without a machine:
                        ///< how many ranks built-ins are made for
};

using SharedPlan = std::shared_ptr<const plan::Plan>;
using SharedProgram = std::shared_ptr<const program::Program>;

/// What is run. All of it becomes a program::Bound before it is proven and simulated.
using Subject = std::variant<std::string,    ///< a built-in ("all-reduce/ring") or a file
                             SharedPlan,     ///< lowered for the machine
                             SharedProgram,  ///< bound to the machine
                             program::Bound  ///< as it is; machine, size, type and op are its own
                             >;

struct Experiment {
  MachineChoice machine{};
  Subject subject{};
  Settings parameters{};        ///< of a built-in, or of the lowering of a plan: "channels", "8"
  std::optional<Bytes> size{};  ///< what nccl-tests calls size; nothing: default_size()
  bool round_size = false;  ///< for a size that the program cannot take, the next one that it can
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
  /// Asked of names that do several (`auto/...`); custom: the name or its parameters say it.
  Collective collective = Collective::custom;
  std::string promise{};  ///< a file that says what a custom program leaves; empty: none
  bool check = true;      ///< false: simulated without a proof, and the result says so
  /// What `trace`, `record` and `replay` point to is the caller's, and outlives the run. `monitor`
  /// is not read: Watch has it.
  sim::Options options{};
};

/// Warnings and notes beside a result, in the order in which they were found, each once.
using Notices = std::vector<Diagnostic>;

struct Outcome {
  program::Bound bound;
  std::shared_ptr<const verify::Proof> proof;  ///< proven or partial; null: not asked for
  Bytes proven_at{};   ///< the size of the proof: that of `bound`, or another one of its class
  sim::Result result;  ///< its `checked` says what the proof came to
  Notices notices;     ///< of machine, program and proof; why it is proven in part
};

/// What begins, for who watches.
struct Step {
  enum class Kind : std::uint8_t { making, checking, simulating };
  Kind kind = Kind::making;
  std::string name;                       ///< of the program
  const program::Bound* bound = nullptr;  ///< what is checked or simulated; making: null
  std::string text() const;               ///< "simulating all-reduce/ring at 1 MiB on dgx-h100"
};

/// Called in the thread that runs the experiment; what they throw leaves it.
struct Watch {
  std::function<void(const Step&)> on_step{};
  std::function<void(const Notices&)> on_notices{};  ///< each as soon as it is found
  Monitor* monitor = nullptr;  ///< of the simulation; its `stop` ends what else takes long, too
};

/// The program is wrong, or has a wait that cannot end (exit codes 3 and 4): it was not simulated.
class WrongProgram : public Failure {
 public:
  WrongProgram(std::shared_ptr<const verify::Proof> proof, const std::string& source);
  const verify::Proof& proof() const { return *proof_; }  ///< with the counterexample

 private:
  std::shared_ptr<const verify::Proof> proof_;
};

/// Runs experiments, and keeps what several of them need: machines, programs, bindings, proofs.
/// Results do not depend on what is kept, nor on who ran what before.
///
/// Every function may be called from several threads at a time. What is handed out is immutable,
/// shared, and outlives the laboratory. Files are read when they are first named: forget() after
/// they were changed. What was asked for last is kept, up to some number of each kind.
///
/// * A machine is known by its choice; one that is `given`, by its address.
/// * A program is known by its name (a plan by its address), parameters and collective, and by what
///   making it asks of the machine (making_facts()), or the number of ranks; one that is derived
///   from the machine (`*/synth`) by the machine itself, size, type and operator.
/// * A binding is known by its program and machine (addresses, which the entry keeps alive), size,
///   type and operator.
/// * A proof is known by all that it depends on, so that it serves other machines and makings of
///   the same program: the contents of the bound program (identity_of()), its size, type and
///   operator as bound, what a proof asks of the machine (proof_facts()), and CheckOptions. With
///   verdict() it serves every size of its class, too (verify::size_class()), where the class is
///   known and the proof has neither warnings nor reasons, which may tell of sizes.
class Laboratory {
 public:
  /// `parts`: what names mean; they outlive the laboratory. Null: the built-ins.
  explicit Laboratory(const parts::Registry* parts = nullptr);
  ~Laboratory();
  Laboratory(const Laboratory&) = delete;
  Laboratory& operator=(const Laboratory&) = delete;

  /// All of it. Failure: what cannot be loaded, made, bound or simulated, with the exit code;
  /// WrongProgram. Interrupted when the monitor asks for it.
  Outcome run(const Experiment& experiment, const Watch& watch = {});

  // Its steps, for those who need what is between.

  /// Null where none is chosen. Failure: one without GPUs, and what machine::load(), set() and
  /// place() refuse.
  machine::SharedMachine machine(const MachineChoice& choice);
  /// Unbound. `machine`: what machine() gave; null: for so many ranks as the choice says. Not of a
  /// Bound. Programs that choose among plans (`*/synth`) do so by simulation, at the experiment's
  /// size unless a parameter says one.
  SharedProgram program(const Experiment& experiment, const machine::SharedMachine& machine,
                        const Watch& watch = {});
  /// What program() loads a built-in with: for who wants its plan (program::plan_of_built_in()). A
  /// judge among it simulates until `stop` is set, and needs the laboratory.
  program::LoadOptions load_options(const Experiment& experiment,
                                    const machine::SharedMachine& machine,
                                    const std::atomic<bool>* stop = nullptr);
  /// At the experiment's size, rounded if it says so. Failure: Options::skew for more ranks than
  /// there are.
  program::Bound bind(const Experiment& experiment, const SharedProgram& program,
                      const machine::SharedMachine& machine);
  /// These three; a Bound is handed through. Notices of machine and program go to the watch.
  program::Bound prepare(const Experiment& experiment, const Watch& watch = {});

  /// As verify::check(), once for all that are the same.
  std::shared_ptr<const verify::Proof> proof(const program::Bound& bound,
                                             const verify::CheckOptions& options = {});
  struct Verdict {
    std::shared_ptr<const verify::Proof> proof;
    Bytes proven_at{};
    std::string checked() const;  ///< "full" or "partial"
  };
  /// The same, or that of another size of the class. WrongProgram.
  Verdict verdict(const program::Bound& bound, const Watch& watch = {});

  /// As sim::simulate().
  sim::Result simulate(const program::Bound& bound, const sim::Options& options,
                       const Watch& watch = {});

  void forget();
  const parts::Registry* parts() const { return parts_; }

  /// How often something was made since the laboratory was; the rest came from the caches.
  struct Made {
    std::int64_t machines = 0, programs = 0, bindings = 0, proofs = 0, simulations = 0;
  };
  Made made() const;

 private:
  struct Caches;
  std::unique_ptr<Caches> caches_;
  const parts::Registry* parts_;
};

/// As Laboratory::machine() makes it of a choice that is one, also without GPUs.
machine::Machine load_machine(const MachineChoice& choice);

/// The legal size nearest above 1 MiB that the program's own range allows.
Bytes default_size(const program::Program& program, DataType type);

/// Notices of a list, and of a proof: its warnings, and "checked in part: ..." for each reason.
Notices notices_of(const Diagnostics& found);
Notices notices_of(const verify::Proof& proof);

}  // namespace hemiola::study
