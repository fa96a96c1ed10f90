#include "program/kernels/fused.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/random.h"
#include "core/units.h"
#include "machine/machine.h"

namespace hemiola::program {
namespace {

constexpr std::int64_t kUsualUnits = 132;        // compute units of an H100
constexpr std::int64_t kFlagsInLine = 16;        // 8 B each, in 128 B
constexpr std::int64_t kWaitsInOperation = 256;  // of one operation, a thread each

/// How late a rank starts.
Time delay_of(const KernelArguments& arguments, int rank) {
  const auto most = parse_time(arguments.word("skew"));
  if (!most || most->fs < 0)
    throw Failure(fmt::format("parameter 'skew' cannot be '{}'", arguments.word("skew")), kOption,
                  "it is a time such as 5us");
  const std::string& late = arguments.word("late");
  const int last = arguments.ranks - 1;
  if (late == "last") return rank == last ? *most : Time{};
  constexpr std::int64_t kParts = 1 << 20;
  std::int64_t part = kParts * rank / last;
  if (late == "random") {
    const auto seed = static_cast<std::uint64_t>(arguments.number("seed"));
    part = static_cast<std::int64_t>(
        splitmix64(splitmix64(seed) + static_cast<std::uint64_t>(rank)) % (kParts + 1));
  }
  return {static_cast<std::int64_t>(static_cast<__int128>(most->fs) * part / kParts)};
}

}  // namespace

std::int64_t Dealing::group(int position, std::int64_t workgroup) const {
  const std::int64_t at = (workgroup - position * tiles) % workgroups;
  const std::int64_t group = at < 0 ? at + workgroups : at;
  return group < groups() ? group : -1;
}

int Dealing::position(std::int64_t workgroup, int i) const {
  if (order != Order::spread || i == ranks - 1) return i;
  return static_cast<int>((workgroup + i) % (ranks - 1));
}

FusedWriter::FusedWriter(const KernelArguments& arguments, Collective collective, DataType type,
                         Bytes unit, Bytes size)
    : ProgramWriter(arguments, collective),
      unit_(unit.count),
      padded_(arguments.word("flags") == "padded") {
  program_.fixed_size = size;
  program_.fixed_type = type;
  program_.chunks_per_size = size.count / unit.count;
  program_.alignment = {std::gcd(unit.count, std::int64_t{16})};
}

Operand FusedWriter::memory(const Affine& rank, std::int32_t buffer, const Affine& chunk,
                            std::int64_t bytes) const {
  return {.rank = rank, .buffer = buffer, .chunk = chunk, .chunks = chunks(bytes)};
}

Operand FusedWriter::rows(Operand operand, std::int64_t run, std::int64_t pitch) const {
  if (run == pitch || chunks(run) == operand.chunks) return operand;
  operand.run = chunks(run);
  operand.pitch = chunks(pitch);
  return operand;
}

Affine FusedWriter::block(int distance, std::int64_t block_bytes, std::int64_t offset,
                          std::int64_t step) const {
  const std::int64_t size = chunks(block_bytes);
  return {.constant = distance * size + chunks(offset),
          .rank = size,
          .loop = {chunks(step), 0},
          .modulus = ranks() * size};
}

Affine FusedWriter::own_block(std::int64_t block_bytes, std::int64_t offset,
                              std::int64_t step) const {
  return {.constant = chunks(offset), .rank = chunks(block_bytes), .loop = {chunks(step), 0}};
}

Affine FusedWriter::place(std::int64_t offset, std::int64_t step) const {
  return {.constant = chunks(offset), .loop = {chunks(step), 0}};
}

FusedWriter::Flags FusedWriter::flags(const std::string& name, std::int64_t groups) {
  const Flags made{static_cast<std::int32_t>(program_.semaphores.size()), groups,
                   padded_ ? kFlagsInLine : 1};
  for (int distance = 1; distance < ranks(); ++distance) {
    for (std::int64_t group = 0; group < groups; ++group) {
      program_.semaphores.push_back(
          {.name = fmt::format("{} {} of the rank {} before", name, group, distance)});
      for (std::int64_t i = 1; i < made.stride; ++i)
        program_.semaphores.push_back({.name = "the rest of its line"});
    }
  }
  return made;
}

void FusedWriter::begin_kernel(const std::string& name, int threads, std::int32_t grain) {
  program_.kernels.push_back({.name = name, .threads = threads, .grain = grain});
}

void FusedWriter::loop(std::int64_t count, const std::vector<Op>& ops) {
  if (count > 1) add({.kind = OpKind::loop, .count = count});
  for (const Op& op : ops) add(op);
  if (count > 1) add({.kind = OpKind::end_loop});
}

SemaphoreRef FusedWriter::flag(const Flags& flags, std::int64_t group, int distance,
                               const Affine& rank) const {
  const std::int64_t number = ((distance - 1) * flags.groups + group) * flags.stride;
  return {rank, flags.first + static_cast<std::int32_t>(number)};
}

void FusedWriter::tell(const Flags& flags, std::int64_t group, int distance) {
  add({.kind = OpKind::signal,
       .channel = Channel::memory,
       .semaphores = {flag(flags, group, distance, neighbour(distance, ranks()))}});
}

void FusedWriter::all_flags(OpKind kind, const Flags& flags, std::int64_t group) {
  for (int first = 1; first < ranks(); first += kWaitsInOperation) {
    Op op{.kind = kind, .channel = Channel::memory};
    for (int d = first; d < std::min<std::int64_t>(ranks(), first + kWaitsInOperation); ++d)
      op.semaphores.push_back(
          flag(flags, group, d, kind == OpKind::wait ? own_rank() : neighbour(d, ranks())));
    add(std::move(op));
  }
}

Program FusedWriter::finish(const KernelArguments& arguments) {
  std::vector<Time> delays;  // by code
  for (int rank = 0; rank < ranks(); ++rank) {
    const Time delay = delay_of(arguments, rank);
    auto code = std::ranges::find(delays, delay);
    if (code == delays.end()) {
      Stream stream;
      if (delay.fs > 0) stream.push_back({.kind = StreamItem::Kind::host, .duration = delay});
      for (std::size_t k = 0; k < program_.kernels.size(); ++k)
        stream.push_back({.kind = StreamItem::Kind::kernel, .index = static_cast<std::int32_t>(k)});
      program_.codes.push_back({{std::move(stream)}});
      code = delays.insert(delays.end(), delay);
    }
    program_.code_of.push_back(static_cast<std::int32_t>(code - delays.begin()));
  }
  program_.finish();
  return std::move(program_);
}

std::vector<plan::ParameterInfo> fused_parameters(std::vector<plan::ParameterInfo> own, bool fused,
                                                  bool spreads) {
  own.push_back({"dtype", "float16", {"float16", "bfloat16", "float32"}, "type of the elements"});
  own.push_back({"workgroups", "0", {}, "persistent workgroups; 0: one per compute unit"});
  own.push_back({"threads", "256", {}, "per workgroup"});
  if (fused) {
    std::vector<std::string> orders{"remote-first", "own-first"};
    if (spreads) orders.emplace_back("spread");
    own.push_back({"order", "remote-first", orders,
                   "whose tiles are computed first: one peer's after the other's, the own ones, or "
                   "spread: each workgroup begins with another peer's"});
  } else {
    own.push_back(
        {"collective_workgroups", "0", {}, "of the second kernel; 0: one per 8 KiB, at most 36"});
  }
  own.push_back({"flags", "packed", {"packed", "padded"}, "8 B apart, or 128 B"});
  own.push_back({"skew", "0us", {}, "how much later the latest rank starts"});
  own.push_back({"late",
                 "last",
                 {"last", "linear", "random"},
                 "who is late: the last rank; each one more than the one before; each by a share "
                 "drawn from `seed`"});
  own.push_back({"seed", "0", {}, "of late=random"});
  return own;
}

std::int64_t size_of_parameter(const KernelArguments& arguments, const char* name) {
  return arguments.number(name, 1, std::int64_t{1} << 31);
}

std::int64_t divided(const KernelArguments& arguments, const char* name, std::int64_t value,
                     std::int64_t parts, const std::string& into) {
  if (value % parts == 0) return value / parts;
  throw Failure(
      fmt::format("'{}' cannot divide {} = {} into {}", arguments.name, name, value, into), kOption,
      fmt::format("{} is a multiple of {}: {} or {}", name, parts,
                  std::max(parts, value / parts * parts), (value / parts + 1) * parts));
}

std::int64_t workgroups_of(const KernelArguments& arguments) {
  const std::int64_t given = arguments.number("workgroups", 0, 4096);
  if (given > 0) return given;
  return arguments.machine == nullptr ? kUsualUnits : arguments.machine->model(0).cu_count;
}

std::int64_t threads_of(const KernelArguments& arguments) {
  return arguments.number("threads", kWaitsInOperation, 1024);
}

Dealing::Order order_of(const KernelArguments& arguments) {
  const std::string& order = arguments.word("order");
  return order == "own-first" ? Dealing::Order::own_first
         : order == "spread"  ? Dealing::Order::spread
                              : Dealing::Order::remote_first;
}

DataType element_of(const KernelArguments& arguments) {
  return *parse_data_type(arguments.word("dtype"));
}

std::int64_t collective_workgroups(const KernelArguments& arguments, std::int64_t bytes) {
  const std::int64_t given = arguments.number("collective_workgroups", 0, 4096);
  if (given > 0) return given;
  constexpr std::int64_t kShare = 8192, kMost = 36;
  return std::clamp<std::int64_t>((bytes + kShare - 1) / kShare, 1, kMost);
}

int nth_peer(int ranks, std::int64_t workgroup, int i) {
  if (i == ranks - 1) return 0;
  return static_cast<int>((workgroup + i) % (ranks - 1)) + 1;
}

void write_all_to_all(FusedWriter& writer, const KernelArguments& arguments, std::int32_t result,
                      std::int32_t output, std::int64_t block_bytes) {
  const int n = writer.ranks();
  const std::int64_t count = collective_workgroups(arguments, n * block_bytes);
  const FusedWriter::Flags arrived = writer.flags("arrived", count);
  writer.begin_kernel("all-to-all", 512, 16);
  for (std::int64_t w = 0; w < count; ++w) {
    writer.begin_workgroup();
    for (int i = 0; i < n; ++i) {
      const int d = nth_peer(n, w, i);
      Op op{.kind = d == 0 ? OpKind::copy : OpKind::put,
            .channel = d == 0 ? Channel::none : Channel::memory};
      op.src = {writer.memory(own_rank(), result, writer.block(d, block_bytes, 0), block_bytes)};
      op.dst = {writer.memory(d == 0 ? own_rank() : neighbour(d, n), output,
                              writer.own_block(block_bytes, 0), block_bytes)};
      op.slice = static_cast<std::int32_t>(w);
      op.slices = static_cast<std::int32_t>(count);
      writer.add(std::move(op));
    }
    writer.sync();
    writer.tell_all(arrived, w);
    writer.hear_all(arrived, w);
  }
}

}  // namespace hemiola::program
