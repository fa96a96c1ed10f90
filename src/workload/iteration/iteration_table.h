// Tables of measured iterations of training, beside simulated ones (`hemiola validate`).
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "study/laboratory/experiment.h"
#include "study/tables/statistics.h"
#include "workload/costs/simulated_costs.h"
#include "workload/models/generate.h"

namespace hemiola::workload {

struct IterationRow {
  int line = 0;  ///< in the file
  MakeRequest make;
  Time measured{};
  std::string text;  ///< "tp 8 dp 8 pp 1, micro batch 4"
};

struct IterationTable {
  std::string file;
  std::vector<std::string> notes;  ///< the lines that started with '#', without it
  std::vector<IterationRow> rows;
};

/// Whether a table is one of iterations: by its columns, which are those of vTrain's measurements
/// (VIA-Research/vTrain, data/ground_truth_multi.csv).
bool is_iteration_table(std::string_view text);
/// Each row becomes the iteration that Megatron-DeepSpeed ran (docs/workloads.md says what that is
/// taken to be). Failure with the line.
IterationTable read_iterations(std::string_view text, const std::string& file);

/// What a simulator has to beat: milliseconds by flop, layer steps, tensor-parallel bytes and steps
/// of the pipeline, none negative.
struct IterationRegression {
  static constexpr std::size_t kTerms = 4;
  std::array<double, kTerms> constants{};
  std::string fitted_to;
  double time_ms(const IterationRow& row) const;
};
/// Least squares of the relative error.
IterationRegression fit_regression(const IterationTable& table);

struct IterationCheck {
  IterationRow row;
  Time simulated{};
  double error = 0;  ///< simulated / measured - 1
  double regression_error = 0;
  std::string refused;  ///< why it was not simulated; empty: it was
};

/// Pairs of rows whose measured times differ by so much: how many the simulation orders the same
/// way.
struct PairOrder {
  int pairs = 0, right = 0;
};

struct IterationValidation {
  std::string file, machine;
  std::vector<IterationCheck> rows;
  IterationRegression regression;
  study::Summary summary;  ///< `trivial` is the regression
  PairOrder beyond_10, from_3_to_10;
};

struct IterationValidationRequest {
  IterationTable table;
  IterationTable calibrate;        ///< what the regression is fitted to
  study::MachineChoice machine{};  ///< of a node; rows take as many nodes as they have GPUs
  CostOptions costs{};
};

/// Failure for a machine that cannot be made of so many nodes. Interrupted.
IterationValidation validate_iterations(
    study::Laboratory& laboratory, const IterationValidationRequest& request,
    const std::function<void(std::size_t, std::size_t)>& on_row = {});

}  // namespace hemiola::workload
