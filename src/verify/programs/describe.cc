#include "verify/programs/describe.h"

namespace hemiola::verify {

using program::Bound;

std::string describe(const Bound& program, const Region& where) {
  const std::int64_t begin = program::memory_offset(where.begin, where.access);
  const std::int64_t end = begin + program::memory_size(where.end - where.begin, where.access);
  return std::string(is_packet(where.access) ? "packets at " : "") + "bytes [" +
         std::to_string(begin) + ", " + std::to_string(end) + ") of " +
         program.buffers()[index(where.buffer)].name + " of rank " + std::to_string(where.rank);
}

std::string describe(const Bound& program, program::SemaphoreId id) {
  const std::string& name = program.semaphores()[index(id.index)].name;
  return (name.empty() ? "semaphore " + std::to_string(id.index) : name) + " of rank " +
         std::to_string(id.rank);
}

std::string describe(const Interpreter& interpreter, const Workgroup& workgroup,
                     std::int32_t image) {
  return (workgroup.copies ? "copy queue " : "workgroup ") + std::to_string(workgroup.number) +
         " of rank " + std::to_string(interpreter.fold().rank(workgroup.rank, image));
}

Witness witness(const Interpreter& interpreter, const Workgroup& workgroup, std::int32_t image,
                std::int32_t op, std::string text) {
  const Bound& program = interpreter.program();
  Witness result;
  result.rank = interpreter.fold().rank(workgroup.rank, image);
  result.workgroup = workgroup.number;
  result.text = std::move(text);
  const auto& ops = program.bodies()[index(workgroup.body)].ops;
  if (op < 0 || index(op) >= ops.size()) return result;
  const program::Op& operation = ops[index(op)];
  result.operation = "op " + std::to_string(op) + " (" + std::string(name_of(operation.kind)) + ")";
  result.where = operation.where;
  return result;
}

std::string describe(const Bound& program, const Memory& memory, const std::vector<Term>& terms,
                     std::int64_t begin, std::int32_t call) {
  constexpr std::size_t kShown = 4;
  std::string text;
  for (std::size_t i = 0; i < terms.size() && i < kShown; ++i) {
    const Term& term = terms[i];
    if (i > 0) text += " + ";
    if (ValueTable::is_computed(term)) {
      text += "what rank " + std::to_string(ValueTable::computed_by(term)) + " computed";
    } else if (ValueTable::is_unwritten(term)) {
      Region origin = memory.memory_of(ValueTable::unwritten_memory(term));
      text += "memory that nobody wrote (" + program.buffers()[index(origin.buffer)].name +
              " of rank " + std::to_string(origin.rank) + " from byte " +
              std::to_string(program::memory_offset(begin + term.delta, origin.access)) + " on)";
    } else {
      text += "input of " + sources_of(term) + " from byte " + std::to_string(begin + term.delta) +
              " on";
      if (term.call != call) text += " of call " + std::to_string(term.call + 1);
    }
    if (term.count > 1) text += " (" + std::to_string(term.count) + " times)";
  }
  if (terms.size() > kShown) text += " + " + std::to_string(terms.size() - kShown) + " more";
  return text;
}

Finding describe(const Interpreter& interpreter, const Race& race) {
  const Bound& program = interpreter.program();
  const auto step = [&](const AccessRecord& access, const std::string& more) {
    const Workgroup& workgroup = interpreter.workgroups()[index(access.workgroup)];
    std::string text = interpreter.is_own(access) ? "" : "by its proxy ";
    text += (access.write ? "writes " : "reads ") + describe(program, race.where) + more;
    if (access.repetition > 0) text += " (call " + std::to_string(access.repetition + 1) + ")";
    return witness(interpreter, workgroup, access.image, access.op, std::move(text));
  };
  Finding finding;
  finding.steps.push_back(step(race.earlier, ""));
  const bool own = race.earlier.actor == race.later.actor && race.earlier.image == race.later.image;
  finding.steps.push_back(step(race.later, own ? "; another thread of the workgroup may come "
                                                 "first: no barrier of the workgroup lies between"
                                               : std::string("; nothing orders it after the ") +
                                                     (race.earlier.write ? "write" : "read")));
  finding.summary = "data race on " + describe(program, race.where) + ": " +
                    (race.earlier.write ? "a write and a " : "a read and a ") +
                    (race.later.write ? "write" : "read") + " that nothing orders";
  return finding;
}

}  // namespace hemiola::verify
