// One check of a plan, from what is resident to a verdict.
#include <optional>

#include "plan/in_place.h"
#include "verify/plans/coarse_tiles.h"
#include "verify/plans/interpreter.h"
#include "verify/plans/postconditions.h"

namespace hemiola::verify {
namespace {

class PlanCheck {
 public:
  explicit PlanCheck(const plan::Plan& plan)
      : plan_(plan),
        unrolled_(plan),
        postconditions_(postconditions(plan, no_postconditions_)),
        atoms_(unrolled_, alignment(plan, postconditions_)),
        interpreter_(unrolled_, atoms_) {}

  Proof run(const Monitor* monitor) {
    const PlanInterpreter::End end = interpreter_.run(monitor);
    proof_.operations = interpreter_.operations();
    if (end == PlanInterpreter::End::wrong)
      proof_.found(Verdict::wrong, *interpreter_.fault());
    else if (end == PlanInterpreter::End::stuck)
      proof_.found(Verdict::deadlock, interpreter_.explain_deadlock());
    else if (const auto left = interpreter_.left_in_transit())
      proof_.found(Verdict::wrong, *left);
    else if (const auto mixed = look_at_transfers())
      proof_.found(Verdict::wrong, *mixed);
    else if (plan::states_result(plan_) ? check_expectations() : check_promises())
      conclude();
    return std::move(proof_);
  }

 private:
  /// One operator makes up a collective, and it leaves the caller's input as it is.
  std::optional<Finding> look_at_transfers() {
    std::vector<bool> seen(plan_.codes.size());
    std::optional<Event> first, other, overwrites;
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      const auto code = index(plan_.code_of[index(rank)]);
      if (seen[code]) continue;
      seen[code] = true;
      const auto streams = static_cast<std::int32_t>(plan_.codes[code].streams.size());
      for (std::int32_t s = unrolled_.stream(rank, 0); s < unrolled_.stream(rank, streams); ++s) {
        for (TransferId id{s, 0}; id.number < unrolled_.transfers(s); ++id.number) {
          const plan::Transfer& transfer = unrolled_.transfer(id);
          const Event event{s, id.number};
          if (role_of(transfer.destination) == plan::Role::input && !overwrites) overwrites = event;
          if (transfer.reduce == ReduceOp::none) continue;
          if (!first) {
            first = event;
            operator_ = transfer.reduce;
          } else if (transfer.reduce != operator_ && !other) {
            other = event;
          }
        }
      }
    }
    const bool custom = plan_.collective == Collective::custom;
    if (overwrites && !custom) warn_of_overwritten_input(*overwrites);
    if (!other) return std::nullopt;
    const std::string what = "reductions with " + word_of(*first) + " and with " + word_of(*other);
    if (custom) {
      proof_.reasons.push_back(what + ": which of them is expected where is not said");
      return std::nullopt;
    }
    return Finding{what + " in one " + std::string(name_of(plan_.collective)),
                   {interpreter_.witness(*first, "reduces with " + word_of(*first)),
                    interpreter_.witness(*other, "reduces with " + word_of(*other))}};
  }

  plan::Role role_of(const plan::Region& region) const {
    return plan_.tensors[index(region.tensor)].role;
  }
  std::string word_of(Event event) const {
    return std::string(name_of(unrolled_.transfer({event.actor, event.number}).reduce));
  }

  void warn_of_overwritten_input(Event event) {
    const plan::Transfer& transfer = unrolled_.transfer({event.actor, event.number});
    const Witness place = interpreter_.witness(event, "");
    proof_.warnings.warning(
        place.operation + " of rank " + std::to_string(place.rank) +
            " overwrites the caller's input, tensor '" +
            plan_.tensors[index(transfer.destination.tensor)].name +
            "', though the plan has an output of its own",
        {plan_.name, 0, 0, place.where},
        "a caller who uses its input again finds other data there; write to a scratch tensor "
        "instead");
  }

