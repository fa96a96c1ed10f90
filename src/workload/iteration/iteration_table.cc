#include "workload/iteration/iteration_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "study/tables/table_text.h"
#include "workload/iteration/iteration.h"

namespace hemiola::workload {
namespace {

constexpr std::array<std::string_view, 12> kColumns = {"Parameters (billion)",
                                                       "gpus",
                                                       "global batch",
                                                       "micro batch",
                                                       "hidden size",
                                                       "attention heads",
                                                       "# layers",
                                                       "sequence length",
                                                       "tensor parallelism",
                                                       "data parallelism",
                                                       "pipeline parallelism",
                                                       "iteration time (ms)"};
enum Column : std::size_t {
  kParameters,
  kGpus,
  kGlobalBatch,
  kMicroBatch,
  kHidden,
  kHeads,
  kLayers,
  kSequence,
  kTp,
  kDp,
  kPp,
  kTime
};

/// What Megatron-DeepSpeed of 2022 ran: GPT with learned positions, half precision, all activations
/// computed again, scores of attention in memory, gradients all-reduced after the last pass.
MakeRequest megatron_deepspeed() {
  MakeRequest make;
  make.model.name = "gpt";
  make.model.source = "measured table";
  make.model.vocabulary = 51200;
  make.type = DataType::float16;
  make.recompute = Recompute::full;
  make.attention = AttentionKernel::unfused;
  make.overlap_gradients = false;
  make.overlap_tensor_gradients = false;
  make.fused_gradient_sum = false;
  return make;
}

class IterationReader {
 public:
  IterationReader(std::string_view text, const std::string& file)
      : table_(study::read_csv(text, file)), file_(file) {
    for (std::size_t c = 0; c < kColumns.size(); ++c) {
      const auto at = std::ranges::find(table_.columns, kColumns[c]);
      if (at == table_.columns.end())
        throw Failure(fmt::format("has no column '{}'", kColumns[c]),
                      {.file = file, .line = table_.heading_line});
      where_[c] = index(at - table_.columns.begin());
    }
  }

  IterationTable read() {
    IterationTable result{.file = file_, .notes = table_.notes};
    for (const auto& row : table_.rows) result.rows.push_back(row_of(row));
    return result;
  }

 private:
  std::int64_t count(const study::TableText::Row& row, Column column) const {
    const double value = number(row, column);
    if (value != std::floor(value) || value > 1e9)
      fail(row, column, "is no whole number that can be");
    return static_cast<std::int64_t>(value);
  }
  double number(const study::TableText::Row& row, Column column) const {
    const auto value = study::parse_number(row.cells[where_[column]]);
    if (!value || *value <= 0) fail(row, column, "is no number above zero");
    return *value;
  }
  [[noreturn]] void fail(const study::TableText::Row& row, Column column,
                         std::string_view what) const {
    throw Failure(
        fmt::format("'{}' in column '{}' {}", row.cells[where_[column]], kColumns[column], what),
        {.file = file_, .line = row.line});
  }

  IterationRow row_of(const study::TableText::Row& row) const {
    IterationRow result{.line = row.line, .make = megatron_deepspeed()};
    Model& model = result.make.model;
    model.layers = count(row, kLayers);
    model.hidden = count(row, kHidden);
    model.heads = count(row, kHeads);
    model.sequence = count(row, kSequence);
    result.make.parallelism = {.tp = static_cast<int>(count(row, kTp)),
                               .pp = static_cast<int>(count(row, kPp)),
                               .dp = static_cast<int>(count(row, kDp))};
    result.make.micro_batch = count(row, kMicroBatch);
    result.make.global_batch = count(row, kGlobalBatch);
    result.measured = Time{std::llround(number(row, kTime) * 1e12)};
    const Parallelism& p = result.make.parallelism;
    if (p.ranks() != count(row, kGpus))
      fail(row, kGpus, "is not the product of the three parallelisms");
    result.text = fmt::format("tp {:>2} dp {:>2} pp {}, micro batch {}", p.tp, p.dp, p.pp,
                              result.make.micro_batch);
    return result;
  }

