#include "study/tables/statistics.h"

#include <algorithm>
#include <cmath>

namespace hemiola::study {

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Regime regime_of(Bytes size) {
  constexpr std::int64_t kMegabyte = 1'000'000;
  if (size.count < kMegabyte) return Regime::below_1MB;
  if (size.count < 64 * kMegabyte) return Regime::from_1MB;
  if (size.count < 128 * kMegabyte) return Regime::from_64MB;
  return Regime::from_128MB;
}

std::string_view name_of(Regime regime) {
  constexpr std::array<std::string_view, kRegimes> kNames{"<1MB", "1-64MB", "64-128MB", ">=128MB"};
  return kNames[static_cast<std::size_t>(regime)];
}

Summary summarise(std::span<const Errors> errors) {
  if (errors.empty()) return {};
  Summary summary{.n = static_cast<int>(errors.size())};
  std::vector<double> simulated, trivial, with_software;
  double logarithms = 0, signed_logarithms = 0;
  for (const Errors& error : errors) {
    simulated.push_back(std::abs(error.simulated));
    trivial.push_back(std::abs(error.trivial));
    with_software.push_back(std::abs(error.with_software));
    logarithms += std::abs(std::log1p(error.simulated));
    signed_logarithms += std::log1p(error.simulated);
  }
  summary.worst = *std::ranges::max_element(simulated);
  summary.geomean = std::expm1(logarithms / static_cast<double>(errors.size()));
  summary.bias = std::expm1(signed_logarithms / static_cast<double>(errors.size()));
  summary.median = median_of(std::move(simulated));
  summary.trivial_median = median_of(std::move(trivial));
  summary.median_with_software = median_of(std::move(with_software));
  return summary;
}

TrivialModel fit(std::span<const TrivialRow> rows, std::string fitted_to) {
  TrivialModel model{.fitted_to = std::move(fitted_to), .rows = static_cast<int>(rows.size())};
  // Minimise the sum of (latency x + us_per_megabyte y - 1)^2, x = 1 / time, y = megabytes / time.
  double xx = 0, xy = 0, yy = 0, x_sum = 0, y_sum = 0;
  for (const TrivialRow& row : rows) {
    const double x = 1 / row.time_us, y = row.bytes_to_send() * 1e-6 * x;
    xx += x * x;
    xy += x * y;
    yy += y * y;
    x_sum += x;
    y_sum += y;
  }
  if (xx == 0) return model;
  const double determinant = xx * yy - xy * xy;
  double slope = 0;
  model.latency_us = x_sum / xx;
  if (determinant > 1e-12 * xx * yy) {
    model.latency_us = (x_sum * yy - y_sum * xy) / determinant;
    slope = (y_sum * xx - x_sum * xy) / determinant;
  }
  if (model.latency_us < 0) {
    model.latency_us = 0;
    slope = y_sum / yy;
  } else if (slope < 0) {
    slope = 0;
    model.latency_us = x_sum / xx;
  }
  model.us_per_byte = slope * 1e-6;
  return model;
}

double fit_constant(std::span<const TimePair> times) {
  double xx = 0, xy = 0;
  for (const TimePair& time : times) {
    const double x = 1 / time.measured_us;
    xx += x * x;
    xy += x * (1 - time.simulated_us * x);
  }
  return xx > 0 ? std::max(0.0, xy / xx) : 0;
}

}  // namespace hemiola::study
