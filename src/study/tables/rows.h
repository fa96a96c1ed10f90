// Rows of a measured table, each beside what stands for it, whatever it is of: what `hemiola
// validate TABLE` compares without options.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "machine/devices/gemm_model.h"
#include "study/evidence/evidence.h"
#include "study/laboratory/experiment.h"
#include "study/tables/table_words.h"

namespace hemiola::study {

struct JudgedRow {
  int line = 0;
  std::string name;  ///< "1 MiB", "8192 x 28672 x 8192, fused"
  Likeness like;     ///< what evidence knows it by; its device is empty where that is not known
  std::string machine, program;
  DataType type = DataType::float32;
  double measured_us = 0;
  std::optional<double> simulated_us{};
  std::string refused{};  ///< why it was not simulated; empty: it was
  /// Of other tables than this one. Nothing: the row was not simulated.
  std::optional<Evidence> evidence{};

  /// simulated / measured - 1; nothing: it was not simulated.
  std::optional<double> error() const {
    return simulated_us ? std::optional(*simulated_us / measured_us - 1) : std::nullopt;
  }
};

struct JudgedTable {
  std::string file;
  TableKind kind;
  std::vector<JudgedRow> rows;  ///< in the order of the file; a row may have several times
  bool interrupted = false;     ///< rows that are missing were not reached
};

struct JudgeOptions {
  /// launch, host, warmup and iterations are the rows'.
  sim::Options options{};
  /// Of collectives: larger ones are simulated by the engine `sampled`, and those beyond `max_size`
  /// are refused.
  Bytes exact_size{MiB(4)}, max_size{MiB(64)};
  bool check = true;
  std::vector<Filter> where{};
  /// Told how many of how many rows are done; throws Interrupted to stop.
  std::function<void(std::size_t, std::size_t)> on_row{};
};

/// Adds what stands for a row; a Failure that it throws is the row's reason.
using JudgeRow =
    std::function<void(const MeasuredTable&, const TableWords&, const MeasuredRow&, JudgedTable&)>;
/// All rows of a table, each with the evidence of other tables.
JudgedTable judge_rows(Laboratory& laboratory, const TableText& table, const std::string& file,
                       const JudgeOptions& options, const JudgeRow& judge);

// Kinds of rows. What they refer to outlives them.

/// Collectives of libraries and kernels.
JudgeRow judge_collectives(Laboratory& laboratory, const JudgeOptions& options);
/// Matrix products of one GPU, by the model of products (docs/gemm.md).
JudgeRow judge_products(Laboratory& laboratory);
JudgeRow refuse_rows(const std::string& reason);

/// The size of the product that a row has in its columns m, n, k, b and dtype. Failure.
machine::GemmShape shape_of(const MeasuredTable& table, const MeasuredRow& row);

}  // namespace hemiola::study
