#include "verify/programs/postcondition.h"

#include <algorithm>

#include "plan/postconditions.h"
#include "plan/segments.h"

namespace hemiola::verify {
namespace {

using program::Bound;
using program::BufferKind;

std::optional<std::int32_t> find(const Bound& program, BufferKind kind) {
  for (std::size_t i = 0; i < program.buffers().size(); ++i)
    if (program.buffers()[i].kind == kind) return static_cast<std::int32_t>(i);
  return std::nullopt;
}

std::int64_t input_bytes(const Bound& program, std::int32_t buffer, int rank) {
  switch (program.collective()) {
    case Collective::all_gather:
      return program.size().count / program.ranks();
    case Collective::custom:
      return program.chunks_of(buffer, rank) * program.chunk_bytes();
    default:
      return program.size().count;
  }
}

/// Where `bytes` of a buffer really are.
Region place(const Bound& program, std::int32_t buffer, int rank, std::int64_t bytes) {
  const program::Frame::Place at = program.resolve(buffer, 0, rank);
  const std::int64_t size = program.memory_bytes(at.buffer, rank);
  return {rank, at.buffer, program::Access::plain, at.offset, std::min(at.offset + bytes, size)};
}

std::optional<std::int32_t> output_buffer(const Bound& program) {
  const auto output = find(program, BufferKind::output);
  return output ? output : find(program, BufferKind::input);
}

}  // namespace

std::vector<OutputPostcondition> postconditions(const Bound& program, int rank) {
  std::vector<OutputPostcondition> result;
  if (const program::Promise* const promise = program.program().promise.get()) {
    const std::int64_t chunk = program.chunk_bytes();
    for (const program::PromisedRegion& region : promise->of[index(rank)])
      result.push_back({region.begin * chunk,
                        (region.begin + region.chunks) * chunk,
                        region.from.front().first,
                        region.from.front().ranks,
                        region.source * chunk,
                        {region.from.begin() + 1, region.from.end()}});
    return result;
  }
  const auto [inputs, outputs] = plan::parts_of(program.collective(), program.ranks());
  const std::int64_t part = program.size().count / std::max(inputs, outputs);
  const auto root = static_cast<std::int32_t>(program.program().root);
  for (const plan::Postcondition& promise :
       plan::postconditions_of(program.collective(), program.ranks(), root, rank))
    result.push_back({promise.output * part,
                      (promise.output + 1) * part,
                      promise.first,
                      promise.ranks,
                      promise.input * part,
                      {}});
  return result;
}

namespace {

std::string in_chunks(std::int64_t bytes, std::int64_t chunk_bytes) {
  if (chunk_bytes <= 0 || bytes % chunk_bytes != 0) return std::to_string(bytes) + " bytes";
  const std::int64_t chunks = bytes / chunk_bytes;
  return std::to_string(chunks) + (chunks == 1 ? " chunk" : " chunks");
}

[[noreturn]] void wrong_shape(const Bound& program, int rank, const std::string& buffer,
                              std::int64_t has, std::int64_t needs) {
  throw Failure("buffer '" + buffer + "' of rank " + std::to_string(rank) + " has " +
                    in_chunks(has, program.chunk_bytes()) + "; " +
                    std::string(name_of(program.collective())) + " among " +
                    std::to_string(program.ranks()) + " ranks needs " +
                    in_chunks(needs, program.chunk_bytes()),
                {program.source(), 0, 0, ""},
                "give the buffer that many chunks, or name the collective that the program is");
}

/// A promise names no more than there is.
void require_promised(const Bound& program, int rank) {
  const auto refuse = [&](const std::string& what, std::int64_t bytes) {
    throw Failure("the promise of rank " + std::to_string(rank) + " names " +
                      in_chunks(bytes, program.chunk_bytes()) + " of " + what,
                  {program.source(), 0, 0, ""},
                  "chunks are those of the program's buffers, from 0");
  };
  for (const OutputPostcondition& promise : postconditions(program, rank)) {
    const std::optional<Region> output = output_place(program, rank);
    if (!output || output->begin + promise.end > output->end)
      refuse("its output, which ends before", promise.end);
    for (const program::RankRange& ranks : promise.from()) {
      for (std::int32_t peer = ranks.first; peer < ranks.first + ranks.ranks; ++peer) {
        std::int64_t has = 0;
        for (const Region& input : input_places(program, peer))
          has = std::max(has, input.end - input.begin);
        const std::int64_t needs = promise.source + promise.end - promise.begin;
        if (needs > has)
          refuse("the input of rank " + std::to_string(peer) + ", which ends before", needs);
      }
    }
  }
}

}  // namespace

void require_shapes(const Bound& program) {
  if (!has_postcondition(program)) return;
  if (program.program().promise != nullptr) {
    for (int rank = 0; rank < program.ranks(); ++rank) require_promised(program, rank);
    return;
  }
  for (int rank = 0; rank < program.ranks(); ++rank) {
    const std::optional<Region> output = output_place(program, rank);
    if (!output) return;
    std::int64_t end = 0;
    for (const OutputPostcondition& promise : postconditions(program, rank))
      end = std::max(end, promise.end);
    if (output->begin + end > output->end)
      wrong_shape(program, rank, program.buffers()[index(output->buffer)].name,
                  output->end - output->begin, end);
    const bool contributes =
        program.collective() != Collective::broadcast || rank == program.program().root;
    for (const Region& input : input_places(program, rank)) {
      const std::int64_t needs = input_bytes(program, input.buffer, rank);
      const std::int64_t has = input.end - input.begin;
      if (contributes && has > 0 && has < needs)
        wrong_shape(program, rank, program.buffers()[index(input.buffer)].name, has, needs);
    }
  }
}

std::vector<Region> input_places(const Bound& program, int rank) {
  std::vector<Region> result;
  for (std::size_t i = 0; i < program.buffers().size(); ++i) {
    const auto buffer = static_cast<std::int32_t>(i);
    if (program.buffers()[i].kind == BufferKind::input)
      result.push_back(place(program, buffer, rank, input_bytes(program, buffer, rank)));
  }
  return result;
}

std::optional<Region> output_place(const Bound& program, int rank) {
  const auto buffer = output_buffer(program);
  if (!buffer) return std::nullopt;
  return place(program, *buffer, rank, INT64_MAX / 4);
}

namespace {

/// What is wrong with the contributions, in words; "" if nothing.
std::string difference(const Bound& program, const Memory& memory, const ValueTable& values,
                       const std::vector<Term>& terms, const OutputPostcondition& promise,
                       std::int64_t begin, std::int64_t output_begin) {
  const std::int64_t delta = promise.source - promise.begin - output_begin;
  const std::int32_t call = values.call();
  const std::vector<program::RankRange> from = promise.from();
  if (std::equal(terms.begin(), terms.end(), from.begin(), from.end(),
                 [&](const Term& term, const program::RankRange& ranks) {
                   return term == Term{ranks.first, ranks.ranks, delta, 1, call};
                 }))
    return "";
  std::string text = "holds " + describe(program, memory, terms, begin, call);
  const auto count_of = [&](std::int32_t rank) {
    std::int64_t count = 0;
    for (const Term& term : terms) {
      const bool there = term.delta == delta && term.call == call && rank >= term.source &&
                         rank < term.source + term.sources;
      if (there) count += term.count;
    }
    return count;
  };
  for (const program::RankRange& ranks : from) {
    for (std::int32_t rank = ranks.first; rank < ranks.first + ranks.ranks; ++rank) {
      const std::int64_t count = count_of(rank);
      if (count == 1) continue;
      text += count == 0 ? ", misses" : ", has " + std::to_string(count) + " times";
      return text + " the contribution of rank " + std::to_string(rank) + " (its input from byte " +
             std::to_string(begin + delta) + " on)";
    }
  }
  return text + ", and more than " +
         (program.program().promise != nullptr ? "is promised" : "the collective asks for");
}

Finding wrong_output(const Interpreter& interpreter, const Memory& memory, const Region& where,
                     const Cell* cell, const std::string& text) {
  Finding finding;
  finding.summary = "wrong result: " + describe(interpreter.program(), where) + " " + text;
  if (cell == nullptr || cell->writer < 0) {
    Witness nobody;
    nobody.rank = where.rank;
    nobody.workgroup = -1;
    nobody.text = "no workgroup writes " + describe(interpreter.program(), where);
    finding.steps.push_back(nobody);
    return finding;
  }
  const AccessRecord& writer = memory.access(cell->writer);
  const Workgroup& workgroup = interpreter.workgroups()[index(writer.workgroup)];
  finding.steps.push_back(witness(
      interpreter, workgroup, writer.image, writer.op,
      "is the last to write " + describe(interpreter.program(), where) + ", which then " + text));
  return finding;
}

/// Whether the last store into a cell may come after an end of kernels.
bool is_late(const Memory& memory, const Cell& cell, const Clock& end) {
  if (cell.writer < 0) return false;
  const AccessRecord& writer = memory.access(cell.writer);
  return end.all(writer.actor, writer.image) <= writer.segment;
}

std::optional<Finding> check_promise(const Interpreter& interpreter, const Memory& memory,
                                     const ValueTable& values, const Clock& end,
                                     const Region& output, const OutputPostcondition& promise) {
  Region where = output;
  where.begin = output.begin + promise.begin;
  where.end = output.begin + promise.end;
  std::optional<Finding> first;
  if (where.end > output.end) {
    first.emplace();
    first->summary = "wrong result: " + describe(interpreter.program(), where) +
                     " belong to the result, but the buffer ends at byte " +
                     std::to_string(output.end);
    return first;
  }
  memory.inspect(where, [&](const Region& part, const Cell* cell) {
    if (first) return;
    std::string text = "holds nothing: nobody wrote there";
    if (cell != nullptr)
      text = difference(interpreter.program(), memory, values, values.terms(cell->value), promise,
                        part.begin, output.begin);
    if (!text.empty()) {
      first = wrong_output(interpreter, memory, part, cell, text);
      return;
    }
    if (is_late(memory, *cell, end))
      first = wrong_output(
          interpreter, memory, part, cell,
          "may not have arrived when all kernels end: nothing waits for the proxy's copy");
  });
  return first;
}

void warn(const Interpreter& interpreter, const AccessRecord& access, const Region& where,
          const std::string& text, Diagnostics& warnings) {
  const Workgroup& workgroup = interpreter.workgroups()[index(access.workgroup)];
  const Witness place = witness(interpreter, workgroup, access.image, access.op, "");
  SourceLocation location;
  location.file = interpreter.program().source();
  location.pointer = place.where;
  const Bound& program = interpreter.program();
  warnings.warning("the kernel of rank " + std::to_string(where.rank) + " may end before " +
                       place.operation + " of " + describe(interpreter, workgroup, access.image) +
                       " " + text + " " + describe(program, where),
                   location,
                   "the closing barrier is relaxed or missing; the result is right only once the "
                   "kernels of all ranks have ended");
}

}  // namespace

void initialise_inputs(const Bound& program, const Fold& fold, ValueTable& values, Memory& memory) {
  for (int rank = 0; rank < fold.period(); ++rank) {
    for (const Region& where : input_places(program, rank))
      memory.initialise(where, values.input(rank, -where.begin));
    for (std::size_t i = 0; i < program.buffers().size(); ++i) {
      if (program.buffers()[i].kind != BufferKind::resident) continue;
      const auto buffer = static_cast<std::int32_t>(i);
      memory.initialise(place(program, buffer, rank, program.memory_bytes(buffer, rank)),
                        values.computed(rank));
    }
  }
}

void refill_inputs(const Bound& program, const Fold& fold, ValueTable& values, Memory& memory) {
  for (int rank = 0; rank < fold.period(); ++rank)
    for (const Region& where : input_places(program, rank))
      memory.refill(where, values.input(rank, -where.begin));
}

bool has_postcondition(const Bound& program) {
  if (program.program().promise != nullptr) return true;
  return program.collective() != Collective::custom && output_buffer(program).has_value();
}

std::optional<Finding> check_outputs(const Interpreter& interpreter, const Memory& memory,
                                     const ValueTable& values) {
  const Bound& program = interpreter.program();
  const Clock end = interpreter.end_of_all();
  for (int rank = 0; rank < interpreter.fold().period(); ++rank) {
    const std::optional<Region> output = output_place(program, rank);
    if (!output) return std::nullopt;
    for (const OutputPostcondition& promise : postconditions(program, rank))
      if (auto finding = check_promise(interpreter, memory, values, end, *output, promise))
        return finding;
  }
  return std::nullopt;
}

std::optional<Finding> check_expected(const Interpreter& interpreter, const Memory& memory,
                                      const ValueTable& values) {
  const Bound& program = interpreter.program();
  const plan::Plan& plan = *program.program().plan;
  if (!plan.of_elements()) return std::nullopt;
  const Clock end = interpreter.end_of_all();
  std::optional<Finding> first;
  const auto look = [&](const Region& where) {
    memory.inspect(where, [&](const Region& part, const Cell* cell) {
      if (first) return;
      const auto& terms = cell == nullptr ? std::vector<Term>{} : values.terms(cell->value);
      if (terms.empty() || std::any_of(terms.begin(), terms.end(), ValueTable::is_unwritten)) {
        first = wrong_output(interpreter, memory, part, cell, "holds nothing: nobody wrote there");
      } else if (is_late(memory, *cell, end)) {
        first = wrong_output(interpreter, memory, part, cell,
                             "may not have arrived when all kernels end");
      }
    });
  };
  for (int rank = 0; rank < interpreter.fold().period() && !first; ++rank) {
    for (const plan::Expectation& one : plan.code(rank).expected) {
      const plan::Tensor& tensor = plan.tensors[static_cast<std::size_t>(one.region.tensor)];
      const auto& buffers = program.buffers();
      const auto buffer = std::find_if(buffers.begin(), buffers.end(),
                                       [&](const auto& of) { return of.name == tensor.name; });
      if (buffer == buffers.end() || buffer->kind != BufferKind::output) continue;
      Region where{.rank = rank, .buffer = static_cast<std::int32_t>(buffer - buffers.begin())};
      for (const plan::Segment& bytes :
           plan::segments(tensor, plan::evaluate(one.region, {.rank = rank}))) {
        where.begin = bytes.offset;
        where.end = bytes.offset + bytes.count;
        if (!first) look(where);
      }
    }
  }
  return first;
}

void warn_of_early_ends(const Interpreter& interpreter, const Memory& memory,
                        Diagnostics& warnings) {
  const Bound& program = interpreter.program();
  bool late_write = false;
  bool late_read = false;
  for (int rank = 0; rank < interpreter.fold().period(); ++rank) {
    const Clock end = interpreter.end_of(rank);
    for (std::size_t i = 0; i < program.buffers().size(); ++i) {
      const BufferKind kind = program.buffers()[i].kind;
      if (kind != BufferKind::input && kind != BufferKind::output) continue;
      const Region whole = place(program, static_cast<std::int32_t>(i), rank, INT64_MAX / 4);
      memory.inspect(whole, [&](const Region& where, const Cell* cell) {
        if (cell == nullptr) return;
        if (!late_write && is_late(memory, *cell, end)) {
          late_write = true;
          warn(interpreter, memory.access(cell->writer), where, "has written", warnings);
        }
        for (std::int32_t reader : cell->readers) {
          const AccessRecord& read = memory.access(reader);
          if (late_read || end.reads(read.actor, read.image) > read.segment) continue;
          late_read = true;
          warn(interpreter, read, where, "has read", warnings);
        }
      });
    }
  }
}

void warn_of_overwritten_inputs(const Interpreter& interpreter, const Memory& memory,
                                Diagnostics& warnings) {
  const Bound& program = interpreter.program();
  if (!has_postcondition(program)) return;  // who holds what at the start is for the plan to say
  for (int rank = 0; rank < interpreter.fold().period(); ++rank) {
    const std::optional<Region> output = output_place(program, rank);
    if (!output) return;
    for (const Region& input : input_places(program, rank)) {
      if (input.buffer == output->buffer) continue;  // in place
      const AccessRecord* writer = nullptr;
      Region where = input;
      memory.inspect(input, [&](const Region& part, const Cell* cell) {
        if (writer != nullptr || cell == nullptr || cell->writer < 0) return;
        writer = &memory.access(cell->writer);
        where = part;
      });
      if (writer == nullptr) continue;
      const Workgroup& workgroup = interpreter.workgroups()[index(writer->workgroup)];
      const Witness place = witness(interpreter, workgroup, writer->image, writer->op, "");
      warnings.warning(place.operation + " of " + describe(interpreter, workgroup, writer->image) +
                           " overwrites the caller's input, " + describe(program, where) +
                           ", though the program is not in place",
                       {program.source(), 0, 0, place.where},
                       "a caller who uses its input again finds other data there; write to scratch "
                       "memory instead");
      return;
    }
  }
}

}  // namespace hemiola::verify
