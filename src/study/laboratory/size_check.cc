#include "study/laboratory/size_check.h"

#include <algorithm>
#include <array>
#include <utility>

namespace hemiola::study {
namespace {

/// Primitives after which no further size is looked at beside the one that was asked for.
constexpr std::int64_t kCheap = 300'000;

/// Of one rank that stands for many, a primitive takes the longer the more they are.
std::int64_t cost_of(const verify::Proof& proof, int ranks) {
  const std::int64_t many = ranks / 32;
  return proof.operations * std::max<std::int64_t>(1, many * many);
}

bool is_wrong(const verify::Proof& proof) {
  return proof.verdict >= verify::Verdict::wrong;
}

/// Too long: so it is at other sizes, whatever they have in common.
bool was_not_looked_at(const verify::Proof& proof) {
  return proof.verdict == verify::Verdict::partial && proof.operations == 0;
}

class SizeChecker {
 public:
  SizeChecker(Laboratory& laboratory, const SharedProgram& program,
              const machine::SharedMachine& machine, const program::BindOptions& at,
              const verify::CheckOptions& options, const Watch& watch)
      : laboratory_(laboratory),
        program_(program),
        machine_(machine),
        at_(at),
        options_(options),
        watch_(watch) {
    if (watch.monitor != nullptr) options_.monitor = watch.monitor;
  }

  SizeCheck run() {
    program::Bound bound = bind(at_.size);
    if (watch_.on_notices && !bound.warnings().empty())
      watch_.on_notices(notices_of(bound.warnings()));
    auto proof = laboratory_.proof(bound, options_);
    SizeCheck check{.bound = std::move(bound), .proof = std::move(proof), .sizes = {}};
    if (is_wrong(*check.proof) || was_not_looked_at(*check.proof)) return check;
    check.sizes = verify::size_class(*program_, check.bound, *check.proof);
    if (cost_of(*check.proof, check.bound.ranks()) <= kCheap) look_beside(check);
    return check;
  }

 private:
  program::Bound bind(Bytes size) {
    program::Bound bound = laboratory_.bind(
        {.subject = program_, .size = size, .type = at_.type, .op = at_.op}, program_, machine_);
    if (watch_.on_step)
      watch_.on_step({.kind = Step::Kind::checking, .name = bound.name(), .bound = &bound});
    return bound;
  }

  struct There {
    program::Bound bound;
    std::shared_ptr<const verify::Proof> proof;
  };
  /// Nothing where the size is none for this program.
  std::optional<There> there(Bytes size) {
    try {
      program::Bound bound = bind(size);
      auto proof = laboratory_.proof(bound, options_);
      return There{std::move(bound), std::move(proof)};
    } catch (const Failure&) {
      return std::nullopt;
    }
  }

  /// Sizes at which the program does something else than at the one that was proven.
  void look_beside(SizeCheck& check) {
    for (const Bytes size : verify::sizes_beside(*program_, check.bound, *check.sizes)) {
      if (size > check.sizes->max) continue;
      const std::optional<There> beside = there(size);
      if (!beside) continue;
      if (is_wrong(*beside->proof)) {
        check.wrong_beside = {size, beside->proof};
        return;
      }
      check.beside.push_back(size);
    }
    look_above(check);
  }

  void look_above(SizeCheck& check) {
    const int ranks = check.bound.ranks();
    std::int64_t spent = cost_of(*check.proof, ranks);
    while (spent <= kCheap && check.sizes->why.empty() && !check.sizes->open()) {
      const Bytes multiple = check.sizes->multiple;
      const Bytes size = multiple.count > 0 ? check.sizes->max + multiple
                                            : program_->next_legal_size(check.sizes->max + Bytes{1},
                                                                        check.bound.type());
      const std::optional<There> above = there(size);
      if (!above) return;
      if (is_wrong(*above->proof)) {
        check.wrong_beside = {size, above->proof};
        return;
      }
      spent += cost_of(*above->proof, ranks);
      const verify::SizeClass next = verify::size_class(*program_, above->bound, *above->proof);
      if (!next.why.empty() ||
          multiple.count % std::max<std::int64_t>(next.multiple.count, 1) != 0 ||
          (multiple.count == 0 && next.multiple.count > 0)) {
        check.beside.push_back(size);
        return;
      }
      check.sizes->max = next.max;
    }
  }

  Laboratory& laboratory_;
  const SharedProgram& program_;
  const machine::SharedMachine& machine_;
  const program::BindOptions& at_;
  verify::CheckOptions options_;
  const Watch& watch_;
};

}  // namespace

SizeCheck check_size(Laboratory& laboratory, const SharedProgram& program,
                     const machine::SharedMachine& machine, const program::BindOptions& at,
                     const verify::CheckOptions& options, const Watch& watch) {
  return SizeChecker(laboratory, program, machine, at, options, watch).run();
}

ExitCode exit_code_of(verify::Verdict verdict) {
  constexpr std::array kCodes{ExitCode::done, ExitCode::not_proven, ExitCode::wrong_program,
                              ExitCode::deadlock};
  return kCodes.at(index(verdict));
}

ExitCode worse(ExitCode a, ExitCode b) {
  const auto rank = [](ExitCode code) {
    return code == ExitCode::not_proven ? 1 : 2 * static_cast<int>(code);
  };
  return rank(a) < rank(b) ? b : a;
}

}  // namespace hemiola::study
