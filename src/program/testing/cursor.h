// What the tests of the cursor share: a small program, and primitives as text.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "program/walk/cursor.h"

namespace hemiola::program::testing_support {

constexpr std::int64_t kChunk = 64;

inline Operand local(std::int32_t buffer, std::int64_t chunk, std::int64_t chunks = 1,
                     Access access = Access::plain) {
  return {.buffer = buffer, .chunk = constant(chunk), .chunks = chunks, .access = access};
}
inline Operand remote(int rank, std::int32_t buffer, std::int64_t chunk, std::int64_t chunks = 1,
                      Access access = Access::plain) {
  return {.rank = constant(rank),
          .buffer = buffer,
          .chunk = constant(chunk),
          .chunks = chunks,
          .access = access};
}

/// Two ranks, buffers 0 input, 1 output, 2 scratch (packets) of 8 chunks of 64 B; rank 0 runs
/// `ops`.
inline Program program_of(std::vector<Op> ops) {
  Program program;
  program.name = "test";
  program.ranks = 2;
  program.buffers = {
      {.name = "input", .kind = BufferKind::input, .chunks = {8}},
      {.name = "output", .kind = BufferKind::output, .chunks = {8}},
      {.name = "scratch", .kind = BufferKind::scratch, .chunks = {8}, .packets = true}};
  program.semaphores = {{.name = "a"}, {.name = "b"}, {.name = "c", .local = true}};
  program.inbound = 2;
  program.outbound = 2;
  program.fifo = {.slots = 2, .step = {48}};
  program.groups = {{0, 1}};
  program.bodies = {{std::move(ops)}, {}};
  program.kernels = {{.name = "zero", .bodies = {0}}, {.name = "one", .bodies = {1}}};
  program.codes = {{{{StreamItem{.index = 0}}}}, {{{StreamItem{.index = 1}}}}};
  program.code_of = {0, 1};
  program.barriers = 1;
  program.chunks_per_size = 8;
  program.finish();
  return program;
}

inline Bound bound(const Program& program, std::int64_t chunk_bytes = kChunk) {
  return bind(program, nullptr, {.size = {program.chunks_per_size * chunk_bytes}});
}

inline std::string text(const Span& span, const Bound& program) {
  const std::string name = program.buffers()[static_cast<std::size_t>(span.buffer)].name;
  static constexpr const char* kAccess[] = {"",         "/LL",        "/LL8",        "/LL128",
                                            "/Lamport", "/multicast", "/multicastLL"};
  return (span.rank < 0 ? "g" + std::to_string(span.group) : std::to_string(span.rank)) + "." +
         name + "@" + std::to_string(span.offset) + kAccess[static_cast<int>(span.access)];
}

/// One line per primitive, such as "move 64 0.input@0 -> 1.output@64".
inline std::string text(const Primitive& p, const Bound& program) {
  std::string out{name_of(p.kind)};
  if (p.bytes > 0) out += " " + std::to_string(p.bytes);
  if (p.reduce != ReduceOp::none) out += " " + std::string(name_of(p.reduce));
  for (const Span& s : p.src) out += " " + text(s, program);
  if (!p.dst.empty()) out += " ->";
  for (const Span& s : p.dst) out += " " + text(s, program);
  for (std::size_t i = 0; i < p.semaphores.size(); ++i) {
    out += " " + std::to_string(p.semaphores[i].rank) + ":" +
           program.semaphores()[static_cast<std::size_t>(p.semaphores[i].index)].name + "=" +
           std::to_string(p.values.at(i));
  }
  if (p.kind == PrimitiveKind::barrier)
    out += " " + std::to_string(p.barrier_id) + " of " + std::to_string(p.workgroups);
  if (p.release) out += " release";
  if (p.acquire) out += " acquire";
  if (!p.system_scope) out += " device";
  if (p.consume) out += " consume";
  if (p.remote) out += " remote";
  if (p.posted) out += " posted";
  return out;
}

inline std::vector<std::string> walk(Cursor& cursor, const Bound& program) {
  std::vector<std::string> out;
  Primitive primitive;
  while (cursor.next(primitive)) out.push_back(text(primitive, program));
  return out;
}

inline std::vector<std::string> expand(const Bound& program, int rank = 0, std::int32_t body = 0) {
  Cursor cursor(program, rank, body);
  return walk(cursor, program);
}

using Lines = std::vector<std::string>;

}  // namespace hemiola::program::testing_support
