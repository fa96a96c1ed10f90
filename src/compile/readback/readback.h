// Fused files read back: from the text that `hemiola compile KERNEL.py --plan PLAN` wrote, and from
// nothing else, the program that it is (docs/compile_kernel.md). What the compiler knew when it
// wrote the file is not asked: `check` proves what the text says.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "program/program.h"

namespace hemiola::compile {

/// Something that a rank's kernel does and others can see, in the order of its programs.
struct TraceEvent {
  enum class Kind : std::uint8_t {
    tile,   ///< taken: `number` of the kernel's own, and where it lies
    wait,   ///< over: `number` is the slot of a signal, `value` what it has reached in call 0
    signal  ///< sent: to `rank`, slot `number`, `value` in call 0
  } kind = Kind::tile;
  std::int64_t number = 0, value = 0;
  int rank = 0;
  std::vector<std::pair<std::string, std::int64_t>> at{};  ///< tile along each axis
  int line = 0;                                            ///< of the file
};

/// By program of the kernel, in the order in which each does it.
using RankTrace = std::vector<std::vector<TraceEvent>>;

/// What read_fused() does not follow: "not read back: ...", with its place.
class NotReadBack : public Failure {
 public:
  using Failure::Failure;
};

/// Tiles store other values than reference() of the file says.
class OtherValues : public Failure {
 public:
  using Failure::Failure;
};

struct FusedReading {
  /// Machine-independent but for `processors`. Its plan says what every rank has to hold at the
  /// end, and what tiles have to find. Operations name lines of the file.
  program::Program program;
  std::vector<RankTrace> traces;     ///< by rank
  std::vector<std::string> signals;  ///< names by slot: "arrived[0, 1]"
  std::vector<std::int64_t> steps;   ///< by slot, in a call
  std::int64_t tiles = 0;            ///< of all ranks
  bool is_persistent = false;        ///< programs of a kernel take several tiles each
};

struct FusedReadOptions {
  /// Programs of a persistent kernel, at most: compute units of the machine. 0: one for each tile.
  std::int64_t processors = 0;
  bool traces = false;     ///< whether they are kept
  bool prelaunch = false;  ///< copies are in their queues before, behind polls
  bool values = true;      ///< whether what tiles store is compared with reference()
  /// Expressions and turns of loops that are followed before a file is refused: some minutes.
  std::int64_t most_steps = 400'000'000;
  /// Likewise what is held in memory, in words of 8 bytes, about: 4 GiB; an eighth of it by names
  /// of the text.
  std::int64_t most_words = std::int64_t{1} << 29;
};

/// Whether a Python text is a file that fuse() and torch_of() write of a kernel.
bool is_fused_text(std::string_view text);

/// Follows setup(), inputs() and run() for each rank, makes the tables of tiles, waits and parts as
/// hemiola_rt makes them, and follows the kernel program by program.
///
/// NotReadBack for what is not followed (docs/compile_kernel.md has the list), and for what takes
/// more steps or memory than the options allow. Failure, exit code
/// 3: a text that is wrong before any order of events is: tiles twice or never, elements outside of
/// a tensor, steps that a signal does not have.
FusedReading read_fused(const std::string& file, std::string text,
                        const FusedReadOptions& options = {});

/// What a trace has, and the first thing in it that the text does not say, or lacks.
struct TraceComparison {
  int ranks = 0;
  std::int64_t calls = 0, tiles = 0, waits = 0, signals = 0;
  std::string difference;  ///< empty: nothing
  int line = 0;            ///< of the text where it says otherwise; 0: nowhere
};

/// Compares what a kernel did in Triton's interpreter (`python -m hemiola_rt FILE --trace TRACE`)
/// with what the text says: of every rank and call the same tiles at the same places, in the same
/// turn of the same program, behind each the same waits and signals in the same order. Failure for
/// a trace that cannot be read, and as read_fused().
TraceComparison compare_trace(const std::string& file, const std::string& text,
                              const std::string& trace_file, const std::string& trace);

}  // namespace hemiola::compile
