// What measured rows say of an answer: how many there are like it, and how far off we were there.
//
// data/evidence/rows.csv has the rows, from check tables only: nothing was fitted to them. It is
// made by `tools/study evidence`, which also fits, by leaving out one source at a time, how much
// wider an interval has to be the farther its rows are from the answer.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/index.h"
#include "core/units.h"
#include "machine/devices/gemm_model.h"

namespace hemiola::program {
class Bound;
}

namespace hemiola::study {

/// What an answer, or a measured row, is of.
struct Likeness {
  std::string device;   ///< model: "h100"
  std::string kind;     ///< "library call", "kernel", "product", ...: kinds are never mixed
  std::string launch;   ///< "stream", "graph", "one host" (that launches all GPUs); else empty
  std::string op;       ///< "all-gather", "bfloat16" of a product, ...
  std::string library;  ///< "NCCL"; empty: not known
  int ranks = 1, nodes = 1;
  double amount = 0;  ///< bytes of a collective, flop of a product or of a GPU's iteration
};
inline constexpr std::string_view kOverlapKind = "product with collective";
/// Rows of this kind are not times but ratios: of a fused kernel's time to the library's, where one
/// source measured both. Errors of two schedules on one machine go together.
inline constexpr std::string_view kRatioKind = "fused over serial";
inline constexpr std::string_view kIterationKind = "iteration";
/// "library call" or "kernel".
std::string program_kind(std::string_view program);
std::string launch_kind(bool in_graph, bool one_host);
/// Whose collectives a device runs: "NCCL" or "RCCL".
std::string library_on(const std::string& device);
Likeness likeness_of(const std::string& device, const machine::GemmShape& shape);
/// `flop` of the model, of all ranks.
Likeness iteration_likeness(const std::string& device, int ranks, double flop, bool has_experts);
/// Nothing: a job, a program without a machine, ranks on several models.
std::optional<Likeness> likeness_of(const program::Bound& bound, const std::string& launch,
                                    Bytes size);

struct EvidenceRow {
  Likeness like;
  std::string vendor{};  ///< of its device
  double measured_us = 0, simulated_us = 0;
  std::string table;
  int line = 0;
};

/// What sets a row apart from an answer, each by so much (Distances).
enum class Apart : std::uint8_t {
  size,     ///< a factor of 8 counts once
  ranks,    ///< a factor of 2 counts once
  library,  ///< vLLM for SGLang
  launch,   ///< in a graph, or one host for all GPUs
  op,       ///< all-gather for reduce-scatter
  device,   ///< another one of the same vendor
  count
};
std::string_view name_of(Apart apart);

struct EvidenceRows {
  std::vector<EvidenceRow> rows;
  std::string stamp;  ///< the commit that made them
  std::array<double, index(Apart::count)> distances{};
  /// An interval's ends move outwards by these (of logarithms): by kind and launch, by distance, and where
  /// one table says it all; of n tables the n-th root of that.
  std::map<std::string, double> by_kind;
  double by_distance = 0, by_source = 0;

  static const EvidenceRows& shipped();
};
/// Failure with the line.
EvidenceRows read_evidence(std::string_view csv, const std::string& file);

struct Evidence {
  int rows = 0;         ///< like the answer; 0: there are none, and the rest is of the nearest
  double distance = 0;  ///< of the rows, in the mean
  std::string kind;     ///< of all of them
  std::string like;     ///< "8 H100, NCCL all-gather, 1 MiB to 64 MiB"
  double median = 0;    ///< of their absolute errors, simulated / measured - 1
  /// 9 of 10 measured times are expected between these: measured / simulated - 1.
  double low = 0, high = 0;
  std::vector<std::size_t> of;  ///< positions of the rows
};

/// Of several answers together, such as the sizes of a table.
std::optional<Evidence> evidence_of(std::span<const Likeness> likes, const EvidenceRows& rows,
                                    std::string_view without = {});
/// Nothing: no row of the vendor is of this kind. `without`: a table whose rows do not count.
std::optional<Evidence> evidence_of(const Likeness& like, const EvidenceRows& rows,
                                    std::string_view without = {});
/// "evidence: 40 measured rows like this (...): median 9 %, 9 of 10 within -21 to +4 %".
std::string evidence_line(const Likeness& like, const std::optional<Evidence>& evidence);
/// Of the speedup of one over another: in which range 9 of 10 measured ones lie, and whether that
/// tells which is faster.
std::string speedup_line(const std::optional<Evidence>& evidence, double speedup);

}  // namespace hemiola::study
