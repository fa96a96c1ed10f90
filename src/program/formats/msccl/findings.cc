#include "program/formats/msccl/findings.h"

#include <algorithm>
#include <string>

#include "core/finding.h"

namespace hemiola::program::msccl {
namespace {

constexpr std::int32_t kInput = 0;
constexpr std::int32_t kOutput = 1;

/// Whether chunk `input` of a rank's input and chunk `output` of its output are one memory.
bool is_one_memory(const Program& program, int rank, const Copy& copy) {
  const Buffer& input = program.buffers.at(kInput);
  const Buffer& output = program.buffers.at(kOutput);
  if (input.alias == kOutput) return input.alias_chunk({.rank = rank}) + copy.input == copy.output;
  if (output.alias == kInput) return output.alias_chunk({.rank = rank}) + copy.output == copy.input;
  return false;
}

}  // namespace

void warn_of_copies(const Algorithm& algorithm, const Source& source, Program& program) {
  Finding in_place, lost;
  for (std::size_t rank = 0; rank < algorithm.gpus.size(); ++rank) {
    for (const Copy& copy : algorithm.gpus[rank].copies) {
      const bool there = is_one_memory(program, static_cast<int>(rank), copy);
      const std::string what = "<copy> of chunk " + std::to_string(copy.input) +
                               " of the input to chunk " + std::to_string(copy.output) +
                               " of the output";
      const auto where = [&] { return source.at(copy.offset, copy.path); };
      if (there)
        in_place.note(what + ", which are one memory", where);
      else
        lost.note(what + ", which no interpreter carries out", where);
    }
  }
  in_place.warn(program.warnings, Leniency::ignored);
  lost.warn(program.warnings, Leniency::ignored, "a step of type 'cpy' copies it");
}

void warn_of_reduction(const Algorithm& algorithm, const Source& source, Program& program) {
  if (algorithm.reduction != ReduceOp::none) return;
  const auto reduces = [](const Body& body) {
    return std::ranges::any_of(body.ops, [](const Op& op) { return is_reduction(op.kind); });
  };
  if (std::ranges::none_of(program.bodies, reduces)) return;
  warn_leniently(program.warnings, Leniency::ignored,
                 "redop is 'nop', but steps reduce: the operation is the one that is asked for",
                 source.at(algorithm.offset, "/algo"), "name it: redop=\"sum\"");
}

}  // namespace hemiola::program::msccl
