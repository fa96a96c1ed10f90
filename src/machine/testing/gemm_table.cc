#include "machine/testing/gemm_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace hemiola::machine {
namespace {

/// Cells of a line; none of these tables quotes.
std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  while (true) {
    const auto comma = line.find(',');
    cells.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return cells;
    line.remove_prefix(comma + 1);
  }
}

/// "f32xf32->f32" is named by its first operand.
std::optional<DataType> type_of(std::string_view name) {
  name = name.substr(0, name.find('x'));
  if (name == "f32") return DataType::float32;
  if (name.substr(0, 4) == "f8e4" || name == "fp8" || name == "fp8_block")
    return DataType::fp8_e4m3;
  if (name.substr(0, 4) == "f8e5") return DataType::fp8_e5m2;
  return parse_data_type(name);
}

class TableReader {
 public:
  TableReader(const std::string& file, const std::vector<DataType>& types)
      : file_(file), types_(types) {}

  void read(std::string_view line) {
    ++line_;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.empty() || line.front() == '#') return;
    const auto cells = cells_of(line);
    if (m_ < 0)
      read_header(cells);
    else
      read_row(cells);
  }
  std::vector<GemmRow> rows() {
    if (m_ < 0) throw Failure("a GEMM table without a header line", at());
    return std::move(rows_);
  }

 private:
  SourceLocation at() const { return {.file = file_, .line = line_}; }

  void read_header(const std::vector<std::string_view>& cells) {
    columns_ = cells.size();
    for (int i = 0; i < static_cast<int>(cells.size()); ++i) {
      const std::string_view name = cells[static_cast<std::size_t>(i)];
      if (name == "m") m_ = i;
      if (name == "n") n_ = i;
      if (name == "k") k_ = i;
      if (name == "time_us") time_ = i;
      if (name == "b" || name == "batch") batch_ = i;
      if (name == "dtype" || name == "dtypes") type_ = i;
      if (name == "dtypes") launch_us_ = kTracedLaunchUs;
    }
    if (std::min({m_, n_, k_, time_, type_}) >= 0) return;
    throw Failure("a GEMM table lacks a column", at(),
                  "its header names at least dtype, m, n, k and time_us");
  }

  template <typename Number>
  Number number(const std::vector<std::string_view>& cells, int column) const {
    const std::string_view text = cells[static_cast<std::size_t>(column)];
    Number value{};
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc() || end != text.data() + text.size() || !(value > 0))
      throw Failure("'" + std::string(text) + "' is not a number above zero", at());
    return value;
  }

  void read_row(const std::vector<std::string_view>& cells) {
    if (cells.size() != columns_) {
      throw Failure("a row of " + std::to_string(cells.size()) + " cells under a header of " +
                        std::to_string(columns_),
                    at());
    }
    const std::string_view name = cells[static_cast<std::size_t>(type_)];
    const auto type = type_of(name);
    if (!type) throw Failure("unknown type '" + std::string(name) + "'", at());
    GemmRow row{.shape = {.m = number<std::int64_t>(cells, m_),
                          .n = number<std::int64_t>(cells, n_),
                          .k = number<std::int64_t>(cells, k_),
                          .type = *type},
                .measured_us = number<double>(cells, time_),
                .launch_us = launch_us_};
    if (batch_ >= 0) row.shape.batch = number<std::int64_t>(cells, batch_);
    if (size_of(*type) == 1) row.shape.output = DataType::bfloat16;
    if (std::find(types_.begin(), types_.end(), *type) != types_.end()) rows_.push_back(row);
  }

  const std::string& file_;
  const std::vector<DataType>& types_;
  int line_ = 0;
  std::size_t columns_ = 0;
  int m_ = -1, n_ = -1, k_ = -1, time_ = -1, batch_ = -1, type_ = -1;
  double launch_us_ = 0;
  std::vector<GemmRow> rows_;
};

double median_error(const GemmRoofline& roofline, const GpuModel& model,
                    const std::vector<GemmRow>& rows) {
  std::vector<double> modelled;
  for (const GemmRow& row : rows) modelled.push_back(roofline.time_us(model, row.shape));
  return gemm_errors(rows, modelled, 0).median;
}

}  // namespace

std::vector<GemmRow> parse_gemm_table(std::string_view csv, const std::string& file,
                                      const std::vector<DataType>& types) {
  TableReader reader(file, types);
  while (!csv.empty()) {
    const auto end = std::min(csv.find('\n'), csv.size());
    reader.read(csv.substr(0, end));
    csv.remove_prefix(std::min(end + 1, csv.size()));
  }
  return reader.rows();
}

double GemmRoofline::time_us(const GpuModel& model, const GemmShape& shape) const {
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const double m = number(shape.m), n = number(shape.n), k = number(shape.k);
  const double batch = number(shape.batch);
  const double peak = number(matrix_rate(model, shape.type)) * number(model.cu_count) *
                      number(model.cu_clock.hertz);
  const double bytes = batch * (size_of(shape.type) * k * (m + n) +
                                size_of(shape.output.value_or(shape.type)) * m * n);
  return latency_us +
         1e6 * std::max(2 * m * n * k * batch / (peak * matrix_share),
                        bytes / (number(model.hbm_rate.bytes_per_second) * memory_share));
}

GemmRoofline fit_roofline(const GpuModel& model, const std::vector<GemmRow>& rows) {
  GemmRoofline best;
  double least = median_error(best, model, rows);
  // A coarse grid, then two finer ones around the best of the one before.
  GemmRoofline middle{.latency_us = 5, .matrix_share = 0.7, .memory_share = 0.8};
  for (const double width : {1.0, 0.25, 0.06}) {
    for (int i = -4; i <= 4; ++i) {
      for (int j = -4; j <= 4; ++j) {
        for (int l = -4; l <= 4; ++l) {
          const GemmRoofline tried{.latency_us = middle.latency_us * (1 + width * i / 5),
                                   .matrix_share = middle.matrix_share * (1 + width * j / 5),
                                   .memory_share = middle.memory_share * (1 + width * l / 5)};
          const double error = median_error(tried, model, rows);
          if (error < least) {
            least = error;
            best = tried;
          }
        }
      }
    }
    middle = best;
  }
  return best;
}

GemmErrors gemm_errors(const std::vector<GemmRow>& rows, const std::vector<double>& modelled_us,
                       std::int64_t least) {
  std::vector<double> errors;
  double logarithms = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const GemmShape& shape = rows[i].shape;
    if (std::min({shape.m, shape.n, shape.k}) < least) continue;
    const double ratio = (modelled_us[i] + rows[i].launch_us) / rows[i].measured_us;
    errors.push_back(std::abs(ratio - 1));
    logarithms += std::abs(std::log(ratio));
  }
  if (errors.empty()) return {};
  std::sort(errors.begin(), errors.end());
  return {.rows = errors.size(),
          .median = errors[errors.size() / 2],
          .worst = errors.back(),
          .geometric_mean = std::exp(logarithms / static_cast<double>(errors.size())) - 1};
}

}  // namespace hemiola::machine
