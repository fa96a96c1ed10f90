#include <fmt/format.h>

#include <optional>
#include <set>

#include "core/units.h"
#include "machine/machine.h"
#include "program/bind/bound.h"
#include "program/bind/check.h"
#include "program/lower/lower.h"

namespace hemiola::program {
namespace {

void check_size(const Program& program, const BindOptions& options) {
  const SourceLocation& option = kOption;
  if (program.chunks_per_size <= 0 || program.alignment.count <= 0)
    throw Failure("the program has no chunks to divide a size into", {.file = program.source});
  if (options.size.count <= 0)
    throw Failure(fmt::format("a size of {} cannot be run", to_string(options.size)), option,
                  "give a positive size such as 1 MiB");
  if (options.size.count > kMostMemory)
    throw Failure(fmt::format("a size of {} is beyond any GPU's memory", to_string(options.size)),
                  option);
  if (program.fixed_size.count > 0) require_size(program.name, program.fixed_size, options.size);
  const Bytes above = program.next_legal_size(options.size, options.type);
  if (above == options.size) return;
  const std::int64_t step = program.next_legal_size({1}, options.type).count;
  const Bytes below{options.size.count / step * step};
  const std::string next = to_string(above);
  throw Failure(fmt::format("{} cannot take a size of {}: it must be a multiple of {} ({} chunks "
                            "of whole {}-byte units)",
                            program.name, to_string(options.size), to_string(Bytes{step}),
                            program.chunks_per_size, step / program.chunks_per_size),
                option,
                (below.count > 0
                     ? fmt::format("the nearest legal sizes are {} and {}", to_string(below), next)
                     : fmt::format("the smallest legal size is {}", next)) +
                    fmt::format("; --round-size takes {}", next));
}

void check_memory(const Frame& frame) {
  const Program& program = *frame.program;
  for (int rank = 0; rank < program.ranks; ++rank) {
    __int128 total = 0;
    for (std::size_t i = 0; i < program.buffers.size(); ++i) {
      const Buffer& buffer = program.buffers[i];
      const auto index = static_cast<std::int32_t>(i);
      total += buffer.kind == BufferKind::fifo
                   ? static_cast<__int128>(buffer.bytes.count)
                   : static_cast<__int128>(program.chunks_of(index, rank)) *
                         frame.chunk_stride(index) * 4;
    }
    if (total > kMostMemory)
      throw Failure(fmt::format("rank {} of {} would need more than {} of memory", rank,
                                program.name, to_string(Bytes{kMostMemory})),
                    {.file = program.source}, "give a smaller size");
  }
}

/// The reduction that a file itself names (reduce_op, redop), if it names one and no other.
std::optional<ReduceOp> stated_reduction(const Program& program) {
  if (program.format != "mscclpp" && program.format != "msccl") return {};
  std::set<ReduceOp> stated;
  for (const Body& body : program.bodies) {
    for (const Op& op : body.ops)
      if (op.reduce != ReduceOp::none) stated.insert(op.reduce);
  }
  if (stated.size() != 1) return {};
  return *stated.begin();
}

/// What is reduced with: what was asked for, unless the file says otherwise.
ReduceOp reduction_of(const Program& program, ReduceOp wanted, Diagnostics& warnings) {
  const std::optional<ReduceOp> stated = stated_reduction(program);
  if (!stated) return wanted;
  const bool not_read = program.format == "mscclpp" && *stated != ReduceOp::sum;
  const std::string executor =
      not_read ? "MSCCL++'s own executor does not read reduce_op: there every reduction is a sum"
               : "";
  if (*stated != wanted)
    warnings.warning(fmt::format("the plan itself reduces with {}; {} is not used",
                                 name_of(*stated), name_of(wanted)),
                     {.file = program.source}, executor);
  else if (not_read)
    warnings.warning(fmt::format("the plan itself reduces with {}", name_of(*stated)),
                     {.file = program.source}, executor);
  return *stated;
}

void check_range(const Program& program, Bytes size, Diagnostics& warnings) {
  if (size >= program.min_size && size <= program.max_size) return;
  const std::string range =
      size < program.min_size
          ? fmt::format("smaller than its own minimum of {}", to_string(program.min_size))
          : fmt::format("larger than its own maximum of {}", to_string(program.max_size));
  warnings.warning(fmt::format("a size of {} is {}", to_string(size), range),
                   {.file = program.source}, "the library would not choose this program here");
}

}  // namespace

Bound bind(std::shared_ptr<const Program> program, machine::SharedMachine machine,
           const BindOptions& wanted) {
  if (program->follows_size()) program = std::make_shared<const Program>(program->sized(wanted));
  BindOptions options = wanted;
  options.type = program->fixed_type.value_or(wanted.type);
  check_size(*program, options);
  if (machine != nullptr && program->ranks > machine->ranks())
    throw Failure(fmt::format("{} is for {} GPUs, the machine has {}", program->name,
                              program->ranks, machine->ranks()),
                  {.file = program->source}, "choose a larger machine");
  Diagnostics warnings = program->warnings;
  Frame frame{.size = options.size,
              .type = options.type,
              .chunk_bytes = options.size.count / program->chunks_per_size};
  frame.op = reduction_of(*program, options.op, warnings);
  check_range(*program, options.size, warnings);
  frame.program = std::move(program);
  check_memory(frame);
  Bound bound(std::move(frame), std::move(machine), std::move(warnings));
  check_bound(bound);
  return bound;
}

Bound bind(const Program& program, machine::SharedMachine machine, const BindOptions& options) {
  return bind(std::make_shared<const Program>(program), std::move(machine), options);
}

}  // namespace hemiola::program
