// MSCCL XML as it stands in a file: every attribute checked on its own, nothing interpreted yet.
//
// The format is what msccl-tools writes and the interpreters of microsoft/msccl and ROCm/rccl read
// (docs/formats.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/data_type.h"
#include "core/diagnostics.h"
#include "program/program.h"
#include "program/semantics/executor.h"

namespace hemiola::program::msccl {

/// What a step type means. Which of srcbuf/srcoff and dstbuf/dstoff the interpreter looks at
/// depends on the type; the other pair is written by tools and ignored.
struct StepType {
  std::string_view name;  ///< "rrcs"
  OpKind kind;            ///< OpKind::sync for "nop", which only carries a dependency
  bool sends;
  bool receives;
  bool reads_source;
  bool writes_destination;
};
std::span<const StepType> step_types();
/// Whether a step that became this operation adds to what it finds.
bool is_reduction(OpKind kind);
const StepType& nop_type();

struct ProtocolName {
  Protocol protocol;
  std::string_view name;  ///< as the file writes it
};
/// In order of Protocol.
std::span<const ProtocolName> protocol_names();

std::string_view collective_name(
    Collective collective);  ///< "allreduce"; "" where XML has no name for it

/// The file's text and name, for messages.
struct Source {
  std::string_view text;
  std::string file;
  SourceLocation at(std::size_t offset, std::string path) const;
};

/// Chunk `offset` of a buffer.
struct Place {
  BufferKind buffer = BufferKind::input;
  std::int64_t offset = 0;
  bool operator==(const Place&) const = default;
};

struct Step {
  const StepType* type = nullptr;
  Place source;
  Place destination;
  std::int64_t count = 0;
  std::int32_t awaited_block = -1;  ///< depid
  std::int32_t awaited_step = -1;   ///< deps
  bool has_dependents = false;      ///< hasdep
  std::size_t offset = 0;           ///< of the element in the text
};

/// <copy>: a chunk of the input that stands in the output from the start. Tools that descend from
/// TACCL write it (TE-CCL); interpreters look at <tb> only.
struct Copy {
  std::int64_t input = 0;   ///< i_off
  std::int64_t output = 0;  ///< o_off
  std::string path;
  std::size_t offset = 0;
};

struct ThreadBlock {
  std::int32_t send = -1;  ///< peer, -1 none
  std::int32_t receive = -1;
  std::int32_t channel = 0;
  std::vector<Step> steps;
  std::string path;  ///< "/algo/gpu[0]/tb[1]", by position in the file
  std::size_t offset = 0;

  std::string step_path(std::size_t step) const {
    return path + "/step[" + std::to_string(step) + "]";
  }
};

struct Gpu {
  std::int64_t input_chunks = 0;
  std::int64_t output_chunks = 0;
  std::int64_t scratch_chunks = 0;
  std::vector<ThreadBlock> blocks;  ///< by id
  std::vector<Copy> copies;
  std::string path;
  std::size_t offset = 0;
};

struct Algorithm {
  std::string name;
  Protocol protocol = Protocol::simple;
  Collective collective = Collective::custom;
  std::int32_t channels = 0;
  std::int64_t chunks = 0;   ///< nchunksperloop
  std::int32_t threads = 0;  ///< nthreads, which microsoft/msccl reads; 0: what the protocol has
  bool in_place = false;
  std::optional<ReduceOp> reduction;  ///< redop; none for "nop"
  Bytes min_size{};
  Bytes max_size{INT64_MAX};
  std::vector<Gpu> gpus;  ///< by id
  std::size_t offset = 0;
};

/// Reads the elements and checks what one element can tell: names, numbers, ids 0 .. n-1, peers,
/// ranges of chunks, and dependencies on steps that exist. Throws Failure with everything found.
Algorithm parse(const Source& source);

/// What the interpreter makes of it (formats/msccl/reader.cc). Failure for what spans several
/// elements: connections without a counterpart, buffers that the collective does not have.
Program program_of(const Algorithm& algorithm, const Source& source, const Executor& executor);

}  // namespace hemiola::program::msccl