  /// False if something is wrong.
  bool check_promises() {
    if (!no_postconditions_.empty()) {
      proof_.reasons.push_back("what is promised is not known: " + no_postconditions_);
      return true;
    }
    const auto atoms_of = [&](const std::vector<plan::Area>& areas) {
      std::vector<std::vector<std::int32_t>> all;
      for (const plan::Area& area : areas) all.push_back(atoms_.of(area));
      return all;
    };
    const auto inputs = atoms_of(postconditions_.inputs),
               outputs = atoms_of(postconditions_.outputs);
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      for (const plan::Postcondition& promise : postconditions_.of[index(rank)]) {
        const auto& from = inputs[index(promise.input)];
        const auto& to = outputs[index(promise.output)];
        Value wanted = interpreter_.contributions(promise.first, promise.ranks);
        for (std::size_t i = 0; i < to.size(); ++i) {
          wanted.shift = from[i];
          if (interpreter_.cell(rank, to[i]).value != wanted) return wrong(rank, to[i], wanted);
        }
      }
    }
    std::string how;  // sum is what nccl-tests runs, and what need not be said
    if (operator_ != ReduceOp::none && operator_ != ReduceOp::sum)
      how = ", reduced with " + std::string(name_of(operator_));
    proof_.proven.push_back("each chunk of the result holds each contribution exactly once" + how);
    return true;
  }

  bool check_expectations() {
    bool any = false;
    std::vector<bool> unknown(plan_.tensors.size());
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      for (const plan::Expectation& expectation : plan_.code(rank).expected) {
        any = true;
        for (const auto& [atom, meaning] : interpreter_.meanings(expectation, rank)) {
          const Value value = interpreter_.cell(rank, atom).value;
          const Value owners = interpreter_.owners(meaning.source);
          if (!value.defined()) return wrong(rank, atom, owners);
          if (!owners.defined()) {
            unknown[index(atoms_.tensor(atom))] = true;
            continue;
          }
          if (!interpreter_.is_right(value, meaning)) return wrong(rank, atom, owners);
        }
      }
    }
    if (!any) proof_.reasons.push_back("what is promised is not known: " + no_postconditions_);
    for (const std::string& one : plan_.unjudged) proof_.reasons.push_back(one);
    for (std::size_t t = 0; t < unknown.size(); ++t) {
      if (unknown[t])
        proof_.reasons.push_back("no rank holds or computes '" + plan_.tensors[t].name +
                                 "', so that what belongs there is not known");
    }
    if (any) proof_.proven.push_back("every rank ends with what it expects");
    return true;
  }

  bool wrong(int rank, std::int32_t atom, Value wanted) {
    const PlanCell& cell = interpreter_.cell(rank, atom);
    Finding finding{"wrong result: " + interpreter_.describe(rank, atom) + " holds " +
                        interpreter_.describe(cell.value) + ", not " +
                        interpreter_.describe(wanted),
                    {}};
    if (cell.writer.actor >= 0) {
      finding.steps.push_back(interpreter_.witness(
          cell.writer, "is the last to write " + interpreter_.describe(rank, atom)));
    } else {
      Witness nobody;
      nobody.rank = rank;
      nobody.workgroup = -1;
      nobody.text = "no transfer writes " + interpreter_.describe(rank, atom);
      finding.steps.push_back(nobody);
    }
    proof_.found(Verdict::wrong, finding);
    return false;
  }

  void conclude() {
    proof_.proven.push_back("no two accesses that conflict are unordered");
    proof_.proven.push_back("no transfers and tiles wait for each other");
    for (const std::int32_t tensor : interpreter_.unknown_inputs())
      proof_.reasons.push_back("tiles read '" + plan_.tensors[index(tensor)].name +
                               "', which no rank holds or computes at the start: what belongs "
                               "there is not known");
    if (interpreter_.repeated() > 0) {
      const Finding& first = *interpreter_.first_repeated();
      proof_.warnings.warning(
          first.summary + " (" + std::to_string(interpreter_.repeated()) + " such in all)",
          {plan_.name, 0, 0, first.steps.front().where}, "leave the transfer out");
    }
    proof_.conclude();
  }

  const plan::Plan& plan_;
  std::string no_postconditions_;
  Unrolled unrolled_;
  Postconditions postconditions_;
  Atoms atoms_;
  PlanInterpreter interpreter_;
  ReduceOp operator_ = ReduceOp::none;  ///< of the first transfer that reduces
  Proof proof_;
};

}  // namespace

Proof check_tile_by_tile(const plan::Plan& plan, const Monitor* monitor) {
  return PlanCheck(plan).run(monitor);
}

// What is wrong is told in the plan's own tiles.
Proof check(const plan::Plan& plan, const Monitor* monitor) {
  if (const std::optional<plan::Plan> coarse = with_coarse_tiles(plan)) {
    Proof proof = PlanCheck(*coarse).run(monitor);
    if (proof.verdict == Verdict::proven) return proof;
  }
  return check_tile_by_tile(plan, monitor);
}

}  // namespace hemiola::verify
