#include "study/preparation.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/template.h"
#include "study/simulated_time.h"

namespace hemiola::study {

machine::Machine with_first_ranks(machine::Machine machine, int ranks) {
  std::vector<int> first(static_cast<std::size_t>(ranks));
  std::iota(first.begin(), first.end(), 0);
  machine.place(first);
  return machine;
}

std::string to_text(const Settings& settings) {
  std::string text;
  for (const auto& [name, value] : settings) text += (text.empty() ? "" : " ") + name + '=' + value;
  return text;
}

program::LoadOptions load_options(const std::string& name, Settings parameters, int ranks,
                                  machine::SharedMachine machine, DataType type, ReduceOp op,
                                  std::optional<Bytes> size, const std::atomic<bool>* stop) {
  program::LoadOptions load{
      .ranks = ranks, .parameters = std::move(parameters), .machine = machine};
  const plan::TemplateInfo* info = plan::find_template(name);
  if (info == nullptr || !info->needs_machine || machine == nullptr) return load;
  const auto stated = [&load](std::string_view parameter) {
    return std::any_of(load.parameters.begin(), load.parameters.end(),
                       [&](const auto& p) { return p.first == parameter; });
  };
  if (size && !stated("size")) {
    load.parameters.emplace_back("size", std::to_string(size->count));
    if (!stated("blocks")) load.parameters.emplace_back("blocks", "uneven");
  }
  load.judge = [machine, type, op, stop](const program::Program& program, Bytes at) {
    return simulated_time(machine, program, at, type, op, stop);
  };
  return load;
}

Bytes round_up(const program::Program& program, const program::BindOptions& wanted) {
  program::BindOptions at = wanted;
  at.type = program.fixed_type.value_or(wanted.type);
  while (true) {  // a program that follows the size may be another one at the size above
    const Bytes next = program.follows_size() ? program.sized(at).next_legal_size(at.size, at.type)
                                              : program.next_legal_size(at.size, at.type);
    if (next == at.size) return next;
    at.size = next;
  }
}

std::string rounding_note(Bytes asked, Bytes taken, const std::string& program) {
  return to_string(asked) + " is run as " + to_string(taken) + ", the next size that " + program +
         " takes";
}

void check_skew(std::span<const Time> skew, int ranks, const SourceLocation& where) {
  if (std::ssize(skew) <= ranks) return;
  throw Failure("lists " + std::to_string(skew.size()) + " starts, but the program has " +
                    std::to_string(ranks) + " ranks",
                where);
}

std::string checked_by(const verify::Proof& proof, const std::string& source) {
  const bool deadlock = proof.verdict == verify::Verdict::deadlock;
  if (deadlock || proof.verdict == verify::Verdict::wrong)
    throw Failure("the program is wrong and was not simulated: " + proof.summary, {.file = source},
                  "'hemiola check' prints the counterexample",
                  deadlock ? ExitCode::deadlock : ExitCode::wrong_program);
  return proof.verdict == verify::Verdict::proven ? "full" : "partial";
}

std::string weaker(const std::string& a, const std::string& b) {
  if (a.empty() || b == "skipped") return b;
  return a == "full" ? b : a;
}

}  // namespace hemiola::study
