#include "library/checker.h"

#include <memory>
#include <string>
#include <utility>

#include "library/convert.h"
#include "library/implementations.h"
#include "library/linked.h"
#include "library/watching.h"
#include "plan/template.h"
#include "program/promise.h"
#include "study/laboratory/size_check.h"
#include "verify/verify.h"

namespace hemiola {
namespace {

/// Proofs of one program: of its plan, if there is one that says more, and of what runs.
class Checker {
 public:
  Checker(study::Laboratory& laboratory, const CheckOptions& options)
      : laboratory_(laboratory),
        options_(options),
        watch_{.stop = options.stop},
        watching_(watch_) {
    if (options.machine) inner_.machine.given = options.machine->implementation().machine;
    constexpr int kDefaultRanks = 8;
    const int ranks = options.ranks > 0 ? options.ranks : kDefaultRanks;
    if (!options.machine) inner_.machine.ranks = std::to_string(ranks);
    ranks_ = options.machine ? options.machine->ranks() : ranks;
    if (options.size.count > 0) inner_.size = options.size;
    inner_.type = options.type;
    inner_.op = options.op;
  }

  std::vector<Proof> check(const Program& program) {
    const Program::Implementation& self = program.implementation();
    inner_.parameters = program.parameters();
    if (!options_.promise.empty()) {
      check_promise(self);
      return std::move(proofs_);
    }
    if (self.plan != nullptr) check_plan(self.name, self.plan, self.plan);
    if (self.program != nullptr || self.job)
      check_program(self.name, subject_of(laboratory_, self, inner_, watching_.inner));
    for (const std::string& name : self.built_ins) {
      // Of a template of elements the plan says what the result has to be; its program does not.
      const plan::TemplateInfo* info = plan::find_template(name, laboratory_.parts());
      if (!options_.machine && self.built_ins.size() > 1 && info != nullptr && info->needs_machine)
        continue;
      if (info != nullptr && !info->in_chunks)
        check_plan(name, made(name), name);
      else
        check_program(name, name);
    }
    return std::move(proofs_);
  }

 private:
  void check_promise(const Program::Implementation& self) {
    if (self.program == nullptr)
      throw Failure(self.name + " says itself what it leaves", {.file = options_.promise},
                    "a promise is for a custom program of a file");
    program::Program promised = *self.program;
    program::promise(promised, options_.promise);
    check_program(self.name, std::make_shared<const program::Program>(std::move(promised)));
  }

  std::shared_ptr<const plan::Plan> made(const std::string& name) {
    return std::make_shared<const plan::Plan>(plan::make(name, ranks_, inner_.parameters,
                                                         inner_.machine.given.get(), {},
                                                         &watching_.monitor, laboratory_.parts()));
  }

  void check_plan(const std::string& name, const std::shared_ptr<const plan::Plan>& plan,
                  const study::Subject& subject) {
    watching_.monitor.leave_if_stopping();
    proofs_.push_back(public_proof(verify::check(*plan, &watching_.monitor), name));
    proofs_.back().of_plan = true;
    const bool right = proofs_.back().verdict <= Verdict::partial;
    if (options_.machine && right) check_program(name, subject);
  }

  void check_program(const std::string& name, const study::Subject& subject) {
    watching_.monitor.leave_if_stopping();
    inner_.subject = subject;
    const verify::CheckOptions how{.calls = options_.calls, .monitor = &watching_.monitor};
    if (std::holds_alternative<program::Bound>(subject)) {  // a job
      const program::Bound bound = laboratory_.prepare(inner_, watching_.inner);
      proofs_.push_back(public_proof(*laboratory_.proof(bound, how), name));
      return;
    }
    const study::SharedProgram program =
        laboratory_.program(inner_, inner_.machine.given, watching_.inner);
    const program::BindOptions at{
        inner_.size ? *inner_.size : study::default_size(*program, inner_.type), inner_.type,
        inner_.op};
    add(name,
        study::check_size(laboratory_, program, inner_.machine.given, at, how, watching_.inner));
  }

  /// At its size; and at the first other one that was looked at where it is wrong: a warning, or,
  /// where no size was asked for, a proof of its own.
  void add(const std::string& name, const study::SizeCheck& found) {
    Proof proof = public_proof(*found.proof, name);
    proof.size = found.bound.size();
    proof.looked_at = found.beside;
    if (found.sizes) {
      proof.sizes = SizeRange{.min = found.sizes->min,
                              .max = {},
                              .why_one = found.sizes->why,
                              .multiple = found.sizes->multiple};
      if (!found.sizes->open()) proof.sizes->max = found.sizes->max;
    }
    const auto& other = found.wrong_beside;
    if (other && inner_.size)
      proof.warnings.push_back(
          {.severity = Severity::warning,
           .message = "at " + to_string(other->size) + " it is wrong: " + other->proof->summary,
           .where = {.file = name},
           .hint = "check it at that size for the counterexample"});
    proofs_.push_back(std::move(proof));
    if (!other || inner_.size) return;
    proofs_.push_back(public_proof(*other->proof, name));
    proofs_.back().size = other->size;
  }

  study::Laboratory& laboratory_;
  const CheckOptions& options_;
  Watch watch_;
  Watching watching_;
  study::Experiment inner_;
  int ranks_ = 0;
  std::vector<Proof> proofs_;
};

}  // namespace

std::vector<Proof> check_with(study::Laboratory& laboratory, const Program& program,
                              const CheckOptions& options) {
  return Checker(laboratory, options).check(program);
}

}  // namespace hemiola
