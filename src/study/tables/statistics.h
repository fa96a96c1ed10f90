// How far simulated times are from measured ones, and how far a trivial model is.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/data_type.h"
#include "core/units.h"

namespace hemiola::study {

/// Ranges of sizes in which different things take the time; 1 MB = 10^6 B.
enum class Regime { below_1MB, from_1MB, from_64MB, from_128MB };
constexpr std::size_t kRegimes = 4;
Regime regime_of(Bytes size);
std::string_view name_of(Regime regime);  ///< the keys of JSON: "<1MB", "1-64MB", ...

/// Errors are relative to what was measured: estimated / measured - 1.
struct Errors {
  double simulated = 0;
  double trivial = 0;
  double with_software = 0;  ///< of the simulated time plus a constant (fit_constant)
};

/// All but `bias` of absolute errors, 0.1 being 10 %. All zero where there are none.
struct Summary {
  int n = 0;
  /// exp(mean log(simulated / measured)) - 1, with its sign: below zero where simulated times are
  /// too short. Where all are too long it is `geomean`, where all are too short 1/(1 + geomean)
  /// - 1.
  double bias = 0;
  double median = 0;  ///< of an even number the mean of the middle two
  double worst = 0;
  double geomean = 0;  ///< exp(mean |log(simulated / measured)|) - 1
  double trivial_median = 0;
  double median_with_software = 0;
};
/// Every simulated error must be above -1: times are positive.
Summary summarise(std::span<const Errors> errors);
/// Of at least one value; of an even number the mean of the middle two.
double median_of(std::vector<double> values);

/// What the trivial model knows of a row.
struct TrivialRow {
  Bytes size{};
  Collective collective = Collective::custom;
  int ranks = 1;
  double time_us = 0;  ///< measured; greater than zero

  /// What each rank has to send: 2(n-1)/n of the size for an all-reduce, and so on (bus_factor).
  double bytes_to_send() const {
    return bus_factor(collective, ranks) * static_cast<double>(size.count);
  }
};

/// latency + bytes to send / bandwidth: what every simulator has to beat.
struct TrivialModel {
  double latency_us = 0;
  double us_per_byte = 0;  ///< of those that a rank has to send
  std::string fitted_to;   ///< which rows
  int rows = 0;            ///< how many

  double time_us(const TrivialRow& row) const {
    return latency_us + us_per_byte * row.bytes_to_send();
  }
};
/// Least squares of the relative error over the rows; neither part is negative. Rows with as many
/// bytes to send as each other give a latency alone.
TrivialModel fit(std::span<const TrivialRow> rows, std::string fitted_to);

/// The time that, added to every simulated one, makes the squares of the relative errors least; not
/// negative. 0 for no times.
struct TimePair {
  double measured_us = 0, simulated_us = 0;
};
double fit_constant(std::span<const TimePair> times);

}  // namespace hemiola::study