  study::TableText table_;
  std::string file_;
  std::array<std::size_t, kColumns.size()> where_{};
};

/// Of a row, by term.
std::array<double, IterationRegression::kTerms> terms_of(const IterationRow& row) {
  const MakeRequest& make = row.make;
  const Parallelism& p = make.parallelism;
  const auto micro_batches =
      static_cast<double>(make.global_batch) / static_cast<double>(make.micro_batch) / p.dp;
  const double steps = micro_batches + p.pp - 1;
  const double layer_steps = steps * static_cast<double>(make.model.layers) / p.pp;
  const auto hidden = static_cast<double>(make.model.hidden);
  const double tokens =
      static_cast<double>(make.micro_batch) * static_cast<double>(make.model.sequence);
  const double flop = layer_steps * tokens * 12 * hidden * hidden / p.tp;
  const double bytes = layer_steps * tokens * hidden * (p.tp - 1) / p.tp;
  return {flop, layer_steps, bytes, steps};
}

/// Solves a system with as many equations as unknowns; false where they hang together.
bool solve(std::vector<std::vector<double>> a, std::vector<double>& x) {
  const std::size_t n = a.size();
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t best = i;
    for (std::size_t r = i + 1; r < n; ++r)
      if (std::abs(a[r][i]) > std::abs(a[best][i])) best = r;
    std::swap(a[i], a[best]);
    if (std::abs(a[i][i]) < 1e-12) return false;
    for (std::size_t r = 0; r < n; ++r) {
      if (r == i) continue;
      const double factor = a[r][i] / a[i][i];
      for (std::size_t c = i; c <= n; ++c) a[r][c] -= factor * a[i][c];
    }
  }
  x.resize(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = a[i][n] / a[i][i];
  return true;
}

PairOrder order_of(const std::vector<IterationCheck>& rows, double from, double to) {
  PairOrder order;
  for (std::size_t a = 0; a < rows.size(); ++a) {
    for (std::size_t b = a + 1; b < rows.size(); ++b) {
      if (!rows[a].refused.empty() || !rows[b].refused.empty()) continue;
      const auto first = static_cast<double>(rows[a].row.measured.fs);
      const auto second = static_cast<double>(rows[b].row.measured.fs);
      const double apart = std::max(first, second) / std::min(first, second) - 1;
      if (apart < from || apart >= to) continue;
      ++order.pairs;
      if ((first < second) == (rows[a].simulated < rows[b].simulated)) ++order.right;
    }
  }
  return order;
}

}  // namespace

bool is_iteration_table(std::string_view text) {
  return text.find(kColumns[kTp]) != std::string_view::npos &&
         text.find(kColumns[kTime]) != std::string_view::npos;
}

IterationTable read_iterations(std::string_view text, const std::string& file) {
  return IterationReader(text, file).read();
}

double IterationRegression::time_ms(const IterationRow& row) const {
  const auto terms = terms_of(row);
  double time = 0;
  for (std::size_t t = 0; t < kTerms; ++t) time += constants[t] * terms[t];
  return time;
}

IterationRegression fit_regression(const IterationTable& table) {
  constexpr std::size_t kTerms = IterationRegression::kTerms;
  IterationRegression best{.fitted_to = table.file};
  double least = HUGE_VAL;
  // None is negative: the best of all sets of terms whose own best has none.
  for (unsigned set = 1; set < (1U << kTerms); ++set) {
    std::vector<std::size_t> used;
    for (std::size_t t = 0; t < kTerms; ++t)
      if ((set >> t & 1U) != 0) used.push_back(t);
    std::vector<double> scale(used.size(), 0);
    for (const IterationRow& row : table.rows)
      for (std::size_t u = 0; u < used.size(); ++u)
        scale[u] = std::max(scale[u], terms_of(row)[used[u]]);
    if (std::ranges::any_of(scale, [](double s) { return s <= 0; })) continue;
    std::vector<std::vector<double>> equations(used.size(),
                                               std::vector<double>(used.size() + 1, 0));
    const auto shares = [&](const IterationRow& row) {
      std::vector<double> values;
      const double measured = static_cast<double>(row.measured.fs) * 1e-12;
      for (std::size_t u = 0; u < used.size(); ++u)
        values.push_back(terms_of(row)[used[u]] / scale[u] / measured);
      return values;
    };
    for (const IterationRow& row : table.rows) {
      const std::vector<double> values = shares(row);
      for (std::size_t i = 0; i < used.size(); ++i) {
        for (std::size_t j = 0; j < used.size(); ++j) equations[i][j] += values[i] * values[j];
        equations[i].back() += values[i];
      }
    }
    // Relative to the largest, so that a singular system is seen as one.
    double largest = 0;
    for (const auto& equation : equations)
      for (const double value : equation) largest = std::max(largest, std::abs(value));
    for (auto& equation : equations)
      for (double& value : equation) value /= largest;
    std::vector<double> x;
    if (!solve(equations, x) || std::ranges::any_of(x, [](double c) { return c < 0; })) continue;
    double squares = 0;
    for (const IterationRow& row : table.rows) {
      const std::vector<double> values = shares(row);
      double ratio = 0;
      for (std::size_t u = 0; u < used.size(); ++u) ratio += values[u] * x[u];
      squares += (ratio - 1) * (ratio - 1);
    }
    if (squares >= least) continue;
    least = squares;
    best.constants = {};
    for (std::size_t u = 0; u < used.size(); ++u) best.constants[used[u]] = x[u] / scale[u];
  }
  return best;
}

IterationValidation validate_iterations(
    study::Laboratory& laboratory, const IterationValidationRequest& request,
    const std::function<void(std::size_t, std::size_t)>& on_row) {
  IterationValidation result{.file = request.table.file,
                             .machine = request.machine.name,
                             .regression = fit_regression(request.calibrate)};
  const machine::SharedMachine node = laboratory.machine(request.machine);
  if (node == nullptr)
    throw Failure("iterations are simulated on a machine", {.file = "--machine"},
                  "name one node: dgx-a100");
  std::vector<study::Errors> errors;
  for (std::size_t r = 0; r < request.table.rows.size(); ++r) {
    if (on_row) on_row(r, request.table.rows.size());
    IterationCheck check{.row = request.table.rows[r]};
    const double measured = static_cast<double>(check.row.measured.fs) * 1e-12;
    check.regression_error = result.regression.time_ms(check.row) / measured - 1;
    study::MachineChoice machine = request.machine;
    const auto ranks = check.row.make.parallelism.ranks();
    if (ranks > node->ranks())
      machine.name += fmt::format(":{}", (ranks + node->ranks() - 1) / node->ranks());
    machine.ranks = std::to_string(ranks);
    try {
      const IterationOutcome outcome = run_iteration(
          laboratory, {.workload = std::make_shared<const Workload>(make_workload(check.row.make)),
                       .machine = machine,
                       .costs = request.costs});
      check.simulated = outcome.result.time;
      check.error = static_cast<double>(check.simulated.fs) * 1e-12 / measured - 1;
      errors.push_back({.simulated = check.error, .trivial = check.regression_error});
    } catch (const Failure& failure) {
      check.refused = failure.diagnostics().items().front().message;
    }
    result.rows.push_back(std::move(check));
  }
  result.summary = study::summarise(errors);
  result.beyond_10 = order_of(result.rows, 0.10, HUGE_VAL);
  result.from_3_to_10 = order_of(result.rows, 0.03, 0.10);
  return result;
}

}  // namespace hemiola::workload
